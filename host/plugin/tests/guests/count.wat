;; Ready on its first call; on a later one in the same instance it traps.
(global $called (mut i32) (i32.const 0))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (if (i32.or (global.get $called) (i32.load (i32.const 1024))) (then (unreachable)))
  (global.set $called (i32.const 1))
  (i32.store (i32.const 1024) (i32.const 1))
  (i32.const 256))

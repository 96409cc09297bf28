;; Calls itself without end.
(func $deeper (param i32) (result i32)
  (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $deeper (i32.const 0)))

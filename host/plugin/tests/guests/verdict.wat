;; Returns a verdict that does not exist.
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.store8 (i32.const 264) (i32.const 9))
  (i32.const 256))

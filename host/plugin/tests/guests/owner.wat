;; Fails with the owner it was given, until the inputs change.
(import "pintle:plugin/inputs@0.1.0" "owner" (func $owner (param i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.store8 (i32.const 256) (i32.const 1))
  (call $owner (i32.const 268))
  (i32.const 256))

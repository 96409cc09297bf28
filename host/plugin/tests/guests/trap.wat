;; Traps at once.
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (unreachable))

;; Fails with a message that is not UTF-8.
;; text $message: "a\ff\feb"
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store (i32.const 268) (global.get $message))
  (i32.store (i32.const 272) (global.get $message.len))
  (i32.const 256))

;; Logs one warning with a field, both with characters that no terminal should get, and is ready.
;; text $message: "slow\1b[2J node"
;; text $key: "node"
;; text $value: "a\0db"
(import "pintle:plugin/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.store (i32.const 384) (global.get $key))
  (i32.store (i32.const 388) (global.get $key.len))
  (i32.store (i32.const 392) (global.get $value))
  (i32.store (i32.const 396) (global.get $value.len))
  (call $emit (i32.const 3) (global.get $message) (global.get $message.len) (i32.const 384) (i32.const 1))
  (i32.const 256))

;; Logs without end.
;; text $line: "spam"
(import "pintle:plugin/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (loop $again
    (call $emit (i32.const 2) (global.get $line) (global.get $line.len) (i32.const 0) (i32.const 0))
    (br $again))
  (unreachable))

;; Logs 150 lines and is ready: more than the budget, no flood.
;; text $line: "hello"
(import "pintle:plugin/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (local $left i32)
  (local.set $left (i32.const 150))
  (loop $again
    (call $emit (i32.const 2) (global.get $line) (global.get $line.len) (i32.const 0) (i32.const 0))
    (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
  (i32.const 256))

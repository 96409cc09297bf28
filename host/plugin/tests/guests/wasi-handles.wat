;; Takes handles without end.
;; world: include pintle:plugin/readiness-plugin@0.1.0; import wasi:cli/stdout@0.2.0;
(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (loop $again (drop (call $stdout)) (br $again))
  (unreachable))

;; Prints two lines, the first with an escape for terminals, and is ready.
;; world: include pintle:plugin/readiness-plugin@0.1.0; import wasi:cli/stdout@0.2.0; import wasi:io/streams@0.2.0;
;; text $lines: "hello\1b[2J\0asecond\0a"
(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $write (call $stdout) (global.get $lines) (global.get $lines.len) (i32.const 640))
  (if (i32.load8_u (i32.const 640)) (then (unreachable)))
  (i32.const 256))

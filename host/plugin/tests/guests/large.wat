;; Starts with 128 MiB of memory.
;; memory: 2048
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

;; Fails with a message of 32 MiB.
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (drop (memory.grow (i32.const 520)))
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store (i32.const 268) (i32.const 65536))
  (i32.store (i32.const 272) (i32.const 33554432))
  (i32.const 256))

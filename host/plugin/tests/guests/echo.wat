;; Fails with the target it was given, to be tried again with back-off.
(func (export "pintle:plugin/readiness@0.1.0#check") (param $arguments i32) (result i32)
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store8 (i32.const 264) (i32.const 1))
  (i32.store (i32.const 268) (i32.load offset=64 (local.get $arguments)))
  (i32.store (i32.const 272) (i32.load offset=68 (local.get $arguments)))
  (i32.const 256))

;; A post-renderer that fails with the first object it was given.
;; world: include pintle:plugin/post-renderer-plugin@0.1.0;
(func (export "pintle:plugin/post-renderer@0.1.0#post-render") (param $arguments i32) (result i32)
  (local $first i32)
  (local.set $first (i32.load offset=64 (local.get $arguments)))
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store8 (i32.const 260) (i32.const 1))
  (i64.store (i32.const 264) (i64.load offset=32 (local.get $first)))
  (i32.const 256))

;; A post-renderer that returns each object as it was given, under the same key.
;; world: include pintle:plugin/post-renderer-plugin@0.1.0;
;; state, pool and name of the release are flat parameters; the list of objects is the last two.
(func (export "pintle:plugin/post-renderer@0.1.0#post-render") (param $arguments i32) (result i32)
  (local $from i32) (local $to i32) (local $left i32)
  (local.set $from (i32.load offset=64 (local.get $arguments)))
  (local.set $left (i32.load offset=68 (local.get $arguments)))
  (local.set $to (i32.const 1024))
  (i32.store (i32.const 260) (local.get $to))
  (i32.store (i32.const 264) (local.get $left))
  (block $done
    (loop $next
      (br_if $done (i32.eqz (local.get $left)))
      ;; key, state, then the object behind pool and source
      (i64.store (local.get $to) (i64.load (local.get $from)))
      (i64.store offset=8 (local.get $to) (i64.load offset=8 (local.get $from)))
      (i32.store8 offset=16 (local.get $to) (i32.const 1))
      (i64.store offset=20 (local.get $to) (i64.load offset=32 (local.get $from)))
      (local.set $from (i32.add (local.get $from) (i32.const 40)))
      (local.set $to (i32.add (local.get $to) (i32.const 28)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $next)))
  (i32.const 256))

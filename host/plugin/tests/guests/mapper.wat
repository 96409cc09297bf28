;; A value mapper that maps nothing; it has no readiness.
;; world: include pintle:plugin/value-mapper-plugin@0.1.0;
;; text $nothing: "{}"
(func (export "pintle:plugin/value-mapper@0.1.0#map-values")
  (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
  (i32.store (i32.const 260) (global.get $nothing))
  (i32.store (i32.const 264) (global.get $nothing.len))
  (i32.const 256))

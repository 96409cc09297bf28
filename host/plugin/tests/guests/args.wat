;; Accepts any config, and no arguments: what is longer than `{}` is refused.
;; manifest: none
;; text $manifest: "{\22manifest\22:\22pintle.dev/manifest/v1\22,\22name\22:\22n\22,\22version\22:\221\22}"
;; text $why: "no arguments, please"
(func (export "pintle:plugin/plugin-info@0.1.0#describe") (result i32)
  (i32.store (i32.const 512) (global.get $manifest))
  (i32.store (i32.const 516) (global.get $manifest.len))
  (i32.const 512))
(func (export "pintle:plugin/plugin-info@0.1.0#validate-config") (param i32 i32 i32) (param $args i32) (result i32)
  (i32.store8 (i32.const 768) (i32.gt_u (local.get $args) (i32.const 2)))
  (i32.store (i32.const 776) (global.get $why))
  (i32.store (i32.const 780) (global.get $why.len))
  (i32.const 768))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

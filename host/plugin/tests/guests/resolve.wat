;; Looks an image up and fails with its digest, or with the error.
;; world: include pintle:plugin/readiness-plugin@0.1.0; import pintle:plugin/images@0.1.0;
;; text $image: "r.example/vendor/driver:1"
(import "pintle:plugin/images@0.1.0" "resolve" (func $resolve (param i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $resolve (global.get $image) (global.get $image.len) (i32.const 640))
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store8 (i32.const 264) (i32.const 2))
  (if (i32.eqz (i32.load8_u (i32.const 640)))
    (then (i64.store (i32.const 268) (i64.load (i32.const 648))))
    (else (i64.store (i32.const 268) (i64.load (i32.const 656)))))
  (i32.const 256))

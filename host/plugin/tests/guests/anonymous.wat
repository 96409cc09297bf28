;; Has readiness and does not say who it is.
;; manifest: none
;; world: export pintle:plugin/readiness@0.1.0;
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

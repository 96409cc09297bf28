;; Its manifest is no JSON.
;; manifest: {"manifest":
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

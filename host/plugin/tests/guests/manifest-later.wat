;; Its manifest is of a later format.
;; manifest: {"manifest":"pintle.dev/manifest/v9","name":"n","version":"1"}
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

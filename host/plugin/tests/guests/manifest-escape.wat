;; Its manifest is a name with an escape.
;; manifest: {"manifest":"pintle.dev/manifest/v1","name":"n\u001b[2J","version":"1"}
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

;; Traps when it is asked who it is.
;; manifest: none
(func (export "pintle:plugin/plugin-info@0.1.0#describe") (result i32)
  (unreachable))
(func (export "pintle:plugin/plugin-info@0.1.0#validate-config") (param i32 i32 i32 i32) (result i32)
  (i32.const 528))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.const 256))

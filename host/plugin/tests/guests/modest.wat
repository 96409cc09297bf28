;; Asks for more memory than there is, copes without, and is ready.
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (drop (memory.grow (i32.const 60000)))
  (i32.const 256))

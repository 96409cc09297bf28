;; Reads the log of Pod n/p and fails with it, or with the error.
;; world: include pintle:plugin/readiness-plugin@0.1.0; import pintle:plugin/pod-logs@0.1.0;
;; text $version: "v1"
;; text $kind: "Pod"
;; text $namespace: "n"
;; text $name: "p"
(import "pintle:plugin/pod-logs@0.1.0" "tail"
  (func $tail (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $tail (global.get $version) (global.get $version.len) (global.get $kind) (global.get $kind.len)
    (i32.const 1) (global.get $namespace) (global.get $namespace.len) (global.get $name) (global.get $name.len)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 10) (i32.const 0) (i32.const 640))
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store8 (i32.const 264) (i32.const 2))
  (if (i32.eqz (i32.load8_u (i32.const 640)))
    (then
      (i32.store (i32.const 268) (i32.load (i32.const 648)))
      (i32.store (i32.const 272) (i32.load (i32.const 652))))
    (else
      (i32.store (i32.const 268) (i32.load (i32.const 656)))
      (i32.store (i32.const 272) (i32.load (i32.const 660)))))
  (i32.const 256))

;; Reads Pod n/p and is ready whatever it is given.
;; text $version: "v1"
;; text $kind: "Pod"
;; text $namespace: "n"
;; text $name: "p"
(import "pintle:plugin/kube-read@0.1.0" "get"
  (func $get (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $get (global.get $version) (global.get $version.len) (global.get $kind) (global.get $kind.len)
    (i32.const 1) (global.get $namespace) (global.get $namespace.len) (global.get $name) (global.get $name.len)
    (i32.const 0) (i32.const 0) (i32.const 640))
  (i32.const 256))

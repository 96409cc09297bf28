;; Reads Pod n/p and fails with what it was given, or with the error.
;; text $version: "v1"
;; text $kind: "Pod"
;; text $namespace: "n"
;; text $name: "p"
;; text $not-found: "not-found"
;; text $kind-unknown: "kind-unknown"
(import "pintle:plugin/kube-read@0.1.0" "get"
  (func $get (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(func $fail (param $text i32) (param $len i32) (result i32)
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store8 (i32.const 264) (i32.const 2))
  (i32.store (i32.const 268) (local.get $text))
  (i32.store (i32.const 272) (local.get $len))
  (i32.const 256))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $get (global.get $version) (global.get $version.len) (global.get $kind) (global.get $kind.len)
    (i32.const 1) (global.get $namespace) (global.get $namespace.len) (global.get $name) (global.get $name.len)
    (i32.const 0) (i32.const 0) (i32.const 640))
  ;; found: the text is at 648
  (if (i32.eqz (i32.load8_u (i32.const 640)))
    (then (return (call $fail (i32.load (i32.const 648)) (i32.load (i32.const 652))))))
  (if (i32.eq (i32.load8_u (i32.const 648)) (i32.const 1))
    (then (return (call $fail (global.get $not-found) (global.get $not-found.len)))))
  (if (i32.eq (i32.load8_u (i32.const 648)) (i32.const 2))
    (then (return (call $fail (global.get $kind-unknown) (global.get $kind-unknown.len)))))
  ;; denied and unavailable have a text at 656
  (call $fail (i32.load (i32.const 656)) (i32.load (i32.const 660))))

;; Lists Secrets of all namespaces and fails with the first one, or with the error.
;; text $version: "v1"
;; text $kind: "Secret"
;; text $none: "none"
(import "pintle:plugin/kube-read@0.1.0" "find" (func $find (param i32 i32)))
(func $fail (param $text i32) (param $len i32) (result i32)
  (i32.store8 (i32.const 256) (i32.const 1))
  (i32.store8 (i32.const 264) (i32.const 2))
  (i32.store (i32.const 268) (local.get $text))
  (i32.store (i32.const 272) (local.get $len))
  (i32.const 256))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  ;; the parameters are too many to be flat: they are a record, here at 1024, whose rest is absent
  (i32.store (i32.const 1024) (global.get $version))
  (i32.store (i32.const 1028) (global.get $version.len))
  (i32.store (i32.const 1032) (global.get $kind))
  (i32.store (i32.const 1036) (global.get $kind.len))
  (call $find (i32.const 1024) (i32.const 640))
  (if (i32.load8_u (i32.const 640))
    (then (return (call $fail (i32.load (i32.const 656)) (i32.load (i32.const 660))))))
  (if (i32.eqz (i32.load (i32.const 652)))
    (then (return (call $fail (global.get $none) (global.get $none.len)))))
  (call $fail (i32.load (i32.load (i32.const 648))) (i32.load offset=4 (i32.load (i32.const 648)))))

;; Lists the names of all Namespaces, page by page, and is ready when there is no page left.
;; text $version: "v1"
;; text $kind: "Namespace"
;; text $field: "metadata.name"
(import "pintle:plugin/kube-read@0.1.0" "find" (func $find (param i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  ;; the parameters are too many to be flat: they are a record, here at 1024, whose rest is absent
  (i32.store (i32.const 1024) (global.get $version))
  (i32.store (i32.const 1028) (global.get $version.len))
  (i32.store (i32.const 1032) (global.get $kind))
  (i32.store (i32.const 1036) (global.get $kind.len))
  (i32.store (i32.const 900) (global.get $field))
  (i32.store (i32.const 904) (global.get $field.len))
  (i32.store (i32.const 1076) (i32.const 900))
  (i32.store (i32.const 1080) (i32.const 1))
  (loop $page
    (call $find (i32.const 1024) (i32.const 640))
    (if (i32.load8_u (i32.const 640)) (then (unreachable)))
    ;; the token of the next page goes into the next question as it is
    (i64.store (i32.const 1088) (i64.load (i32.const 656)))
    (i32.store (i32.const 1096) (i32.load (i32.const 664)))
    (br_if $page (i32.load8_u (i32.const 656))))
  (i32.const 256))

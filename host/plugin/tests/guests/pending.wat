;; One node is missing; the message has an escape for terminals, the numbers are out of range.
;; text $node: "node-a"
;; text $reason: "DriverNotLoaded"
;; text $message: "wait\1b[31m for it"
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (i32.store8 (i32.const 264) (i32.const 1))
  (i32.store (i32.const 272) (i32.const 384))
  (i32.store (i32.const 276) (i32.const 1))
  (i32.store8 (i32.const 288) (i32.const 1))
  (i32.store8 (i32.const 304) (i32.const 1))
  (i32.store8 (i32.const 305) (i32.const 255))
  ;; the blocker: no object, a node, reason, message
  (i32.store8 (i32.const 424) (i32.const 1))
  (i32.store (i32.const 428) (global.get $node))
  (i32.store (i32.const 432) (global.get $node.len))
  (i32.store (i32.const 436) (global.get $reason))
  (i32.store (i32.const 440) (global.get $reason.len))
  (i32.store (i32.const 444) (global.get $message))
  (i32.store (i32.const 448) (global.get $message.len))
  (i32.const 256))

;; A component that wants what no host of ours offers, and is no plugin.
(component
  (import "acme:gpu/read@1.0.0" (instance (export "count" (func (result u32))))))

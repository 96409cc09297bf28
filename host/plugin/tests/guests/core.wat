;; A core module, before anything made a component of it.
(module (func (export "check")))

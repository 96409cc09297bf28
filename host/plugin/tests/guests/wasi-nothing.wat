;; Ready when WASI shows no variable, no argument and no folder, and finds no address; else it traps.
;; world: include pintle:plugin/readiness-plugin@0.1.0; import wasi:cli/environment@0.2.0; import wasi:filesystem/preopens@0.2.0; import wasi:sockets/instance-network@0.2.0; import wasi:sockets/ip-name-lookup@0.2.0;
;; text $host: "localhost"
(import "wasi:cli/environment@0.2.0" "get-environment" (func $variables (param i32)))
(import "wasi:cli/environment@0.2.0" "get-arguments" (func $arguments (param i32)))
(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $folders (param i32)))
(import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))
(import "wasi:sockets/ip-name-lookup@0.2.0" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (call $variables (i32.const 640))
  (if (i32.load (i32.const 644)) (then (unreachable)))
  (call $arguments (i32.const 640))
  (if (i32.load (i32.const 644)) (then (unreachable)))
  (call $folders (i32.const 640))
  (if (i32.load (i32.const 644)) (then (unreachable)))
  (call $resolve (call $network) (global.get $host) (global.get $host.len) (i32.const 640))
  (if (i32.eqz (i32.load8_u (i32.const 640))) (then (unreachable)))
  (i32.const 256))

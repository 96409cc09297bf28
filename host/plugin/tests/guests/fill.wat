;; Fills 48 MiB again and again: bulk operations are interrupted only between two of them.
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (drop (memory.grow (i32.const 768)))
  (loop $again
    (memory.fill (i32.const 65536) (i32.const 7) (i32.const 50000000))
    (br $again))
  (unreachable))

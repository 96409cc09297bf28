;; Takes table elements until there are none left.
(table $table 1 funcref)
(func (export "pintle:plugin/readiness@0.1.0#check") (param i32) (result i32)
  (loop $more
    (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1))))
  (unreachable))

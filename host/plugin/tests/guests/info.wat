;; Says who it is and can do nothing.
;; world: export pintle:plugin/plugin-info@0.1.0;

;; The smallest component; it is no plugin.
(component)

//! Types and traits made from `wit/plugin.wit`, bound once for every interface a plugin may have.

wasmtime::component::bindgen!({
    world: "full-plugin",
    path: "../../wit",
    imports: { default: async | trappable },
    exports: { default: async },
});

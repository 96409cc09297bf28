//! Types and functions made from `wit/plugin.wit`. Plugins use them through the rest of this crate.
#![allow(
    missing_docs,
    clippy::mem_forget,
    reason = "made from the interface, whose comments are its documentation"
)]

wit_bindgen::generate!({
    path: "../wit",
    inline: "
        package pintle:sdk;
        /// All that a readiness plugin may use; what it does not call is not imported.
        world readiness {
            include pintle:plugin/readiness-plugin@0.1.0;
            import pintle:plugin/pod-logs@0.1.0;
            import pintle:plugin/step-clock@0.1.0;
        }
    ",
    world: "pintle:sdk/readiness",
    generate_all,
    additional_derives: [PartialEq],
    pub_export_macro: true,
    export_macro_name: "export_readiness_world",
    default_bindings_module: "pintle_plugin_sdk::bindings",
});

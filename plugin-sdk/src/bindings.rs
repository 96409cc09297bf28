//! Types and functions made from `wit/plugin.wit`. Plugins use them through the rest of this crate.
//!
//! One world for all that a plugin may import and for who it is, and one for each function it may
//! offer: what a component exports is then what its author named, and what it imports what it calls.
#![allow(
    missing_docs,
    clippy::mem_forget,
    reason = "made from the interface, whose comments are its documentation"
)]

wit_bindgen::generate!({
    path: "../wit",
    inline: "
        package pintle:sdk;
        /// All that a plugin may use, and who it is.
        world plugin {
            include pintle:plugin/base@0.1.0;
            import pintle:plugin/images@0.1.0;
            import pintle:plugin/pod-logs@0.1.0;
            import pintle:plugin/step-clock@0.1.0;
        }
    ",
    world: "pintle:sdk/plugin",
    generate_all,
    additional_derives: [PartialEq],
    pub_export_macro: true,
    export_macro_name: "export_plugin_info",
    default_bindings_module: "pintle_plugin_sdk::bindings",
});

pub mod mapper {
    //! World of `value-mapper`.
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package pintle:sdk-mapper; world mapper { export pintle:plugin/value-mapper@0.1.0; }",
        world: "pintle:sdk-mapper/mapper",
        with: { "pintle:plugin/types@0.1.0": crate::bindings::pintle::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_value_mapper",
        default_bindings_module: "pintle_plugin_sdk::bindings::mapper",
    });
    pub use exports::pintle::plugin::value_mapper::{Guest, Mapping, PoolValues};
}

pub mod renderer {
    //! World of `post-renderer`.
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package pintle:sdk-renderer; world renderer { export pintle:plugin/post-renderer@0.1.0; }",
        world: "pintle:sdk-renderer/renderer",
        with: { "pintle:plugin/types@0.1.0": crate::bindings::pintle::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_post_renderer",
        default_bindings_module: "pintle_plugin_sdk::bindings::renderer",
    });
    pub use exports::pintle::plugin::post_renderer::{Edit, Edits, Guest, Rendered};
}

pub mod readiness {
    //! World of `readiness`.
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package pintle:sdk-readiness; world readiness { export pintle:plugin/readiness@0.1.0; }",
        world: "pintle:sdk-readiness/readiness",
        with: { "pintle:plugin/types@0.1.0": crate::bindings::pintle::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_readiness",
        default_bindings_module: "pintle_plugin_sdk::bindings::readiness",
    });
    pub use exports::pintle::plugin::readiness::{Answer, Guest};
}

pub mod hooks {
    //! World of `hooks`.
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package pintle:sdk-hooks; world hooks { export pintle:plugin/hooks@0.1.0; }",
        world: "pintle:sdk-hooks/hooks",
        with: { "pintle:plugin/types@0.1.0": crate::bindings::pintle::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_hooks",
        default_bindings_module: "pintle_plugin_sdk::bindings::hooks",
    });
    pub use exports::pintle::plugin::hooks::{Guest, Outcome, Phase, Step};
}

pub mod reconciler {
    //! World of `reconciler`.
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package pintle:sdk-reconciler; world reconciler { export pintle:plugin/reconciler@0.1.0; }",
        world: "pintle:sdk-reconciler/reconciler",
        with: { "pintle:plugin/types@0.1.0": crate::bindings::pintle::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_reconciler",
        default_bindings_module: "pintle_plugin_sdk::bindings::reconciler",
    });
    pub use exports::pintle::plugin::reconciler::{Desired, Guest};
}

//! Why a plugin is not there.

use crate::{
    call::failure::CallFailure, code::CompileError, grants::GrantError, limits::LimitError,
    manifest::ManifestError,
};

/// Why a plugin is not there. None is mended by a retry: the component or its Plugin must change.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no component that can be compiled.
    #[error("could not compile the component")]
    Compile(#[from] CompileError),
    /// A limit of the Plugin cannot be kept.
    #[error("the limits of Plugin {plugin} cannot be kept")]
    Limits {
        /// Name of the Plugin.
        plugin: String,
        /// Which, and why.
        source: LimitError,
    },
    /// A grant of the Plugin cannot be given.
    #[error("the grants of Plugin {plugin} cannot be given")]
    Grants {
        /// Name of the Plugin.
        plugin: String,
        /// Which, and why.
        source: GrantError,
    },
    /// It was built for WASI, which is off.
    #[error(
        "the component imports {}; the line `wasi: true` under spec of Plugin {plugin} would offer them, \
         without files, network and real clocks", .imports.join(", ")
    )]
    NeedsWasi {
        /// Name of the Plugin.
        plugin: String,
        /// The interfaces.
        imports: Vec<String>,
    },
    /// It needs what no host of this version offers.
    #[error("the component imports {}, which this host does not offer", .imports.join(", "))]
    UnknownImports {
        /// The interfaces.
        imports: Vec<String>,
    },
    /// An interface it imports is not the one this host offers.
    #[error("the component was built for another version of the host's interfaces")]
    Link(#[source] wasmtime::Error),
    /// It has no function that a plugin has.
    #[error(
        "the component exports none of value-mapper, post-renderer, readiness, hooks, reconciler of \
         pintle:plugin@0.1; it exports {}", list(.found)
    )]
    NoExports {
        /// What it exports instead.
        found: Vec<String>,
    },
    /// It does not say who it is.
    #[error("the component does not export pintle:plugin/plugin-info@0.1, which every plugin must")]
    NoPluginInfo,
    /// It exports an interface with other functions or types.
    #[error("the component was built for another version of {interface}")]
    InterfaceMismatch {
        /// Which interface.
        interface: &'static str,
        /// What differs.
        #[source]
        source: wasmtime::Error,
    },
    /// It needs more before its first call than its limits give.
    #[error("the component starts with {wanted} {unit}, its limits give {limit}")]
    StartsTooLarge {
        /// What it starts with.
        wanted: u64,
        /// What it may have.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
    /// It could not be started or asked who it is.
    #[error("the plugin did not describe itself")]
    Describe(#[source] CallFailure),
    /// What it says about itself cannot be used.
    #[error("the manifest of the plugin cannot be used")]
    Manifest(#[source] ManifestError),
    /// What was told of it before it ran is not what it says.
    #[error(
        "the manifest in {place} is not what the plugin says about itself ({difference}): build and push it again \
         with `pintle plugin build` and `push`"
    )]
    ManifestMismatch {
        /// `the component`, or `the annotation of its image`.
        place: &'static str,
        /// The first field that differs.
        difference: String,
    },
    /// It does not accept `spec.config`.
    #[error("the plugin does not accept spec.config: {0}")]
    Config(String),
}

fn list(found: &[String]) -> String {
    if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }
}

// === impl LoadError ===

impl LoadError {
    /// CamelCase reason for the condition `Ready` of the Plugin.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Compile(CompileError::CoreModule) => "NotAComponent",
            Self::Compile(CompileError::NotWasm) => "NotWebAssembly",
            Self::Compile(CompileError::TooLarge(_)) | Self::StartsTooLarge { .. } => "TooLarge",
            Self::Compile(_) => "NotCompiled",
            Self::Limits { .. } => "InvalidLimits",
            Self::Grants { .. } => "InvalidGrants",
            Self::NeedsWasi { .. } => "NeedsWasi",
            Self::UnknownImports { .. } | Self::Link(_) => "ImportsNotOffered",
            Self::NoExports { .. } | Self::NoPluginInfo => "NotAPlugin",
            Self::InterfaceMismatch { .. } => "InterfaceMismatch",
            Self::Describe(_) => "NotDescribed",
            Self::Manifest(_) => "InvalidManifest",
            Self::ManifestMismatch { .. } => "ManifestMismatch",
            Self::Config(_) => "InvalidConfig",
        }
    }
}

//! From bytes and grants to a plugin that can be called.

mod describe;
mod exports;

use std::{fmt, sync::Arc};

use pintle_api::plugin::PluginSpec;
use tokio::sync::Semaphore;
use wasmtime::component::{Component, InstancePre};

use crate::{
    Call, Engine, Manifest,
    ability::{INTERFACES, inputs::Inputs, log::Lines, log::Quota},
    call::{
        Called, Outcome, Release,
        failure::CallFailure,
        run::{Function, Job},
    },
    compile::{self, CompileError},
    grants::{GrantError, Granted, Scope},
    limits::{self, CallLimits, LimitError},
    manifest::ManifestError,
    mask::Mask,
    reads::Reads,
    state::{Memory, State},
};
pub use exports::Export;
pub(crate) use exports::Exports;

/// What the package of all interfaces is called.
const PACKAGE: &str = "pintle:plugin/";
/// The version of the interfaces that this host speaks; every 0.1.x is compatible with it.
const VERSION: &str = "0.1.0";

/// A component and where it came from.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// Name of the Plugin object, for messages and as prefix of what the plugin says.
    pub name: String,
    /// `sha256:…` of the manifest in the registry; already checked.
    pub digest: String,
    /// The component.
    pub bytes: Arc<[u8]>,
}

/// A plugin that was compiled, tried and described. Cheap to clone.
#[derive(Clone)]
pub struct Plugin(Arc<Parts>);

struct Parts {
    engine: Engine,
    name: Arc<str>,
    digest: String,
    component: Component,
    guest: InstancePre<State>,
    exports: Exports,
    imports: Vec<String>,
    manifest: Manifest,
    applied_fields: Mask,
    granted: Arc<Granted>,
    grants: Arc<str>,
    config: Arc<str>,
    limits: CallLimits,
    calls: Arc<Semaphore>,
    quota: Arc<Quota>,
}

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
            Self::Config(_) => "InvalidConfig",
        }
    }
}

// === impl Plugin ===

impl Plugin {
    /// Compiles a component, tries it once and asks it who it is.
    ///
    /// # Errors
    /// When it is no plugin, or its Plugin object gives it something it cannot be given.
    pub async fn load(engine: &Engine, artifact: Artifact, spec: &PluginSpec) -> Result<Self, LoadError> {
        let Artifact { name, digest, bytes } = artifact;
        let component = compile::compile(engine, bytes).await?;
        let known =
            Known { engine: engine.clone(), name: name.into(), digest, component, quota: Arc::default() };
        known.bind(spec).await
    }

    /// The same component under a changed Plugin object, without compiling it again. Calls that run
    /// go on under the old one.
    ///
    /// # Errors
    /// As [`Plugin::load`].
    pub async fn rebind(&self, spec: &PluginSpec) -> Result<Self, LoadError> {
        let parts = &self.0;
        let known = Known {
            engine: parts.engine.clone(),
            name: Arc::clone(&parts.name),
            digest: parts.digest.clone(),
            component: parts.component.clone(),
            quota: Arc::clone(&parts.quota),
        };
        known.bind(spec).await
    }

    /// Name of the Plugin object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// `sha256:…` of the manifest in the registry.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// What it says about itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// Functions it offers.
    #[must_use]
    pub fn offers(&self) -> Vec<Export> {
        self.0.exports.offered()
    }

    /// Abilities of the host that it imports, such as `kube-read`, and interfaces of WASI.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// What its manifest asks for and no grant gives, as the lines that would give it.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.0.manifest.missing(&self.0.granted)
    }

    /// What each call may use.
    #[must_use]
    pub fn limits(&self) -> CallLimits {
        self.0.limits
    }

    pub(crate) fn exports(&self) -> &Exports {
        &self.0.exports
    }

    pub(crate) fn applied_fields(&self) -> &Mask {
        &self.0.applied_fields
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn calls(&self) -> &Arc<Semaphore> {
        &self.0.calls
    }

    pub(crate) fn quota(&self) -> &Quota {
        &self.0.quota
    }

    pub(crate) fn job<F: Function>(&self, function: F, call: Call) -> Job<F> {
        let Call { facts, release, owner, host_fields, values, saved, own, clock, .. } = call;
        let Release { namespace, .. } = release;
        let parts = &self.0;
        let inputs = Inputs {
            owner: Some(owner),
            host_fields,
            config: Arc::clone(&parts.config),
            values: Some(values),
            saved,
            grants: Arc::clone(&parts.grants),
        };
        let (plugin, granted) = (Arc::clone(&parts.name), Arc::clone(&parts.granted));
        let state = State {
            inputs,
            scope: Scope { plugin, granted, namespace, own },
            reads: Reads::new(facts),
            lines: Lines::default(),
            clock,
            called: Called::default(),
            memory: Memory::new(parts.limits.memory),
            wasi: None,
        };
        let (engine, guest) = (parts.engine.clone(), parts.guest.clone());
        Job { engine, guest, limits: parts.limits, state, function }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { name, digest, imports, .. } = &*self.0;
        f.debug_struct("Plugin")
            .field("name", name)
            .field("digest", digest)
            .field("offers", &self.offers())
            .field("imports", imports)
            .finish_non_exhaustive()
    }
}

/// A compiled component, before it has grants.
struct Known {
    engine: Engine,
    name: Arc<str>,
    digest: String,
    component: Component,
    quota: Arc<Quota>,
}

impl Known {
    async fn bind(self, spec: &PluginSpec) -> Result<Plugin, LoadError> {
        let plugin = || self.name.to_string();
        let limits = CallLimits::try_from(&spec.limits)
            .map_err(|source| LoadError::Limits { plugin: plugin(), source })?;
        let granted =
            Granted::new(&spec.grants).map_err(|source| LoadError::Grants { plugin: plugin(), source })?;
        self.check_size(limits)?;
        let imports = self.check_imports(spec.wasi)?;
        let linker = self.engine.linker(spec.wasi);
        let guest = linker.instantiate_pre(&self.component).map_err(LoadError::Link)?;
        let exports = Exports::find(&self.engine, &self.component, &guest)?;
        let config: Arc<str> = serde_json::Value::Object(spec.config.clone()).to_string().into();
        let manifest = self.describe(&guest, &exports, &config, limits).await?;
        let parts = Parts {
            applied_fields: manifest.mask().map_err(LoadError::Manifest)?,
            grants: serde_json::to_string(&spec.grants).unwrap_or_default().into(),
            granted: Arc::new(granted),
            calls: Arc::new(Semaphore::new(limits::CALLS_OF_ONE)),
            engine: self.engine,
            name: self.name,
            digest: self.digest,
            component: self.component,
            quota: self.quota,
            guest,
            exports,
            imports,
            manifest,
            config,
            limits,
        };
        Ok(Plugin(Arc::new(parts)))
    }

    /// Refuses a component that could never be instantiated within its limits.
    fn check_size(&self, limits: CallLimits) -> Result<(), LoadError> {
        let Some(required) = self.component.resources_required() else { return Ok(()) };
        // Sizes of memories are in pages of WebAssembly.
        let memory = required.max_initial_memory_size.unwrap_or(0).saturating_mul(64 * limits::KIB as u64);
        let checks = [
            (u64::from(required.num_memories), u64::from(limits::MEMORIES), "memories"),
            (u64::from(required.num_tables), u64::from(limits::TABLES), "tables"),
            (memory, limits.memory as u64, "bytes of memory"),
            (required.max_initial_table_size.unwrap_or(0), limits::TABLE_ELEMENTS as u64, "table elements"),
        ];
        match checks.into_iter().find(|(wanted, limit, _)| wanted > limit) {
            Some((wanted, limit, unit)) => Err(LoadError::StartsTooLarge { wanted, limit, unit }),
            None => Ok(()),
        }
    }

    /// The interfaces it imports, without package and version.
    fn check_imports(&self, with_wasi: bool) -> Result<Vec<String>, LoadError> {
        let imports = exports::names(self.component.component_type().imports(self.engine.wasm()));
        let (wasi, others): (Vec<String>, Vec<String>) =
            imports.into_iter().partition(|name| name.starts_with("wasi:"));
        if !with_wasi && !wasi.is_empty() {
            return Err(LoadError::NeedsWasi { plugin: self.name.to_string(), imports: wasi });
        }
        let (known, unknown): (Vec<String>, Vec<String>) =
            others.into_iter().partition(|name| INTERFACES.contains(&exports::short(name)));
        if !unknown.is_empty() {
            return Err(LoadError::UnknownImports { imports: unknown });
        }
        let known = known.iter().map(|name| exports::short(name)).filter(|name| *name != "types");
        Ok(known.map(str::to_owned).chain(wasi).collect())
    }

    async fn describe(
        &self,
        guest: &InstancePre<State>,
        exports: &Exports,
        config: &Arc<str>,
        limits: CallLimits,
    ) -> Result<Manifest, LoadError> {
        let job = Job {
            engine: self.engine.clone(),
            guest: guest.clone(),
            limits: CallLimits { timeout: limits::DESCRIBE_TIME, ..limits },
            state: describe::state(&self.name, config, limits),
            function: describe::Describe { exports: exports.clone(), config: config.to_string() },
        };
        let slot = self.engine.calls().clone().acquire_owned().await;
        let ended = self.engine.lanes().run(async move { (job.run().await, slot) }).await;
        let Ok((done, _slot)) = ended else { return Err(LoadError::Describe(CallFailure::Stopped)) };
        done.state.lines.write(&self.name, "", &self.quota);
        match done.outcome {
            Outcome::Answered(described) => described,
            Outcome::Failed(failure) => Err(LoadError::Describe(failure)),
            // There are no facts while a plugin is described, so there is none to fetch either.
            Outcome::NeedsFacts(_) => Err(LoadError::Describe(CallFailure::Stopped)),
        }
    }
}

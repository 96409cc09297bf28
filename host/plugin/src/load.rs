//! From bytes and grants to a plugin that can be called.

mod describe;
mod error;
mod exports;
mod known;
mod noted;

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_api::plugin::PluginSpec;
use wasmtime::component::InstancePre;

use crate::{
    Call, Engine, Manifest,
    ability::{inputs::Inputs, log::Lines, log::Quota},
    call::{
        Called,
        run::{Function, Job},
    },
    code::{self, Code, Origin},
    engine::Pace,
    grants::{Granted, Scope},
    limits::{self, CallLimits},
    mask::Mask,
    memo::{Asked, Hash},
    reads::Reads,
    slots::Slots,
    state::{Memory, State},
};
use describe::First;
pub use error::LoadError;
pub use exports::Export;
pub(crate) use exports::Exports;
use known::Known;

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
    code: Arc<Code>,
    origin: Origin,
    guest: InstancePre<State>,
    exports: Exports,
    imports: Vec<String>,
    manifest: Manifest,
    applied_fields: Mask,
    granted: Arc<Granted>,
    grants: Arc<str>,
    granted_lines: Vec<String>,
    config: Arc<str>,
    spec: PluginSpec,
    binding: Hash,
    limits: CallLimits,
    calls: Slots,
    accepted_args: AcceptedArgs,
    pace: Pace,
    quota: Arc<Quota>,
}

/// Arguments of annotations that were checked and accepted.
#[derive(Default)]
pub(crate) struct AcceptedArgs(Mutex<HashSet<Hash>>);

// === impl Plugin ===

impl Plugin {
    /// Compiles a component, tries it once and asks it who it is. A manifest in its custom section must be the
    /// one that it gives.
    ///
    /// # Errors
    /// When it is no plugin, or its Plugin object gives it something it cannot be given.
    pub async fn load(engine: &Engine, artifact: Artifact, spec: &PluginSpec) -> Result<Self, LoadError> {
        let Artifact { name, digest, bytes } = artifact;
        let noted = noted::in_section(&bytes).map(<[u8]>::to_vec);
        let config = config_text(spec);
        let first = {
            let (spec, config) = (spec.clone(), config.clone());
            move |component: &Hash| describe::name(component, &spec, &config)
        };
        let code::Loaded { code, origin, said } = code::load(engine, bytes, first.clone()).await?;
        let first = said.map_or_else(|| First::New(first(&code.digest)), First::Said);
        let (engine, name, quota) = (engine.clone(), name.into(), Arc::default());
        let known = Known { engine, name, digest, code, origin, quota, first };
        let plugin = known.bind(spec).await?;
        if let Some(noted) = noted {
            noted::check("the component", &noted, plugin.manifest())?;
        }
        Ok(plugin)
    }

    /// Holds a manifest that stands in the annotation of its image against the one that it gives.
    ///
    /// # Errors
    /// [`LoadError::ManifestMismatch`] when they differ.
    pub fn check_annotation(&self, text: &str) -> Result<(), LoadError> {
        noted::check("the annotation of its image", text.as_bytes(), self.manifest())
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
            code: Arc::clone(&parts.code),
            origin: Origin::Shared,
            quota: Arc::clone(&parts.quota),
            first: First::Passing,
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

    /// What its manifest asks for, as the lines that would give it.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.0.manifest.asked()
    }

    /// What it was granted, as the lines that gave it.
    #[must_use]
    pub fn granted(&self) -> &[String] {
        &self.0.granted_lines
    }

    /// Rights that this one asks for, lacks, and that the other does not ask for: what an upgrade from
    /// the other would need. The upgrade stops while this is not empty, and shows these lines.
    #[must_use]
    pub fn asks_beyond(&self, other: &Plugin) -> Vec<String> {
        let before: HashSet<String> = other.asked().into_iter().collect();
        self.missing().into_iter().filter(|line| !before.contains(line)).collect()
    }

    /// The reason if the manifest lists it, else `Other`: what may be a label of a metric.
    #[must_use]
    pub fn known_reason<'a>(&self, reason: &'a str) -> &'a str {
        if self.0.manifest.reasons.iter().any(|known| known == reason) { reason } else { "Other" }
    }

    /// The Plugin object that it is bound to.
    #[must_use]
    pub fn spec(&self) -> &PluginSpec {
        &self.0.spec
    }

    /// `sha256:…` of the component itself.
    #[must_use]
    pub fn component_digest(&self) -> String {
        let digits = self.0.code.digest.iter().map(|byte| format!("{byte:02x}"));
        format!("sha256:{}", digits.collect::<String>())
    }

    /// Where its machine code came from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.origin
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

    pub(crate) fn calls(&self) -> &Slots {
        &self.0.calls
    }

    pub(crate) fn config(&self) -> &str {
        &self.0.config
    }

    pub(crate) fn binding(&self) -> &Hash {
        &self.0.binding
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.0.pace
    }

    pub(crate) fn accepted_args(&self) -> &AcceptedArgs {
        &self.0.accepted_args
    }

    /// What a call may read and return.
    pub(crate) fn scope(&self, call: &Call) -> Scope {
        Scope {
            plugin: Arc::clone(&self.0.name),
            granted: Arc::clone(&self.0.granted),
            namespace: call.release.namespace.clone(),
            own: Arc::clone(&call.own),
        }
    }

    /// The large inputs of a call.
    pub(crate) fn inputs(&self, call: &Call) -> Inputs {
        Inputs {
            owner: Some(Arc::clone(&call.owner)),
            host_fields: Arc::clone(&call.host_fields),
            config: Arc::clone(&self.0.config),
            values: Some(Arc::clone(&call.values)),
            saved: call.saved.clone(),
            grants: Arc::clone(&self.0.grants),
        }
    }

    pub(crate) fn quota(&self) -> &Quota {
        &self.0.quota
    }

    pub(crate) fn job<F: Function>(&self, function: F, call: Call) -> Job<F> {
        let state = State {
            inputs: self.inputs(&call),
            scope: self.scope(&call),
            reads: Reads::new(call.facts),
            lines: Lines::default(),
            clock: call.clock,
            called: Called::default(),
            asked: Asked::default(),
            memory: Memory::new(self.0.limits.memory),
            wasi: None,
        };
        self.job_with(function, state, self.0.limits)
    }

    /// A job that can read nothing and is for no release.
    pub(crate) fn bare_job<F: Function>(&self, function: F) -> Job<F> {
        let limits = CallLimits { timeout: limits::DESCRIBE_TIME, ..self.0.limits };
        let state = describe::state(&self.0.name, &self.0.config, limits);
        self.job_with(function, state, limits)
    }

    fn job_with<F: Function>(&self, function: F, state: State, limits: CallLimits) -> Job<F> {
        let (engine, guest) = (self.0.engine.clone(), self.0.guest.clone());
        Job { engine, guest, limits, state, function }
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

/// `spec.config` as a plugin is given it.
fn config_text(spec: &PluginSpec) -> String {
    serde_json::Value::Object(spec.config.clone()).to_string()
}

// === impl AcceptedArgs ===

impl AcceptedArgs {
    pub(crate) fn has(&self, args: &Hash) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(args)
    }

    /// Remembers arguments; all are forgotten when there are too many, which costs a call each.
    pub(crate) fn add(&self, args: Hash) {
        let mut accepted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if accepted.len() >= limits::ARGS_REMEMBERED {
            accepted.clear();
        }
        accepted.insert(args);
    }
}

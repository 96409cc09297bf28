//! A compiled component becomes a plugin: its size, imports and exports are checked, then it is asked
//! who it is.

use std::sync::Arc;

use pintle_api::plugin::PluginSpec;
use sha2::{Digest, Sha256};
use wasmtime::component::InstancePre;

use super::{
    AcceptedArgs, Exports, LoadError, Parts, Plugin,
    describe::{self, Described, First},
    exports,
};
use crate::{
    Engine, Manifest,
    ability::{INTERFACES, log::Quota},
    call::{Outcome, failure::CallFailure, run::Job},
    code::{self, Code, Origin},
    engine::Pace,
    grants::Granted,
    input,
    limits::{self, CallLimits},
    manifest,
    memo::Hash,
    slots::Slots,
    state::State,
    text::clean,
};

/// A compiled component, before it has grants.
pub(super) struct Known {
    pub(super) engine: Engine,
    pub(super) name: Arc<str>,
    pub(super) digest: String,
    pub(super) code: Arc<Code>,
    pub(super) origin: Origin,
    pub(super) quota: Arc<Quota>,
    pub(super) first: First,
}

impl Known {
    pub(super) async fn bind(self, spec: &PluginSpec) -> Result<Plugin, LoadError> {
        let plugin = || self.name.to_string();
        let limits = CallLimits::try_from(&spec.limits)
            .map_err(|source| LoadError::Limits { plugin: plugin(), source })?;
        let granted =
            Granted::new(&spec.grants).map_err(|source| LoadError::Grants { plugin: plugin(), source })?;
        self.check_size(limits)?;
        let imports = self.check_imports(spec.wasi)?;
        let linker = self.engine.linker(spec.wasi);
        let guest = linker.instantiate_pre(&self.code.component).map_err(LoadError::Link)?;
        let exports = Exports::find(&self.engine, &self.code.component, &guest)?;
        let config: Arc<str> = super::config_text(spec).into();
        let manifest = match &self.first {
            First::Said(text) => self.checked(text, spec)?,
            First::New(_) | First::Passing => self.ask(&guest, &exports, &config, spec).await?,
        };
        let parts = Parts {
            applied_fields: manifest.mask().map_err(LoadError::Manifest)?,
            grants: serde_json::to_string(&spec.grants).unwrap_or_default().into(),
            granted_lines: manifest::granted_lines(&spec.grants),
            granted: Arc::new(granted),
            binding: self.binding(spec),
            calls: Slots::new(limits::CALLS_OF_ONE),
            accepted_args: AcceptedArgs::default(),
            pace: Pace::default(),
            engine: self.engine,
            name: self.name,
            digest: self.digest,
            code: self.code,
            origin: self.origin,
            quota: self.quota,
            guest,
            exports,
            imports,
            manifest,
            config,
            spec: spec.clone(),
            limits,
        };
        Ok(Plugin(Arc::new(parts)))
    }

    /// The manifest that was said before, in a call that was as this one would be.
    fn checked(&self, said: &str, spec: &PluginSpec) -> Result<Manifest, LoadError> {
        let manifest = Manifest::parse(said).map_err(LoadError::Manifest)?;
        self.check_config(&manifest, spec).map(|()| manifest)
    }

    /// Makes the first call, and keeps what was said where it was accepted.
    async fn ask(
        &self,
        guest: &InstancePre<State>,
        exports: &Exports,
        config: &Arc<str>,
        spec: &PluginSpec,
    ) -> Result<Manifest, LoadError> {
        let limits = CallLimits::try_from(&spec.limits)
            .map_err(|source| LoadError::Limits { plugin: self.name.to_string(), source })?;
        let Described { manifest, text, config: accepted } =
            self.describe(guest, exports, config, limits).await?;
        self.check_config(&manifest, spec)?;
        accepted.map_err(LoadError::Config)?;
        if let First::New(name) = self.first {
            code::keep_said(&self.engine, name, text);
        }
        Ok(manifest)
    }

    /// Everything that decides about answers and does not change from call to call.
    fn binding(&self, spec: &PluginSpec) -> Hash {
        let PluginSpec { config, grants, limits, wasi, .. } = spec;
        let spec = serde_json::json!({"config": config, "grants": grants, "limits": limits, "wasi": wasi});
        let mut hash = Sha256::new();
        for part in [super::VERSION, env!("CARGO_PKG_VERSION"), &self.name, &input::canonical(&spec)] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update(self.code.digest);
        hash.finalize().into()
    }

    /// Compares the config with the schema in the manifest, where the engine has a checker.
    fn check_config(&self, manifest: &Manifest, spec: &PluginSpec) -> Result<(), LoadError> {
        let Some(schema) = &manifest.config_schema else { return Ok(()) };
        let found = self.engine.violations(schema, &serde_json::Value::Object(spec.config.clone()));
        match found.first() {
            Some(first) => Err(LoadError::Config(clean(first, limits::MESSAGE))),
            None => Ok(()),
        }
    }

    /// Refuses a component that could never be instantiated within its limits.
    fn check_size(&self, limits: CallLimits) -> Result<(), LoadError> {
        let Some(required) = self.code.component.resources_required() else { return Ok(()) };
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
        let imports = exports::names(self.code.component.component_type().imports(self.engine.wasm()));
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
    ) -> Result<Described, LoadError> {
        let job = Job {
            engine: self.engine.clone(),
            guest: guest.clone(),
            limits: CallLimits { timeout: limits::DESCRIBE_TIME, ..limits },
            state: describe::state(&self.name, config, limits),
            function: describe::Describe { exports: exports.clone(), config: config.to_string() },
        };
        let slot = self.engine.calls().take("").await;
        let ended = self.engine.lanes().run(job.run_with(slot), false).await;
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

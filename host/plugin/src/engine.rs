//! The engine: compiler, memory pool, clock and threads of all plugins, apart from everything else.

mod lanes;
mod pace;
mod ticker;

use std::{
    collections::HashMap,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use serde_json::Value;
use tokio::sync::Semaphore;
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
    component::Linker,
};

use crate::{
    ability,
    code::{Cache, CacheOptions, Code, Compiler, compatibility},
    input::Texts,
    limits,
    memo::{Hash, Memo},
    slots::Slots,
    state::State,
};
use lanes::Lanes;
pub(crate) use lanes::{Boxed, Lost};
pub(crate) use pace::Pace;
use ticker::Ticker;

/// Runs plugins. Cheap to clone; the last clone that goes stops its threads.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

struct Parts {
    wasm: wasmtime::Engine,
    profile: Profile,
    ticker: Ticker,
    lanes: Lanes,
    linkers: Linkers,
    calls: Slots,
    compiles: Semaphore,
    compiler: Compiler,
    cache: OnceLock<Cache>,
    schemas: Option<Arc<dyn SchemaCheck>>,
    memo: Memo,
    texts: Texts,
    /// Components at work, by the SHA-256 of their bytes.
    codes: Mutex<HashMap<Hash, Weak<Code>>>,
}

/// Checks JSON against a JSON Schema (2020-12): of `spec.config`, and of arguments in annotations.
pub trait SchemaCheck: Send + Sync {
    /// What the schema refuses, each in one sentence; a schema that is none refuses everything.
    fn violations(&self, schema: &Value, json: &Value) -> Vec<String>;
}

struct Linkers {
    plain: Linker<State>,
    wasi: Linker<State>,
}

/// How an engine is set up.
#[derive(Clone)]
pub struct Options {
    /// Threads that run plugins, besides the one of the slow lane; 0 for one a core, at most four.
    pub workers: usize,
    /// Where the memory of instances comes from.
    pub allocation: Allocation,
    /// Who compiles components.
    pub compiler: Compiler,
    /// Where compiled code is kept; without it each start compiles again.
    pub cache: Option<CacheOptions>,
    /// Checks config and arguments against the schemas of manifests; without it plugins check alone.
    pub schemas: Option<Arc<dyn SchemaCheck>>,
    /// Bytes of answers that are kept to be given again; 0 for none.
    pub memo: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 0,
            allocation: Allocation::default(),
            compiler: Compiler::default(),
            cache: None,
            schemas: None,
            memo: limits::MEMO,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, allocation, compiler, cache, schemas, memo } = self;
        f.debug_struct("Options")
            .field("workers", workers)
            .field("allocation", allocation)
            .field("compiler", compiler)
            .field("cache", cache)
            .field("schemas", &schemas.is_some())
            .field("memo", memo)
            .finish()
    }
}

/// Where the memory of instances comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// A pool if this process may have the address space for one, else on demand.
    #[default]
    Probe,
    /// On demand, even where a pool would fit.
    OnDemand,
}

/// Where the memory of instances comes from in an engine that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A pool, reserved once: an instance takes 6 us.
    Pooling,
    /// On demand: an instance takes 14 us.
    OnDemand,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The WebAssembly engine cannot be set up on this machine.
    #[error("could not set up the WebAssembly engine")]
    Wasm(#[source] wasmtime::Error),
    /// The abilities of the host cannot be offered.
    #[error("could not link the host's abilities")]
    Link(#[source] wasmtime::Error),
    /// No threads to be had.
    #[error("could not start the threads for plugins")]
    Threads(#[source] std::io::Error),
}

// === impl Engine ===

impl Engine {
    /// Sets up the engine, and says in the log which profile was taken.
    ///
    /// # Errors
    /// When the machine gives no threads or too little address space even for single instances.
    pub fn new(options: &Options) -> Result<Self, EngineError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let calls = limits::CALLS_LEAST.max(cores * limits::CALLS_A_CORE);
        let (wasm, profile) = wasm_engine(options.allocation, calls)?;
        let workers = if options.workers == 0 { cores.min(4) } else { options.workers };
        let cache = OnceLock::new();
        if let Some(options) = &options.cache {
            cache.get_or_init(|| Cache::new(options, compatibility(&wasm)));
        }
        let parts = Parts {
            cache,
            compiler: options.compiler.clone(),
            schemas: options.schemas.clone(),
            memo: Memo::new(options.memo),
            texts: Texts::default(),
            codes: Mutex::default(),
            ticker: Ticker::new(&wasm).map_err(EngineError::Threads)?,
            lanes: Lanes::new(workers).map_err(EngineError::Threads)?,
            linkers: Linkers::new(&wasm).map_err(EngineError::Link)?,
            calls: Slots::new(calls),
            compiles: Semaphore::new(limits::COMPILES),
            profile,
            wasm,
        };
        tracing::info!(target: "plugin", profile = %parts.profile, calls, workers, "engine for plugins is ready");
        Ok(Self(Arc::new(parts)))
    }

    /// Where the memory of instances comes from.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.0.profile
    }

    /// Keeps compiled code from now on; false where it is kept already. For who learns the key of the cache only
    /// when the engine runs.
    pub fn keep_code(&self, options: &CacheOptions) -> bool {
        let mut is_new = false;
        self.0.cache.get_or_init(|| {
            is_new = true;
            Cache::new(options, compatibility(&self.0.wasm))
        });
        is_new
    }

    /// True while the interrupting clock runs: during calls and a few milliseconds after.
    #[must_use]
    pub fn is_ticking(&self) -> bool {
        self.0.ticker.is_running()
    }

    pub(crate) fn wasm(&self) -> &wasmtime::Engine {
        &self.0.wasm
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.0.ticker
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.0.lanes
    }

    pub(crate) fn linker(&self, with_wasi: bool) -> &Linker<State> {
        if with_wasi { &self.0.linkers.wasi } else { &self.0.linkers.plain }
    }

    pub(crate) fn calls(&self) -> &Slots {
        &self.0.calls
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.0.compiler
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.0.cache.get()
    }

    pub(crate) fn memo(&self) -> &Memo {
        &self.0.memo
    }

    pub(crate) fn texts(&self) -> &Texts {
        &self.0.texts
    }

    /// What a schema refuses; nothing where nobody can tell.
    pub(crate) fn violations(&self, schema: &Value, json: &Value) -> Vec<String> {
        self.0.schemas.as_ref().map(|schemas| schemas.violations(schema, json)).unwrap_or_default()
    }

    /// The component of these bytes, if a plugin of this engine has it.
    pub(crate) fn shared(&self, digest: &Hash) -> Option<Arc<Code>> {
        self.0.codes.lock().unwrap_or_else(PoisonError::into_inner).get(digest)?.upgrade()
    }

    /// Shares a component with plugins that are loaded later, for as long as one has it.
    pub(crate) fn share(&self, code: Code) -> Arc<Code> {
        let code = Arc::new(code);
        let mut codes = self.0.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, known| known.strong_count() > 0);
        codes.insert(code.digest, Arc::downgrade(&code));
        code
    }

    pub(crate) fn compiles(&self) -> &Semaphore {
        &self.0.compiles
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("profile", &self.0.profile).finish_non_exhaustive()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pooling => "pooling",
            Self::OnDemand => "on-demand",
        })
    }
}

/// A word that is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no profile: `pooling` or `on-demand`")]
pub struct NotAProfile(String);

impl FromStr for Profile {
    type Err = NotAProfile;

    fn from_str(text: &str) -> Result<Self, NotAProfile> {
        let known = [Self::Pooling, Self::OnDemand].into_iter();
        let mut known = known.filter(|profile| profile.to_string() == text);
        known.next().ok_or_else(|| NotAProfile(text.chars().take(limits::REASON).collect()))
    }
}

/// An engine that only compiles, for engines of a profile: it reserves no pool.
pub(crate) fn compiling(profile: Profile) -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&match profile {
        Profile::Pooling => base(),
        Profile::OnDemand => on_demand(),
    })
}

// === impl Linkers ===

impl Linkers {
    fn new(wasm: &wasmtime::Engine) -> wasmtime::Result<Self> {
        let mut plain = Linker::new(wasm);
        ability::link(&mut plain)?;
        let mut wasi = Linker::new(wasm);
        ability::link(&mut wasi)?;
        ability::wasi::link(&mut wasi)?;
        Ok(Self { plain, wasi })
    }
}

fn wasm_engine(allocation: Allocation, calls: usize) -> Result<(wasmtime::Engine, Profile), EngineError> {
    if allocation == Allocation::Probe {
        match wasmtime::Engine::new(&pooling(calls)) {
            Ok(engine) => return Ok((engine, Profile::Pooling)),
            Err(error) => tracing::warn!(target: "plugin", error = %error, "no room for a pool of instances"),
        }
    }
    let engine = wasmtime::Engine::new(&on_demand()).map_err(EngineError::Wasm)?;
    Ok((engine, Profile::OnDemand))
}

fn pooling(calls: usize) -> Config {
    let calls = u32::try_from(calls).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(limits::CORE_INSTANCES))
        .total_memories(calls.saturating_mul(limits::MEMORIES))
        .total_tables(calls.saturating_mul(limits::TABLES))
        .total_stacks(calls)
        .max_core_instances_per_component(limits::CORE_INSTANCES)
        .max_memories_per_component(limits::MEMORIES)
        .max_tables_per_component(limits::TABLES)
        .max_memory_size(limits::MEMORY_MAX)
        .table_elements(limits::TABLE_ELEMENTS)
        .max_unused_warm_slots(calls.min(8))
        .linear_memory_keep_resident(limits::MEMORY_WARM)
        .table_keep_resident(limits::TABLE_WARM)
        // Clears the pages that a call wrote to, and no others.
        .pagemap_scan(Enabled::Auto)
        .async_stack_keep_resident(0)
        .decommit_batch_size(1);
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Without a pool there is little address space: bounds are checked in code, not by guard pages.
fn on_demand() -> Config {
    let mut config = base();
    config
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .memory_reservation(limits::MEMORY as u64)
        .memory_reservation_for_growth(limits::MIB as u64)
        .memory_guard_size(64 * limits::KIB as u64)
        .guard_before_linear_memory(false);
    config
}

/// What both profiles share. Features are off that no guest needs and that advisories were about;
/// what is left computes the same on every machine.
fn base() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(limits::STACK)
        .async_stack_size(limits::FIBER_STACK)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // Both only name places in code for debuggers, and are half of what an idle plugin takes.
        .generate_address_map(false)
        .native_unwind_info(false)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16))
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .wasm_wide_arithmetic(false)
        .wasm_custom_page_sizes(false);
    config
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn code_of_the_compiling_engine_fits_the_one_that_runs() {
        for allocation in [Allocation::Probe, Allocation::OnDemand] {
            let (engine, profile) = wasm_engine(allocation, 8).unwrap();
            let compiling = compiling(profile).unwrap();
            assert_eq!(compatibility(&engine), compatibility(&compiling), "{profile}");
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        let [pool, none] = [Profile::Pooling, Profile::OnDemand].map(|profile| compiling(profile).unwrap());
        assert_ne!(compatibility(&pool), compatibility(&none));
        assert!("other".parse::<Profile>().is_err());
    }
}

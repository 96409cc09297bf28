//! The engine: compiler, memory pool, clock and threads of all plugins, apart from everything else.

mod lanes;
mod ticker;

use std::{fmt, sync::Arc};

use tokio::sync::Semaphore;
use wasmtime::{
    Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
    component::Linker,
};

use crate::{ability, limits, state::State};
use lanes::Lanes;
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
    calls: Arc<Semaphore>,
    compiles: Semaphore,
}

struct Linkers {
    plain: Linker<State>,
    wasi: Linker<State>,
}

/// How an engine is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Threads that run plugins, besides the one of the slow lane; 0 for one a core, at most four.
    pub workers: usize,
    /// Where the memory of instances comes from.
    pub allocation: Allocation,
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
        let parts = Parts {
            ticker: Ticker::new(&wasm).map_err(EngineError::Threads)?,
            lanes: Lanes::new(workers).map_err(EngineError::Threads)?,
            linkers: Linkers::new(&wasm).map_err(EngineError::Link)?,
            calls: Arc::new(Semaphore::new(calls)),
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

    pub(crate) fn calls(&self) -> &Arc<Semaphore> {
        &self.0.calls
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
        .linear_memory_keep_resident(0)
        .table_keep_resident(0)
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

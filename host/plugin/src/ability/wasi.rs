//! WASI for guests that cannot do without: constant clocks, seeded randomness, output into the log,
//! and nothing else. No files, no sockets, no environment, no arguments.
//!
//! Runtimes of some languages ask for time and randomness at their start, whether the plugin does or
//! not. Both are the same in each call, so that such answers can be given again like any other; a
//! plugin that means the time imports `step-clock`.

use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::component::{Linker, ResourceTable};
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView, p2::pipe::MemoryOutputPipe,
    random::Deterministic,
};

use crate::{bindings::pintle::plugin::log::Level, call::failure::CallFailure, limits, state::State};

/// What one call has of WASI.
pub(crate) struct Wasi {
    context: WasiCtx,
    table: ResourceTable,
    output: [(Level, MemoryOutputPipe); 2],
}

/// What the wall clock shows, in seconds since the Unix epoch: the start of 2020, so that no guest takes
/// the certificates or dates it has built in for dates to come.
const WALL: u64 = 1_577_836_800;

/// What the other clock shows since it began. Not nothing: Go takes a clock at zero for a broken one and ends.
const ELAPSED: Duration = Duration::from_millis(1);

/// A clock that stands still, in this call and all others.
#[derive(Clone, Copy)]
struct Still(Duration);

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let seed = &self.inputs.config;
        let wasi = self.wasi.get_or_insert_with(|| Box::new(Wasi::new(seed.as_bytes())));
        WasiCtxView { ctx: &mut wasi.context, table: &mut wasi.table }
    }
}

// === impl Wasi ===

impl Wasi {
    /// Everything is denied but the clocks, randomness from `seed`, and output.
    fn new(seed: &[u8]) -> Self {
        let [out, err] = [(); 2].map(|()| MemoryOutputPipe::new(limits::LOG_BYTES));
        let seed = Sha256::digest(seed).to_vec();
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::HANDLES);
        let context = WasiCtx::builder()
            .wall_clock(Still(Duration::from_secs(WALL)))
            .monotonic_clock(Still(ELAPSED))
            .secure_random(Deterministic::new(seed.clone()))
            .insecure_random(Deterministic::new(seed))
            .insecure_random_seed(0)
            .max_random_size(limits::MIB as u64)
            .allow_blocking_current_thread(false)
            .stdout(out.clone())
            .stderr(err.clone())
            .build();
        Self { context, table, output: [(Level::Info, out), (Level::Warn, err)] }
    }

    /// What the guest printed, as lines of a log.
    pub(crate) fn printed(&self) -> Vec<(Level, String)> {
        let texts = self.output.iter().map(|(level, pipe)| (*level, pipe.contents()));
        let lines = texts.flat_map(|(level, bytes)| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lines: Vec<_> = text.lines().map(|line| (level, line.to_owned())).collect();
            lines
        });
        lines.collect()
    }
}

impl State {
    /// Moves what the guest printed into the log, within the budget of the log.
    pub(crate) fn take_printed(&mut self) {
        let printed = self.wasi.as_ref().map(|wasi| wasi.printed()).unwrap_or_default();
        for (level, line) in printed {
            let taken: Result<(), CallFailure> = self.lines.add(level, &line, &[]);
            if taken.is_err() {
                return;
            }
        }
    }
}

impl HostWallClock for Still {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

impl HostMonotonicClock for Still {
    fn resolution(&self) -> u64 {
        1_000_000
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

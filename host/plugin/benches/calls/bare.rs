//! The same guest in a bare loop over wasmtime, with the settings of the host's engine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::Object;
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, HasSelf, InstancePre, Linker},
};

use crate::percentiles;

wasmtime::component::bindgen!({
    world: "full-plugin",
    path: "../../wit",
    imports: { default: async | trappable },
    exports: { default: async },
});

use exports::pintle::plugin::readiness::GuestIndices;
use pintle::plugin::{inputs, log, types};

/// A guest, ready to be instantiated.
#[derive(Clone)]
pub(crate) struct Bare(Arc<(Engine, InstancePre<Nothing>, GuestIndices)>);

/// A host that has nothing.
struct Nothing;

impl inputs::Host for Nothing {
    async fn owner(&mut self) -> wasmtime::Result<String> {
        Ok("{}".to_owned())
    }

    async fn config(&mut self) -> wasmtime::Result<String> {
        Ok("{}".to_owned())
    }

    async fn values(&mut self) -> wasmtime::Result<String> {
        Ok("{}".to_owned())
    }

    async fn saved(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }

    async fn grants(&mut self) -> wasmtime::Result<String> {
        Ok("{}".to_owned())
    }
}

impl log::Host for Nothing {
    async fn emit(&mut self, _: log::Level, _: String, _: Vec<(String, String)>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl Bare {
    pub(crate) fn new(component: &[u8]) -> Self {
        let mut pool = PoolingAllocationConfig::new();
        pool.max_memory_size(256 << 20).max_unused_warm_slots(8);
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        config.epoch_interruption(true).cranelift_nan_canonicalization(true);
        let engine = Engine::new(&config).unwrap();
        let component = Component::new(&engine, component).unwrap();
        let mut linker = Linker::new(&engine);
        inputs::add_to_linker::<_, HasSelf<Nothing>>(&mut linker, |host| host).unwrap();
        log::add_to_linker::<_, HasSelf<Nothing>>(&mut linker, |host| host).unwrap();
        linker.define_unknown_imports_as_traps(&component).unwrap();
        let guest = linker.instantiate_pre(&component).unwrap();
        let indices = GuestIndices::new(&guest).unwrap();
        Self(Arc::new((engine, guest, indices)))
    }

    async fn call(&self, target: &Object) -> Duration {
        let (engine, guest, indices) = &*self.0;
        let began = Instant::now();
        let target = serde_json::to_string(target).unwrap();
        let mut store = Store::new(engine, Nothing);
        store.set_epoch_deadline(1_000_000);
        let instance = guest.instantiate_async(&mut store).await.unwrap();
        let readiness = indices.load(&mut store, &instance).unwrap();
        readiness.call_check(&mut store, &context(), &target).await.unwrap().unwrap();
        drop(store);
        began.elapsed()
    }

    /// Prints p50 and p99; returns p50 in microseconds.
    pub(crate) async fn report(&self, what: &str, target: &Arc<Object>, calls: usize) -> f64 {
        let mut times = Vec::with_capacity(calls);
        for round in 0..calls + 50 {
            let took = self.call(target).await;
            if round >= 50 {
                times.push(took);
            }
        }
        let (p50, p99) = percentiles(times);
        println!("{what:<44} {p50:>7.1} us p50 {p99:>7.1} us p99");
        p50
    }

    /// Prints and returns calls a second.
    pub(crate) async fn throughput(&self, what: &str, target: &Arc<Object>, calls: usize) -> f64 {
        let began = Instant::now();
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (bare, target) = (self.clone(), Arc::clone(target));
                tokio::spawn(async move {
                    for _ in 0..calls {
                        bare.call(&target).await;
                        // As a call of ours, each one lets others have the thread.
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let rate = (4 * calls) as f64 / began.elapsed().as_secs_f64();
        println!("{what:<44} {rate:>7.0} a second, four at once");
        rate
    }
}

fn context() -> types::Context {
    types::Context {
        operation: types::Operation::Steady,
        release: types::Release {
            name: "r".into(),
            namespace: "n".into(),
            chart: String::new(),
            chart_version: String::new(),
            revision: 1,
        },
        state: "1000".into(),
        pool: String::new(),
        args: "{}".into(),
    }
}

//! The same guest in a bare loop over wasmtime, with the settings of the host's engine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::Object;
use pintle_plugin::limits;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, HasSelf, InstancePre, Linker},
};

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
        pool.max_memory_size(256 << 20).max_unused_warm_slots(8).pagemap_scan(Enabled::Auto);
        pool.linear_memory_keep_resident(limits::MEMORY_WARM).table_keep_resident(limits::TABLE_WARM);
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

    /// How long one call takes.
    pub(crate) async fn call(&self, target: &Object) -> Duration {
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

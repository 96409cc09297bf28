//! What Prometheus is told: SRO's names first, ours beside them.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::Registry,
};

/// Every metric of the operator. Series of a release go with it.
pub(crate) struct Metrics {
    registry: Registry,
    /// Number of SpecialResources in the cluster.
    pub(crate) managed: Gauge,
    /// Whether a state of a SpecialResource is complete.
    pub(crate) states: Family<StateLabels, Gauge>,
    /// Whether an object of a SpecialResource is complete.
    pub(crate) kinds: Family<KindLabels, Gauge>,
    /// Whether a SpecialResource that was Ready no longer is.
    pub(crate) upgrade_alert: Family<OwnerLabels, Gauge>,
    /// Passes by what came of them.
    pub(crate) passes: Family<PassLabels, Counter>,
    /// Seconds a pass took.
    pub(crate) pass_seconds: Histogram,
    /// Calls of plugins by what came of them.
    pub(crate) calls: Family<CallLabels, Counter>,
    /// Seconds a call of a plugin took.
    pub(crate) call_seconds: Histogram,
    /// Passes of the slow sweep that found something events had not told.
    pub(crate) sweep_found_work: Counter,
    /// Whether this process leads.
    pub(crate) leader: Gauge,
}

/// Requests to the API server, counted where they are made: all, and those that write.
struct Requests(Box<dyn Fn() -> (u64, u64) + Send + Sync>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct StateLabels {
    pub(crate) specialresource: String,
    pub(crate) state: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct KindLabels {
    pub(crate) specialresource: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OwnerLabels {
    pub(crate) cr: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct PassLabels {
    pub(crate) front: &'static str,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct CallLabels {
    pub(crate) plugin: String,
    pub(crate) result: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(requests: impl Fn() -> (u64, u64) + Send + Sync + 'static) -> Arc<Self> {
        let mut registry = Registry::default();
        let seconds = || Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0]);
        let metrics = Self {
            managed: Gauge::default(),
            states: Family::default(),
            kinds: Family::default(),
            upgrade_alert: Family::default(),
            passes: Family::default(),
            pass_seconds: seconds(),
            calls: Family::default(),
            call_seconds: seconds(),
            sweep_found_work: Counter::default(),
            leader: Gauge::default(),
            registry: Registry::default(),
        };
        metrics.register(&mut registry);
        registry.register_collector(Box::new(Requests(Box::new(requests))));
        Arc::new(Self { registry, ..metrics })
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(
            "sro_managed_resources_total",
            "Number of created SpecialResources",
            self.managed.clone(),
        );
        let text = "For a given specialresource and state, 1 if the state is completed, 0 if it is not";
        registry.register("sro_states_completed_info", text, self.states.clone());
        let text = "For a given specialresource,kind,name and namespace, 1 if the state is completed, 0 if it is not";
        registry.register("sro_kind_completed_info", text, self.kinds.clone());
        let text = "For a SRO CR, 1 if during upgrade there is a problem with CR, 0 otherwise";
        registry.register("sro_upgrade_alert", text, self.upgrade_alert.clone());
        registry.register("pintle_passes", "Passes over owners by result", self.passes.clone());
        registry.register("pintle_pass_seconds", "Time of a pass over an owner", self.pass_seconds.clone());
        registry.register("pintle_plugin_calls", "Calls of plugins by result", self.calls.clone());
        registry.register(
            "pintle_plugin_call_seconds",
            "Time of a call of a plugin",
            self.call_seconds.clone(),
        );
        let text = "Passes of the slow sweep that found work no event had told of";
        registry.register("pintle_sweep_found_work", text, self.sweep_found_work.clone());
        registry.register("pintle_leader", "1 while this process leads", self.leader.clone());
    }

    /// Forgets the series of a SpecialResource that is gone.
    pub(crate) fn forget(&self, name: &str, states: &[String], objects: &[KindLabels]) {
        for state in states {
            let labels = StateLabels { specialresource: name.to_owned(), state: state.clone() };
            self.states.remove(&labels);
        }
        for labels in objects {
            self.kinds.remove(labels);
        }
        self.upgrade_alert.remove(&OwnerLabels { cr: name.to_owned() });
    }

    /// Everything as OpenMetrics text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(std::fmt::Error) => String::new(),
        }
    }
}

// === impl Requests ===

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

impl Collector for Requests {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (all, writes) = (self.0)();
        for (name, help, count) in [
            ("pintle_api_requests", "Requests to the API server", all),
            ("pintle_api_writes", "Requests to the API server that write", writes),
        ] {
            let counter = ConstCounter::new(count);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

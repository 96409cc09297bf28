//! Map: what the user set, what plugins make of it, and what the cluster is, become values.

use std::collections::BTreeMap;

use pintle_api::Facts;
use pintle_chart::{Values, values};
use pintle_plan::{MappedPool, Memory, Pool, Pools, RenderFault, RuntimeFacts, observe_runtime};
use pintle_plugin::{SealedValues, nodes_of_pools};
use pintle_template::{Limits, Lookup, Run};
use serde_json::Value;

use crate::{
    charts::Loaded,
    error_text::one_line,
    front::{Front, FrontKind},
    render::{self, Rendering},
};

/// What mapper plugins made of the values; nothing where none is named.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mapping {
    /// Layers over the user's values, in order.
    pub(crate) patches: Vec<Values>,
    /// Pools instead of those of the kernels, with the values of each; absent where no plugin made any.
    pub(crate) pools: Option<Vec<pintle_plugin::Pool>>,
}

/// What values are made from, besides what plugins make of them.
pub(crate) struct Sources<'a> {
    pub(crate) front: &'a Front,
    pub(crate) chart: &'a Loaded,
    pub(crate) pools: &'a Pools,
    pub(crate) facts: &'a dyn Facts,
}

/// The values over the chart's defaults, for one pool.
pub(crate) fn run(with: &Rendering<'_>, pool: Option<&Pool>) -> Result<Values, RenderFault> {
    let sources = Sources { front: with.front, chart: with.chart, pools: with.pools, facts: with.facts };
    let mut mapped = with.mapping.patches.clone();
    mapped.extend(pool.and_then(|pool| with.mapping.values_of(pool)).cloned());
    layers(&sources, &mapped, pool)
}

/// The values as mapper plugins find them: the chart's defaults under those of the user, what came from
/// Secrets replaced by tokens. What comes after the plugins is not among them.
pub(crate) fn shown(sources: &Sources<'_>) -> Result<SealedValues, RenderFault> {
    let values = match &sources.front.kind {
        FrontKind::SpecialResource(_) => user_values(sources, None)?.0,
        FrontKind::Watch(_) => {
            let spec = sources.front.owner_spec();
            values::overlay(sources.front.values_from.iter().map(|source| &source.values).chain([&spec]))
        }
    };
    let whole = sources.chart.compiled.values(&values).map_err(|err| render::fault(&err))?;
    let whole = Value::Object(whole);
    let secret = secret_paths(sources.front, &whole);
    Ok(SealedValues::close(whole, &secret))
}

fn layers(sources: &Sources<'_>, mapped: &[Values], pool: Option<&Pool>) -> Result<Values, RenderFault> {
    match &sources.front.kind {
        FrontKind::SpecialResource(_) => {
            let (set, runtime) = user_values(sources, pool)?;
            Ok(values::for_special_resource(&set, mapped, &runtime))
        }
        FrontKind::Watch(watch) => {
            let from: Vec<Values> =
                sources.front.values_from.iter().map(|source| source.values.clone()).collect();
            let spec = sources.front.owner_spec();
            values::for_watch(&from, &spec, mapped, &watch.override_values).map_err(|err| RenderFault {
                reason: "InvalidValues".to_owned(),
                message: format!("overrideValues of the Watch: {}", one_line(&err)),
            })
        }
    }
}

/// What the user of a SpecialResource set, here or in what is named here, and the facts of the cluster.
fn user_values(sources: &Sources<'_>, pool: Option<&Pool>) -> Result<(Values, Values), RenderFault> {
    let Sources { front, chart, pools, facts } = sources;
    let FrontKind::SpecialResource(spec) = &front.kind else { return Ok(Default::default()) };
    let set = Value::Object(spec.set.clone()).to_string();
    let wanted = chart.wanted.clone().and(RuntimeFacts::mentioned_in([set.as_str()]));
    let runtime = observe_runtime(*facts, &wanted, pools, pool, &front.owner);
    let set = fill_in(&spec.set, &runtime)?;
    let set = values::overlay(front.values_from.iter().map(|source| &source.values).chain([&set]));
    Ok((set, runtime))
}

/// Where values of Secrets stand in the values: each of their leaves that nothing else covers.
fn secret_paths(front: &Front, whole: &Value) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for source in front.values_from.iter().filter(|source| source.is_secret) {
        let values = Value::Object(source.values.clone());
        collect_leaves(&values, Some(whole), &mut Vec::new(), &mut paths);
    }
    paths.sort();
    paths.dedup();
    paths
}

fn collect_leaves(
    value: &Value,
    whole: Option<&Value>,
    path: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                path.push(key.clone());
                collect_leaves(inner, whole.and_then(|whole| whole.get(key)), path, found);
                path.pop();
            }
        }
        // What says the same as a Secret is as secret as that.
        leaf if whole == Some(leaf) => found.push(path.clone()),
        _ => {}
    }
}

/// A SpecialResource may use templates in its own values, over the facts of the cluster. The result is
/// never written back.
fn fill_in(set: &Values, runtime: &Values) -> Result<Values, RenderFault> {
    let value = Value::Object(set.clone());
    if !value.to_string().contains("{{") {
        return Ok(set.clone());
    }
    match pintle_chart::plain::fill_in("spec.set", &value, &capitalized_proxy(runtime)) {
        Ok(Value::Object(filled)) => Ok(filled),
        Ok(_) => Ok(set.clone()),
        Err(err) => Err(RenderFault { reason: "InvalidValues".to_owned(), message: one_line(&err) }),
    }
}

/// There, the keys of `proxy` began with a capital; both are given.
fn capitalized_proxy(runtime: &Values) -> Values {
    let mut runtime = runtime.clone();
    if let Some(Value::Object(proxy)) = runtime.get_mut("proxy") {
        let capitals = [
            ("httpProxy", "HttpProxy"),
            ("httpsProxy", "HttpsProxy"),
            ("noProxy", "NoProxy"),
            ("trustedCA", "TrustedCA"),
        ];
        for (small, capital) in capitals {
            let value = proxy.get(small).cloned().unwrap_or_default();
            proxy.insert(capital.to_owned(), value);
        }
    }
    runtime
}

/// Seed and time of the revision, so that one revision gives the same bytes again.
pub(crate) fn run_options<'a>(memory: &Memory, lookup: &'a dyn Lookup) -> Run<'a> {
    let mut seed = [0; 32];
    if hex::decode_to_slice(&memory.seed, &mut seed).is_err() {
        tracing::error!(
            "the seed of a release cannot be read; its random values will change with the next revision"
        );
    }
    let time = memory.time.map(pintle_api::Timestamp::as_second).unwrap_or_default();
    Run { limits: Limits::default(), seed, time, ..Run::new(lookup) }
}

// === impl Mapping ===

impl Mapping {
    /// Text that differs when the mapping does. It holds no value.
    pub(crate) fn mark(&self) -> String {
        let Self { patches, pools } = self;
        if *self == Self::default() {
            return String::new();
        }
        format!("{:x}", pintle_plan::fnv1a(format!("{patches:?}|{pools:?}").as_bytes()))
    }

    fn values_of(&self, pool: &Pool) -> Option<&Values> {
        let key = &pool.mapped.as_ref()?.key;
        let pools = self.pools.iter().flatten();
        pools.filter(|mapped| mapped.key == *key).map(|mapped| &mapped.values).next()
    }

    /// The pools that states fan out over: those of the plugin that made any, else those of the kernels. A
    /// pool without a node that workloads may be placed on is none.
    ///
    /// # Errors
    /// When a node is in two pools.
    pub(crate) fn fan(
        &self,
        facts: &dyn Facts,
        selector: &BTreeMap<String, String>,
        pools: &Pools,
    ) -> Result<Vec<Pool>, RenderFault> {
        let Some(mapped) = &self.pools else { return Ok(pools.pools.clone()) };
        let nodes = facts.list(&Pools::query(selector)).found().unwrap_or_default();
        let placed = nodes_of_pools(mapped, nodes.iter().map(|node| &**node));
        let placed = placed.map_err(|overlap| RenderFault {
            reason: "PoolsOverlap".to_owned(),
            message: format!("{overlap}; the value mapper must tell them apart"),
        })?;
        let made = mapped.iter().filter_map(|pool| {
            let (key, node_selector) = (pool.key.clone(), pool.node_selector.clone());
            pools.mapped(MappedPool { key, node_selector }, placed.get(pool.key.as_str())?)
        });
        Ok(made.collect())
    }
}

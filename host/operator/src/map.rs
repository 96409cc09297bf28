//! Map: what the user set, and what the cluster is, become values.

use pintle_chart::{Values, values};
use pintle_plan::{Memory, Pool, RenderFault, RuntimeFacts, observe_runtime};
use pintle_template::{Limits, Lookup, Run};
use serde_json::Value;

use crate::{error_text::one_line, front::FrontKind, render::Rendering};

/// The values over the chart's defaults, for one pool.
pub(crate) fn run(with: &Rendering<'_>, pool: Option<&Pool>) -> Result<Values, RenderFault> {
    let owner = &with.front.owner;
    match &with.front.kind {
        FrontKind::SpecialResource(spec) => {
            let set = Value::Object(spec.set.clone()).to_string();
            let wanted = with.chart.wanted.clone().and(RuntimeFacts::mentioned_in([set.as_str()]));
            let runtime = observe_runtime(with.facts, &wanted, with.pools, pool, owner);
            let set = fill_in(&spec.set, &runtime)?;
            let set = values::overlay(with.front.values_from.iter().chain([&set]));
            Ok(values::for_special_resource(&set, &[], &runtime))
        }
        FrontKind::Watch(watch) => {
            let spec = owner.at("/spec").and_then(Value::as_object).cloned().unwrap_or_default();
            values::for_watch(&with.front.values_from, &spec, &[], &watch.override_values).map_err(|err| {
                RenderFault {
                    reason: "InvalidValues".to_owned(),
                    message: format!("overrideValues of the Watch: {}", one_line(&err)),
                }
            })
        }
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

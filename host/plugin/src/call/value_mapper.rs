//! `value-mapper`: custom resource and facts to chart values.

use std::collections::{BTreeMap, BTreeSet};

use pintle_api::{Object, ObjectRef};
use serde_json::{Map, Value};
use wasmtime::{Store, component::Instance};

use super::{
    Call, CallResult, Report,
    answer::{Checking, Rules, at_most, invalid, object},
    failure::CallFailure,
    run::{Arguments, Asked, Function, context},
};
use crate::{
    Export, Plugin,
    bindings::{
        exports::pintle::plugin::value_mapper::{GuestIndices, Mapping, PoolValues},
        pintle::plugin::types::{Context, Failure},
    },
    grants::{Scope, labels},
    input, limits,
    state::State,
};

/// What a value mapper answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// Merge patch (RFC 7396) over the values of the call; see [`merge_patch`].
    pub values: Map<String, Value>,
    /// Node pools that states are rendered for once each; empty for one rendering for all nodes.
    pub pools: Vec<Pool>,
    /// What the plugin wants told and kept.
    pub report: Report,
}

/// Nodes that a state is rendered for with values of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// A DNS label of at most 20 characters.
    pub key: String,
    /// Labels that its nodes have.
    pub node_selector: BTreeMap<String, String>,
    /// Merge patch (RFC 7396) over the values.
    pub values: Map<String, Value>,
}

/// Two pools that want one node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node} is in the pools {first} and {second}; pools must not share nodes")]
pub struct PoolsOverlap {
    /// Name of the node.
    pub node: String,
    /// Key of one pool.
    pub first: String,
    /// Key of the other.
    pub second: String,
}

/// One call of `map-values`.
struct MapValues {
    indices: GuestIndices,
    context: Context,
    owner: ObjectRef,
}

impl Plugin {
    /// Asks for chart values. The guest reads `call.values` as the values so far: what came from
    /// Secrets must already be sealed, see [`crate::SealedValues`].
    ///
    /// # Cancellation
    /// Dropping the future ends the call; nothing was written.
    pub async fn map_values(&self, call: Call) -> CallResult<Mapped> {
        let Some(indices) = self.exports().value_mapper() else {
            return CallResult::refused(CallFailure::NotExported("value-mapper"));
        };
        let (context, owner) = (context(&call), call.owner.reference());
        self.ask(MapValues { indices: indices.clone(), context, owner }, call).await
    }
}

/// Which pool each node is in, by its labels; nodes of no pool are left out.
///
/// # Errors
/// When a node is in two.
pub fn nodes_of_pools<'a>(
    pools: &'a [Pool],
    nodes: impl IntoIterator<Item = &'a Object>,
) -> Result<BTreeMap<&'a str, Vec<&'a str>>, PoolsOverlap> {
    let mut placed: BTreeMap<&str, Vec<&str>> = pools.iter().map(|pool| (&*pool.key, Vec::new())).collect();
    for node in nodes {
        let mut of = pools.iter().filter(|pool| pool.has(node));
        let Some(first) = of.next() else { continue };
        if let Some(second) = of.next() {
            let (first, second) = (first.key.clone(), second.key.clone());
            return Err(PoolsOverlap { node: node.name().to_owned(), first, second });
        }
        placed.entry(&first.key).or_default().push(node.name());
    }
    Ok(placed)
}

/// Applies a merge patch as RFC 7396 says: `null` removes, mappings are merged, all else replaces.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge_patch(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

// === impl Pool ===

impl Pool {
    /// True when a node has the labels of the pool.
    #[must_use]
    pub fn has(&self, node: &Object) -> bool {
        let labels = labels(node);
        let label = |key: &String| labels.and_then(|labels| labels.get(key)?.as_str());
        self.node_selector.iter().all(|(key, value)| label(key) == Some(value))
    }
}

impl Asked for MapValues {
    const EXPORT: Export = Export::ValueMapper;

    fn arguments(&self, _: &mut Arguments) {}

    fn weight(mapped: &Mapped) -> usize {
        let pools = mapped.pools.iter().map(|pool| input::weight_of_map(&pool.values));
        input::weight_of_map(&mapped.values)
            + pools.sum::<usize>()
            + input::weight_of(&[], &[], &mapped.report)
    }
}

impl Function for MapValues {
    type Raw = Result<Mapping, Failure>;
    type Answer = Mapped;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        guest.call_map_values(store, &self.context).await
    }

    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<Mapped, CallFailure> {
        let rules = Rules { scope, target: self.owner };
        let Mapping { values, pools, report } = raw.map_err(|failure| rules.failure(failure))?;
        let values = object(&values, limits::OUTPUT, "the values")?;
        Ok(Mapped { values, pools: checked_pools(pools)?, report: rules.report(report)? })
    }
}

fn checked_pools(pools: Vec<PoolValues>) -> Checking<Vec<Pool>> {
    at_most(pools.len(), limits::POOLS, "pools")?;
    at_most(pools.iter().map(|pool| pool.values.len()).sum(), limits::OUTPUT, "bytes of values")?;
    let is_alone = pools.len() == 1;
    let pools = pools.into_iter().map(checked_pool).collect::<Checking<Vec<_>>>()?;
    let mut seen = BTreeSet::new();
    for Pool { key, node_selector, .. } in &pools {
        if !seen.insert(key) {
            return Err(invalid(format!("two pools have the key {key}")));
        }
        if node_selector.is_empty() && !is_alone {
            return Err(invalid(format!("the pool {key} has every node, so no other pool can have any")));
        }
    }
    Ok(pools)
}

fn checked_pool(pool: PoolValues) -> Checking<Pool> {
    let PoolValues { key, node_selector, values } = pool;
    let is_inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let is_label = (1..=limits::POOL_KEY).contains(&key.len())
        && key.bytes().all(is_inner)
        && !key.starts_with('-')
        && !key.ends_with('-');
    if !is_label {
        let key = crate::text::clean(&key, limits::NAME);
        return Err(invalid(format!(
            "the pool key {key:?} is no DNS label of at most {} characters",
            limits::POOL_KEY
        )));
    }
    at_most(node_selector.len(), limits::POOLS, "labels of a pool")?;
    let is_odd =
        |text: &str| text.len() > limits::NAME || text.chars().any(|letter| !letter.is_ascii_graphic());
    if node_selector.iter().any(|(label, value)| label.is_empty() || is_odd(label) || is_odd(value)) {
        return Err(invalid(format!("the node selector of pool {key} has an odd label")));
    }
    let values = object(&values, limits::OUTPUT, &format!("the values of pool {key}"))?;
    Ok(Pool { key, node_selector: node_selector.into_iter().collect(), values })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn pool(key: &str, selector: &[(&str, &str)]) -> PoolValues {
        let node_selector = selector.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        PoolValues { key: key.into(), node_selector, values: "{}".into() }
    }

    #[test]
    fn a_merge_patch_is_that_of_the_rfc() {
        for (target, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": [1]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": "foo"}), json!({"b": {"c": null}}), json!({"a": "foo", "b": {}})),
            (json!([1]), json!({"a": 1}), json!({"a": 1})),
        ] {
            let mut value = target.clone();
            merge_patch(&mut value, &patch);
            assert_eq!(value, merged, "{target} with {patch}");
        }
    }

    #[test]
    fn keys_of_pools_are_short_labels_and_no_two_are_the_same() {
        let ok = checked_pools(vec![pool("4-18-0", &[("k", "1")]), pool("5-14-0", &[("k", "2")])]);
        assert_eq!(ok.unwrap().len(), 2);
        for odd in ["", "-a", "a-", "A", "a.b", "a23456789012345678901", "\u{e4}"] {
            assert!(checked_pools(vec![pool(odd, &[("k", "1")])]).is_err(), "{odd}");
        }
        let twice = checked_pools(vec![pool("a", &[("k", "1")]), pool("a", &[("k", "2")])]);
        assert!(twice.unwrap_err().to_string().contains("two pools have the key a"));
        let all = checked_pools(vec![pool("a", &[]), pool("b", &[("k", "2")])]);
        assert!(all.unwrap_err().to_string().contains("the pool a has every node"));
        assert!(checked_pools(vec![pool("a", &[])]).is_ok());
    }

    #[test]
    fn a_node_in_two_pools_is_an_error_that_names_them() {
        let pools = checked_pools(vec![pool("a", &[("kernel", "4")]), pool("b", &[("gpu", "yes")])]).unwrap();
        let node = |name: &str, labels: Value| {
            Object::new(
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}),
            )
            .unwrap()
        };
        let (one, two) = (node("one", json!({"kernel": "4"})), node("two", json!({"gpu": "yes"})));
        let neither = node("neither", json!({"kernel": "5"}));
        let placed = nodes_of_pools(&pools, [&one, &two, &neither]).unwrap();
        assert_eq!(placed, BTreeMap::from([("a", vec!["one"]), ("b", vec!["two"])]));
        let both = node("both", json!({"kernel": "4", "gpu": "yes"}));
        let overlap = nodes_of_pools(&pools, [&both]).unwrap_err();
        assert_eq!(overlap.to_string(), "node both is in the pools a and b; pools must not share nodes");
    }
}

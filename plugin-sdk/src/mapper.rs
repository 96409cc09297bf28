//! Plugins that make chart values out of the owner and of what the cluster is like.

use serde_json::Value;

use crate::{
    Call, Context, Failure, Plugin,
    bindings::{
        mapper,
        pintle::plugin::types::{self, Report},
    },
    plugin::{Adapter, begin},
    report::{self, tells},
};

/// A plugin that makes chart values: the owner is [`crate::inputs::owner`], what the values are so far
/// is [`crate::inputs::values`].
///
/// ```
#[doc = include_str!("../examples/replicas.rs")]
/// # example();
/// ```
pub trait ValueMapper: Plugin {
    /// What shall be merged into the chart's values. The same inputs and reads must give the same.
    ///
    /// # Errors
    /// When there is nothing to render with; the failure says when to ask again.
    fn map_values(call: &Call<Self::Config>) -> Result<Mapping, Failure>;
}

/// Values, and the node pools that a state which fans out is rendered once more for.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    values: String,
    pools: Vec<mapper::PoolValues>,
    report: Report,
}

/// The nodes with these labels, and the values of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool(mapper::PoolValues);

// === impl Mapping ===

impl Mapping {
    /// A merge patch (RFC 7396) over the values so far: null removes a key.
    #[must_use]
    pub fn new(values: &Value) -> Self {
        Self { values: values.to_string(), pools: Vec::new(), report: report::nothing() }
    }

    /// One more pool. A chart's states that are marked `pintle.dev/per-pool` are rendered for each.
    #[must_use]
    pub fn pool(mut self, Pool(pool): Pool) -> Self {
        self.pools.push(pool);
        self
    }

    /// The merge patch.
    #[must_use]
    pub fn values(&self) -> &str {
        &self.values
    }

    /// The pools, in their order.
    pub fn pools(&self) -> impl Iterator<Item = Pool> {
        self.pools.iter().cloned().map(Pool)
    }
}

tells!(Mapping);

// === impl Pool ===

impl Pool {
    /// A pool without labels, which would have all nodes: see [`Pool::select`]. The key becomes a part
    /// of objects' names: a DNS label of at most 20 characters.
    pub fn new(key: impl Into<String>) -> Self {
        Self(mapper::PoolValues { key: key.into(), node_selector: Vec::new(), values: "{}".to_owned() })
    }

    /// Only nodes with this label.
    #[must_use]
    pub fn select(mut self, label: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.node_selector.push((label.into(), value.into()));
        self
    }

    /// A merge patch (RFC 7396) over the values, for this pool alone.
    #[must_use]
    pub fn values(mut self, values: &Value) -> Self {
        self.0.values = values.to_string();
        self
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The labels of its nodes.
    #[must_use]
    pub fn selector(&self) -> &[(String, String)] {
        &self.0.node_selector
    }

    /// Its own merge patch.
    #[must_use]
    pub fn patch(&self) -> &str {
        &self.0.values
    }
}

/// Makes one mapping, natively as inside a component.
pub(crate) fn map<P: ValueMapper>(context: Context) -> Result<Mapping, Failure> {
    P::map_values(&Call::begin(context)?)
}

impl<P: ValueMapper> mapper::Guest for Adapter<P> {
    fn map_values(context: Context) -> Result<mapper::Mapping, types::Failure> {
        begin();
        let Mapping { values, pools, report } = map::<P>(context)?;
        Ok(mapper::Mapping { values, pools, report })
    }
}

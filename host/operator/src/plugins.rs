//! Plugins: pulled, loaded, told how they are, and called.

pub(crate) mod around;
pub(crate) mod call;
mod calls;
pub(crate) mod component;
mod controller;
pub(crate) mod question;
pub(crate) mod said;
mod schemas;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pintle_api::plugin::{PluginSpec, ReadGrant};
use pintle_chart::Chart;
use pintle_cluster::Mask;
use pintle_plugin::{Artifact, Breakers, Engine, LoadError, Plugin};
use pintle_source::artifact::Registries;
use serde_json::{Map, Value};

use crate::{context::Context, error_text::one_line};
pub(crate) use call::{About, Caller, LOADING};
use calls::Calls;
pub(crate) use controller::{Shelf, reconcile};
pub(crate) use schemas::Schemas;

/// The plugins of this process.
pub(crate) struct Plugins {
    pub(crate) engine: Engine,
    pub(crate) registries: Registries,
    loaded: Mutex<HashMap<String, Loaded>>,
    /// Plugins under a config of their caller's, by name, generation and config.
    configured: Mutex<Configured>,
    pub(crate) breakers: Mutex<Breakers>,
    /// What was asked last.
    pub(crate) calls: Calls,
}

/// By name and generation of the Plugin, and the config over its own.
type Configured = HashMap<(String, i64, String), Result<Plugin, Unready>>;

/// What became of a Plugin object.
#[derive(Clone)]
pub(crate) struct Loaded {
    /// Generation of the object it was made from.
    pub(crate) generation: i64,
    /// The plugin, or why it is not there.
    pub(crate) plugin: Result<Plugin, Unready>,
}

/// A plugin as somebody names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    /// Name of the Plugin.
    pub(crate) name: String,
    /// Config over that of the Plugin; only an administrator gives one.
    pub(crate) config: Option<Map<String, Value>>,
}

/// Why a plugin cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unready {
    /// CamelCase word.
    pub(crate) reason: String,
    /// A sentence with the fix.
    pub(crate) message: String,
    /// Time alone may mend it.
    pub(crate) may_pass: bool,
}

/// Loads a component with its grants. What it may read of an object is there for it from now on, whatever the caches
/// drop of that kind otherwise.
async fn load(ctx: &Context, artifact: Artifact, spec: &PluginSpec) -> Result<Plugin, LoadError> {
    for grant in &spec.grants.read {
        let mask = mask_of(grant);
        for group in &grant.api_groups {
            grant.kinds.iter().for_each(|kind| ctx.caches.widen(group, kind, &mask));
        }
    }
    Plugin::load(&ctx.plugins.engine, artifact, spec).await
}

/// What has to be kept of an object so that the grant's fields are seen. The metadata always is; deeper paths may lead
/// through lists, so the field that they are in is kept as a whole.
fn mask_of(grant: &ReadGrant) -> Mask {
    if grant.fields.is_empty() {
        return Mask::Whole;
    }
    let steps = grant.fields.iter().map(|field| field.split('.').take(2).collect::<Vec<_>>());
    let outside = steps.filter(|steps| steps.first() != Some(&"metadata"));
    let pointers: Vec<String> = outside.map(|steps| format!("/{}", steps.join("/"))).collect();
    Mask::fields(pointers.iter().map(String::as_str))
}

// === impl Named ===

impl Named {
    /// A plugin with the config of its Plugin.
    pub(crate) fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), config: None }
    }

    /// The plugins that an annotation of `Chart.yaml` names.
    pub(crate) fn of_chart(chart: &Chart, annotation: &str) -> Vec<Self> {
        let text = chart.metadata.annotations.get(annotation);
        text.map(|text| Self::list(text)).unwrap_or_default()
    }

    /// The names in an annotation, in order: `one, other`.
    pub(crate) fn list(text: &str) -> Vec<Self> {
        let names = text.split(|letter: char| letter == ',' || letter.is_whitespace());
        names.filter(|name| !name.is_empty()).map(Self::plain).collect()
    }
}

// === impl Plugins ===

impl Plugins {
    pub(crate) fn new(engine: Engine, registries: Registries) -> Self {
        let (loaded, configured, breakers) = Default::default();
        Self {
            engine,
            registries,
            loaded,
            configured,
            breakers: Mutex::new(breakers),
            calls: Calls::default(),
        }
    }

    /// What became of a Plugin; nothing while no object of that name was seen.
    pub(crate) fn find(&self, name: &str) -> Option<Loaded> {
        self.lock().get(name).cloned()
    }

    /// Version in the manifest of a plugin; empty where there is none.
    pub(crate) fn version_of(&self, name: &str) -> String {
        let plugin = self.find(name).and_then(|loaded| loaded.plugin.ok());
        plugin.map(|plugin| plugin.manifest().version.clone()).unwrap_or_default()
    }

    /// The plugin under the config of its caller; checked once for each config.
    pub(crate) async fn configured(
        &self,
        plugin: &Plugin,
        generation: i64,
        named: &Named,
        spec: impl FnOnce() -> Option<PluginSpec>,
    ) -> Result<Plugin, Unready> {
        let Some(config) = named.config.as_ref().filter(|config| !config.is_empty()) else {
            return Ok(plugin.clone());
        };
        let key = (named.name.clone(), generation, Value::Object(config.clone()).to_string());
        if let Some(known) = self.lock_configured().get(&key) {
            return known.clone();
        }
        let Some(mut spec) = spec() else { return Err(Unready::changing(&named.name)) };
        spec.config = pintle_chart::values::overlay([&spec.config, config]);
        let bound = plugin.rebind(&spec).await.map_err(|err| Unready {
            reason: err.reason().to_owned(),
            message: one_line(&err),
            may_pass: false,
        });
        self.lock_configured().insert(key, bound.clone());
        bound
    }

    fn keep(&self, name: &str, loaded: Loaded) {
        self.lock_configured().retain(|(known, ..), _| known != name);
        self.lock().insert(name.to_owned(), loaded);
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner).forget_plugin(name);
    }

    fn forget(&self, name: &str) {
        self.lock_configured().retain(|(known, ..), _| known != name);
        self.calls.forget(name);
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_configured(&self) -> MutexGuard<'_, Configured> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Unready ===

impl Unready {
    /// Its object is another one than what was loaded: the end of the loading wakes the release.
    fn changing(name: &str) -> Self {
        let message = format!("Plugin {name} has changed and is being loaded again");
        Self { reason: LOADING.to_owned(), message, may_pass: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_an_annotation_are_in_order_and_may_stand_on_lines_of_their_own() {
        let names = |text: &str| Named::list(text).into_iter().map(|named| named.name).collect::<Vec<_>>();
        assert_eq!(names("b, a"), ["b", "a"]);
        assert_eq!(names("b\n  a,\n"), ["b", "a"]);
        assert!(names(" ").is_empty());
    }

    #[test]
    fn what_a_grant_shows_is_kept_and_what_it_shows_of_the_metadata_is_anyway() {
        let mask = |fields: &[&str]| {
            let fields = fields.iter().map(|field| (*field).to_owned()).collect();
            mask_of(&ReadGrant { fields, ..ReadGrant::default() })
        };
        assert_eq!(mask(&[]), Mask::Whole);
        assert_eq!(mask(&["metadata", "metadata.labels"]), Mask::fields([]));
        let shown = ["status.conditions.type", "spec", "metadatas.a"];
        assert_eq!(mask(&shown), Mask::fields(["/status/conditions", "/spec", "/metadatas/a"]));
    }
}

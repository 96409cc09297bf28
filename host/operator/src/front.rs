//! Owners of releases: what a SpecialResource and an object of a watched kind have in common.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pintle_api::{
    Object, SpecialResource, names,
    special_resource::{HelmChart, SpecialResourceSpec},
    watch::{Adopt, CrdPolicy, DriftDetection, DriftMode, MissingPolicy, ValuesFrom, WatchPlugin, WatchSpec},
};
use pintle_chart::{Chart, Metadata};
use pintle_plan::{Flavor, GateError, Policy, Reference, Release, parse_plugins};
use serde_json::{Map, Value};

use crate::{
    error_text::one_line,
    plugins::{Named, around::config_text},
    record::HISTORY,
    values_from::Source,
    wishes::{self, Wishes},
};

/// An owner, and the release it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    /// The owner as it is in the cluster.
    pub(crate) owner: Arc<Object>,
    /// The release; its chart's digest is set once the chart is there.
    pub(crate) release: Release,
    /// Where the chart is.
    pub(crate) chart: HelmChart,
    /// What made it.
    pub(crate) kind: FrontKind,
    /// Values that ConfigMaps and Secrets hold for it, once they were read.
    pub(crate) values_from: Vec<Source>,
    /// What annotations on the owner ask for.
    pub(crate) wishes: Wishes,
}

/// How long a revision of a Watch with remediation may take when nothing else is said; Helm's default.
const REMEDIED_WITHIN: i64 = 300;

/// What makes releases.
#[derive(Clone, Debug)]
pub(crate) enum FrontKind {
    /// A SpecialResource.
    SpecialResource(Box<SpecialResourceSpec>),
    /// An object of a kind that a Watch binds.
    Watch(Arc<WatchSpec>),
}

/// Why an owner cannot have a release; it must change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrontError {
    #[error("spec cannot be read: {0}")]
    Spec(String),
    #[error("spec.{field} is not served by this version; take it away")]
    NotServed { field: &'static str },
    #[error("spec.timeout: `{0}` is not a time; write 90s, 10m or 1h")]
    Timeout(String),
    #[error("releaseName of the Watch: {0}")]
    ReleaseName(String),
}

// === impl Front ===

impl Front {
    /// The release a SpecialResource asks for.
    pub(crate) fn of_special_resource(owner: Arc<Object>) -> Result<Self, FrontError> {
        let read: SpecialResource =
            serde_json::from_value(owner.to_value()).map_err(|err| FrontError::Spec(err.to_string()))?;
        let spec = read.spec;
        refuse_unserved(&spec)?;
        let namespace = if spec.namespace.is_empty() { owner.name() } else { &spec.namespace };
        let flavor = Flavor::SpecialResource { node_selector: spec.node_selector.clone() };
        let mut release = release_of(&owner, owner.name(), namespace, flavor, &spec.timeout)?;
        release.adopt = spec.adopt.unwrap_or(Adopt::IfUnowned);
        release.leaves_drift =
            spec.drift_detection.as_ref().is_some_and(|drift| drift.mode != DriftMode::Enabled);
        release.policy = policy_of(spec.drift_detection.as_ref());
        let chart = spec.chart.clone();
        let wishes = wishes::read(&owner, "", "");
        Ok(Self {
            wishes,
            owner,
            release,
            chart,
            kind: FrontKind::SpecialResource(Box::new(spec)),
            values_from: Vec::new(),
        })
    }

    /// The release an object of a watched kind asks for.
    pub(crate) fn of_watched(owner: Arc<Object>, watch: Arc<WatchSpec>) -> Result<Self, FrontError> {
        let own = owner.namespace().unwrap_or_default();
        let namespace = if watch.target_namespace.is_empty() { own } else { &watch.target_namespace };
        let name = match &watch.reconciler {
            // Its memory must not be that of a release of the same name.
            Some(_) => format!("{}-{}", owner.name(), owner.kind().to_lowercase()),
            None => release_name(&owner, &watch)?,
        };
        let mut release = release_of(&owner, &name, namespace, Flavor::Watch, &watch.timeout)?;
        release.adopt = watch.adopt.unwrap_or(Adopt::IfUnowned);
        release.leaves_drift = watch.watch_dependent_resources == Some(false)
            || watch.drift_detection.as_ref().is_some_and(|drift| drift.mode != DriftMode::Enabled);
        release.gates_all = true;
        let wishes = wishes::read(&owner, &watch.annotation_domain, &watch.pause_annotation);
        release.policy = Policy {
            remediation: watch.remediation.clone(),
            skips_hooks: wishes.skips_hooks,
            recreates: wishes.recreates,
            replaces_crds: watch.crds == Some(CrdPolicy::CreateReplace),
            makes_namespace: watch.create_namespace,
            ..policy_of(watch.drift_detection.as_ref())
        };
        if watch.remediation.is_some() {
            release.timeout.get_or_insert(REMEDIED_WITHIN);
        }
        let chart = HelmChart {
            name: watch.chart.name.clone(),
            version: watch.chart.version.clone(),
            repository: pintle_api::special_resource::HelmRepository {
                url: watch.chart.repository.url.clone(),
                secret_ref: watch.chart.repository.secret_ref.clone(),
                ..Default::default()
            },
            digest: watch.chart.digest.clone(),
            tags: Vec::new(),
        };
        let kind = FrontKind::Watch(watch);
        Ok(Self { owner, release, chart, kind, values_from: Vec::new(), wishes })
    }

    /// The finalizer that holds the owner until its objects are gone.
    pub(crate) fn finalizer(&self) -> &'static str {
        match self.kind {
            FrontKind::SpecialResource(_) => names::SRO_FINALIZER,
            FrontKind::Watch(_) => names::FINALIZER,
        }
    }

    /// True for an owner of a vendor's kind.
    pub(crate) fn is_watched(&self) -> bool {
        matches!(self.kind, FrontKind::Watch(_))
    }

    /// Revisions that are kept; 0: all.
    pub(crate) fn history(&self) -> u32 {
        match &self.kind {
            FrontKind::SpecialResource(_) => HISTORY,
            FrontKind::Watch(watch) => watch.history_max.unwrap_or(HISTORY),
        }
    }

    /// How often the release is looked at without an event, where it says so itself.
    pub(crate) fn period(&self) -> Option<Duration> {
        let of_watch = match &self.kind {
            FrontKind::SpecialResource(_) => None,
            FrontKind::Watch(watch) => wishes::parse_period(&watch.reconcile_period),
        };
        self.wishes.period.or(of_watch)
    }

    /// The owner's `spec`.
    pub(crate) fn owner_spec(&self) -> Map<String, Value> {
        self.owner.at("/spec").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// What the user set: part of the mark of a revision.
    pub(crate) fn user_values(&self) -> Map<String, Value> {
        let spec = self.owner_spec();
        match &self.kind {
            FrontKind::SpecialResource(_) => spec,
            FrontKind::Watch(watch) => {
                let overrides = watch.override_values.clone();
                Map::from_iter([
                    ("spec".to_owned(), spec.into()),
                    ("overrideValues".to_owned(), overrides.into()),
                ])
            }
        }
    }

    /// Where more values come from.
    pub(crate) fn value_sources(&self) -> &[ValuesFrom] {
        match &self.kind {
            FrontKind::SpecialResource(spec) => &spec.values_from,
            FrontKind::Watch(watch) => &watch.values_from,
        }
    }

    /// Plugins that map values, in order: those of the chart, then those of the owner or its Watch. A
    /// plugin that is named twice is asked once.
    pub(crate) fn value_mappers(&self, chart: &Chart) -> Vec<Named> {
        let mut mappers = Named::of_chart(chart, names::VALUE_MAPPER);
        match &self.kind {
            FrontKind::SpecialResource(spec) => {
                let plugins = spec.plugins.iter().flat_map(|plugins| &plugins.value_mappers);
                mappers.extend(plugins.map(|name| Named::plain(name)));
            }
            FrontKind::Watch(watch) => {
                let own = watch.value_mapper.iter();
                mappers.extend(
                    own.map(|own| Named { name: own.plugin.clone(), config: Some(own.config.clone()) }),
                );
            }
        }
        let mut seen = BTreeSet::new();
        mappers.retain(|named| seen.insert(named.name.clone()));
        mappers
    }

    /// Text that differs when anything the user set does, here or in what is named here. It holds no value.
    pub(crate) fn values_mark(&self) -> String {
        let from = self.values_from.iter().map(|source| Value::Object(source.values.clone()).to_string());
        let text = from.chain([Value::Object(self.user_values()).to_string()]).collect::<Vec<_>>().join("|");
        format!("{:x}", pintle_plan::fnv1a(text.as_bytes()))
    }

    /// The plugin that alone says what shall be there, where there is one.
    pub(crate) fn reconciler(&self) -> Option<Reference> {
        let FrontKind::Watch(watch) = &self.kind else { return None };
        let WatchPlugin { plugin, config } = watch.reconciler.as_ref()?;
        Some(reference(plugin, config, None))
    }

    /// Plugins that are called around the release: those of the chart, then those of the owner or its Watch.
    pub(crate) fn around(&self, chart: &Metadata) -> Result<Vec<Reference>, GateError> {
        let named =
            chart.annotations.get(names::HOOKS).map(|text| parse_plugins(names::HOOKS, text)).transpose()?;
        let of_chart = named.unwrap_or_default().into_iter();
        let mut all: Vec<_> =
            of_chart.map(|named| Reference { named, config: String::new(), missing: None }).collect();
        match &self.kind {
            FrontKind::SpecialResource(spec) => {
                let own = spec.plugins.iter().flat_map(|plugins| &plugins.hooks);
                all.extend(own.map(|plugin| reference(plugin, &Map::new(), None)));
            }
            FrontKind::Watch(watch) => {
                let own = watch.hooks.iter();
                all.extend(own.map(|hook| reference(&hook.plugin, &hook.config, hook.deletion_policy)));
            }
        }
        Ok(all)
    }

    /// Labels that select the nodes the release may use.
    pub(crate) fn node_selector(&self) -> BTreeMap<String, String> {
        match &self.release.flavor {
            Flavor::SpecialResource { node_selector } => node_selector.clone(),
            Flavor::Watch => BTreeMap::new(),
        }
    }
}

fn reference(plugin: &str, config: &Map<String, Value>, missing: Option<MissingPolicy>) -> Reference {
    let named = pintle_plan::Named { plugin: plugin.to_owned(), args: "{}".to_owned() };
    Reference { named, config: config_text(config), missing }
}

fn release_of(
    owner: &Object,
    name: &str,
    namespace: &str,
    flavor: Flavor,
    timeout: &str,
) -> Result<Release, FrontError> {
    Ok(Release {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        owner: owner.reference(),
        owner_uid: owner.uid().unwrap_or_default().to_owned(),
        chart_digest: String::new(),
        flavor,
        adopt: Adopt::IfUnowned,
        gates_all: false,
        leaves_drift: false,
        policy: Default::default(),
        is_forced_out: owner.annotation(names::FORCE_DELETE) == Some("true"),
        timeout: parse_seconds(timeout)?,
    })
}

/// Fields that this version accepts and does not serve are refused by name: nothing a user asked for
/// is left out in silence.
fn refuse_unserved(spec: &SpecialResourceSpec) -> Result<(), FrontError> {
    if spec.service_account_name.is_empty() {
        return Ok(());
    }
    Err(FrontError::NotServed { field: "serviceAccountName" })
}

fn release_name(owner: &Object, watch: &WatchSpec) -> Result<String, FrontError> {
    pintle_chart::plain::release_name(&watch.release_name, &owner.to_value())
        .map_err(|err| FrontError::ReleaseName(one_line(&err)))
}

fn policy_of(drift: Option<&DriftDetection>) -> Policy {
    let Some(drift) = drift else { return Policy::default() };
    Policy { ignore: drift.ignore.clone(), tells_drift: drift.mode == DriftMode::Warn, ..Policy::default() }
}

/// `90s`, `10m`, `1h`; nothing for an empty text.
fn parse_seconds(text: &str) -> Result<Option<i64>, FrontError> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || FrontError::Timeout(text.to_owned());
    let (digits, unit) = text.split_at_checked(text.len() - 1).ok_or_else(wrong)?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    Ok(Some(i64::from(number) * factor))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::unwrap_in_result, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn special_resource(spec: Value) -> Result<Front, FrontError> {
        let mut spec = spec;
        spec["chart"] = json!({"name": "c", "version": "1", "repository": {"name": "r", "url": "cm://a/b"}});
        let object = Object::new(json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": "simple-kmod", "uid": "u"}, "spec": spec
        }));
        Front::of_special_resource(Arc::new(object.unwrap()))
    }

    #[test]
    fn an_empty_namespace_is_the_owners_name() {
        assert_eq!(special_resource(json!({"namespace": ""})).unwrap().release.namespace, "simple-kmod");
    }

    #[test]
    fn what_is_not_served_is_refused_by_name() {
        let spec = json!({"namespace": "", "serviceAccountName": "a"});
        assert_eq!(
            special_resource(spec).unwrap_err().to_string(),
            "spec.serviceAccountName is not served by this version; take it away"
        );
        let wrong = special_resource(json!({"namespace": "", "timeout": "soon"})).unwrap_err();
        assert!(wrong.to_string().contains("`soon` is not a time"));
        assert_eq!(
            special_resource(json!({"namespace": "", "timeout": "10m"})).unwrap().release.timeout,
            Some(600)
        );
    }
}

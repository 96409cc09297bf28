//! The server's answer as a table of kinds.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use pintle_api::Gvk;
use serde::Deserialize;

/// One kind as the server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Kind with group and version.
    pub gvk: Gvk,
    /// Plural in URLs and roles.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What may be done with it.
    pub verbs: BTreeSet<String>,
    /// Names of its subresources, as `status` and `scale`.
    pub subresources: BTreeSet<String>,
}

/// The server's version, as charts see it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerVersion {
    /// `1`.
    pub major: String,
    /// `36`, on some clusters `36+`.
    pub minor: String,
    /// `v1.36.3`.
    pub git_version: String,
}

/// What `.Capabilities` of a chart is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The server's version.
    pub version: ServerVersion,
    /// `v1`, `apps/v1`, `apps/v1/Deployment`, sorted.
    pub api_versions: Vec<String>,
}

/// One reading of everything.
pub(super) struct Table {
    pub(super) kinds: HashMap<Gvk, Arc<Served>>,
    /// Group and kind to the version the server prefers.
    pub(super) preferred: HashMap<(String, String), Gvk>,
    pub(super) capabilities: Arc<Capabilities>,
    pub(super) read_at: Instant,
}

/// `APIGroupDiscoveryList` in the fields that are used.
#[derive(Deserialize)]
pub(super) struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
    /// `Stale` where an aggregated server did not answer.
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    #[serde(default)]
    response_kind: Kind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: BTreeSet<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Default, Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subresource {
    subresource: String,
    #[serde(default)]
    response_kind: Kind,
}

// === impl Served ===

impl Served {
    /// `daemonsets.apps`, `pods`: how roles and messages name it.
    #[must_use]
    pub fn resource(&self) -> String {
        if self.gvk.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.gvk.group)
        }
    }

    /// The URL path of the collection, or of one object in it. A namespace given for a kind of cluster
    /// scope is left out, as manifests often carry one.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = if self.gvk.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", self.gvk.api_version());
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path = format!("{path}/namespaces/{}", escaped(namespace));
        }
        path = format!("{path}/{}", self.plural);
        if let Some(name) = name { format!("{path}/{}", escaped(name)) } else { path }
    }

    /// True when the verb may be used on the kind by somebody.
    #[must_use]
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }

    /// True when it has that subresource.
    #[must_use]
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.contains(subresource)
    }
}

/// A name as one step of a path: what could end the step, or the path, is encoded (RBAC names have colons).
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

// === impl Table ===

impl Table {
    /// A group whose server did not answer keeps the kinds it had in `before`: they are not gone.
    pub(super) fn build(
        groups: &[Groups],
        version: ServerVersion,
        before: Option<&Self>,
        read_at: Instant,
    ) -> Self {
        let mut kinds = HashMap::new();
        let mut preferred = HashMap::new();
        let mut api_versions = BTreeSet::new();
        for group in groups.iter().flat_map(|groups| &groups.items) {
            for version in &group.versions {
                let of = Gvk {
                    group: group.metadata.name.clone(),
                    version: version.version.clone(),
                    kind: String::new(),
                };
                api_versions.insert(of.api_version());
                if version.freshness == "Stale" {
                    keep_known(&of, before, &mut kinds);
                }
                for resource in &version.resources {
                    let served = resource.served(&of);
                    api_versions.extend(resource.kinds().map(|kind| format!("{}/{kind}", of.api_version())));
                    let key = (of.group.clone(), served.gvk.kind.clone());
                    preferred.entry(key).or_insert_with(|| served.gvk.clone());
                    kinds.entry(served.gvk.clone()).or_insert_with(|| Arc::new(served));
                }
            }
        }
        let capabilities = Capabilities { version, api_versions: api_versions.into_iter().collect() };
        Self { kinds, preferred, capabilities: Arc::new(capabilities), read_at }
    }
}

fn keep_known(of: &Gvk, before: Option<&Table>, kinds: &mut HashMap<Gvk, Arc<Served>>) {
    let Some(before) = before else { return };
    let same = |gvk: &Gvk| gvk.group == of.group && gvk.version == of.version;
    let known = before.kinds.iter().filter(|(gvk, _)| same(gvk));
    kinds.extend(known.map(|(gvk, served)| (gvk.clone(), Arc::clone(served))));
}

impl Resource {
    fn served(&self, of: &Gvk) -> Served {
        Served {
            gvk: Gvk { kind: self.response_kind.kind.clone(), ..of.clone() },
            plural: self.resource.clone(),
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs.clone(),
            subresources: self.subresources.iter().map(|sub| sub.subresource.clone()).collect(),
        }
    }

    fn kinds(&self) -> impl Iterator<Item = &str> {
        let own = std::iter::once(&self.response_kind);
        let all = own.chain(self.subresources.iter().map(|sub| &sub.response_kind));
        all.map(|kind| kind.kind.as_str()).filter(|kind| !kind.is_empty())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn version() -> ServerVersion {
        ServerVersion { major: "1".into(), minor: "36".into(), git_version: "v1.36.3".into() }
    }

    fn apps(freshness: &str, resources: serde_json::Value) -> Groups {
        serde_json::from_value(json!({"items": [{"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "freshness": freshness, "resources": resources}
        ]}]}))
        .unwrap()
    }

    fn daemon_sets() -> serde_json::Value {
        json!([{"resource": "daemonsets", "responseKind": {"group": "apps", "version": "v1", "kind": "DaemonSet"},
                "scope": "Namespaced", "verbs": ["get", "watch"],
                "subresources": [{"subresource": "status", "responseKind": {"kind": "DaemonSet"}}]}])
    }

    #[test]
    fn kinds_have_paths_and_charts_see_versions_and_kinds() {
        let table = Table::build(&[apps("Current", daemon_sets())], version(), None, Instant::now());
        let served = &table.kinds[&Gvk::new("apps/v1", "DaemonSet")];
        assert_eq!(served.path(Some("n"), Some("d")), "/apis/apps/v1/namespaces/n/daemonsets/d");
        assert_eq!(served.resource(), "daemonsets.apps");
        assert!(served.has("status") && !served.has("scale"));
        assert_eq!(table.capabilities.api_versions, ["apps/v1", "apps/v1/DaemonSet"]);
    }

    #[test]
    fn kinds_of_a_server_that_does_not_answer_are_not_gone() {
        let before = Table::build(&[apps("Current", daemon_sets())], version(), None, Instant::now());
        let after = Table::build(&[apps("Stale", json!([]))], version(), Some(&before), Instant::now());
        assert_eq!(after.kinds, before.kinds);
    }

    #[test]
    fn a_name_cannot_leave_its_step_of_the_path() {
        let table = Table::build(&[apps("Current", daemon_sets())], version(), None, Instant::now());
        let served = &table.kinds[&Gvk::new("apps/v1", "DaemonSet")];
        assert_eq!(
            served.path(Some("n"), Some("../x?y")),
            "/apis/apps/v1/namespaces/n/daemonsets/..%2Fx%3Fy"
        );
    }
}

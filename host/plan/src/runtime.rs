//! Facts about the cluster as values of a chart, under the names SRO gave them.

use std::collections::BTreeSet;

use pintle_api::{Answer, Facts, Object, ObjectRef, Query};
use serde_json::{Map, Value, json};

use crate::{Pool, Pools};

/// Names of facts that cost a read; each is read only where a chart mentions it.
const COSTLY: [&str; 6] =
    ["clusterVersion", "osImageURL", "proxy", "pushSecretName", "platform", "clusterUpgradeInfo"];

/// Which facts a chart mentions. A fact nobody mentions is not read: it would cost a right and a watch.
#[derive(Clone, Debug, Default)]
pub struct RuntimeFacts {
    wanted: BTreeSet<&'static str>,
}

// === impl RuntimeFacts ===

impl RuntimeFacts {
    /// Looks for the names of facts in templates and values.
    pub fn mentioned_in<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut wanted = BTreeSet::new();
        for text in texts {
            wanted.extend(COSTLY.into_iter().filter(|name| text.contains(name)));
        }
        Self { wanted }
    }

    /// What either mentions.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.wanted.extend(other.wanted);
        self
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.contains(name)
    }
}

/// The values a rendering gets on top of all others (`reference/sro.md` RT-1 to RT-18).
///
/// `pool` is the pool the rendering is for; without one the last pool speaks for all nodes, as in SRO.
/// What the cluster does not have is empty, never an error.
pub fn observe_runtime(
    facts: &dyn Facts,
    wanted: &RuntimeFacts,
    pools: &Pools,
    pool: Option<&Pool>,
    owner: &Object,
) -> Map<String, Value> {
    let mut values = Map::new();
    let mut put = |name: &str, value: Value| {
        values.insert(name.to_owned(), value);
    };
    put("kind", json!("Values"));
    put("apiVersion", json!("sro.openshift.io/v1beta1"));
    put("groupName", group_names());
    put("specialresource", owner_value(owner));
    put("updateVendor", json!(""));
    put("driverToolkitImage", json!(""));
    let of_wanted =
        |name: &str, read: &dyn Fn() -> Value| if wanted.wants(name) { read() } else { json!("") };
    put("platform", of_wanted("platform", &|| platform(facts, owner)));
    put("clusterVersion", of_wanted("clusterVersion", &|| cluster_version(facts)));
    put("osImageURL", of_wanted("osImageURL", &|| os_image_url(facts)));
    put("pushSecretName", of_wanted("pushSecretName", &|| push_secret(facts, owner)));
    put("proxy", if wanted.wants("proxy") { proxy(facts) } else { no_proxy() });
    if wanted.wants("clusterUpgradeInfo") {
        put("clusterUpgradeInfo", upgrade_info(pools));
    }
    values.extend(kernel_values(pool.or(pools.pools.last())));
    values
}

fn kernel_values(pool: Option<&Pool>) -> Map<String, Value> {
    let text = |value: &dyn Fn(&Pool) -> String| Value::from(pool.map(value).unwrap_or_default());
    Map::from_iter([
        ("kernelFullVersion".to_owned(), text(&|pool| pool.kernel.clone())),
        ("kernelPatchVersion".to_owned(), text(&|pool| patch_version(&pool.kernel))),
        ("operatingSystemMajor".to_owned(), text(&|pool| prefixed(pool.os_major()))),
        ("operatingSystemMajorMinor".to_owned(), text(&|pool| prefixed(&pool.os_version))),
        ("operatingSystemDecimal".to_owned(), text(&|pool| pool.os_version.clone())),
        ("clusterVersionMajorMinor".to_owned(), text(&|pool| pool.cluster_version.clone())),
    ])
}

fn prefixed(version: &str) -> String {
    if version.is_empty() { String::new() } else { format!("rhel{version}") }
}

/// `4.18.0-305` of `4.18.0-305.10.2.el8_4.x86_64`.
fn patch_version(kernel: &str) -> String {
    let Some((version, build)) = kernel.split_once('-') else { return kernel.to_owned() };
    format!("{version}-{}", build.split('.').next().unwrap_or_default())
}

fn upgrade_info(pools: &Pools) -> Value {
    let by_kernel = pools.pools.iter().map(|pool| {
        let toolkit = json!({
            "imageURL": "", "kernelFullVersion": "", "RTKernelFullVersion": "", "OSVersion": "",
            "rTKernelFullVersion": "", "oSVersion": ""
        });
        let info = json!({
            "OSVersion": pool.os_version, "oSVersion": pool.os_version,
            "OSMajor": prefixed(pool.os_major()), "OSMajorMinor": prefixed(&pool.os_version),
            "clusterVersion": pool.cluster_version, "driverToolkit": toolkit
        });
        (pool.kernel.clone(), info)
    });
    Value::Object(by_kernel.collect())
}

fn group_names() -> Value {
    json!({
        "driverBuild": "driver-build", "driverContainer": "driver-container",
        "runtimeEnablement": "runtime-enablement", "devicePlugin": "device-plugin",
        "deviceMonitoring": "device-monitoring", "deviceDashboard": "device-dashboard",
        "deviceFeatureDiscovery": "device-feature-discovery", "csiDriver": "csi-driver"
    })
}

/// The whole SpecialResource as templates saw it in SRO: fields that Go always writes are there, so
/// that templates may look into them.
fn owner_value(owner: &Object) -> Value {
    let mut owner = owner.clone();
    owner.map_mut(&["metadata"]).remove("managedFields");
    owner.map_mut(&["spec", "driverContainer", "artifacts"]);
    let git = owner.map_mut(&["spec", "driverContainer", "source", "git"]);
    for field in ["ref", "uri"] {
        git.entry(field).or_insert(json!(""));
    }
    let spec = owner.map_mut(&["spec"]);
    for flag in ["debug", "forceUpgrade"] {
        spec.entry(flag).or_insert(json!(false));
    }
    owner.into_value()
}

fn platform(facts: &dyn Facts, owner: &Object) -> Value {
    let builds = Query {
        api_version: "build.openshift.io/v1".to_owned(),
        kind: "BuildConfig".to_owned(),
        namespace: Some(owner.str_at("/spec/namespace").unwrap_or(owner.name()).to_owned()),
        label_selector: None,
    };
    json!(if facts.list(&builds) == Answer::KindUnknown { "K8S" } else { "OCP" })
}

fn cluster_version(facts: &dyn Facts) -> Value {
    let version = facts.get(&ObjectRef::new("config.openshift.io/v1", "ClusterVersion", "version")).found();
    let history = version.as_ref().and_then(|version| version.at("/status/history")?.as_array());
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let done =
        history.into_iter().flatten().find(|entry| text(entry, "state").as_deref() == Some("Completed"));
    json!(done.and_then(|entry| text(entry, "version")).unwrap_or_default())
}

fn os_image_url(facts: &dyn Facts) -> Value {
    let target = ObjectRef::new("v1", "ConfigMap", "machine-config-osimageurl")
        .within("openshift-machine-config-operator");
    let map = facts.get(&target).found();
    json!(map.as_ref().and_then(|map| map.str_at("/data/osImageURL")).unwrap_or_default())
}

fn push_secret(facts: &dyn Facts, owner: &Object) -> Value {
    let secrets = facts.list(&Query {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(owner.str_at("/spec/namespace").unwrap_or(owner.name()).to_owned()),
        label_selector: None,
    });
    let names = secrets.found().unwrap_or_default();
    let found = names.iter().map(|secret| secret.name()).find(|name| name.contains("builder-dockercfg"));
    json!(found.unwrap_or_default())
}

fn no_proxy() -> Value {
    json!({"httpProxy": "", "httpsProxy": "", "noProxy": "", "trustedCA": ""})
}

fn proxy(facts: &dyn Facts) -> Value {
    let target = ObjectRef::new("config.openshift.io/v1", "Proxy", "cluster");
    let Some(proxy) = facts.get(&target).found() else { return no_proxy() };
    let text = |pointer: &str| proxy.str_at(pointer).unwrap_or_default();
    json!({
        "httpProxy": text("/spec/httpProxy"), "httpsProxy": text("/spec/httpsProxy"),
        "noProxy": text("/spec/noProxy"), "trustedCA": text("/spec/trustedCA/name")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::{Record, Recorder};

    use super::*;

    fn owner() -> Object {
        Object::new(json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": "simple-kmod"}, "spec": {"namespace": "ns"}
        }))
        .unwrap()
    }

    #[test]
    fn facts_nobody_mentions_are_not_read() {
        let world = Record::default();
        let recorder = Recorder::new(&world);
        let values = observe_runtime(&recorder, &RuntimeFacts::default(), &Pools::default(), None, &owner());
        assert!(recorder.record().is_empty());
        assert_eq!(values.get("clusterVersion"), Some(&json!("")));
        let wanted = RuntimeFacts::mentioned_in(["{{ .Values.clusterVersion }}"]);
        observe_runtime(&recorder, &wanted, &Pools::default(), None, &owner());
        assert_eq!(recorder.record().needs().len(), 1);
    }

    #[test]
    fn a_kernel_is_taken_apart_as_sro_did() {
        let pool = Pool {
            kernel: "4.18.0-305.10.2.el8_4.x86_64".into(),
            os_version: "8.4".into(),
            cluster_version: "4.8".into(),
            nodes: vec![],
            mapped: None,
        };
        let values = kernel_values(Some(&pool));
        let text = |name: &str| values.get(name).unwrap().as_str().unwrap().to_owned();
        assert_eq!(text("kernelPatchVersion"), "4.18.0-305");
        assert_eq!(text("operatingSystemMajor"), "rhel8");
        assert_eq!(text("operatingSystemMajorMinor"), "rhel8.4");
        assert_eq!(text("operatingSystemDecimal"), "8.4");
    }

    #[test]
    fn templates_may_look_into_fields_the_user_left_out() {
        let value = owner_value(&owner());
        assert_eq!(value.pointer("/spec/driverContainer/source/git/ref"), Some(&json!("")));
        assert_eq!(value.pointer("/spec/debug"), Some(&json!(false)));
    }
}

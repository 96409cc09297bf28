//! One scenario's share of the control plane: a chart of a few lines, its plugins and its nodes.

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use pintle_api::{Blocker, SpecialResource, status::Condition};
use pintle_tests::{
    Stage,
    stage::{plane, push_plugin},
};
use serde_json::{Map, Value, json};

/// Label of a scenario's nodes: its plugins look at these alone.
pub(super) const LABEL: &str = "scenario";
/// Labels of node-feature-discovery.
pub(super) const OS_ID: &str = "feature.node.kubernetes.io/system-os_release.ID";
pub(super) const OS_VERSION: &str = "feature.node.kubernetes.io/system-os_release.VERSION_ID";

/// What the charts of these scenarios apply, and what their plugins read.
const RIGHTS: [(&str, &[&str]); 7] = [
    ("", &["configmaps", "serviceaccounts", "secrets"]),
    ("apps", &["daemonsets", "controllerrevisions"]),
    ("batch", &["jobs"]),
    ("config.openshift.io", &["proxies"]),
    ("kmm.sigs.x-k8s.io", &["modules"]),
    ("scenario.example", &["nicclusterpolicies", "cephclusters"]),
    ("kinds.scenario.example", &["engines"]),
];

/// One scenario.
pub(super) struct Play {
    pub(super) stage: Stage,
    plugins: Vec<String>,
    nodes: Vec<String>,
}

// === impl Play ===

impl Play {
    /// A namespace and an operator of its own, with rights for what the scenario's chart applies.
    pub(super) async fn begin(name: &str) -> Self {
        grant_rights().await;
        let stage = Stage::new(name).await.unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        stage.apply(namespace).await.unwrap();
        Self { stage, plugins: Vec::new(), nodes: Vec::new() }
    }

    /// The chart `played` with these templates; `annotations` are those of `Chart.yaml`.
    pub(super) async fn chart(&self, annotations: &[(&str, &str)], files: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let annotations: Map<String, Value> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let meta =
            json!({"apiVersion": "v2", "name": "played", "version": "0.1.0", "annotations": annotations});
        std::fs::create_dir(folder.path().join("templates")).unwrap();
        std::fs::write(folder.path().join("Chart.yaml"), meta.to_string()).unwrap();
        for (path, text) in files {
            std::fs::write(folder.path().join(path), text).unwrap();
        }
        self.stage.install_chart(folder.path()).await.unwrap();
    }

    /// The owner of the chart, with these fields of its spec besides.
    pub(super) async fn own(&self, more: Value) {
        let name = &self.stage.name;
        let mut spec = json!({
            "namespace": name,
            "chart": {"name": "played", "version": "0.1.0",
                      "repository": {"name": "chart", "url": format!("cm://{name}/chart")}}
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let owner = json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": name, "labels": {"test": name}}, "spec": spec
        });
        self.stage.apply(owner).await.unwrap();
    }

    /// A plugin of ours under a name of this scenario's own, which is given back.
    pub(super) async fn plugin(&mut self, package: &str, more: Value) -> String {
        let image = push_plugin(plane().await.unwrap(), package).await.unwrap();
        self.plugin_of(package, &image, more).await
    }

    /// A Plugin of any image.
    pub(super) async fn plugin_of(&mut self, package: &str, image: &str, more: Value) -> String {
        let name = format!("{}-{package}", self.stage.name);
        let mut spec = json!({"image": image});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let plugin = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec
        });
        self.stage.apply(plugin).await.unwrap();
        if !self.plugins.contains(&name) {
            self.plugins.push(name.clone());
        }
        name
    }

    /// A node of this scenario's own. No pod of another test comes there, and no release of another test
    /// counts it, for its taint.
    pub(super) async fn node(&mut self, name: &str, os_image: &str, labels: Value) -> String {
        let (scenario, name) = (self.stage.name.clone(), format!("{}-{name}", self.stage.name));
        let mut all = json!({"kubernetes.io/hostname": name, LABEL: scenario});
        all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": all},
            "spec": {"taints": [{"key": LABEL, "value": scenario, "effect": "NoSchedule"}]},
            "status": {"nodeInfo": {
                "kernelVersion": "5.14.0-427.el9.x86_64", "osImage": os_image, "architecture": "amd64",
                "operatingSystem": "linux", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "v1.36.3",
                "containerRuntimeVersion": "containerd://2.1.0", "bootID": name, "machineID": name,
                "systemUUID": name
            }}
        });
        let node: DynamicObject = serde_json::from_value(node).unwrap();
        self.stage.of_kind("Node").create(&PostParams::default(), &node).await.unwrap();
        self.nodes.push(name.clone());
        name
    }

    /// Changes the labels of a node.
    pub(super) async fn label(&self, node: &str, labels: Value) {
        self.stage.edit("Node", node, json!({"metadata": {"labels": labels}})).await.unwrap();
    }

    /// Changes the status of an object as its own controller would.
    pub(super) async fn tell(&self, api: &Api<DynamicObject>, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// A kind of somebody else's, whatever its fields are.
    pub(super) async fn kind(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let (singular, plural) = (kind.to_lowercase(), plural_of(kind));
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": singular},
                "versions": [{"name": version, "served": true, "storage": true,
                    "subresources": {"status": {}}, "schema": {"openAPIV3Schema": any}}]}
        });
        self.stage.apply(definition).await.unwrap();
        self.stage.api(&format!("{group}/{version}"), kind, &plural)
    }

    /// Waits until something is waited for with this word and all of these texts.
    pub(super) async fn blocked(&self, word: &str, texts: &[&str]) -> SpecialResource {
        let fits = |blocker: &Blocker| {
            let text = serde_json::to_string(blocker).unwrap();
            blocker.reason == word && texts.iter().all(|part| text.contains(part))
        };
        let what = format!("blocked by {word} with {texts:?}");
        self.stage.wait_until(&what, |owner| blockers(owner).iter().any(fits)).await.unwrap()
    }

    /// Waits until the release is Ready at the owner's present generation.
    pub(super) async fn ready(&self) -> SpecialResource {
        let generation = self.stage.read("SpecialResource", &self.stage.name).await.unwrap();
        let generation = generation["metadata"]["generation"].as_i64();
        let is_ready = |owner: &SpecialResource| {
            let ready = condition(owner, "Ready").is_some_and(|ready| ready.status == "True");
            ready && owner.status.as_ref().is_some_and(|status| status.observed_generation >= generation)
        };
        self.stage.wait_until("Ready", is_ready).await.unwrap()
    }

    /// Waits until a ConfigMap of the release has this data.
    pub(super) async fn shows(&self, name: &str, data: Value) {
        let mut last = Value::Null;
        let is_so = async |stage: &Stage| {
            let found = stage.find("ConfigMap", name).await?.map(|map| map["data"].clone());
            last = found.unwrap_or_default();
            Ok(last == data)
        };
        let what = format!("ConfigMap {name} has {data}");
        if let Err(err) = self.stage.eventually(&what, is_so).await {
            let status = self.stage.read("SpecialResource", &self.stage.name).await.unwrap();
            panic!("{err:#}; it has {last}; the owner: {}", status["status"]);
        }
    }

    /// Ends the operator and takes away what other operators would see.
    pub(super) async fn end(mut self) {
        self.stage.stop_operator().await.unwrap();
        if self.stage.find("SpecialResource", &self.stage.name).await.unwrap().is_some() {
            self.stage.release_owner().await.unwrap();
        }
        for name in &self.plugins {
            self.stage.delete("Plugin", name).await.unwrap();
        }
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        for name in &self.nodes {
            self.stage.of_kind("Node").delete(name, &now).await.unwrap();
        }
    }
}

/// What all states of an owner wait for.
pub(super) fn blockers(owner: &SpecialResource) -> Vec<Blocker> {
    let states = owner.status.iter().flat_map(|status| &status.states);
    states.flat_map(|state| state.blockers.clone()).collect()
}

/// A condition of an owner.
pub(super) fn condition<'a>(owner: &'a SpecialResource, kind: &str) -> Option<&'a Condition> {
    owner.status.as_ref()?.conditions.iter().find(|condition| condition.kind == kind)
}

/// A grant to read fields of a kind.
pub(super) fn read(group: &str, kind: &str, fields: &[&str]) -> Value {
    json!({"apiGroups": [group], "kinds": [kind], "fields": fields})
}

fn plural_of(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}

async fn grant_rights() {
    let rules = RIGHTS.map(|(group, resources)| {
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-scenarios", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": rules
    });
    let client = plane().await.unwrap().client().unwrap();
    pintle::scenario::apply(&client, role).await.unwrap();
}

//! Releases of a vendor's kind over their whole life: Helm beside us, failures, differences, the status.

#[path = "vendor/drift.rs"]
mod drift;
#[path = "vendor/ended.rs"]
mod ended;
#[path = "vendor/helm.rs"]
mod helm;
#[path = "vendor/leaving.rs"]
mod leaving;
#[path = "vendor/life.rs"]
mod life;
#[path = "vendor/owner.rs"]
mod owner;
#[path = "vendor/remedy.rs"]
mod remedy;
#[path = "vendor/scaffold.rs"]
mod scaffold;
#[path = "vendor/space.rs"]
mod space;

use std::time::Duration;

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use pintle_tests::{Stage, stage::PATIENCE};
use serde_json::{Value, json};

/// A chart whose ConfigMap shows a value, and whose name is that of its release.
pub(crate) const SHOWN: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}-shown'}
data:
  text: {{ .Values.text | default \"none\" | quote }}
  revision: {{ .Release.Revision | quote }}
  operation: {{ ternary \"upgrade\" \"install\" .Release.IsUpgrade }}
";

/// Group of the kind that most tests share.
const GROUP: &str = "test.example.com";

/// A vendor: a kind, a chart, a Watch that binds them, and objects of the kind, all of one test.
pub(crate) struct Vendor {
    pub(crate) stage: Stage,
    /// Group of its kind.
    group: &'static str,
}

impl Vendor {
    /// The kind, the chart and the Watch; `watch` is merged into its spec.
    pub(crate) async fn new(name: &str, watch: &Value, chart: &[(&str, &str)]) -> Self {
        Self::of_group(GROUP, name, watch, chart).await
    }

    /// The same with a kind of its own, which may go.
    pub(crate) async fn of_group(
        group: &'static str,
        name: &str,
        watch: &Value,
        chart: &[(&str, &str)],
    ) -> Self {
        let vendor = Self { stage: Stage::new(name).await.unwrap(), group };
        vendor.prepare(watch, chart).await;
        vendor
    }

    /// The same without an operator yet.
    pub(crate) async fn without_operator(name: &str, watch: &Value, chart: &[(&str, &str)]) -> Self {
        let vendor = Self { stage: Stage::without_operator(name).await.unwrap(), group: GROUP };
        vendor.prepare(watch, chart).await;
        vendor
    }

    async fn prepare(&self, watch: &Value, chart: &[(&str, &str)]) {
        self.stage.apply(role()).await.unwrap();
        self.stage.apply(definition(self.group, "Widget", true)).await.unwrap();
        self.install(chart).await;
        self.watch(watch).await;
    }

    /// The Watch with this in its spec.
    pub(crate) async fn watch(&self, more: &Value) {
        let name = &self.stage.name;
        let mut spec = json!({
            "group": self.group, "version": "v1", "kind": "Widget",
            "chart": {"name": "widget", "version": "", "repository": {"url": format!("cm://{name}/chart")}},
            "selector": {"matchLabels": {"test": name}}
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let watch = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Watch",
            "metadata": {"name": name, "labels": {"test": name}}, "spec": spec});
        self.stage.apply(watch).await.unwrap();
    }

    /// Another Watch, which the operator has read when this returns.
    pub(crate) async fn watch_anew(&self, more: &Value) {
        self.watch(more).await;
        let is_read = async |stage: &Stage| {
            let watch = stage.read("Watch", &stage.name).await?;
            Ok(watch["status"]["observedGeneration"] == watch["metadata"]["generation"])
        };
        self.stage.eventually("the Watch is read", is_read).await.unwrap();
    }

    /// The chart, in the version that its folder's content gives it.
    pub(crate) async fn install(&self, files: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let mut metadata = "apiVersion: v2\nname: widget\nversion: 0.1.0\nappVersion: \"1\"\n";
        for (path, text) in files {
            if *path == "Chart.yaml" {
                metadata = text;
            }
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(folder.path().join("Chart.yaml"), metadata).unwrap();
        self.stage.install_chart(folder.path()).await.unwrap();
    }

    pub(crate) fn api(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group, "v1", "Widget");
        let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
        Api::namespaced_with(self.stage.client.clone(), &self.stage.name, &resource)
    }

    /// A Widget with this spec.
    pub(crate) async fn apply(&self, name: &str, spec: Value) {
        self.apply_with(name, spec, json!({})).await;
    }

    /// A Widget with this spec and these annotations, as an administrator applies it.
    pub(crate) async fn apply_with(&self, name: &str, spec: Value, annotations: Value) {
        let space = &self.stage.name;
        let metadata = json!({"name": name, "namespace": space, "labels": {"test": space},
            "annotations": annotations});
        let version = format!("{}/v1", self.group);
        let widget = json!({"apiVersion": version, "kind": "Widget", "metadata": metadata, "spec": spec});
        self.stage.apply(widget).await.unwrap();
    }

    pub(crate) async fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        self.api().patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    /// Waits until a Widget is as wanted.
    pub(crate) async fn wait(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool + Clone,
    ) -> Value {
        let api = self.api();
        let is_wanted = move |object: Option<&DynamicObject>| {
            object.is_some_and(|object| wanted(&serde_json::to_value(object).unwrap_or_default()))
        };
        let waited = kube::runtime::wait::await_condition(api.clone(), name, is_wanted);
        match tokio::time::timeout(PATIENCE, waited).await {
            Ok(found) => serde_json::to_value(found.unwrap()).unwrap(),
            Err(_) => {
                let last = serde_json::to_value(api.get(name).await.ok()).unwrap();
                panic!("{name} is not {what}: {last:#}")
            }
        }
    }

    /// Waits until a Widget is Ready at its present generation.
    pub(crate) async fn ready(&self, name: &str) -> Value {
        self.wait(name, "Ready", is_ready).await
    }

    /// Waits until one condition has this status and reason.
    pub(crate) async fn until(&self, name: &str, kind: &'static str, reason: &'static str) -> Value {
        let what = format!("{kind} with {reason}");
        self.wait(name, &what, move |object| condition(object, kind).1 == reason).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.api().delete(name, &DeleteParams::default()).await.unwrap();
        self.gone(name).await;
    }

    /// Waits until a Widget is gone.
    pub(crate) async fn gone(&self, name: &str) {
        let gone = async |_: &Stage| Ok(self.api().get_opt(name).await?.is_none());
        self.stage.eventually("the owner is gone", gone).await.unwrap();
    }

    /// The data of a ConfigMap; nothing where it is not there.
    pub(crate) async fn data(&self, name: &str) -> Value {
        let map = self.stage.find("ConfigMap", name).await.unwrap();
        map.map(|map| map["data"].clone()).unwrap_or_default()
    }

    /// Waits until a ConfigMap shows this text.
    pub(crate) async fn shows(&self, name: &str, text: &str) {
        let what = format!("{name} shows {text}");
        let is_shown = async |stage: &Stage| {
            Ok(stage.find("ConfigMap", name).await?.is_some_and(|map| map["data"]["text"] == text))
        };
        self.stage.eventually(&what, is_shown).await.unwrap();
    }

    /// The label `status` of the record of a revision.
    pub(crate) async fn recorded(&self, release: &str, revision: u32) -> String {
        let name = format!("sh.helm.release.v1.{release}.v{revision}");
        let secret = self.stage.find("Secret", &name).await.unwrap().unwrap_or_default();
        secret["metadata"]["labels"]["status"].as_str().unwrap_or_default().to_owned()
    }

    /// True once somebody was told an event with this reason about an object of the test.
    pub(crate) async fn told(&self, reason: &'static str) -> String {
        let mut found = String::new();
        let is_there = async |stage: &Stage| {
            let events = stage.list("Event").await?;
            let event = events.iter().find(|event| event["reason"] == reason);
            if let Some(event) = event {
                found = event["note"].as_str().unwrap_or_default().to_owned();
            }
            Ok(event.is_some())
        };
        self.stage.eventually(&format!("the event {reason} is there"), is_there).await.unwrap();
        found
    }

    pub(crate) async fn end(mut self) {
        self.stage.stop_operator().await.unwrap();
    }
}

/// Status and reason of a condition.
pub(crate) fn condition(object: &Value, kind: &str) -> (String, String) {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    let text =
        |field: &str| found.and_then(|condition| condition[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// Message of a condition.
pub(crate) fn message(object: &Value, kind: &str) -> String {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned()
}

pub(crate) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").0 == "True"
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

pub(crate) fn revision(object: &Value) -> u64 {
    object["status"]["revision"].as_u64().unwrap_or_default()
}

/// Some time in which nothing is to happen.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(700)).await;
}

/// A kind whose objects may say anything.
fn definition(group: &str, kind: &str, is_served: bool) -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "versions": [{"name": "v1", "served": is_served, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}}]
        }
    })
}

fn role() -> Value {
    let all = json!(["get", "list", "watch", "create", "patch", "delete"]);
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-vendor", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [
            {"apiGroups": ["test.example.com", "gone.example.com", "parts.example.com"], "resources": ["*"],
             "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps", "services", "serviceaccounts"], "verbs": all},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": all},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": all},
            {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
             "verbs": ["get", "list", "watch", "create", "patch"]},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": all}
        ]
    })
}

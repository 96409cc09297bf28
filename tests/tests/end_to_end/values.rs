//! Values from ConfigMaps and Secrets, under those of the owner, and watched.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::SpecialResource;
use pintle_tests::{Stage, requests::told, stage::condition};
use serde_json::{Value, json};

const CHART: &str = "apiVersion: v2\nname: valued\nversion: 0.1.0\n";
const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: shown
data:
  text: {{ .Values.text | quote }}
  both: {{ .Values.both | quote }}
";

async fn install(stage: &Stage) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-values", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}]
    });
    stage.apply(role).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    std::fs::write(folder.path().join("Chart.yaml"), CHART).unwrap();
    std::fs::write(folder.path().join("templates/0000-config.yaml"), CONFIG).unwrap();
    stage.install_chart(folder.path()).await.unwrap();
}

fn owner(stage: &Stage) -> Value {
    json!({
        "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
        "metadata": {"name": stage.name, "labels": {"test": stage.name}},
        "spec": {
            "namespace": stage.name,
            "set": {"kind": "Values", "apiVersion": "sro.openshift.io/v1beta1", "both": "from set"},
            "valuesFrom": [{"kind": "ConfigMap", "name": "plain"}, {"kind": "Secret", "name": "hidden"}],
            "chart": {"name": "valued", "version": "0.1.0",
                      "repository": {"name": "chart", "url": format!("cm://{}/chart", stage.name)}}
        }
    })
}

fn source(stage: &Stage, kind: &str, name: &str, text: &str) -> Value {
    let text = if kind == "Secret" { BASE64_STANDARD.encode(text) } else { text.to_owned() };
    let metadata = json!({"name": name, "namespace": stage.name});
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"values.yaml": text}})
}

fn is_blocked(word: &'static str) -> impl Fn(&SpecialResource) -> bool {
    move |owner| owner.status.as_ref().is_some_and(|status| status.blocked == word)
}

fn is_ready(owner: &SpecialResource) -> bool {
    condition(owner, "Ready").as_deref() == Some("True")
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_others_count_under_the_owners_and_wake_the_release() {
    let mut stage = Stage::new("values-from").await.unwrap();
    install(&stage).await;
    stage.apply(source(&stage, "ConfigMap", "plain", "text: plain\nboth: plain\n")).await.unwrap();
    stage.apply(owner(&stage)).await.unwrap();
    let owner = stage.wait_until("told what is missing", is_blocked("ValuesMissing")).await.unwrap();
    let state = owner.status.unwrap().state;
    assert!(
        state.contains("Secret values-from/hidden, named in valuesFrom, is not there; create it"),
        "{state}"
    );

    stage.apply(source(&stage, "Secret", "hidden", "text: s3cret\n")).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let shown = stage.read("ConfigMap", "shown").await.unwrap();
    assert_eq!(shown["data"], json!({"text": "s3cret", "both": "from set"}));

    stage.apply(source(&stage, "Secret", "hidden", "text: another\n")).await.unwrap();
    let is_new =
        async |stage: &Stage| Ok(stage.read("ConfigMap", "shown").await?["data"]["text"] == "another");
    stage.eventually("the new value is applied", is_new).await.unwrap();
    let is_second = |owner: &SpecialResource| {
        owner.status.as_ref().is_some_and(|status| status.revision == Some(2)) && is_ready(owner)
    };
    stage.wait_until("Ready with other values, which are another revision", is_second).await.unwrap();

    let mark = stage.mark().await.unwrap();
    stage.apply(source(&stage, "Secret", "hidden", "text: [s3cret\n")).await.unwrap();
    let owner = stage.wait_until("told what is broken", is_blocked("InvalidValues")).await.unwrap();
    let status = serde_json::to_string(&owner.status).unwrap();
    assert!(status.contains("values.yaml:") && !status.contains("s3cret"), "{status}");
    let writes = stage.writes_since(mark).await.unwrap();
    assert!(writes.iter().all(|write| write.resource == "specialresources"), "{}", told(&writes));
    stage.stop_operator().await.unwrap();
}

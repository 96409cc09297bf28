//! Helm hooks of a chart: when they run, what they hold, and what becomes of them.

use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use pintle_api::SpecialResource;
use pintle_chart::release::Record;
use pintle_tests::{
    Stage,
    requests::{creations, object_of, told},
};
use serde_json::{Value, json};

const CHART: &str = "apiVersion: v2\nname: hooked\nversion: 0.1.0\n";
const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  revision: {{ .Release.Revision | quote }}
  text: {{ .Values.text | default \"first\" | quote }}
";

/// A Job as a hook; where its image cannot be pulled it fails a second after its begin.
fn job(name: &str, annotations: &str, image: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{{annotations}}}
spec:
  activeDeadlineSeconds: 60
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: {image}}}]
"
    )
}

/// What lets an operator run Jobs; a chart's author writes it beside the chart.
async fn grant_jobs(stage: &Stage) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-hooks", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [
            {"apiGroups": ["batch"], "resources": ["jobs"],
             "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}
        ]
    });
    stage.apply(role).await.unwrap();
}

async fn install(stage: &Stage, templates: &[(&str, String)]) {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &Path, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(&folder.path().join("Chart.yaml"), CHART);
    write(&folder.path().join("templates/config.yaml"), CONFIG);
    for (name, text) in templates {
        write(&folder.path().join("templates").join(name), text);
    }
    stage.install_chart(folder.path()).await.unwrap();
}

fn owner(stage: &Stage, set: &Value) -> Value {
    json!({
        "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
        "metadata": {"name": stage.name, "labels": {"test": stage.name}},
        "spec": {"namespace": stage.name, "set": set, "chart": {
            "name": "hooked", "version": "0.1.0",
            "repository": {"name": "chart", "url": format!("cm://{}/chart", stage.name)}
        }}
    })
}

fn kinds(set: &str) -> Value {
    json!({"kind": "Values", "apiVersion": "sro.openshift.io/v1beta1", "text": set})
}

async fn record(stage: &Stage, revision: u32) -> Record {
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), &stage.name);
    let secret = secrets.get(&format!("sh.helm.release.v1.{}.v{revision}", stage.name)).await.unwrap();
    let object = pintle_api::Object::new(serde_json::to_value(&secret).unwrap()).unwrap();
    Record::from_secret(&object).unwrap()
}

fn has_text(text: &str) -> impl Fn(&SpecialResource) -> bool {
    let text = text.to_owned();
    move |owner| serde_json::to_string(&owner.status).is_ok_and(|status| status.contains(&text))
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_once_each_around_install_upgrade_and_deletion() {
    let mut stage = Stage::new("hooks-run").await.unwrap();
    grant_jobs(&stage).await;
    let mark = stage.mark().await.unwrap();
    let hook = |name: &str, events: &str, more: &str| {
        job(name, &format!("helm.sh/hook: \"{events}\"{more}"), "registry.test/hook:1")
    };
    install(
        &stage,
        &[
            ("before.yaml", hook("before", "pre-install,pre-upgrade", "")),
            ("early.yaml", hook("early", "pre-install", ", helm.sh/hook-weight: \"-5\"")),
            ("after.yaml", hook("after", "post-install", ", helm.sh/hook-delete-policy: hook-succeeded")),
            ("leave.yaml", hook("leave", "pre-delete", "")),
            ("check.yaml", hook("check", "test", "")),
        ],
    )
    .await;
    stage.apply(owner(&stage, &kinds("first"))).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let writes = stage.writes_since(mark).await.unwrap();
    let created: Vec<_> = writes
        .iter()
        .filter(|write| write.code == 201 && matches!(write.resource.as_str(), "jobs" | "configmaps"))
        .map(object_of)
        .collect();
    let wanted = ["jobs NS/early", "jobs NS/before", "configmaps NS/hooks-run", "jobs NS/after"];
    assert_eq!(created, wanted.map(|text| text.replace("NS", &stage.name)), "{}", told(&writes));
    let first = record(&stage, 1).await;
    let phase = |name: &str| {
        let hook = first.hooks.iter().find(|hook| hook.name == name);
        hook.map(|hook| hook.last_run.phase.clone()).unwrap_or_default()
    };
    assert_eq!([phase("early"), phase("before"), phase("after")], ["Succeeded"; 3]);
    assert!(stage.get("batch/v1", "Job", "jobs", "after").await.is_err(), "hook-succeeded deletes it");
    let kept = stage.get("batch/v1", "Job", "jobs", "before").await.unwrap();
    assert_eq!(kept.metadata.finalizers, None, "a hook that is done can be deleted by anybody");

    let mark = stage.mark().await.unwrap();
    stage.apply(owner(&stage, &kinds("second"))).await.unwrap();
    let is_second = |map: &Value| map["data"]["text"] == "second" && map["data"]["revision"] == "2";
    let upgraded = async |stage: &Stage| {
        Ok(stage.find("ConfigMap", &stage.name).await?.is_some_and(|map| is_second(&map)))
    };
    stage.eventually("the second revision is applied", upgraded).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let again = creations(&stage.writes_since(mark).await.unwrap());
    let jobs: Vec<_> = again.keys().filter(|object| object.starts_with("jobs")).cloned().collect();
    assert_eq!(jobs, [format!("jobs {}/before", stage.name)], "of the hooks only the one for upgrades ran");

    let mark = stage.mark().await.unwrap();
    stage.delete("SpecialResource", &stage.name).await.unwrap();
    let gone = async |stage: &Stage| Ok(stage.find("SpecialResource", &stage.name).await?.is_none());
    stage.eventually("the owner is gone", gone).await.unwrap();
    let writes = stage.writes_since(mark).await.unwrap();
    let at = |verb: &str, wanted: &str| {
        let wanted = wanted.replace("NS", &stage.name);
        let found = writes.iter().position(|write| write.verb == verb && object_of(write) == wanted);
        found.unwrap_or_else(|| panic!("{verb} {wanted}:\n{}", told(&writes)))
    };
    assert!(at("patch", "jobs NS/leave") < at("delete", "configmaps NS/hooks-run"), "{}", told(&writes));
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_fails_holds_the_release_says_so_and_is_run_again_by_the_next_revision() {
    let mut stage = Stage::new("hooks-fail").await.unwrap();
    grant_jobs(&stage).await;
    let hook = "helm.sh/hook: \"pre-install,pre-upgrade\"";
    let deadline = |text: String| text.replace("activeDeadlineSeconds: 60", "activeDeadlineSeconds: 1");
    let broken = deadline(job(
        "migrate",
        hook,
        "image-registry.openshift-image-registry.svc:5000/hooks-fail/never-built:1",
    ));
    install(&stage, &[("migrate.yaml", broken)]).await;
    stage.apply(owner(&stage, &kinds("first"))).await.unwrap();
    let failed = stage.wait_until("failed by its hook", has_text("HookFailed")).await.unwrap();
    let status = failed.status.unwrap();
    assert!(status.state.contains("hook pre-install failed: the job failed:"), "{}", status.state);
    assert!(status.state.contains("a new revision runs its hooks again"), "{}", status.state);
    assert!(stage.find("ConfigMap", &stage.name).await.unwrap().is_none(), "nothing of it was applied");
    assert_eq!(record(&stage, 1).await.info.status, pintle_chart::release::Status::Failed);

    install(&stage, &[("migrate.yaml", job("migrate", hook, "registry.test/hook:1"))]).await;
    stage.wait_until_ready().await.unwrap();
    assert!(stage.find("ConfigMap", &stage.name).await.unwrap().is_some());
    stage.stop_operator().await.unwrap();
}

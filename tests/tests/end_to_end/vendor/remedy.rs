//! Revisions that fail: rolled back, uninstalled, tried again, within bounds.

use pintle_tests::{
    Stage,
    stage::{plane, push_plugin},
};
use serde_json::{Value, json};

use super::{SHOWN, Vendor, a_moment, condition, is_ready, message, revision};
use crate::scenarios::script;

/// Not accepted by the API server while the value `broken` is set; shown otherwise.
const FRAGILE: &str = "apiVersion: v1
kind: Service
metadata: {name: '{{ .Release.Name }}-fragile'}
spec:
  selector: {app: fragile}
  ports: [{port: {{ ternary 99999 80 (eq (.Values.broken | default \"no\") \"yes\") }}}]
";
/// Comes up only with as many replicas as there are nodes for: none can run on a node that is not there.
const SLOW: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Release.Name }}-slow'}
spec:
  selector: {matchLabels: {app: '{{ .Release.Name }}'}}
  template:
    metadata: {labels: {app: '{{ .Release.Name }}'}}
    spec:
      nodeSelector: {kubernetes.io/hostname: '{{ .Values.node | default \"worker-0\" }}'}
      containers: [{name: a, image: 'registry.test/a:1'}]
";
/// Says that a rollback ran, with the text of the revision that came back.
const BACK: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: '{{ .Release.Name }}-back'
  annotations: {helm.sh/hook: \"pre-rollback\"}
data: {text: {{ .Values.text | default \"none\" | quote }}}
";

fn rollback(retries: u32) -> Value {
    json!({"timeout": "3s", "remediation": {"retries": retries, "strategy": "rollback"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_fails_half_way_goes_back_to_what_was_deployed() {
    let chart =
        [("templates/shown.yaml", SHOWN), ("templates/fragile.yaml", FRAGILE), ("templates/back.yaml", BACK)];
    let vendor = Vendor::new("remedy-back", &rollback(1), &chart).await;
    vendor.apply("one", json!({"text": "good"})).await;
    vendor.ready("one").await;
    vendor.apply("one", json!({"text": "bad", "broken": "yes"})).await;
    let widget = vendor.until("one", "Stalled", "RolledBack").await;
    let said = message(&widget, "Stalled");
    // Tried as revision 2, rolled back as 3, tried again as 4, rolled back as 5: then it is over.
    assert!(said.contains("revision 4 failed:") && said.contains("99999"), "{said}");
    assert!(said.contains("revision 3 is in use again"), "{said}");
    assert_eq!((revision(&widget), condition(&widget, "Ready").0.as_str()), (5, "False"));
    assert_eq!(condition(&widget, "ReleaseFailed"), ("True".into(), "UpgradeError".into()));
    assert_eq!(vendor.data("one-shown").await["text"], "good");
    assert_eq!(vendor.data("one-back").await["text"], "good", "the hook of the revision that came back");
    let mut recorded = Vec::new();
    for number in 1..=6 {
        recorded.push(vendor.recorded("one", number).await);
    }
    assert_eq!(recorded, ["superseded", "failed", "superseded", "failed", "deployed", ""]);
    let mark = vendor.stage.mark().await.unwrap();
    a_moment().await;
    let writes = vendor.stage.writes_since(mark).await.unwrap();
    assert!(writes.is_empty(), "nothing is tried any more: {}", pintle_tests::requests::told(&writes));

    // An object that was deleted meanwhile comes back as the revision in use has it.
    vendor.stage.delete("ConfigMap", "one-shown").await.unwrap();
    vendor.shows("one-shown", "good").await;
    // Another value begins anew.
    vendor.apply("one", json!({"text": "better"})).await;
    vendor.ready("one").await;
    assert_eq!(vendor.data("one-shown").await["text"], "better");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_is_real_and_is_remedied_too() {
    let chart = [("templates/shown.yaml", SHOWN), ("templates/slow.yaml", SLOW)];
    let vendor = Vendor::new("remedy-late", &rollback(0), &chart).await;
    vendor.apply("one", json!({"text": "good"})).await;
    vendor.ready("one").await;
    vendor.apply("one", json!({"text": "bad", "node": "nowhere"})).await;
    let widget = vendor.until("one", "Stalled", "RolledBack").await;
    assert!(message(&widget, "Stalled").contains("not ready within 3 s"), "{widget:#}");
    vendor.shows("one-shown", "good").await;
    let slow = vendor.stage.get("apps/v1", "Deployment", "deployments", "one-slow").await.unwrap();
    let node = slow.data.pointer("/spec/template/spec/nodeSelector/kubernetes.io~1hostname").unwrap();
    assert_eq!(node, "worker-0");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_remediation_what_is_late_says_so_once_and_is_still_watched() {
    let vendor =
        Vendor::new("remedy-none", &json!({"timeout": "1s"}), &[("templates/slow.yaml", SLOW)]).await;
    vendor.apply("one", json!({"node": "nowhere"})).await;
    let widget = vendor.until("one", "Stalled", "FailedToDeployChart").await;
    assert!(message(&widget, "Stalled").contains("it is still watched"), "{widget:#}");
    let before = widget["status"].clone();
    a_moment().await;
    let after = vendor.until("one", "Stalled", "FailedToDeployChart").await;
    assert_eq!(before, after["status"], "it does not forget that it was late");
    vendor.apply("one", json!({"node": "worker-1"})).await;
    vendor.ready("one").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_fails_too_ends_there_and_both_reasons_are_told() {
    // The hook of a rollback cannot be created: its name is taken, and the chart does not let it go.
    let hook = "apiVersion: v1
kind: ConfigMap
metadata:
  name: one-taken
  annotations: {helm.sh/hook: pre-rollback, helm.sh/hook-delete-policy: hook-succeeded}
";
    let chart =
        [("templates/shown.yaml", SHOWN), ("templates/fragile.yaml", FRAGILE), ("templates/hook.yaml", hook)];
    let vendor = Vendor::new("remedy-twice", &rollback(3), &chart).await;
    let taken = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one-taken",
        "namespace": vendor.stage.name, "labels": {"app.kubernetes.io/managed-by": "somebody"}}});
    vendor.stage.apply(taken).await.unwrap();
    vendor.apply("one", json!({"text": "good"})).await;
    vendor.ready("one").await;
    vendor.apply("one", json!({"text": "bad", "broken": "yes"})).await;
    let widget = vendor.until("one", "Stalled", "RollbackFailed").await;
    let said = message(&widget, "Stalled");
    assert!(
        said.contains("99999") && said.contains("failed too:") && said.contains("pre-rollback"),
        "{said}"
    );
    let at = revision(&widget);
    a_moment().await;
    let widget = vendor.until("one", "Stalled", "RollbackFailed").await;
    assert_eq!(revision(&widget), at, "nothing more is tried");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_fails_is_uninstalled_and_tried_again_as_one() {
    let watch = json!({"timeout": "5s", "remediation": {"retries": 1, "strategy": "uninstall"}});
    let chart = [("templates/shown.yaml", SHOWN), ("templates/fragile.yaml", FRAGILE)];
    let vendor = Vendor::new("remedy-anew", &watch, &chart).await;
    vendor.apply("one", json!({"text": "bad", "broken": "yes"})).await;
    let widget = vendor.until("one", "Stalled", "RetriesExhausted").await;
    assert!(message(&widget, "Stalled").contains("failed 2 times"), "{widget:#}");
    assert_eq!(revision(&widget), 2);
    let shown = vendor.data("one-shown").await;
    assert_eq!(shown["operation"], "install", "the second try is an installation too");
    assert_eq!(
        (vendor.recorded("one", 1).await, vendor.recorded("one", 2).await),
        ("failed".into(), "failed".into())
    );
    assert_eq!(condition(&widget, "ReleaseFailed"), ("True".into(), "InstallError".into()));

    // Asked again, it begins anew.
    vendor.annotate("one", "pintle.dev/reconcile-at", Some("now")).await;
    vendor
        .wait("one", "given up a second time", |widget| {
            revision(widget) == 4 && condition(widget, "Stalled").1 == "RetriesExhausted"
        })
        .await;
    vendor.apply("one", json!({"text": "good"})).await;
    vendor.wait("one", "mended", is_ready).await;
    vendor.shows("one-shown", "good").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_stops_rendering_changes_nothing_and_says_where() {
    let vendor = Vendor::new("remedy-render", &rollback(2), &[("templates/shown.yaml", SHOWN)]).await;
    vendor.apply("one", json!({"text": "good"})).await;
    vendor.ready("one").await;
    let mark = vendor.stage.mark().await.unwrap();
    let broken = format!("{SHOWN}  more: {{{{ required \"say more\" .Values.more }}}}\n");
    vendor.install(&[("templates/shown.yaml", broken.as_str())]).await;
    vendor.wait("one", "told", |widget| message(widget, "Stalled").contains("say more")).await;
    let widget = vendor.until("one", "Ready", "FailedToDeployChart").await;
    assert_eq!(
        (revision(&widget), vendor.recorded("one", 1).await),
        (1, "deployed".into()),
        "no revision of it"
    );
    let writes = vendor.stage.writes_since(mark).await.unwrap();
    assert!(
        writes.iter().all(|write| write.resource != "configmaps"),
        "{}",
        pintle_tests::requests::told(&writes)
    );
    vendor.apply("one", json!({"text": "good", "more": "said"})).await;
    vendor.ready("one").await;
    let shown =
        async |stage: &Stage| Ok(stage.read("ConfigMap", "one-shown").await?["data"]["more"] == "said");
    vendor.stage.eventually("it renders again", shown).await.unwrap();
    vendor.end().await;
}

/// A line of the scripted hook that holds.
fn hold() -> Value {
    json!({"does": "hold", "reason": "Held", "message": "not yet"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_held_by_its_own_plugins_and_takes_fields_back() {
    let name = "remedy-hooks";
    let plugin = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name},
        "spec": {"image": push_plugin(plane().await.unwrap(), "scripted-hook").await.unwrap(),
                 "grants": {"read": [{"apiGroups": [""], "kinds": ["ConfigMap"], "fields": ["data"],
                                      "namespaces": ["$release"]}]}}});
    let mut watch = rollback(0);
    watch["timeout"] = json!("30s");
    watch["hooks"] = json!([{"plugin": name}]);
    watch["driftDetection"] = json!({"mode": "disabled"});
    let chart = [("templates/shown.yaml", SHOWN), ("templates/fragile.yaml", FRAGILE)];
    let vendor = Vendor::new(name, &watch, &chart).await;
    vendor.stage.apply(plugin).await.unwrap();
    script(&vendor.stage, &[("rollback-pre", hold()), ("rollback-post", hold())]).await;
    let annotations = json!({"helm.sdk.operatorframework.io/rollback-force": "true"});
    vendor.apply_with("one", json!({"text": "good"}), annotations.clone()).await;
    vendor.ready("one").await;
    vendor.apply_with("one", json!({"text": "bad", "broken": "yes"}), annotations).await;

    // Before its first write.
    let is_held = |state: &'static str| {
        move |widget: &Value| {
            let states = widget["status"]["states"].as_array().cloned().unwrap_or_default();
            states.iter().any(|one| one["name"] == state && one["blockers"][0]["reason"] == "Held")
        }
    };
    let widget = vendor.wait("one", "held before the rollback", is_held("hooks-pre")).await;
    assert_eq!(condition(&widget, "Reconciling"), ("True".into(), "RollingBack".into()), "{widget:#}");
    assert_eq!((revision(&widget), vendor.recorded("one", 2).await), (3, "failed".into()));
    let edit = json!({"data": {"text": "mine"}});
    vendor.stage.edit("ConfigMap", "one-shown", edit).await.unwrap();
    a_moment().await;
    assert_eq!(vendor.data("one-shown").await["text"], "mine", "nothing is written yet");

    // When all is as it was.
    script(&vendor.stage, &[("rollback-post", hold())]).await;
    let widget = vendor.wait("one", "held after the rollback", is_held("hooks-post")).await;
    assert_eq!(vendor.data("one-shown").await["text"], "good", "whoever had changed it");
    assert_eq!((condition(&widget, "Stalled").0, revision(&widget)), ("False".into(), 3));
    script(&vendor.stage, &[]).await;
    vendor.until("one", "Stalled", "RolledBack").await;
    assert_eq!(vendor.recorded("one", 3).await, "deployed");

    // What is asked for next is an upgrade: hooks of a rollback hold nothing of it.
    script(&vendor.stage, &[("rollback-pre", hold())]).await;
    vendor.apply("one", json!({"text": "better"})).await;
    vendor.ready("one").await;
    vendor.delete("one").await;
    vendor.stage.delete("Plugin", name).await.unwrap();
    vendor.end().await;
}

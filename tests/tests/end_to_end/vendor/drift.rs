//! Differences: repaired, told or left, by path, kind and manager; and nobody fights for ever.

use kube::api::{Patch, PatchParams};
use pintle_tests::Stage;
use serde_json::{Value, json};

use super::{SHOWN, Vendor, a_moment, condition, is_ready, message};

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Release.Name }}-web'}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector: {matchLabels: {app: '{{ .Release.Name }}'}}
  template:
    metadata: {labels: {app: '{{ .Release.Name }}'}}
    spec:
      containers: [{name: a, image: 'registry.test/a:1'}]
";

async fn edit(stage: &Stage, manager: &str, patch: Value) {
    let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    stage.of_kind("ConfigMap").patch("one-shown", &params, &Patch::Merge(patch)).await.unwrap();
}

async fn deployment(stage: &Stage, name: &str) -> Value {
    let found = stage.get("apps/v1", "Deployment", "deployments", name).await.unwrap();
    serde_json::to_value(found).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_is_repaired_told_or_left_as_the_mode_says() {
    let vendor = Vendor::new("drift-modes", &json!({}), &[("templates/shown.yaml", SHOWN)]).await;
    vendor.apply("one", json!({"text": "ours"})).await;
    vendor.ready("one").await;
    edit(&vendor.stage, "kubectl", json!({"data": {"text": "theirs"}})).await;
    vendor.shows("one-shown", "ours").await;
    let repaired = "put right: ConfigMap drift-modes/one-shown (kubectl changed fields of it)";
    assert_eq!(vendor.told("Repaired").await, repaired);

    vendor.watch_anew(&json!({"driftDetection": {"mode": "warn"}})).await;
    edit(&vendor.stage, "kubectl", json!({"data": {"text": "theirs"}})).await;
    let widget = vendor.until("one", "Drifted", "LeftAlone").await;
    let said = message(&widget, "Drifted");
    assert!(said.contains("ConfigMap drift-modes/one-shown: kubectl changed fields"), "{said}");
    assert_eq!(condition(&widget, "Ready").0, "True");
    assert!(vendor.told("LeftAlone").await.contains("kubectl"));
    vendor.stage.delete("ConfigMap", "one-shown").await.unwrap();
    vendor
        .wait("one", "told of the deletion", |widget| message(widget, "Drifted").contains("it was deleted"))
        .await;
    a_moment().await;
    assert_eq!(vendor.data("one-shown").await, Value::Null);
    // A new revision is applied all the same.
    vendor.apply("one", json!({"text": "new"})).await;
    vendor.shows("one-shown", "new").await;
    vendor
        .wait("one", "without a difference", |widget| {
            is_ready(widget) && condition(widget, "Drifted").0.is_empty()
        })
        .await;

    vendor.watch_anew(&json!({"driftDetection": {"mode": "disabled"}})).await;
    edit(&vendor.stage, "kubectl", json!({"data": {"text": "theirs"}})).await;
    a_moment().await;
    assert_eq!(vendor.data("one-shown").await["text"], "theirs");
    assert_eq!(condition(&vendor.ready("one").await, "Drifted").0, "", "nobody looks");
    vendor.watch_anew(&json!({})).await;
    vendor.shows("one-shown", "new").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_scales_a_workload_and_what_a_rule_names_keeps_its_fields() {
    let rules = json!({"driftDetection": {"mode": "enabled", "ignore": [
        {"paths": ["/spec/template/spec/containers/0/image"], "target": {"kind": "Deployment"}},
        {"managers": ["friend"], "target": {"kind": "ConfigMap"}}
    ]}});
    let chart = [("templates/shown.yaml", SHOWN), ("templates/web.yaml", WEB)];
    let vendor = Vendor::new("drift-ignore", &rules, &chart).await;
    vendor.apply("one", json!({"text": "ours", "replicas": 1})).await;
    vendor.ready("one").await;
    let deployments = vendor.stage.api("apps/v1", "Deployment", "deployments");
    let params = PatchParams { field_manager: Some("autoscaler".to_owned()), ..PatchParams::default() };
    let scale = Patch::Merge(json!({"spec": {"replicas": 2}}));
    deployments.patch_scale("one-web", &params, &scale).await.unwrap();
    let image = json!([{"name": "a", "image": "registry.test/patched:1"}]);
    let image = json!({"spec": {"template": {"spec": {"containers": image}}}});
    let params = PatchParams { field_manager: Some("kubectl".to_owned()), ..PatchParams::default() };
    deployments.patch("one-web", &params, &Patch::Strategic(image)).await.unwrap();
    edit(&vendor.stage, "friend", json!({"data": {"text": "friendly"}})).await;
    // What no rule names is repaired beside what the rules name, and those stay as they are.
    let paused = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "kubectl"}}});
    deployments.patch("one-web", &params, &Patch::Merge(paused)).await.unwrap();
    let is_repaired = async |stage: &Stage| {
        let web = deployment(stage, "one-web").await;
        Ok(web["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm")
    };
    vendor.stage.eventually("the label is repaired", is_repaired).await.unwrap();
    a_moment().await;
    let web = deployment(&vendor.stage, "one-web").await;
    assert_eq!(web["spec"]["replicas"], 2, "what the subresource scale wrote is never forced");
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], "registry.test/patched:1");
    assert_eq!(vendor.data("one-shown").await["text"], "friendly");
    // A revision that changes other fields leaves these alone too.
    let mark = vendor.stage.mark().await.unwrap();
    let labelled = WEB.replace("-web'}", "-web', labels: {tier: web}}");
    vendor.install(&[("templates/shown.yaml", SHOWN), ("templates/web.yaml", labelled.as_str())]).await;
    let is_labelled =
        async |stage: &Stage| Ok(deployment(stage, "one-web").await["metadata"]["labels"]["tier"] == "web");
    vendor.stage.eventually("the new label is there", is_labelled).await.unwrap();
    vendor.ready("one").await;
    let web = deployment(&vendor.stage, "one-web").await;
    assert_eq!((&web["spec"]["replicas"], &web["metadata"]["labels"]["tier"]), (&json!(2), &json!("web")));
    let writes = vendor.stage.writes_since(mark).await.unwrap();
    let of_web = writes.iter().filter(|write| write.resource == "deployments").count();
    assert_eq!(of_web, 1, "{}", pintle_tests::requests::told(&writes));
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_whose_key_somebody_changed_is_repaired_in_its_list() {
    let service = "apiVersion: v1
kind: Service
metadata: {name: '{{ .Release.Name }}-web'}
spec:
  ports: [{name: http, port: 8080, targetPort: 80}]
";
    let vendor = Vendor::new("drift-keys", &json!({}), &[("templates/service.yaml", service)]).await;
    vendor.apply("one", json!({})).await;
    vendor.ready("one").await;
    let services = vendor.stage.api("v1", "Service", "services");
    let ports = async || services.get("one-web").await.unwrap().data["spec"]["ports"].clone();
    let ours = ports().await;
    // The server merges ports by number: an apply alone would add ours beside this one, with the same name.
    let operations = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 1234}]);
    let patch = Patch::<Value>::Json(serde_json::from_value(operations).unwrap());
    let params = PatchParams { field_manager: Some("kubectl".to_owned()), ..PatchParams::default() };
    for _ in 0..2 {
        services.patch("one-web", &params, &patch).await.unwrap();
        vendor
            .stage
            .eventually("the port is repaired", async |_: &Stage| Ok(ports().await == ours))
            .await
            .unwrap();
    }
    a_moment().await;
    let live = services.get("one-web").await.unwrap();
    let managers = live.metadata.managed_fields.unwrap();
    assert!(managers.iter().all(|entry| entry.operation.as_deref() == Some("Apply")), "{managers:#?}");
    assert_eq!(condition(&vendor.ready("one").await, "Contested").0, "", "a repair that holds is no contest");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_changes_back_what_is_repaired_is_named_and_fought_less_and_less() {
    let vendor = Vendor::new("drift-war", &json!({}), &[("templates/shown.yaml", SHOWN)]).await;
    vendor.apply("one", json!({"text": "ours"})).await;
    vendor.ready("one").await;
    let mark = vendor.stage.mark().await.unwrap();
    let fighter = {
        let (maps, params) = (
            vendor.stage.of_kind("ConfigMap"),
            PatchParams { field_manager: Some("argocd".to_owned()), ..PatchParams::default() },
        );
        tokio::spawn(async move {
            let theirs = Patch::Merge(json!({"data": {"text": "theirs"}}));
            loop {
                let map = maps.get("one-shown").await.unwrap();
                if map.data["data"]["text"] == "ours" {
                    maps.patch("one-shown", &params, &theirs).await.unwrap();
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
    };
    let widget = vendor.until("one", "Contested", "ChangedBack").await;
    assert!(message(&widget, "Contested").contains("argocd changes back"), "{widget:#}");
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    fighter.abort();
    let writes = vendor.stage.writes_since(mark).await.unwrap();
    let repairs = writes.iter().filter(|write| write.resource == "configmaps").count();
    // Three at once, then after 1 and 2 more seconds.
    assert!((4..=6).contains(&repairs), "{repairs} repairs: {}", pintle_tests::requests::told(&writes));
    let events = vendor.stage.list("Event").await.unwrap();
    let told = events.iter().filter(|event| event["reason"] == "Repaired");
    assert_eq!(told.count(), 1, "a war is told once");
    vendor.shows("one-shown", "ours").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_owners_that_render_one_object_do_not_share_it() {
    let shared =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {text: '{{ .Release.Name }}'}\n";
    let vendor = Vendor::new("drift-shared", &json!({}), &[("templates/shared.yaml", shared)]).await;
    vendor.apply("one", json!({})).await;
    vendor.ready("one").await;
    vendor.apply("two", json!({})).await;
    let widget = vendor.until("two", "Stalled", "FailedToDeployChart").await;
    assert!(message(&widget, "Stalled").contains("belongs to Helm release drift-shared/one"), "{widget:#}");
    assert_eq!(vendor.data("shared").await["text"], "one");
    vendor.delete("one").await;
    vendor.ready("two").await;
    assert_eq!(vendor.data("shared").await["text"], "two", "the name is free again");
    vendor.end().await;
}

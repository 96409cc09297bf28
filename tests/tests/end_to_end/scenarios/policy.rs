//! Components that a chart names itself: let in by a PluginPolicy, with its rights, and by nothing else.

use pintle_tests::{
    Stage,
    stage::{plane, push_plugin},
};
use serde_json::{Value, json};

use super::play::{LABEL, Play, condition, read};

const AFTER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: after\n";

async fn policy_named(stage: &Stage, name: &str, spec: Value) {
    let policy = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "PluginPolicy", "metadata": {"name": name}, "spec": spec
    });
    stage.apply(policy).await.unwrap();
}

async fn policy(stage: &Stage, spec: Value) {
    policy_named(stage, "chart-plugins", spec).await;
}

async fn delete_policy(stage: &Stage, name: &str) {
    let policies: kube::Api<pintle_api::PluginPolicy> = kube::Api::all(stage.client.clone());
    policies.delete(name, &kube::api::DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_a_chart_names_runs_with_the_rights_of_the_policy_that_lets_it_in() {
    let mut play = Play::begin("policy").await;
    play.kind("kmm.sigs.x-k8s.io", "v1beta1", "Module").await;
    let node = play.node("a", "any", json!({})).await;
    let image = push_plugin(plane().await.unwrap(), "kmm-module-loaded").await.unwrap();
    let module = format!(
        "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: gpu\n  annotations:\n    pintle.dev/wait: {image}\nspec:\n  selector: {{{LABEL}: policy}}\n  moduleLoader:\n    container:\n      kernelMappings:\n        - {{regexp: '^5\\.14\\..*$', containerImage: registry.example/gpu}}\n"
    );
    play.chart(&[], &[("templates/0000-module.yaml", &module), ("templates/1000-after.yaml", AFTER)]).await;
    play.own(json!({})).await;
    play.blocked(
        "PluginNotAdmitted",
        &["no PluginPolicy has", "test/kmm-module-loaded among spec.match.images"],
    )
    .await;

    let (reference, digest) = image.trim_start_matches("oci://").split_once('@').unwrap();
    let about = |more: Value| {
        let mut spec = json!({"match": {"images": [reference], "unsigned": true}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    // Nobody signed it, and this policy wants that somebody did.
    let signed = json!({"match": {"images": [reference], "signers": [{"key": "sha256:00"}]}});
    policy(&play.stage, signed).await;
    play.blocked("PluginNotAdmitted", &["none of spec.match.signers of PluginPolicy chart-plugins signed"])
        .await;
    // Let in without rights it can read nothing.
    policy(&play.stage, about(json!({}))).await;
    play.blocked("PluginFailed", &["spec.grants.read"]).await;
    let fields = ["metadata.name", "metadata.labels", "status.nodeInfo.kernelVersion"];
    let grants = json!({"grants": {"read": [read("", "Node", &fields)]}});
    policy(&play.stage, about(grants.clone())).await;
    let owner = play.blocked("ModuleNotLoaded", &[&node]).await;
    let short = format!("kmm-module-loaded-{}", digest.trim_start_matches("sha256:").get(..7).unwrap());
    assert_eq!(condition(&owner, &format!("{short}/Loaded")).unwrap().status, "False");

    // Withdrawn: what was ready stays as it is, and the state says why nobody judges it any more.
    play.label(&node, json!({"kmm.node.kubernetes.io/policy.gpu.ready": ""})).await;
    play.ready().await;
    let mut withdrawn = about(grants);
    withdrawn["deniedDigests"] = json!([digest]);
    policy(&play.stage, withdrawn).await;
    play.blocked("PluginNotAdmitted", &["has", digest, "among spec.deniedDigests"]).await;
    delete_policy(&play.stage, "chart-plugins").await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_a_chart_names_sees_the_fields_that_its_policy_grants() {
    let mut play = Play::begin("policy-field").await;
    let node = play.node("a", "any", json!({})).await;
    let image = push_plugin(plane().await.unwrap(), "wait-for").await.unwrap();
    let wait = format!(
        "{image}(apiVersion=\"v1\", kind=\"Node\", name=\"{node}\", namespace=\"\", condition=\"Racked\")"
    );
    let first = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: first\n  annotations:\n    pintle.dev/wait: '{wait}'\n"
    );
    play.chart(&[], &[("templates/0000-first.yaml", &first)]).await;
    let (reference, _) = image.trim_start_matches("oci://").split_once('@').unwrap();
    let fields = ["metadata.generation", "status.observedGeneration", "status.conditions"];
    let spec = json!({"match": {"images": [reference], "unsigned": true},
        "grants": {"read": [read("", "Node", &fields)]}});
    policy_named(&play.stage, "node-conditions", spec).await;
    play.own(json!({})).await;
    play.blocked("ConditionMissing", &["has no condition Racked yet"]).await;
    let racked = json!({"conditions": [{"type": "Racked", "status": "True", "message": ""}]});
    play.tell(&play.stage.of_kind("Node"), &node, racked).await;
    play.ready().await;
    delete_policy(&play.stage, "node-conditions").await;
    play.end().await;
}

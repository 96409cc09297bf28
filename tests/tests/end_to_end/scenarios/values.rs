//! Value mappers: what nodes and objects of the cluster say becomes values of a chart.

use pintle_tests::Stage;
use serde_json::{Value, json};

use super::play::{LABEL, OS_ID, OS_VERSION, Play, read};

const FIELDS: [&str; 4] =
    ["metadata.name", "metadata.labels", "status.nodeInfo.osImage", "status.nodeInfo.kernelVersion"];
const OS_MAP: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: shown
data:
  tag: {{ .Values.osTag | quote }}
  name: {{ .Values.osName | quote }}
  image: {{ .Values.image | default "" | quote }}
"#;

/// `os-image-tag` for the nodes of the scenario, and a chart that shows what it maps.
async fn os_image_tag(play: &mut Play) -> String {
    let config = json!({"nodeSelector": {LABEL: play.stage.name}});
    let grants = json!({"read": [read("", "Node", &FIELDS)]});
    let mapper = play.plugin("os-image-tag", json!({"config": config, "grants": grants})).await;
    play.chart(&[("pintle.dev/value-mapper", &mapper)], &[("templates/0000-os.yaml", OS_MAP)]).await;
    mapper
}

#[tokio::test(flavor = "multi_thread")]
async fn s10_the_tag_of_the_system_follows_the_nodes() {
    let mut play = Play::begin("s10").await;
    os_image_tag(&mut play).await;
    play.own(json!({})).await;
    play.blocked("NoNodes", &["no node is there to take the system of"]).await;
    // A new node is an event; only the major version counts in the Red Hat family.
    let node = play.node("a", "any", json!({OS_ID: "rhel", OS_VERSION: "9.4"})).await;
    play.shows("shown", json!({"tag": "rhel9", "name": "rhel-9.4", "image": ""})).await;
    play.ready().await;
    play.label(&node, json!({OS_ID: "ubuntu", OS_VERSION: "24.04"})).await;
    play.shows("shown", json!({"tag": "ubuntu24.04", "name": "ubuntu-24.04", "image": ""})).await;

    // While the mapper knows no answer, what was applied stays.
    let other = play.node("b", "any", json!({OS_ID: "rhel", OS_VERSION: "8.10"})).await;
    play.blocked("SeveralSystems", &["rhel-8.10", "ubuntu-24.04"]).await;
    play.shows("shown", json!({"tag": "ubuntu24.04", "name": "ubuntu-24.04", "image": ""})).await;
    play.label(&other, json!({LABEL: null})).await;
    play.ready().await;

    // Nothing changes: nothing is written, whoever wakes the release.
    let mark = play.stage.mark().await.unwrap();
    play.label(&node, json!({"unrelated": "x"})).await;
    let unrelated = json!({"metadata": {"annotations": {"pintle.dev/reconcile-at": "now"}}});
    play.stage.edit("SpecialResource", "s10", unrelated).await.unwrap();
    play.ready().await;
    let writes = play.stage.writes_since(mark).await.unwrap();
    assert!(writes.is_empty(), "{}", pintle_tests::requests::told(&writes));
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_the_image_of_a_driver_is_told_by_digest_version_system_and_kernel() {
    let mut play = Play::begin("s11").await;
    play.node("a", "any", json!({OS_ID: "ubuntu", OS_VERSION: "22.04"})).await;
    os_image_tag(&mut play).await;
    let digest = format!("sha256:{}", "a".repeat(64));
    let cases = [
        (json!({"version": "550.1"}), "r.example/nv/driver:550.1-ubuntu22.04".to_owned()),
        (
            json!({"version": "550.1", "precompiled": true}),
            "r.example/nv/driver:550.1-5.14.0-427.el9.x86_64-ubuntu22.04".to_owned(),
        ),
        (json!({"version": digest}), format!("r.example/nv/driver@{digest}")),
    ];
    for (mut driver, image) in cases {
        driver["repository"] = json!("r.example/nv");
        driver["image"] = json!("driver");
        play.own(json!({"set": {"driver": driver}})).await;
        play.shows("shown", json!({"tag": "ubuntu22.04", "name": "ubuntu-22.04", "image": image})).await;
        play.ready().await;
    }
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_the_name_of_the_system_is_read_from_free_text_or_named_as_unknown() {
    let mut play = Play::begin("s14").await;
    let node = play.node("a", "Plan 9 from Bell Labs", json!({})).await;
    os_image_tag(&mut play).await;
    play.own(json!({})).await;
    let texts = ["OS not supported: Plan 9 from Bell Labs; supported: ", "sles", node.as_str()];
    play.blocked("OsNotSupported", &texts).await;
    let names = [
        ("SUSE Linux Enterprise Server 15 SP7", "sles15.7", "sles-15.7"),
        ("Red Hat Enterprise Linux CoreOS 9.6.20250101-0 (Plow)", "rhcos9.6", "rhcos-9.6"),
    ];
    for (image, tag, name) in names {
        let status = json!({"nodeInfo": {"osImage": image}});
        play.tell(&play.stage.of_kind("Node"), &node, status).await;
        play.shows("shown", json!({"tag": tag, "name": name, "image": ""})).await;
    }
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapper_of_a_watch_has_a_config_of_its_own_and_secrets_stay_hidden_from_it() {
    let mut play = Play::begin("map-watch").await;
    let api = play.kind("kinds.scenario.example", "v1", "Engine").await;
    play.node("a", "any", json!({OS_ID: "rhel", OS_VERSION: "9.4"})).await;
    let grants = json!({"read": [read("", "Node", &FIELDS)]});
    // The Plugin alone would look at nodes that are not there.
    let config = json!({"nodeSelector": {LABEL: "nobody"}, "driver": "engine"});
    let mapper = play.plugin("os-image-tag", json!({"config": config, "grants": grants})).await;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shown\ndata:\n  tag: {{ .Values.osTag | quote }}\n  image: {{ .Values.image | quote }}\n  over: {{ .Values.over | quote }}\n  key: {{ .Values.key | quote }}\n";
    play.chart(&[], &[("templates/shown.yaml", template), ("values.yaml", "over: default\n")]).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden", "namespace": "map-watch"},
        "stringData": {"values.yaml": "key: s3cret\n"}
    });
    play.stage.apply(secret).await.unwrap();
    let watch = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Watch",
        "metadata": {"name": "map-watch", "labels": {"test": "map-watch"}},
        "spec": {
            "group": "kinds.scenario.example", "version": "v1", "kind": "Engine",
            "chart": {"name": "played", "version": "0.1.0", "repository": {"url": "cm://map-watch/chart"}},
            "valuesFrom": [{"kind": "Secret", "name": "hidden"}],
            "overrideValues": {"over": "watch"},
            "selector": {"matchLabels": {"test": "map-watch"}},
            "valueMapper": {"plugin": mapper, "config": {"nodeSelector": {LABEL: "map-watch"}}}
        }
    });
    play.stage.apply(watch).await.unwrap();
    let engine: Value = json!({
        "apiVersion": "kinds.scenario.example/v1", "kind": "Engine",
        "metadata": {"name": "one", "namespace": "map-watch", "labels": {"test": "map-watch"}},
        "spec": {"engine": {"repository": "r.example", "image": "e", "version": "3"}, "over": "spec"}
    });
    play.stage.apply(engine).await.unwrap();
    let shown = json!({"tag": "rhel9", "image": "r.example/e:3-rhel9", "over": "watch", "key": "s3cret"});
    let is_shown = async |stage: &Stage| {
        Ok(stage.find("ConfigMap", "shown").await?.is_some_and(|map| map["data"] == shown))
    };
    play.stage.eventually("the mapped values are applied", is_shown).await.unwrap();
    let owner = api.get("one").await.unwrap();
    assert!(!owner.data.to_string().contains("s3cret"));
    let finalizers = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    play.stage.stop_operator().await.unwrap();
    api.patch("one", &kube::api::PatchParams::default(), &finalizers).await.unwrap();
    let watches: kube::Api<pintle_api::Watch> = kube::Api::all(play.stage.client.clone());
    watches.delete("map-watch", &kube::api::DeleteParams::default()).await.unwrap();
    play.end().await;
}

//! Value mappers: what nodes and objects of the cluster say becomes values of a chart.

use pintle_dev::registry;
use pintle_tests::{Stage, stage::plane};
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
    let mut writes = play.stage.writes_since(mark).await.unwrap();
    // Every operator also tells of the Plugins of other tests.
    writes.retain(|write| write.resource != "plugins" || write.name.starts_with("s10-"));
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

const ACCELERATOR: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: shown
data:
  runtime: {{ .Values.runtime.name | quote }}
  socket: {{ .Values.runtime.socket | quote }}
  parameters: {{ join "," .Values.moduleParameters | quote }}
  signed: {{ join "," .Values.signedModules | quote }}
  mounts: {{ range .Values.mounts | default list }}{{ .mountPath }} {{ end }}
  image: {{ .Values.image | default "" | quote }}
  build: {{ .Values.build | default false | quote }}
"#;
const NODE_FIELDS: [&str; 4] = [
    "metadata.name",
    "metadata.labels",
    "status.nodeInfo.containerRuntimeVersion",
    "status.nodeInfo.kernelVersion",
];

/// `accelerator-values` for the nodes of the scenario with settings of its own, and a chart that shows what
/// it maps.
async fn accelerator(play: &mut Play, mut config: Value, images: &[&str]) {
    config["nodeSelector"] = json!({LABEL: play.stage.name});
    let config_map = json!({"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]});
    let grants = json!({"read": [read("", "Node", &NODE_FIELDS), config_map], "images": images});
    let mapper = play.plugin("accelerator-values", json!({"config": config, "grants": grants})).await;
    play.chart(&[("pintle.dev/value-mapper", &mapper)], &[("templates/0000-shown.yaml", ACCELERATOR)]).await;
}

/// Waits until some fields of ConfigMap `shown` are these.
async fn shows(play: &Play, fields: Value) {
    let is_so = async |stage: &Stage| {
        let Some(map) = stage.find("ConfigMap", "shown").await? else { return Ok(false) };
        Ok(fields.as_object().unwrap().iter().all(|(key, value)| map["data"][key] == *value))
    };
    if let Err(err) = play.stage.eventually(&format!("shown has {fields}"), is_so).await {
        let map = play.stage.find("ConfigMap", "shown").await.unwrap();
        let owner = play.stage.read("SpecialResource", &play.stage.name).await.unwrap();
        panic!("{err:#}; it is {map:?}; the owner: {}", owner["status"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s12_an_image_of_the_kernel_is_used_where_its_registry_has_it_and_else_built() {
    let mut play = Play::begin("s12").await;
    play.node("a", "any", json!({OS_ID: "ubuntu", OS_VERSION: "24.04"})).await;
    let plane = plane().await.unwrap();
    let registry = plane.registry().unwrap().to_owned();
    let image = format!("{registry}/test/s12-driver");
    accelerator(&mut play, json!({}), &[&format!("{registry}/test/*")]).await;
    play.own(json!({"set": {"driver": {"image": image, "version": "5"}}})).await;
    shows(&play, json!({"image": format!("{image}:5"), "build": "true"})).await;
    play.own(json!({"set": {"driver": {"image": image, "version": "5", "forcePrecompiled": true}}})).await;
    let precompiled = format!("{image}:5-5.14.0-427.el9.x86_64-ubuntu24.04");
    play.blocked("NotPrecompiled", &[&precompiled, "is not in its registry"]).await;

    // Nobody tells of a new image, so its registry is asked again and again while somebody waits for it.
    let artifact = registry::Artifact { component: b"any image".to_vec(), ..Default::default() };
    registry::push(&precompiled, &artifact).await.unwrap();
    shows(&play, json!({"image": precompiled, "build": "false"})).await;
    play.ready().await;

    // What no grant names is asked of nobody.
    play.own(json!({"set": {"driver": {"image": "registry.example/other", "version": "5"}}})).await;
    play.blocked("PluginFailed", &["spec.grants.images of Plugin", "registry.example/other"]).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s15_s16_modules_to_sign_and_parameters_follow_platform_driver_and_guests() {
    let mut play = Play::begin("s15").await;
    let node = play.node("a", "any", json!({})).await;
    let modules = |prefix: &str, count: usize| (0..count).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let (open_shift, kubernetes) = (modules("o", 20), modules("k", 7));
    let config = json!({
        "guestLabel": "scenario.example/vf", "guestParameters": ["ip_block_mask=0x7f"],
        "signOpenShift": open_shift, "signKubernetes": kubernetes, "signPassthrough": ["gim"]
    });
    accelerator(&mut play, config, &[]).await;
    play.own(json!({})).await;
    shows(&play, json!({"signed": kubernetes.join(","), "parameters": ""})).await;
    play.label(&node, json!({"scenario.example/vf": "", "node.openshift.io/os_id": "rhcos"})).await;
    shows(&play, json!({"signed": open_shift.join(","), "parameters": "ip_block_mask=0x7f"})).await;
    play.own(json!({"set": {"driver": {"passthrough": true}}})).await;
    shows(&play, json!({"signed": "gim", "parameters": "ip_block_mask=0x7f"})).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s18_the_container_runtime_is_told_with_its_paths() {
    let mut play = Play::begin("s18").await;
    let node = play.node("a", "any", json!({})).await;
    accelerator(&mut play, json!({}), &[]).await;
    play.own(json!({})).await;
    shows(&play, json!({"runtime": "containerd", "socket": "/run/containerd/containerd.sock"})).await;
    play.label(&node, json!({"node.openshift.io/os_id": "rhcos"})).await;
    shows(&play, json!({"runtime": "crio", "socket": "/run/crio/crio.sock"})).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s20_repositories_of_a_config_map_are_mounted_where_the_system_looks() {
    let mut play = Play::begin("s20").await;
    let node = play.node("a", "any", json!({OS_ID: "ubuntu", OS_VERSION: "24.04"})).await;
    accelerator(&mut play, json!({"repositories": "repos"}), &[]).await;
    play.own(json!({})).await;
    play.blocked("RepositoriesMissing", &["ConfigMap repos with the repositories is not there"]).await;
    let map = |data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "repos", "namespace": "s20"},
            "data": data})
    };
    // What was not found is watched as well.
    play.stage.apply(map(json!({"own.list": "deb x"}))).await.unwrap();
    shows(&play, json!({"mounts": "/etc/apt/sources.list.d/own.list"})).await;
    play.label(&node, json!({OS_ID: "sles", OS_VERSION: "15.7"})).await;
    shows(&play, json!({"mounts": "/etc/zypp/repos.d/own.list"})).await;
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

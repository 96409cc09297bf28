//! Post-renderers: objects are changed after they were rendered and before they are applied.

use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use pintle_tests::Stage;
use serde_json::{Value, json};

use super::play::{Play, read};

const FIELDS: [&str; 3] = ["status.httpProxy", "status.httpsProxy", "status.noProxy"];
const WORKLOAD: &str = r#"apiVersion: v1
kind: Secret
metadata:
  name: license
stringData:
  key: hunter2
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels: {app: agent}
  template:
    metadata:
      labels: {app: agent}
    spec:
      nodeSelector: {nobody: "here"}
      containers:
        - {name: main, image: registry.example/main:1}
        - {name: helper, image: registry.example/helper:1}
"#;

fn proxies(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "Proxy");
    Api::all_with(stage.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "proxies"))
}

/// Names of the variables of a container of the agent.
fn variables(set: &Value, container: usize) -> Vec<String> {
    let variables = set["spec"]["template"]["spec"]["containers"][container]["env"].as_array();
    let names = variables.into_iter().flatten().filter_map(|variable| variable["name"].as_str());
    names.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn s19_one_container_gets_the_proxy_and_the_certificates_and_secrets_stay_as_they_are() {
    let mut play = Play::begin("s19").await;
    let config = json!({"container": "main", "trustedCa": "trusted-ca"});
    let grants = json!({
        "read": [read("config.openshift.io", "Proxy", &FIELDS)],
        "objects": [{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]}]
    });
    let renderer = play.plugin("cluster-proxy", json!({"config": config, "grants": grants})).await;
    play.chart(&[("pintle.dev/post-renderer", &renderer)], &[("templates/0000-agent.yaml", WORKLOAD)]).await;
    let proxies = proxies(&play.stage);
    let before = proxies.get_opt("cluster").await.unwrap().map(|proxy| proxy.data["status"].clone());
    let own = json!({"status": {"httpProxy": "http://proxy.example:3128", "noProxy": ".local"}});
    set_proxy(&play, &proxies, &own["status"]).await;
    play.own(json!({})).await;
    play.ready().await;

    let set = play.stage.read("DaemonSet", "agent").await.unwrap();
    assert_eq!(variables(&set, 0), ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"]);
    assert_eq!(variables(&set, 1), [""; 0], "only one container was asked for");
    let map = play.stage.read("ConfigMap", "trusted-ca").await.unwrap();
    assert_eq!(map["metadata"]["labels"]["config.openshift.io/inject-trusted-cabundle"], "true");
    assert_eq!(
        map["metadata"]["labels"]["pintle.dev/owner"], set["metadata"]["labels"]["pintle.dev/owner"],
        "what a plugin adds belongs to the release"
    );
    let secret = play.stage.read("Secret", "license").await.unwrap();
    assert_eq!(secret["data"]["key"], "aHVudGVyMg==");

    // The Proxy is read, so it is watched: a change of it renders again.
    set_proxy(&play, &proxies, &json!({"httpProxy": "", "noProxy": ""})).await;
    let is_plain =
        async |stage: &Stage| Ok(variables(&stage.read("DaemonSet", "agent").await?, 0).is_empty());
    play.stage.eventually("no proxy is left in the workload", is_plain).await.unwrap();
    let is_pruned = async |stage: &Stage| Ok(stage.find("ConfigMap", "trusted-ca").await?.is_none());
    play.stage.eventually("what the plugin added is pruned", is_pruned).await.unwrap();
    set_proxy(&play, &proxies, &before.unwrap_or_else(|| json!({}))).await;
    play.end().await;
}

/// The simulated cluster keeps unknown fields, of the status as well.
async fn set_proxy(play: &Play, proxies: &Api<DynamicObject>, status: &Value) {
    if proxies.get_opt("cluster").await.unwrap().is_none() {
        let proxy =
            json!({"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"}});
        play.stage.apply(proxy).await.unwrap();
    }
    play.tell(proxies, "cluster", status.clone()).await;
}

/// A renderer that gives back every object as it was given, Secrets as tokens: nothing changes but what
/// the tokens stand for, and nobody sees it.
#[tokio::test(flavor = "multi_thread")]
async fn a_renderer_that_returns_every_secret_as_a_token_changes_nothing() {
    let mut play = Play::begin("render-secrets").await;
    let bytes = crate::bad_input::encode::guest("render-echo");
    let plane = pintle_tests::stage::plane().await.unwrap();
    let image = pintle_tests::stage::push(plane, "render-echo", bytes).await.unwrap();
    let renderer = play.plugin_of("echo", &image, json!({})).await;
    play.chart(&[("pintle.dev/post-renderer", &renderer)], &[("templates/0000-agent.yaml", WORKLOAD)]).await;
    play.own(json!({})).await;
    let owner = play.ready().await;
    let secret = play.stage.read("Secret", "license").await.unwrap();
    assert_eq!(secret["data"]["key"], "aHVudGVyMg==");
    assert!(!serde_json::to_string(&owner).unwrap().contains("hunter2"));
    play.end().await;
}

/// Others write into a ServiceAccount; server-side apply leaves their fields alone, without any plugin.
#[tokio::test(flavor = "multi_thread")]
async fn s21_secrets_that_others_gave_a_service_account_stay() {
    let play = Play::begin("s21").await;
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: agent\n  labels:\n    version: {{ .Values.version | quote }}\n";
    play.chart(&[], &[("templates/0000-account.yaml", account)]).await;
    play.own(json!({"set": {"version": "1"}})).await;
    play.ready().await;
    let theirs = json!({"imagePullSecrets": [{"name": "registry"}], "secrets": [{"name": "token"}]});
    play.stage.edit("ServiceAccount", "agent", theirs.clone()).await.unwrap();
    play.own(json!({"set": {"version": "2"}})).await;
    let is_new = async |stage: &Stage| {
        Ok(stage.read("ServiceAccount", "agent").await?["metadata"]["labels"]["version"] == "2")
    };
    play.stage.eventually("the account is applied again", is_new).await.unwrap();
    play.ready().await;
    let account = play.stage.read("ServiceAccount", "agent").await.unwrap();
    for field in ["imagePullSecrets", "secrets"] {
        assert_eq!(account[field], theirs[field], "{field}");
    }
    play.end().await;
}

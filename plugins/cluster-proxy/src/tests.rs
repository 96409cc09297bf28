#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

fn host(https: &str) -> Host {
    Host::new().state("1000", "").object(json!({"apiVersion": "config.openshift.io/v1", "kind": "Proxy",
        "metadata": {"name": "cluster"}, "status": {"httpsProxy": https, "noProxy": ".svc"}}))
}

fn set() -> Value {
    json!({"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": {"spec": {
        "initContainers": [{"name": "init", "image": "i"}],
        "containers": [{"name": "main", "env": [{"name": "NO_PROXY", "value": "mine"}]}]}}}})
}

fn edits(host: Host) -> Vec<(String, Value)> {
    let service = json!({"kind": "Service", "metadata": {"name": "s"}, "spec": {}});
    let edits = host.post_render::<ClusterProxy>([set(), service]).unwrap();
    let read = |object: Option<&str>| serde_json::from_str(object.unwrap()).unwrap();
    edits.iter().map(|(key, object)| (key.to_owned(), read(object))).collect()
}

#[test]
fn every_container_gets_the_proxy_and_what_the_chart_says_stays() {
    let edits = edits(host("http://p:3128"));
    assert_eq!(edits.len(), 1, "{edits:?}");
    let pod = &edits[0].1["spec"]["template"]["spec"];
    let init = json!([{"name": "HTTPS_PROXY", "value": "http://p:3128"},
        {"name": "https_proxy", "value": "http://p:3128"}, {"name": "NO_PROXY", "value": ".svc"},
        {"name": "no_proxy", "value": ".svc"}]);
    assert_eq!(pod["initContainers"][0]["env"], init);
    assert_eq!(pod["containers"][0]["env"][0], json!({"name": "NO_PROXY", "value": "mine"}));
    assert_eq!(pod["containers"][0]["env"].as_array().unwrap().len(), 4);
}

#[test]
fn certificates_go_into_one_container_and_their_config_map_into_its_state() {
    let config = json!({"container": "main", "trustedCa": "ca"});
    let edits = edits(host("http://p:3128").config(config));
    let pod = &edits[0].1["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0].get("env"), None);
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/etc/pki/ca-trust/extracted/pem");
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "ca");
    let (key, map) = &edits[1];
    assert_eq!((key.as_str(), &map["metadata"]["namespace"]), ("trusted-ca", &json!("namespace")));
    assert_eq!(map.get("data"), None, "OpenShift fills it");
}

#[test]
fn a_cluster_without_a_proxy_changes_nothing() {
    assert_eq!(edits(host("")), []);
    assert_eq!(edits(Host::new()), []);
}

#[test]
fn a_proxy_that_may_not_be_read_is_not_taken_for_none() {
    let denied = host("http://p").deny("Proxy").post_render::<ClusterProxy>([set()]);
    assert!(denied.unwrap_err().message().contains("Proxy is not granted"));
}

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

const LOADED: &str = "kmm.node.kubernetes.io/namespace.release.ready";

fn node(name: &str, loaded: bool) -> Value {
    let mut labels = json!({"worker": "yes"});
    if loaded {
        labels[LOADED] = json!("");
    }
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
}

fn pod(name: &str, owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "namespace",
        "labels": {"app": "release"}, "ownerReferences": [{"kind": "DaemonSet", "name": owner}]}})
}

fn host(spec: Value) -> Host {
    Host::new().owner(json!({"spec": spec})).values(spec)
}

fn mapped(spec: Value) -> Result<Value, String> {
    let mapping = host(spec).map_values::<Ptemplate>().map_err(|failure| failure.to_string())?;
    serde_json::from_str(mapping.values()).map_err(|error| error.to_string())
}

#[test]
fn both_published_spellings_are_one_set_of_values() {
    let old = json!({"maxdev": 5, "defaultmsg": "ptemplate", "consumerimage": "c", "requiredDevices": 2,
        "imageRepoSecret": {"name": "s"}, "selector": {"worker": "yes"}});
    let new = json!({"maxdev": 5, "defaultmsg": "ptemplate", "consumer": "c", "requiredDevices": 2,
        "imagePullSecret": {"name": "s"}, "selector": {"worker": "yes"}});
    assert_eq!(mapped(old.clone()).unwrap(), mapped(new.clone()).unwrap());
    let conditions = |spec: Value| host(spec).map_values::<Ptemplate>().unwrap().report().conditions.clone();
    assert_eq!(
        conditions(old)[0].message,
        "spec.consumerimage is now spec.consumer; spec.imageRepoSecret is now spec.imagePullSecret"
    );
    assert!(conditions(new).is_empty());
}

#[test]
fn what_is_left_out_has_the_defaults_of_old_and_a_secret_may_be_missing() {
    let values = mapped(json!({"selector": {}})).unwrap();
    let text = |key: &str| values[key].to_string();
    assert_eq!([text("maxdev"), text("requiredDevices"), text("imagePullSecret")], ["5", "1", "null"]);
    assert_eq!(values["consumer"], "quay.io/chrisp262/pt-device-plugin:consumer-latest");
    assert_eq!(values["deviceplugin"], "quay.io/chrisp262/pt-device-plugin:latest");
}

#[test]
fn a_spec_that_cannot_be_used_is_refused_by_field() {
    assert!(mapped(json!({})).unwrap_err().contains("spec.selector is missing"));
    assert!(mapped(json!({"selector": {}, "maxdev": -1})).unwrap_err().contains("spec.maxdev is -1"));
    assert!(mapped(json!({"selector": {}, "maxdev": "many"})).unwrap_err().contains("spec of the Ptemplate"));
}

#[test]
fn the_consumer_comes_once_every_selected_node_has_the_module() {
    let spec = json!({"selector": {"worker": "yes"}});
    let keys = |host: &Host, applied: &[&str]| {
        let applied: Vec<_> = applied.iter().map(|key| (*key, json!({}))).collect();
        let desired = host.clone().reconcile::<Ptemplate>(applied).unwrap();
        let keys: Vec<_> = desired.objects().map(|(key, _)| key.to_owned()).collect();
        (keys.join(" "), desired.is_ready())
    };
    let waiting = host(spec.clone()).objects([node("a", true), node("b", false)]);
    assert_eq!(keys(&waiting, &[MODULE]), ("module".into(), false));
    let loaded = host(spec).objects([node("a", true), node("b", true)]);
    assert_eq!(keys(&loaded, &[]), ("module".into(), false));
    assert_eq!(keys(&loaded, &[MODULE]), ("module consumer".into(), true));
    // A node that joins later takes the consumer from nobody.
    assert_eq!(keys(&waiting, &[MODULE, CONSUMER]), ("module consumer".into(), false));
}

#[test]
fn consumers_are_told_sorted_and_only_those_of_the_owner() {
    let pods = [pod("b", "release-consumer"), pod("a", "release-consumer"), pod("other", "somebody")];
    let status = |host: Host| host.map_values::<Ptemplate>().unwrap().report().status.clone().unwrap();
    let spec = json!({"selector": {}});
    assert_eq!(status(host(spec.clone()).objects(pods)), r#"{"consumers":["a","b"]}"#);
    assert_eq!(status(host(spec)), r#"{"consumers":[]}"#);
}

#[test]
fn the_module_stays_until_the_consumers_are_gone() {
    let spec = json!({"selector": {}});
    let applied = || [(MODULE, json!({})), (CONSUMER, json!({}))];
    let first =
        host(spec.clone()).object(pod("a", "release-consumer")).finalize::<Ptemplate>(applied()).unwrap();
    assert_eq!(first.objects().map(|(key, _)| key).collect::<Vec<_>>(), [MODULE]);
    assert!(first.pending().unwrap().blockers()[0].message.contains("1 pods still use"));
    let last = host(spec).finalize::<Ptemplate>([(MODULE, json!({}))]).unwrap();
    assert!(last.is_ready() && last.objects().count() == 0);
}

#[test]
fn one_denied_read_is_a_failure_that_names_it() {
    let denied = host(json!({"selector": {}})).deny("Pod").map_values::<Ptemplate>().unwrap_err();
    assert!(denied.to_string().contains("Pod"), "{denied}");
}

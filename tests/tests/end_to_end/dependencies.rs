//! Charts that a SpecialResource needs first.

use pintle_api::{SpecialResource, names};
use pintle_tests::{
    Stage,
    requests::object_of,
    stage::{condition, plane},
};
use serde_json::{Value, json};

/// The workload of the dependency, and what the parent's values give it.
const BASE: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: base
  annotations: {specialresource.openshift.io/wait: 'true', shown: '{{ .Values.text }}'}
spec:
  selector: {matchLabels: {app: base}}
  template:
    metadata: {labels: {app: base}}
    spec:
      containers: [{name: base, image: 'images.example.test/base:1'}]
";
const TOP: &str = "apiVersion: v1
kind: ServiceAccount
metadata: {name: top}
";

async fn install(stage: &Stage, chart: &str, template: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    let metadata = format!("apiVersion: v2\nname: {chart}\nversion: 0.1.0\n");
    std::fs::write(folder.path().join("Chart.yaml"), metadata).unwrap();
    std::fs::write(folder.path().join("templates/0000-one.yaml"), template).unwrap();
    let client = plane().await.unwrap().client().unwrap();
    pintle::scenario::install_chart(&client, folder.path(), &stage.name, chart).await.unwrap();
}

fn chart(stage: &Stage, name: &str) -> Value {
    let url = format!("cm://{}/{name}", stage.name);
    json!({"name": name, "version": "0.1.0", "repository": {"name": "r", "url": url}})
}

fn owner(stage: &Stage, base: &str, text: &str) -> Value {
    let set = json!({"kind": "Values", "apiVersion": "sro.openshift.io/v1beta1", "text": text});
    json!({
        "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
        "metadata": {"name": stage.name, "labels": {"test": stage.name}},
        "spec": {
            "namespace": stage.name, "chart": chart(stage, "top"),
            "dependencies": [{"chart": chart(stage, base), "set": set}]
        }
    })
}

fn is_blocked(owner: &SpecialResource, text: &str) -> bool {
    let states = owner.status.iter().flat_map(|status| &status.states);
    states.flat_map(|state| &state.blockers).any(|blocker| blocker.message.contains(text))
}

fn is_ready(owner: &SpecialResource) -> bool {
    condition(owner, "Ready").as_deref() == Some("True")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_is_made_is_ready_first_follows_its_parent_and_comes_back() {
    let mut stage = Stage::new("depends").await.unwrap();
    let base = "depends-base";
    install(&stage, base, BASE).await;
    install(&stage, "top", TOP).await;
    // No pod can be made in the namespace of the dependency, so it cannot become ready.
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": base}})).await.unwrap();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": base},
                       "spec": {"hard": {"pods": "0"}}});
    stage.apply(quota).await.unwrap();
    let mark = stage.mark_now().await.unwrap();
    stage.apply(owner(&stage, base, "one")).await.unwrap();
    let waits = |owner: &SpecialResource| is_blocked(owner, "the dependency is not ready: ");
    let told = stage.wait_until("waiting for the dependency", waits).await.unwrap();
    assert!(!is_ready(&told));
    assert!(
        stage.find("ServiceAccount", "top").await.unwrap().is_none(),
        "nothing of the parent is there yet"
    );
    let child = stage.read("SpecialResource", base).await.unwrap();
    assert_eq!(child["metadata"]["annotations"][names::DEPENDENCY_OF], stage.name.as_str());
    assert_eq!(child["spec"]["namespace"], base);
    assert_eq!(child["spec"]["set"]["text"], "one");

    let client = plane().await.unwrap().client().unwrap();
    let quotas = kube::Api::<k8s_openapi::api::core::v1::ResourceQuota>::namespaced(client.clone(), base);
    quotas.delete("none", &Default::default()).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let writes = stage.writes_since(mark).await.unwrap();
    let at = |object: &str| writes.iter().position(|write| object_of(write) == object).unwrap();
    let (first, second) = (at("daemonsets depends-base/base"), at("serviceaccounts depends/top"));
    assert!(first < second, "{first} and {second} of {writes:#?}");
    let maps = kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(
        client.clone(),
        pintle::scenario::SYSTEM,
    );
    let table = maps.get(names::SRO_DEPENDENCIES).await.unwrap();
    assert_eq!(table.data.unwrap()[base], stage.name);

    // Other values for it reach it; the parent stays ready meanwhile.
    stage.apply(owner(&stage, base, "two")).await.unwrap();
    let workloads = kube::Api::<k8s_openapi::api::apps::v1::DaemonSet>::namespaced(client, base);
    let shows_two = async |_: &Stage| {
        let found = workloads.get_opt("base").await?;
        Ok(found.is_some_and(|set| set.metadata.annotations.unwrap_or_default()["shown"] == "two"))
    };
    stage.eventually("the dependency has the new values", shows_two).await.unwrap();
    stage.wait_until_ready().await.unwrap();

    // It is needed, so it comes back.
    let uid = child["metadata"]["uid"].clone();
    stage.delete("SpecialResource", base).await.unwrap();
    let is_back = async |stage: &Stage| {
        let now = stage.find("SpecialResource", base).await?;
        Ok(now.is_some_and(|now| now["metadata"]["uid"] != uid && now["spec"]["set"]["text"] == "two"))
    };
    stage.eventually("the dependency is made anew", is_back).await.unwrap();

    // It stays when the parent goes, as with SRO; nobody is said to need it any more.
    stage.delete("SpecialResource", &stage.name).await.unwrap();
    let is_gone = async |stage: &Stage| Ok(stage.find("SpecialResource", &stage.name).await?.is_none());
    stage.eventually("the parent is gone", is_gone).await.unwrap();
    assert!(stage.find("SpecialResource", base).await.unwrap().is_some());
    let table = maps.get(names::SRO_DEPENDENCIES).await.unwrap();
    assert!(!table.data.unwrap_or_default().contains_key(base));
    stage.delete("SpecialResource", base).await.unwrap();
    let is_gone = async |stage: &Stage| Ok(stage.find("SpecialResource", base).await?.is_none());
    stage.eventually("the dependency is gone", is_gone).await.unwrap();
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_without_a_chart_or_with_other_values_is_named() {
    let mut stage = Stage::new("depends-wrong").await.unwrap();
    let base = "depends-wrong-base";
    install(&stage, "top", TOP).await;
    stage.apply(owner(&stage, base, "one")).await.unwrap();
    let fails = |owner: &SpecialResource| {
        let conditions = owner.status.iter().flat_map(|status| &status.conditions);
        conditions
            .into_iter()
            .any(|condition| condition.reason == "DependencyChartFailure" && condition.message.contains(base))
    };
    stage.wait_until("failed for the chart of the dependency", fails).await.unwrap();

    let mut other = owner(&stage, base, "other");
    other["metadata"] = json!({"name": base});
    other["spec"] = json!({"namespace": base, "chart": chart(&stage, base), "set": {"text": "mine"}});
    stage.apply(other).await.unwrap();
    let differs =
        |owner: &SpecialResource| is_blocked(owner, "has other values than its entry in spec.dependencies");
    stage.wait_until("told that the dependency differs", differs).await.unwrap();
    stage.delete("SpecialResource", base).await.unwrap();
    stage.release_owner().await.unwrap();
    stage.stop_operator().await.unwrap();
}

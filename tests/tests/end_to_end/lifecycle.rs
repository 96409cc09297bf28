//! What happens to a release after it was ready: deletion, drift, upgrades, other orders.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use pintle_api::{SpecialResource, status::Phase};
use pintle_tests::{
    Stage,
    requests::{object_of, told},
    stage::{condition, plane, push_plugin},
};
use serde_json::{Value, json};

const SUFFIX: &str = "12813789169ac0ee";

/// A copy of the example's chart; `edit` gets each file's path and text.
fn copy_chart(edit: impl Fn(&str, String) -> String) -> tempfile::TempDir {
    let (from, to) = (pintle::scenario::chart_folder("simple-kmod"), tempfile::tempdir().unwrap());
    std::fs::create_dir(to.path().join("templates")).unwrap();
    for path in [
        "Chart.yaml",
        "templates/_names.tpl",
        "templates/0000-buildconfig.yaml",
        "templates/1000-driver-container.yaml",
    ] {
        let text = std::fs::read_to_string(from.join(path)).unwrap();
        std::fs::write(to.path().join(path), edit(path, text)).unwrap();
    }
    to
}

async fn ready(name: &str) -> Stage {
    let stage = Stage::new(name).await.unwrap();
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_goes_in_reverse_and_holds_the_owner_until_all_is_gone() {
    let mut stage = ready("deleted").await;
    let (container, mark) = ("deleted-driver-container", stage.mark().await.unwrap());
    let workload = format!("{container}-{SUFFIX}");
    stage
        .edit("DaemonSet", &workload, json!({"metadata": {"finalizers": ["test.example/hold"]}}))
        .await
        .unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.delete("SpecialResource", &stage.name).await.unwrap();
    let is_held = |owner: &SpecialResource| {
        let blockers =
            owner.status.iter().flat_map(|status| &status.states).flat_map(|state| &state.blockers);
        blockers
            .into_iter()
            .any(|blocker| blocker.reason == "BeingDeleted" && blocker.message.contains("test.example/hold"))
    };
    let owner = stage.wait_until("held by the DaemonSet", is_held).await.unwrap();
    assert_eq!(owner.metadata.finalizers.unwrap(), ["sro.openshift.io/finalizer"]);
    let status = owner.status.unwrap();
    assert!(status.state.contains("test.example/hold"), "{}", status.state);
    assert!(stage.find("ImageStream", container).await.unwrap().is_some(), "its state is not reached yet");
    stage.edit("DaemonSet", &workload, json!({"metadata": {"finalizers": null}})).await.unwrap();
    let gone = async |stage: &Stage| Ok(stage.find("SpecialResource", &stage.name).await?.is_none());
    stage.eventually("the owner is gone", gone).await.unwrap();
    stage.stop_operator().await.unwrap();
    check_order_of_deletes(&stage, mark).await;
    check_nothing_left(&stage).await;
}

/// What was applied last went first, and the owner was let go at the very end.
async fn check_order_of_deletes(stage: &Stage, mark: pintle_dev::audit::Mark) {
    let writes = stage.writes_since(mark).await.unwrap();
    let at = |wanted: &str| {
        let found = writes.iter().position(|write| write.verb == "delete" && object_of(write) == wanted);
        found.unwrap_or_else(|| panic!("{wanted} was deleted:\n{}", told(&writes)))
    };
    let container = format!("{0}/{0}-driver-container", stage.name);
    let last_of_second = ["serviceaccounts", "roles", "rolebindings"]
        .map(|resource| at(&format!("{resource} {container}")))
        .into_iter()
        .chain([at(&format!("daemonsets {container}-{SUFFIX}"))])
        .max()
        .unwrap();
    let build = format!("buildconfigs {0}/{0}-driver-build-{SUFFIX}", stage.name);
    let first_of_first = at(&format!("imagestreams {container}")).min(at(&build));
    assert!(last_of_second < first_of_first, "{}", told(&writes));
    let last = writes.last().unwrap();
    assert_eq!(
        (last.resource.as_str(), last.verb.as_str()),
        ("specialresources", "patch"),
        "{}",
        told(&writes)
    );
}

/// Of the release only what its user made is left.
async fn check_nothing_left(stage: &Stage) {
    for kind in ["ImageStream", "BuildConfig", "DaemonSet", "Role", "RoleBinding", "Secret"] {
        assert_eq!(stage.names(kind).await.unwrap(), [""; 0], "{kind}");
    }
    assert_eq!(stage.names("ServiceAccount").await.unwrap(), ["default"]);
    for node in stage.list("Node").await.unwrap() {
        let labels = node["metadata"]["labels"].as_object().unwrap();
        let left = labels.keys().find(|key| key.contains(&format!("state-{}-", stage.name)));
        assert_eq!(left, None);
    }
    let namespace = stage.read("Namespace", &stage.name).await.unwrap();
    assert_eq!(namespace["metadata"]["deletionTimestamp"], Value::Null, "its user made it");
    assert!(stage.find("ConfigMap", "chart").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_release_is_left_alone_until_it_is_managed_again() {
    let mut stage = ready("unmanaged").await;
    let state = |word: &str| json!({"spec": {"managementState": word}});
    stage.edit("SpecialResource", &stage.name, state("Unmanaged")).await.unwrap();
    let mark = stage.mark().await.unwrap();
    let name = "unmanaged-driver-container";
    stage.delete("Role", name).await.unwrap();
    stage.edit("RoleBinding", name, json!({"subjects": []})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let writes = stage.writes_since(mark).await.unwrap();
    assert!(writes.is_empty(), "{}", told(&writes));
    assert!(stage.find("Role", name).await.unwrap().is_none());
    stage.edit("SpecialResource", &stage.name, state("Managed")).await.unwrap();
    let is_back = async |stage: &Stage| {
        let binding = stage.read("RoleBinding", name).await?;
        Ok(stage.find("Role", name).await?.is_some()
            && binding["subjects"].as_array().is_some_and(|s| s.len() == 1))
    };
    stage.eventually("what was changed meanwhile is repaired", is_back).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_release_leaves_its_owner_and_can_come_back() {
    let mut stage = ready("removed").await;
    let before = stage.snapshot().await.unwrap();
    let state = |word: &str| json!({"spec": {"managementState": word}});
    stage.edit("SpecialResource", &stage.name, state("Removed")).await.unwrap();
    let kinds = ["DaemonSet", "Role", "RoleBinding", "ImageStream", "BuildConfig", "Secret"];
    let is_empty = async |stage: &Stage| {
        for kind in kinds {
            if !stage.names(kind).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    stage.eventually("all objects are gone", is_empty).await.unwrap();
    let is_told = |owner: &SpecialResource| {
        let is_current =
            owner.status.as_ref().and_then(|status| status.observed_generation) == owner.metadata.generation;
        is_current && condition(owner, "Ready").as_deref() == Some("False")
    };
    stage.wait_until("told as not ready", is_told).await.unwrap();
    let mark = stage.mark().await.unwrap();
    stage.edit("SpecialResource", &stage.name, state("Managed")).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let mut after = stage.snapshot().await.unwrap();
    let mut before = before;
    // The image was built before: nothing demands a build again.
    let kinds = ["DaemonSet", "Role", "ServiceAccount", "Node", "Namespace"];
    for all in [&mut before, &mut after] {
        all.retain(|key, _| kinds.iter().any(|kind| key.starts_with(kind)));
        assert_eq!(all.len(), 6, "{:?}", all.keys());
    }
    assert_eq!(pintle_tests::snapshot::difference(&before, &after), "");
    let writes = stage.writes_since(mark).await.unwrap();
    let first = |resource: &str| writes.iter().position(|write| write.resource == resource).unwrap();
    assert!(first("imagestreams") < first("daemonsets"), "states in order again: {}", told(&writes));
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_deleted_or_edited_comes_back_at_once() {
    let mut stage = ready("drift").await;
    let (name, workload) = ("drift-driver-container", format!("drift-driver-container-{SUFFIX}"));
    let pods = stage.names("Pod").await.unwrap();
    for kind in ["ServiceAccount", "Role", "ImageStream"] {
        let started = Instant::now();
        stage.delete(kind, name).await.unwrap();
        let is_back = async |stage: &Stage| Ok(stage.find(kind, name).await?.is_some());
        stage.eventually("it is back", is_back).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(2), "{kind} after {:?}", started.elapsed());
    }
    let container = json!([{"name": name, "image": "registry.example/other:1"}]);
    let edit = json!({"spec": {"template": {"spec": {"containers": container}}}});
    let started = Instant::now();
    stage.edit("DaemonSet", &workload, edit).await.unwrap();
    let is_back = async |stage: &Stage| {
        let set = stage.read("DaemonSet", &workload).await?;
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        Ok(container["image"].as_str().is_some_and(|image| image.contains("drift-driver-container"))
            && container["command"] == json!(["/sbin/init"]))
    };
    stage.eventually("the image is the chart's again", is_back).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "after {:?}", started.elapsed());
    stage.wait_until_ready().await.unwrap();
    assert_eq!(stage.names("Pod").await.unwrap(), pods, "no pod was restarted");
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_prunes_what_left_the_chart_and_restarts_nothing() {
    let mut stage = ready("upgraded").await;
    let workload = format!("upgraded-driver-container-{SUFFIX}");
    let uids = async |stage: &Stage| {
        let pods = stage.list("Pod").await.unwrap();
        pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    let (pods, set) = (uids(&stage).await, stage.read("DaemonSet", &workload).await.unwrap());
    let next = copy_chart(|path, text| match path {
        "Chart.yaml" => text.replace("version: 0.0.1", "version: 0.0.2"),
        _ if path.contains("1000") => without(&text, &["Role", "RoleBinding"]),
        _ => text,
    });
    let mark = stage.mark().await.unwrap();
    upgrade(&stage, next.path(), "0.0.2").await;
    for kind in ["Role", "RoleBinding"] {
        assert_eq!(stage.names(kind).await.unwrap(), [""; 0], "{kind} left the chart");
    }
    let after = stage.read("DaemonSet", &workload).await.unwrap();
    assert_eq!(after["metadata"]["uid"], set["metadata"]["uid"]);
    assert_eq!(after["metadata"]["generation"], set["metadata"]["generation"], "its template is the same");
    assert_eq!(uids(&stage).await, pods, "no pod was restarted");
    let writes = stage.writes_since(mark).await.unwrap();
    assert!(writes.iter().all(|write| write.resource != "daemonsets"), "{}", told(&writes));
    let secrets = stage.list("Secret").await.unwrap();
    let of = |version: &str| {
        let is_it = |secret: &&Value| secret["metadata"]["labels"]["version"] == version;
        secrets.iter().find(is_it).unwrap()["metadata"]["labels"]["status"].clone()
    };
    assert_eq!((of("1"), of("2")), (json!("superseded"), json!("deployed")), "as `helm history` shows it");
    stage.stop_operator().await.unwrap();
}

/// Installs a chart under another version and waits until the release is ready with it.
async fn upgrade(stage: &Stage, chart: &Path, version: &str) {
    stage.install_chart(chart).await.unwrap();
    let spec = json!({"spec": {"chart": {"version": version}}});
    stage.edit("SpecialResource", &stage.name, spec).await.unwrap();
    let is_upgraded = |owner: &SpecialResource| {
        let chart = owner.status.as_ref().and_then(|status| status.chart.clone());
        condition(owner, "Ready").as_deref() == Some("True")
            && chart.is_some_and(|chart| chart.version == version)
    };
    stage.wait_until("ready with the new version", is_upgraded).await.unwrap();
}

/// The documents of a template but for those of some kinds.
fn without(text: &str, kinds: &[&str]) -> String {
    let is_left = |part: &&str| !kinds.iter().any(|kind| part.contains(&format!("\nkind: {kind}\n")));
    text.split("---\n").filter(is_left).collect::<Vec<_>>().join("---\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_goes_leaves_a_ready_release_running() {
    let stage = Stage::new("plugin-goes").await.unwrap();
    let image = push_plugin(plane().await.unwrap(), "driver-loaded").await.unwrap();
    let grants = stage.read("Plugin", "driver-loaded").await.unwrap()["spec"]["grants"].clone();
    let plugin = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "plugin-goes"},
        "spec": {"image": image, "grants": grants}
    });
    stage.apply(plugin.clone()).await.unwrap();
    let chart = copy_chart(|_, text| text.replace("&& driver-loaded", "&& plugin-goes"));
    stage.install_chart(chart.path()).await.unwrap();
    stage.apply(stage.example().unwrap()).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let (before, mark) = (stage.snapshot().await.unwrap(), stage.mark().await.unwrap());
    stage.delete("Plugin", "plugin-goes").await.unwrap();
    let is_told = |owner: &SpecialResource| condition(owner, "Ready").as_deref() == Some("False");
    let owner = stage.wait_until("told", is_told).await.unwrap();
    let state = &owner.status.as_ref().unwrap().states[1];
    assert_eq!(state.phase, Phase::Regressed);
    assert_eq!(state.blockers[0].reason, "PluginMissing", "{state:?}");
    assert!(state.blockers[0].message.contains("plugin-goes"), "{state:?}");
    let writes = stage.writes_since(mark).await.unwrap();
    assert!(writes.iter().all(|write| write.subresource == "status"), "{}", told(&writes));
    stage.apply(plugin).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    assert_eq!(pintle_tests::snapshot::difference(&before, &stage.snapshot().await.unwrap()), "");
    stage.delete("Plugin", "plugin-goes").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_served_yet_says_so() {
    let mut stage = Stage::new("not-served").await.unwrap();
    let mut spec = stage.example().unwrap()["spec"].clone();
    spec["watch"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "path": "$.data.version"}]);
    stage
        .apply(json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResourceModule",
            "metadata": stage.example().unwrap()["metadata"],
            "spec": {"chart": spec["chart"], "namespace": spec["namespace"], "watch": spec["watch"]}
        }))
        .await
        .unwrap();
    let events = stage.of_kind_in("Event", "default");
    let is_told = async |stage: &Stage| {
        let list = events.list(&kube::api::ListParams::default()).await?;
        let of = |event: &kube::api::DynamicObject| event.data["regarding"]["name"] == stage.name.as_str();
        let found: Vec<_> = list.items.into_iter().filter(of).collect();
        Ok(found.first().is_some_and(|event| {
            event.data["reason"] == "NotServedYet" && event.data["type"] == "Warning" && found.len() == 1
        }))
    };
    stage.eventually("an event says that it is not served", is_told).await.unwrap();
    stage.delete("SpecialResourceModule", &stage.name).await.unwrap();
    stage.stop_operator().await.unwrap();
}

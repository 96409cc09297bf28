//! OpenShift's builds, down to the image that a DaemonSet waited for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, LogParams, PostParams};
use kube::{Client, ResourceExt};
use pintle_dev::cluster::INTERNAL_REGISTRY;
use pintle_dev::nodes::{self, NodeSpec};
use pintle_dev::openshift::Kind;
use pintle_dev::simulate::{Builds, Outcome, Script};
use serde_json::{Value, json};

use crate::support::{daemon_set, eventually, is_ready, namespace, plane, pods};

fn builds() -> &'static Builds {
    plane().simulators().unwrap().builds().unwrap()
}

fn objects(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind.resource())
}

async fn create(client: &Client, kind: Kind, namespace: &str, name: &str, spec: Value) -> DynamicObject {
    let resource = kind.resource();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec,
    });
    let object = serde_json::from_value(object).unwrap();
    objects(client, kind, namespace).create(&PostParams::default(), &object).await.unwrap()
}

fn build_config(stream_tag: &str) -> Value {
    json!({
        "runPolicy": "Serial",
        "triggers": [{"type": "ConfigChange"}, {"type": "ImageChange"}],
        "nodeSelector": {"node-role.kubernetes.io/worker": ""},
        "source": {"type": "Git", "git": {"uri": "https://git.example/kmod.git", "ref": "main"}},
        "strategy": {"dockerStrategy": {"dockerfilePath": "Dockerfile"}},
        "output": {"to": {"kind": "ImageStreamTag", "name": stream_tag}},
        "fieldOfTomorrow": {"kept": true},
    })
}

async fn phase(client: &Client, namespace: &str, build: &str, wanted: &str) -> DynamicObject {
    let builds = objects(client, Kind::Build, namespace);
    eventually(wanted, async || {
        let found = builds.get_opt(build).await.unwrap()?;
        (found.data["status"]["phase"] == wanted).then_some(found)
    })
    .await
}

#[tokio::test]
async fn a_build_makes_the_image_that_a_daemon_set_waits_for() {
    let client = namespace("builds").await;
    nodes::create(&client, &NodeSpec::worker("builds-0").with_label("builds", "")).await.unwrap();
    let image = format!("{INTERNAL_REGISTRY}builds/driver-container:v1");
    let set = serde_json::from_value(daemon_set("driver", &image, "builds")).unwrap();
    Api::<DaemonSet>::namespaced(client.clone(), "builds")
        .create(&PostParams::default(), &set)
        .await
        .unwrap();
    create(&client, Kind::ImageStream, "builds", "driver-container", json!({})).await;
    let config = build_config("driver-container:v1");
    let config = create(&client, Kind::BuildConfig, "builds", "driver-build", config).await;
    assert_eq!(config.data["spec"]["fieldOfTomorrow"]["kept"], true);

    let build = phase(&client, "builds", "driver-build-1", "Complete").await;
    let owner = &build.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str(), &owner.uid),
        ("BuildConfig", "driver-build", &config.uid().unwrap())
    );
    assert_eq!(build.data["status"]["outputDockerImageReference"], image);
    assert_eq!(build.data["spec"]["source"], config.data["spec"]["source"]);
    let stream = objects(&client, Kind::ImageStream, "builds").get("driver-container").await.unwrap();
    assert_eq!(stream.data["status"]["dockerImageRepository"], image.trim_end_matches(":v1"));
    assert_eq!(stream.data["status"]["tags"][0]["tag"], "v1");

    let api = Api::<Pod>::namespaced(client.clone(), "builds");
    let pod = api.get("driver-build-1-build").await.unwrap();
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Succeeded"));
    eventually("the build's log ends with the push", async || {
        let log = api.logs("driver-build-1-build", &LogParams::default()).await.ok()?;
        log.ends_with("Push successful\n").then_some(())
    })
    .await;
    eventually("the driver runs", async || {
        let found = pods(&client, "builds", "app=driver").await;
        found.first().is_some_and(is_ready).then_some(())
    })
    .await;

    // A change of the BuildConfig makes no build; asking for one does.
    assert_eq!(builds().start("builds", "driver-build").await.unwrap(), "driver-build-2");
    phase(&client, "builds", "driver-build-2", "Complete").await;
}

#[tokio::test]
async fn a_build_that_is_told_to_fail_makes_no_image() {
    let client = namespace("badbuilds").await;
    nodes::create(&client, &NodeSpec::worker("badbuilds-0")).await.unwrap();
    builds().rule(|build| {
        let outcome = Outcome::Failed {
            reason: "DockerBuildFailed".to_owned(),
            message: "Dockerfile build strategy has failed.".to_owned(),
        };
        let bad = build.namespace == "badbuilds" && build.number == 1;
        bad.then_some(Script { duration: Duration::from_millis(10), outcome })
    });
    create(&client, Kind::BuildConfig, "badbuilds", "bad", build_config("driver:v1")).await;
    let waiting = phase(&client, "badbuilds", "bad-1", "New").await;
    assert_eq!(waiting.data["status"]["reason"], "InvalidOutputReference", "there is no ImageStream yet");
    create(&client, Kind::ImageStream, "badbuilds", "driver", json!({})).await;
    let failed = phase(&client, "badbuilds", "bad-1", "Failed").await;
    assert_eq!(failed.data["status"]["reason"], "DockerBuildFailed");
    let image = format!("{INTERNAL_REGISTRY}badbuilds/driver:v1");
    let images = plane().simulators().unwrap().images();
    assert!(!images.can_pull(&image));
    builds().start("badbuilds", "bad").await.unwrap();
    phase(&client, "badbuilds", "bad-2", "Complete").await;
    assert!(images.can_pull(&image));
}

#[tokio::test]
async fn a_simulated_openshift_says_its_version_and_its_toolkit() {
    let client = plane().client().unwrap();
    let version = Api::<DynamicObject>::all_with(client.clone(), &Kind::ClusterVersion.resource());
    let history = &version.get("version").await.unwrap().data["status"]["history"][0];
    assert_eq!((&history["state"], &history["version"]), (&json!("Completed"), &json!("4.8.4")));
    let toolkit = objects(&client, Kind::ImageStream, "openshift").get("driver-toolkit").await.unwrap();
    assert_eq!(toolkit.data["status"]["tags"][0]["tag"], "latest");
    let all = Api::<DynamicObject>::all_with(client, &Kind::SecurityContextConstraints.resource());
    assert_eq!(all.get("privileged").await.unwrap().data["allowPrivilegedContainer"], true);
}

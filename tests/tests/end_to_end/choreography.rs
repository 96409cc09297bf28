//! Builds on demand, and releases that live beside each other.

use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::{WatchStreamExt as _, watcher};
use pintle_api::{SpecialResource, status::Phase};
use pintle_dev::{
    nodes::KERNEL,
    simulate::{Outcome, Script, Simulators},
};
use pintle_tests::{
    Stage,
    stage::{condition, plane},
};
use serde_json::{Value, json};

async fn simulators() -> &'static Simulators {
    plane().await.unwrap().simulators().unwrap()
}

/// The image that a release of the example wants to run.
fn image_of(namespace: &str) -> String {
    let registry = "image-registry.openshift-image-registry.svc:5000";
    format!("{registry}/{namespace}/{namespace}-driver-container:v{KERNEL}")
}

/// Whether a pod waits for an image that cannot be pulled.
fn cannot_pull(pod: &Value) -> bool {
    let reason = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
    *reason == "ErrImagePull" || *reason == "ImagePullBackOff"
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_built_before_an_image_could_not_be_pulled() {
    let mut stage = Stage::new("build-late").await.unwrap();
    stage.install_chart(&pintle::scenario::chart_folder("simple-kmod")).await.unwrap();
    // No pod can be made, so none can fail to pull.
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": stage.name},
        "spec": {"hard": {"pods": "0"}}
    });
    stage.apply(quota).await.unwrap();
    stage.apply(stage.example().unwrap()).await.unwrap();
    let waits = |owner: &SpecialResource| {
        let states = owner.status.as_ref().map(|status| &status.states[..]).unwrap_or_default();
        states.get(1).is_some_and(|state| state.phase == Phase::Pending && !state.blockers.is_empty())
    };
    let owner = stage.wait_until("waiting for pods", waits).await.unwrap();
    assert_eq!(owner.status.unwrap().states[0].deferred, 1, "the BuildConfig waits for a demand");
    assert_eq!(stage.names("BuildConfig").await.unwrap(), [""; 0]);

    let seen = watch_for_build(&stage);
    stage.delete_quota().await;
    stage.wait_until_ready().await.unwrap();
    let pods = seen.await.unwrap();
    assert!(pods.iter().any(cannot_pull), "a pod could not pull when the BuildConfig came: {pods:#?}");
    assert_eq!(stage.names("Build").await.unwrap().len(), 1);
    stage.stop_operator().await.unwrap();
}

/// The pods at the moment at which the BuildConfig appears.
fn watch_for_build(stage: &Stage) -> tokio::task::JoinHandle<Vec<Value>> {
    let (configs, pods) = (stage.of_kind("BuildConfig"), stage.of_kind("Pod"));
    tokio::spawn(async move {
        let mut changes = Box::pin(watcher(configs, watcher::Config::default()).applied_objects());
        while !matches!(changes.next().await, Some(Ok(_))) {}
        let pods = pods.list(&kube::api::ListParams::default()).await.unwrap();
        pods.items.into_iter().map(|pod| serde_json::to_value(pod).unwrap()).collect()
    })
}

trait Quota {
    async fn delete_quota(&self);
}

impl Quota for Stage {
    async fn delete_quota(&self) {
        let quotas = self.api("v1", "ResourceQuota", "resourcequotas");
        quotas.delete("none", &kube::api::DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_can_be_pulled_is_never_built() {
    let mut stage = Stage::new("never-built").await.unwrap();
    simulators().await.images().add(image_of(&stage.name)).unwrap();
    let mark = stage.mark_now().await.unwrap();
    stage.install_example().await.unwrap();
    let owner = stage.wait_until_ready().await.unwrap();
    let states = owner.status.unwrap().states;
    assert_eq!((states[0].phase, states[0].objects, states[0].deferred), (Phase::Ready, 1, 1));
    stage.stop_operator().await.unwrap();
    let writes = stage.writes_since(mark).await.unwrap();
    assert!(writes.iter().all(|write| write.resource != "buildconfigs"), "{writes:#?}");
    assert_eq!(stage.names("Build").await.unwrap(), [""; 0]);
    assert!(writes.iter().all(|write| write.resource != "pods"), "no pod was replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_failed_is_told_and_the_next_one_mends_it() {
    let mut stage = Stage::new("build-fails").await.unwrap();
    let builds = simulators().await.builds().unwrap();
    let name = stage.name.clone();
    builds.rule(move |build| {
        (build.namespace == name && build.number == 1).then(|| Script {
            duration: Duration::from_millis(50),
            outcome: Outcome::Failed {
                reason: "DockerBuildFailed".to_owned(),
                message: "the Dockerfile has no line that works".to_owned(),
            },
        })
    });
    stage.install_example().await.unwrap();
    let is_told = |owner: &SpecialResource| condition(owner, "Errored").as_deref() == Some("True");
    let owner = stage.wait_until("Errored", is_told).await.unwrap();
    let status = owner.status.unwrap();
    let build = "build-fails-driver-build-12813789169ac0ee-1";
    assert!(status.state.starts_with("Errored: 0000-buildconfig: "), "{}", status.state);
    for part in [build, "the Dockerfile has no line that works"] {
        assert!(status.state.contains(part), "{} names {part}", status.state);
    }
    assert_eq!(status.states[0].blockers[0].object.as_ref().unwrap().name, build);
    assert_eq!(status.blocked, format!("BuildFailed: Build build-fails/{build}"));

    builds.start(&stage.name, "build-fails-driver-build-12813789169ac0ee").await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_releases_do_not_disturb_each_other() {
    let mut one = Stage::new("pair-one").await.unwrap();
    let two = Stage::without_operator("pair-two").await.unwrap();
    simulators().await.images().add(image_of(&two.name)).unwrap();
    // One builds for long, and the same operator serves another release of the same vendor meanwhile.
    let name = one.name.clone();
    simulators().await.builds().unwrap().rule(move |build| {
        let outcome = Outcome::Complete;
        (build.namespace == name).then_some(Script { duration: Duration::from_secs(2), outcome })
    });
    one.install_example().await.unwrap();
    let mut owner = two.example().unwrap();
    owner["metadata"]["labels"] = one.example().unwrap()["metadata"]["labels"].clone();
    two.install_chart(&pintle::scenario::chart_folder("simple-kmod")).await.unwrap();
    one.eventually("a build runs", async |stage| Ok(!stage.names("Build").await?.is_empty())).await.unwrap();
    two.apply(owner).await.unwrap();
    two.wait_until_ready().await.unwrap();
    let still = one.read("SpecialResource", &one.name).await.unwrap();
    assert_ne!(still["status"]["state"], "Ready: ", "the build of the other release still ran");
    one.wait_until_ready().await.unwrap();
    assert_eq!(one.names("Build").await.unwrap().len(), 1);
    assert_eq!(two.names("BuildConfig").await.unwrap(), [""; 0], "nothing was demanded here");
    assert_eq!(two.snapshot().await.unwrap().len(), 11, "all of the second release is there");
    one.stop_operator().await.unwrap();
}

//! A Watch is deleted while objects of its kind have releases: it looks after them until the last is gone.

use pintle_tests::Stage;
use serde_json::{Value, json};

use super::{SHOWN, Vendor, a_moment, condition, message};

const CHART: [(&str, &str); 1] = [("templates/shown.yaml", SHOWN)];

/// Deletes the Watch of a test, and waits until its status says so.
async fn delete_watch(stage: &Stage, told: &str) {
    stage.delete("Watch", &stage.name).await.unwrap();
    let says_so = async |stage: &Stage| {
        let watch = stage.read("Watch", &stage.name).await?;
        Ok(condition(&watch, "Ready").1 == "Deleting" && message(&watch, "Ready").starts_with(told))
    };
    stage.eventually(&format!("the Watch says: {told}"), says_so).await.unwrap();
}

async fn watch_is_gone(stage: &Stage) {
    let gone = async |stage: &Stage| Ok(stage.find("Watch", &stage.name).await?.is_none());
    stage.eventually("the Watch is gone", gone).await.unwrap();
}

fn finalizers(object: &Value) -> Value {
    object["metadata"]["finalizers"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_stays_and_works_until_its_last_release_is_gone() {
    let vendor = Vendor::new("leaving-waits", &json!({}), &CHART).await;
    let stage = &vendor.stage;
    let watch = stage.read("Watch", &stage.name).await.unwrap();
    assert_eq!(finalizers(&watch), Value::Null, "nobody has a release yet");
    for name in ["a", "b", "c"] {
        vendor.apply(name, json!({"text": "one"})).await;
        vendor.ready(name).await;
    }
    let watch = stage.read("Watch", &stage.name).await.unwrap();
    assert_eq!(finalizers(&watch), json!(["pintle.dev/watch"]));
    let space = &stage.name;
    delete_watch(
        stage,
        &format!(
            "3 widgets still have releases: {space}/a, {space}/b and 1 more; delete them, or annotate the Watch pintle.dev/force-delete: \"true\""
        ),
    )
    .await;

    // What has a release is upgraded, repaired and deleted as ever; what has none begins none.
    vendor.apply("a", json!({"text": "two"})).await;
    vendor.shows("a-shown", "two").await;
    stage.delete("ConfigMap", "b-shown").await.unwrap();
    vendor.shows("b-shown", "one").await;
    vendor.apply("late", json!({"text": "one"})).await;
    a_moment().await;
    let late = serde_json::to_value(vendor.api().get("late").await.unwrap()).unwrap();
    assert_eq!((finalizers(&late), late["status"].clone()), (Value::Null, Value::Null));
    vendor.delete("a").await;
    vendor.delete("b").await;
    let one_is_left = async |stage: &Stage| {
        let watch = stage.read("Watch", &stage.name).await?;
        let said = message(&watch, "Ready");
        Ok(said.starts_with(&format!("1 widget still has a release: {}/c; delete it", stage.name))
            && watch["status"]["releases"] == 1)
    };
    stage.eventually("one is left", one_is_left).await.unwrap();
    vendor.delete("c").await;
    watch_is_gone(stage).await;
    assert_eq!(vendor.data("c-shown").await, Value::Null, "its release went with it");
    vendor.delete("late").await;

    // A Watch of the same name serves anew.
    vendor.watch(&json!({})).await;
    vendor.apply("d", json!({"text": "one"})).await;
    vendor.ready("d").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_finds_a_watch_being_deleted_serves_its_releases() {
    let mut vendor = Vendor::new("leaving-restart", &json!({"maxConcurrentReconciles": 1}), &CHART).await;
    vendor.apply("a", json!({"text": "one"})).await;
    vendor.ready("a").await;
    vendor.stage.kill_operator().await;
    vendor.stage.delete("Watch", &vendor.stage.name.clone()).await.unwrap();
    vendor.api().delete("a", &kube::api::DeleteParams::default()).await.unwrap();
    vendor.stage.start();
    vendor.gone("a").await;
    watch_is_gone(&vendor.stage).await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_deletion_lets_the_owners_go_and_leaves_what_runs() {
    let vendor = Vendor::new("leaving-forced", &json!({}), &CHART).await;
    let stage = &vendor.stage;
    for name in ["a", "b"] {
        vendor.apply(name, json!({"text": "one"})).await;
        vendor.ready(name).await;
    }
    delete_watch(stage, &format!("2 widgets still have releases: {0}/a and {0}/b", stage.name)).await;
    let force = json!({"metadata": {"annotations": {"pintle.dev/force-delete": "true"}}});
    stage.edit("Watch", &stage.name, force).await.unwrap();
    watch_is_gone(stage).await;
    for name in ["a", "b"] {
        let owner = serde_json::to_value(vendor.api().get(name).await.unwrap()).unwrap();
        assert_eq!(finalizers(&owner), Value::Null, "{owner}");
        vendor.shows(&format!("{name}-shown"), "one").await;
    }
    // Nobody looks after them any more, and a Watch takes them up again.
    vendor.apply("a", json!({"text": "two"})).await;
    a_moment().await;
    vendor.shows("a-shown", "one").await;
    vendor.watch(&json!({})).await;
    vendor.shows("a-shown", "two").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_whose_owners_another_serves_goes_at_once() {
    let vendor = Vendor::new("leaving-other", &json!({}), &CHART).await;
    let stage = &vendor.stage;
    vendor.apply("a", json!({"text": "one"})).await;
    vendor.ready("a").await;
    let mut other = stage.read("Watch", &stage.name).await.unwrap();
    let labels = json!({"test": stage.name});
    other.as_object_mut().unwrap().remove("status");
    other["metadata"] = json!({"name": format!("{}-z", stage.name), "labels": labels});
    stage.apply(other).await.unwrap();
    let is_bound = async |stage: &Stage| {
        let watch = stage.read("Watch", &format!("{}-z", stage.name)).await?;
        Ok(condition(&watch, "Ready").0 == "True")
    };
    stage.eventually("the other Watch is bound", is_bound).await.unwrap();
    stage.delete("Watch", &stage.name).await.unwrap();
    watch_is_gone(stage).await;
    vendor.apply("a", json!({"text": "two"})).await;
    vendor.shows("a-shown", "two").await;
    vendor.end().await;
}

//! What may happen to a release that runs: a kind goes, its values go, its owner gets another name.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kube::api::DeleteParams;
use pintle_api::names;
use pintle_dev::audit::{Mark, Request};
use pintle_tests::{Stage, requests::told};
use serde_json::{Value, json};

use super::{SHOWN, Vendor, a_moment, condition, definition, is_ready, message, revision};

/// An object of a kind that may not be there.
const PART: &str = "apiVersion: parts.example.com/v1
kind: Part
metadata: {name: '{{ .Release.Name }}-part'}
spec: {text: {{ .Values.text | quote }}}
";
/// An object whose name every release of the chart shares.
const FIXED: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
data: {text: {{ .Values.text | quote }}}
";

/// Waits until the test's Watch is as it says.
async fn watch_says(vendor: &Vendor, status: &str, reason: &str) {
    let name = &vendor.stage.name;
    let says = async |stage: &Stage| {
        let watch = stage.read("Watch", name).await?;
        Ok(condition(&watch, "Ready") == (status.to_owned(), reason.to_owned()))
    };
    vendor.stage.eventually(&format!("the Watch says {status} with {reason}"), says).await.unwrap();
}

/// Deletes a definition and waits until it is gone, and with it every object of its kind.
async fn undefine(stage: &Stage, name: &str) {
    stage.delete("CustomResourceDefinition", name).await.unwrap();
    let gone = async |stage: &Stage| Ok(stage.find("CustomResourceDefinition", name).await?.is_none());
    stage.eventually("the definition is gone", gone).await.unwrap();
}

/// Applies a definition and waits until its kind is served.
async fn define(stage: &Stage, group: &str, kind: &str) {
    stage.apply(definition(group, kind, true)).await.unwrap();
    let name = format!("{}s.{group}", kind.to_lowercase());
    let is_served = async |stage: &Stage| {
        let found = stage.read("CustomResourceDefinition", &name).await?;
        Ok(condition(&found, "Established").0 == "True")
    };
    stage.eventually("the definition is established", is_served).await.unwrap();
}

/// Writes in the test's own namespace: every operator also tells of Plugins of other tests.
async fn own_writes(vendor: &Vendor, mark: Mark) -> Vec<Request> {
    let mut writes = vendor.stage.writes_since(mark).await.unwrap();
    writes.retain(|write| write.namespace == vendor.stage.name);
    writes
}

async fn helm_secrets(vendor: &Vendor) -> Vec<String> {
    let mut names = vendor.stage.names("Secret").await.unwrap();
    names.retain(|name| name.starts_with("sh.helm.") || name.starts_with("pintle."));
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vendors_kind_that_goes_takes_its_releases_along_and_serves_again_when_it_is_back() {
    let group = "gone.example.com";
    let vendor = Vendor::of_group(group, "life-kind", &json!({}), &[("templates/shown.yaml", SHOWN)]).await;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    watch_says(&vendor, "True", "Watching").await;

    // Not served for a while: nobody knows what its objects ask for, so what they made stays as it is.
    vendor.stage.apply(definition(group, "Widget", false)).await.unwrap();
    watch_says(&vendor, "False", "KindNotInstalled").await;
    let mark = vendor.stage.mark().await.unwrap();
    vendor.stage.delete("ConfigMap", "one-shown").await.unwrap();
    a_moment().await;
    let writes = own_writes(&vendor, mark).await;
    assert!(writes.is_empty(), "{}", told(&writes));
    vendor.stage.apply(definition(group, "Widget", true)).await.unwrap();
    vendor.shows("one-shown", "a").await;
    watch_says(&vendor, "True", "Watching").await;
    assert_eq!(revision(&vendor.ready("one").await), 1, "it goes on where it was");

    // Deleted with all its objects: each is let go when its release is gone.
    undefine(&vendor.stage, "widgets.gone.example.com").await;
    assert_eq!((vendor.data("one-shown").await, helm_secrets(&vendor).await), (Value::Null, vec![]));
    watch_says(&vendor, "False", "KindNotInstalled").await;
    let mark = vendor.stage.mark().await.unwrap();
    a_moment().await;
    let mut requests = vendor.stage.requests_since(mark).await.unwrap();
    // Deletions of others' releases are confirmed meanwhile, and their kinds are looked up.
    requests.retain(|request| request.resource.is_empty() || request.namespace == vendor.stage.name);
    assert!(requests.len() < 20, "nothing is asked again and again: {}", told(&requests));

    define(&vendor.stage, group, "Widget").await;
    vendor.apply("two", json!({"text": "b"})).await;
    vendor.ready("two").await;
    watch_says(&vendor, "True", "Watching").await;
    vendor.shows("two-shown", "b").await;
    vendor.delete("two").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rendered_kind_that_goes_is_told_and_its_object_is_made_anew_when_it_is_back() {
    let chart = [("templates/shown.yaml", SHOWN), ("templates/part.yaml", PART)];
    let vendor = Vendor::new("life-part", &json!({}), &chart).await;
    define(&vendor.stage, "parts.example.com", "Part").await;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    let parts = vendor.stage.api("parts.example.com/v1", "Part", "parts");
    let uid = parts.get("one-part").await.unwrap().metadata.uid;
    let shown = vendor.stage.read("ConfigMap", "one-shown").await.unwrap();

    undefine(&vendor.stage, "parts.parts.example.com").await;
    let widget = vendor
        .wait("one", "told what is missing", |widget| {
            let said = message(widget, "Ready");
            !is_ready(widget) && said.contains("one-part") && said.contains("the cluster does not serve")
        })
        .await;
    let state = &widget["status"]["states"][0];
    assert_eq!(
        (&state["phase"], &state["blockers"][0]["reason"]),
        (&json!("Regressed"), &json!("KindNotInstalled")),
        "{widget:#}"
    );
    assert_eq!(condition(&widget, "Deployed").0, "True", "the revision is the one that is deployed");
    assert_eq!(vendor.recorded("one", 1).await, "deployed");
    let now = vendor.stage.read("ConfigMap", "one-shown").await.unwrap();
    assert_eq!(now["metadata"]["resourceVersion"], shown["metadata"]["resourceVersion"], "all else stays");

    define(&vendor.stage, "parts.example.com", "Part").await;
    let widget = vendor.ready("one").await;
    assert_eq!(revision(&widget), 1);
    let part = parts.get("one-part").await.unwrap();
    assert_eq!(part.data["spec"]["text"], "a");
    assert_ne!(part.metadata.uid, uid);

    // On the way out a kind that is gone holds nobody.
    undefine(&vendor.stage, "parts.parts.example.com").await;
    vendor.delete("one").await;
    assert_eq!(helm_secrets(&vendor).await, Vec::<String>::new());
    vendor.end().await;
}

fn values(stage: &Stage, text: &str) -> Value {
    let metadata = json!({"name": "hidden", "namespace": stage.name});
    let data = json!({"values.yaml": BASE64_STANDARD.encode(format!("text: {text}\n"))});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_go_are_named_and_the_release_stays_as_it_is_until_they_are_back() {
    let from = json!({"valuesFrom": [{"kind": "Secret", "name": "hidden"}]});
    let vendor = Vendor::new("life-values", &from, &[("templates/shown.yaml", SHOWN)]).await;
    vendor.stage.apply(values(&vendor.stage, "first")).await.unwrap();
    vendor.apply("one", json!({})).await;
    vendor.ready("one").await;
    vendor.shows("one-shown", "first").await;

    let mark = vendor.stage.mark().await.unwrap();
    vendor.stage.delete("Secret", "hidden").await.unwrap();
    let widget = vendor.until("one", "Irreconcilable", "ErrorGettingValues").await;
    let said = message(&widget, "Ready");
    assert!(said.contains("Secret life-values/hidden, named in valuesFrom, is not there"), "{said}");
    assert_eq!((condition(&widget, "Ready").0.as_str(), revision(&widget)), ("False", 1));
    assert_eq!(condition(&widget, "Deployed").0, "True");
    a_moment().await;
    vendor.stage.apply(values(&vendor.stage, "first")).await.unwrap();
    assert_eq!(revision(&vendor.ready("one").await), 1, "the same values are the same revision");
    let writes = own_writes(&vendor, mark).await;
    let is_status = |write: &Request| write.resource == "widgets";
    assert!(writes.iter().all(is_status), "{}", told(&writes));

    vendor.stage.delete("Secret", "hidden").await.unwrap();
    vendor.until("one", "Irreconcilable", "ErrorGettingValues").await;
    vendor.stage.apply(values(&vendor.stage, "second")).await.unwrap();
    vendor.shows("one-shown", "second").await;
    assert_eq!(revision(&vendor.ready("one").await), 2);

    // Nobody needs values to go.
    vendor.stage.delete("Secret", "hidden").await.unwrap();
    vendor.until("one", "Irreconcilable", "ErrorGettingValues").await;
    vendor.delete("one").await;
    assert_eq!(vendor.data("one-shown").await, Value::Null);
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_comes_back_under_another_name_has_its_release_alone() {
    let named = json!({"releaseName": "{{ .spec.release }}"});
    let chart = [("templates/shown.yaml", SHOWN), ("templates/fixed.yaml", FIXED)];
    let vendor = Vendor::new("life-name", &named, &chart).await;
    vendor.apply("one", json!({"release": "one", "text": "a"})).await;
    vendor.ready("one").await;

    // Another release: it has to wait for the object that both want.
    vendor.apply("two", json!({"release": "two", "text": "b"})).await;
    vendor.wait("two", "told who has it", |widget| message(widget, "Ready").contains("fixed")).await;
    assert_eq!(vendor.data("fixed").await["text"], "a");
    vendor.delete("one").await;
    vendor.ready("two").await;
    assert_eq!(vendor.data("fixed").await["text"], "b");
    assert_eq!(vendor.data("one-shown").await, Value::Null);
    assert_eq!(helm_secrets(&vendor).await, ["pintle.two", "sh.helm.release.v1.two.v1"]);

    // The same release: it begins anew once the first owner's is gone, memory and all.
    for (before, now) in [("two", "three"), ("three", "four"), ("four", "five")] {
        vendor.apply(now, json!({"release": "two", "text": now})).await;
        if now == "three" {
            let widget = vendor.until(now, "Stalled", "ReleaseNameTaken").await;
            assert!(message(&widget, "Stalled").contains("Widget life-name/two"), "{widget:#}");
        }
        vendor.api().delete(before, &DeleteParams::default()).await.unwrap();
        let widget = vendor.ready(now).await;
        assert_eq!(revision(&widget), 1, "an installation: {widget:#}");
        vendor.shows("fixed", now).await;
        assert_eq!(vendor.data("two-shown").await["operation"], "install");
        assert!(vendor.api().get_opt(before).await.unwrap().is_none());
    }
    assert_eq!(helm_secrets(&vendor).await, ["pintle.two", "sh.helm.release.v1.two.v1"]);
    let owner = vendor.api().get("five").await.unwrap().metadata.uid.unwrap();
    for name in helm_secrets(&vendor).await {
        let secret = vendor.stage.read("Secret", &name).await.unwrap();
        assert_eq!(secret["metadata"]["labels"][names::OWNER], owner.as_str(), "{name}");
        let owners = secret["metadata"]["ownerReferences"].as_array().map(Vec::len);
        assert_eq!(owners, Some(1), "nobody else's deletion takes it along");
    }
    vendor.end().await;
}

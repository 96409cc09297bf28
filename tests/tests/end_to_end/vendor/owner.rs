//! What owners and their Watch say: annotations, pauses, conditions, definitions, how many at once.

use kube::api::{Patch, PatchParams};
use pintle_tests::{Stage, requests::told};
use serde_json::{Value, json};

use super::{SHOWN, Vendor, a_moment, condition, is_ready, message, revision};

const HOOK: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: '{{ .Release.Name }}-hook'
  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}
data: {text: {{ .Values.text | default \"none\" | quote }}}
";
const NOTES: &str = "Say {{ .Values.text }}.";

#[tokio::test(flavor = "multi_thread")]
async fn annotations_on_the_owner_configure_what_is_done() {
    let chart = [("templates/shown.yaml", SHOWN), ("templates/hook.yaml", HOOK)];
    let vendor = Vendor::new("owner-notes", &json!({"annotationDomain": "example.com"}), &chart).await;
    let quiet =
        json!({"example.com/install-disable-hooks": "true", "example.com/install-description": "by hand"});
    vendor.apply_with("one", json!({"text": "a"}), quiet).await;
    vendor.ready("one").await;
    assert_eq!(vendor.data("one-hook").await, Value::Null, "its hook did not run");
    let secret = vendor.stage.read("Secret", "sh.helm.release.v1.one.v1").await.unwrap();
    let record =
        pintle_chart::release::Record::from_secret(&pintle_api::Object::new(secret).unwrap()).unwrap();
    assert_eq!(record.info.description, "by hand");
    vendor.apply_with("one", json!({"text": "b"}), json!({})).await;
    vendor.ready("one").await;
    assert_eq!(vendor.data("one-hook").await["text"], "b", "the hook of an upgrade runs");

    vendor.annotate("one", "example.com/upgrade-disable-hooks", Some("perhaps")).await;
    let widget = vendor.until("one", "AnnotationUnusable", "InvalidAnnotation").await;
    assert!(message(&widget, "AnnotationUnusable").contains("`perhaps` is not true or false"), "{widget:#}");
    assert!(vendor.told("InvalidAnnotation").await.contains("example.com/upgrade-disable-hooks"));
    vendor.annotate("one", "example.com/upgrade-disable-hooks", None).await;
    vendor
        .wait("one", "without the complaint", |widget| {
            is_ready(widget) && condition(widget, "AnnotationUnusable").0.is_empty()
        })
        .await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_everything_or_everything_but_deletion() {
    let vendor = Vendor::new("owner-pause", &json!({}), &[("templates/shown.yaml", SHOWN)]).await;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    vendor.annotate("one", "pintle.dev/pause", Some("true")).await;
    let widget = vendor.until("one", "Paused", "PauseReconcileAnnotationTrue").await;
    assert_eq!(condition(&widget, "Ready").0, "True", "what was told stays");
    let spec = json!({"spec": {"text": "b"}});
    vendor.api().patch("one", &PatchParams::default(), &Patch::Merge(&spec)).await.unwrap();
    vendor.stage.delete("ConfigMap", "one-shown").await.unwrap();
    a_moment().await;
    assert_eq!(vendor.data("one-shown").await, Value::Null);
    vendor.api().delete("one", &kube::api::DeleteParams::default()).await.unwrap();
    a_moment().await;
    assert!(vendor.api().get_opt("one").await.unwrap().is_some(), "also its deletion waits");
    vendor.annotate("one", "pintle.dev/pause", Some("until-deleted")).await;
    let gone = async |_: &Stage| Ok(vendor.api().get_opt("one").await?.is_none());
    vendor.stage.eventually("it goes", gone).await.unwrap();

    vendor.apply_with("two", json!({"text": "a"}), json!({"pintle.dev/pause": "true"})).await;
    vendor.until("two", "Paused", "PauseReconcileAnnotationTrue").await;
    vendor.annotate("two", "pintle.dev/pause", None).await;
    let widget = vendor.ready("two").await;
    assert_eq!(condition(&widget, "Paused").0, "False");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_has_the_conditions_of_the_hybrid_operator_and_leaves_the_vendors_fields() {
    let chart = [("templates/shown.yaml", SHOWN), ("templates/NOTES.txt", NOTES)];
    let vendor = Vendor::new("owner-status", &json!({}), &chart).await;
    vendor.apply("one", json!({"text": "a"})).await;
    let widget = vendor.ready("one").await;
    let status = |kind: &str| condition(&widget, kind).0;
    assert_eq!(
        ["Initialized", "Deployed", "ReleaseFailed", "Irreconcilable", "Paused"].map(status),
        ["True", "True", "False", "False", "False"]
    );
    assert_eq!(message(&widget, "Deployed"), "Say a.");
    assert_eq!(["Ready", "Reconciling", "Stalled"].map(status), ["True", "False", "False"]);
    assert_eq!(widget["status"]["deployedRelease"], json!({"name": "one"}), "and no manifest");
    let dependents =
        json!([{"kind": "ConfigMap", "name": "one-shown", "namespace": "owner-status", "ready": true}]);
    assert_eq!(widget["status"]["dependents"], dependents);

    let params = PatchParams { field_manager: Some("vendor".to_owned()), ..PatchParams::default() };
    let own = json!({"status": {"nodes": ["a"], "phase": "Fine"}});
    vendor.api().patch_status("one", &params, &Patch::Merge(&own)).await.unwrap();
    vendor.apply("one", json!({"text": "b"})).await;
    let widget = vendor.ready("one").await;
    assert_eq!((&widget["status"]["nodes"], &widget["status"]["phase"]), (&json!(["a"]), &json!("Fine")));
    let is_ours = |entry: &&Value| entry["manager"] == "pintle" && entry["subresource"] == "status";
    let entries = widget["metadata"]["managedFields"].as_array().unwrap();
    let held = entries.iter().find(is_ours).unwrap()["fieldsV1"]["f:status"].clone();
    assert!(held.get("f:nodes").is_none(), "the vendor's own controller keeps its fields: {held}");
    assert_eq!(condition(&widget, "Deployed").1, "UpgradeSuccessful");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_a_chart_are_skipped_made_or_replaced_and_never_deleted() {
    let definition = |text: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: parts.crds.example.com, annotations: {{text: {text}}}}}
spec:
  group: crds.example.com
  scope: Namespaced
  names: {{kind: Part, listKind: PartList, plural: parts, singular: part}}
  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
"
        )
    };
    let crds = |stage: &Stage| {
        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        kube::Api::<CustomResourceDefinition>::all(stage.client.clone())
    };
    let text_of = async |stage: &Stage| {
        let found = crds(stage).get_opt("parts.crds.example.com").await.unwrap();
        found.map(|found| found.metadata.annotations.unwrap_or_default()["text"].clone())
    };
    let first = definition("first");
    let chart = [("templates/shown.yaml", SHOWN), ("crds/part.yaml", first.as_str())];
    let vendor = Vendor::new("owner-crds", &json!({"crds": "skip"}), &chart).await;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    assert_eq!(text_of(&vendor.stage).await, None);
    vendor.watch(&json!({"crds": "create"})).await;
    let is_made = async |stage: &Stage| Ok(text_of(stage).await.is_some());
    vendor.stage.eventually("the definition is made", is_made).await.unwrap();
    let second = definition("second");
    vendor.install(&[("templates/shown.yaml", SHOWN), ("crds/part.yaml", second.as_str())]).await;
    vendor.apply("one", json!({"text": "b"})).await;
    vendor.shows("one-shown", "b").await;
    vendor.ready("one").await;
    assert_eq!(text_of(&vendor.stage).await.as_deref(), Some("first"), "create changes none");
    vendor.watch(&json!({"crds": "createReplace"})).await;
    let is_second = async |stage: &Stage| Ok(text_of(stage).await.as_deref() == Some("second"));
    vendor.stage.eventually("the definition is replaced", is_second).await.unwrap();
    vendor.delete("one").await;
    assert_eq!(text_of(&vendor.stage).await.as_deref(), Some("second"), "it outlives the release");
    crds(&vendor.stage).delete("parts.crds.example.com", &kube::api::DeleteParams::default()).await.unwrap();
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_changed_is_made_anew_where_the_owner_asks_for_it() {
    let fixed = "apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}-fixed'}
immutable: true
data: {text: {{ .Values.text | quote }}}
";
    let vendor = Vendor::new("owner-force", &json!({}), &[("templates/fixed.yaml", fixed)]).await;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    vendor.apply("one", json!({"text": "b"})).await;
    vendor.until("one", "Stalled", "FailedToDeployChart").await;
    vendor.annotate("one", "helm.sdk.operatorframework.io/upgrade-force", Some("true")).await;
    vendor.shows("one-fixed", "b").await;
    vendor.ready("one").await;
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_owners_at_once_all_become_ready_and_then_nothing_is_written() {
    let random = "  random: {{ randAlphaNum 8 }}\n  seen: {{ len (lookup \"v1\" \"Namespace\" \"\" \"default\") | quote }}\n";
    let random = format!("{SHOWN}{random}");
    let chart = [("templates/shown.yaml", random.as_str())];
    let vendor = Vendor::new("owner-many", &json!({"maxConcurrentReconciles": 3}), &chart).await;
    let names: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
    for some in names.chunks(25) {
        futures::future::join_all(some.iter().map(|name| vendor.apply(name, json!({"text": name})))).await;
    }
    let started = std::time::Instant::now();
    loop {
        let list = vendor.api().list(&kube::api::ListParams::default()).await.unwrap();
        let widgets = list.items.iter().map(|item| serde_json::to_value(item).unwrap());
        let ready = widgets.filter(|widget| is_ready(widget) && revision(widget) == 1).count();
        if ready == names.len() {
            break;
        }
        assert!(started.elapsed().as_secs() < 240, "{ready} of {} are ready", names.len());
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    let mark = vendor.stage.mark().await.unwrap();
    a_moment().await;
    let mut writes = vendor.stage.writes_since(mark).await.unwrap();
    // Plugins are everybody's: those of other tests come and go meanwhile.
    writes.retain(|write| write.resource != "plugins");
    assert!(writes.is_empty(), "{}", told(&writes));
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_waits_for_all_that_it_owns_and_says_what_holds_it() {
    let hook = HOOK.replace("pre-install,pre-upgrade", "pre-delete");
    let chart = [("templates/shown.yaml", SHOWN), ("templates/hook.yaml", hook.as_str())];
    let vendor = Vendor::new("owner-wait", &json!({}), &chart).await;
    let domain = "helm.sdk.operatorframework.io";
    // That it waits needs no annotation, and one that says otherwise leaves nothing behind either.
    for (name, wait) in [("one", "true"), ("two", "false")] {
        let annotations = json!({format!("{domain}/uninstall-wait"): wait,
            format!("{domain}/uninstall-disable-hooks"): "true"});
        vendor.apply_with(name, json!({"text": "a"}), annotations).await;
        vendor.ready(name).await;
        let shown = format!("{name}-shown");
        let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
        vendor.stage.edit("ConfigMap", &shown, held).await.unwrap();
        vendor.api().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
        let widget = vendor
            .wait(name, "told what holds it", |widget| {
                widget["status"].to_string().contains("held by example.com/hold")
            })
            .await;
        assert_eq!(condition(&widget, "Ready"), ("False".into(), "MarkedForDeletion".into()));
        let free = json!({"metadata": {"finalizers": null}});
        vendor.stage.edit("ConfigMap", &shown, free).await.unwrap();
        vendor.gone(name).await;
        assert_eq!(vendor.data(&format!("{name}-hook")).await, Value::Null, "its hook did not run");
    }
    vendor.end().await;
}

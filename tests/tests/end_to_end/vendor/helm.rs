//! Helm's own client on our releases, and ours on Helm's.

use std::process::Command;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::Object;
use pintle_chart::release::{PARTS, Record, Status};
use pintle_dev::faults::{Answer, Fault, Matching, Nth};
use pintle_tests::{Stage, stage::plane};
use serde_json::{Value, json};

use super::{SHOWN, Vendor, a_moment, condition, is_ready, revision};

/// The real Helm; nothing where it cannot be built, which is said.
fn program() -> Option<std::path::PathBuf> {
    let found = pintle_dev::helm::ensure(&mut |line| eprintln!("{line}"));
    found.inspect_err(|error| eprintln!("skipped: what needs Helm's own client: {error}")).ok()
}

/// What Helm prints, or what it says on standard error after `failed: `.
async fn helm(stage: &Stage, args: &[&str]) -> String {
    let Some(program) = program() else { return String::new() };
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(args).args(["--namespace", &stage.name]);
    command.arg("--kubeconfig").arg(plane().await.unwrap().kubeconfig());
    command.env_clear().env("HOME", home.path()).env("TZ", "UTC");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    drop(home);
    if output.status.success() {
        String::from_utf8_lossy(&output.stdout).into_owned()
    } else {
        format!("failed: {}", String::from_utf8_lossy(&output.stderr))
    }
}

async fn json_of(stage: &Stage, args: &[&str]) -> Value {
    let text = helm(stage, &[args, &["-o", "json"]].concat()).await;
    serde_json::from_str(&text).unwrap_or_else(|err| panic!("{args:?}: {err}: {text}"))
}

fn chart_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    std::fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: widget\nversion: 0.0.9\n")
        .unwrap();
    std::fs::write(folder.path().join("templates/shown.yaml"), SHOWN).unwrap();
    let old = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-old'}\n";
    std::fs::write(folder.path().join("templates/old.yaml"), old).unwrap();
    folder
}

const CHART: [(&str, &str); 2] =
    [("templates/shown.yaml", SHOWN), ("templates/NOTES.txt", "Say {{ .Values.text }}.")];

#[tokio::test(flavor = "multi_thread")]
async fn helms_own_client_reads_our_releases_and_what_it_changes_is_restored() {
    if program().is_none() {
        return;
    }
    let vendor = Vendor::new("helm-client", &json!({"historyMax": 5}), &CHART).await;
    let stage = &vendor.stage;
    vendor.apply("one", json!({"text": "first"})).await;
    vendor.ready("one").await;
    vendor.apply("one", json!({"text": "second"})).await;
    vendor.ready("one").await;

    let list = json_of(stage, &["list"]).await;
    assert_eq!((&list[0]["name"], &list[0]["status"]), (&json!("one"), &json!("deployed")), "{list}");
    assert_eq!((&list[0]["revision"], &list[0]["chart"]), (&json!("2"), &json!("widget-0.1.0")));
    let history = json_of(stage, &["history", "one"]).await;
    let told: Vec<_> =
        history.as_array().unwrap().iter().map(|row| (&row["status"], &row["description"])).collect();
    assert_eq!(
        told,
        [
            (&json!("superseded"), &json!("Install complete")),
            (&json!("deployed"), &json!("Upgrade complete"))
        ]
    );
    let status = json_of(stage, &["status", "one"]).await;
    assert_eq!(status["info"]["status"], "deployed");
    assert_eq!(json_of(stage, &["get", "values", "one"]).await, json!({"text": "second"}));
    let all = helm(stage, &["get", "all", "one"]).await;
    for part in ["text: second", "Say second.", "kind: ConfigMap", "# Source: widget/templates/shown.yaml"] {
        assert!(all.contains(part), "{part}: {all}");
    }

    let said = helm(stage, &["rollback", "one", "1"]).await;
    assert!(said.contains("Rollback was a success"), "{said}");
    assert!(vendor.told("ReleaseChangedOutside").await.contains("revision 3 was made by somebody else"));
    vendor.wait("one", "restored as revision 4", |widget| is_ready(widget) && revision(widget) == 4).await;
    vendor.shows("one-shown", "second").await;
    let history = json_of(stage, &["history", "one"]).await;
    let told: Vec<_> =
        history.as_array().unwrap().iter().map(|row| row["status"].as_str().unwrap()).collect();
    assert_eq!(told, ["superseded", "superseded", "superseded", "deployed"]);

    let said = helm(stage, &["uninstall", "one"]).await;
    assert!(said.contains("uninstalled"), "{said}");
    // Where the deletion of an object is seen first, it is repaired, and the record of its revision with it.
    let is_there_again = async |_: &Stage| {
        let installed = vendor.recorded("one", 5).await == "deployed";
        let restored = vendor.recorded("one", 4).await == "deployed";
        Ok((installed || restored) && vendor.data("one-shown").await["text"] == "second")
    };
    stage.eventually("the release is there again", is_there_again).await.unwrap();
    let widget = vendor.ready("one").await;
    let operation = vendor.data("one-shown").await["operation"].clone();
    let wanted = if revision(&widget) == 5 { "install" } else { "upgrade" };
    assert_eq!(
        (operation, vendor.recorded("one", revision(&widget).try_into().unwrap()).await),
        (json!(wanted), "deployed".to_owned())
    );
    vendor.delete("one").await;
    assert_eq!(json_of(stage, &["list"]).await, json!([]));
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_helm_installed_becomes_ours_with_all_it_made() {
    if program().is_none() {
        return;
    }
    let vendor = Vendor::without_operator("helm-adopt", &json!({}), &CHART).await;
    let (mut vendor, folder) = (vendor, chart_folder());
    let path = folder.path().display().to_string();
    let said = helm(&vendor.stage, &["install", "one", &path, "--set", "text=by-helm"]).await;
    assert!(said.contains("STATUS: deployed"), "{said}");
    let uid = vendor.stage.read("ConfigMap", "one-shown").await.unwrap()["metadata"]["uid"].clone();
    vendor.stage.start();
    vendor.apply("one", json!({"text": "ours"})).await;
    let ready = vendor.ready("one").await;
    assert_eq!(revision(&ready), 2, "the next one after Helm's");
    vendor.told("ReleaseAdopted").await;
    let shown = vendor.stage.read("ConfigMap", "one-shown").await.unwrap();
    assert_eq!(
        (&shown["data"]["text"], &shown["metadata"]["uid"]),
        (&json!("ours"), &uid),
        "it was not made anew"
    );
    assert_eq!(shown["data"]["operation"], "upgrade");
    let pruned = async |stage: &Stage| Ok(stage.find("ConfigMap", "one-old").await?.is_none());
    vendor.stage.eventually("what only Helm's chart had is gone", pruned).await.unwrap();
    assert_eq!(vendor.recorded("one", 1).await, "superseded");
    assert_eq!(json_of(&vendor.stage, &["history", "one"]).await.as_array().unwrap().len(), 2);

    // A Watch that never adopts leaves Helm's releases alone.
    vendor.watch(&json!({"adopt": "Never"})).await;
    helm(&vendor.stage, &["install", "two", &path, "--set", "text=by-helm"]).await;
    vendor.apply("two", json!({"text": "ours"})).await;
    let widget = vendor.until("two", "Stalled", "ReleaseNameTaken").await;
    assert!(super::message(&widget, "Stalled").contains("belongs to Helm"), "{widget:#}");
    assert_eq!(vendor.data("two-shown").await["text"], "by-helm");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_deleted_damaged_or_left_behind_is_mended() {
    let vendor = Vendor::new("helm-records", &json!({"historyMax": 2}), &CHART).await;
    vendor.apply("one", json!({"text": "a"})).await;
    let ready = vendor.ready("one").await;
    let first = "sh.helm.release.v1.one.v1";
    let mark = vendor.stage.mark().await.unwrap();
    vendor.stage.delete("Secret", first).await.unwrap();
    let is_back = async |stage: &Stage| {
        Ok(stage
            .find("Secret", first)
            .await?
            .is_some_and(|secret| secret["metadata"]["labels"]["status"] == "deployed"))
    };
    vendor.stage.eventually("the record is back", is_back).await.unwrap();
    vendor
        .stage
        .edit("Secret", first, json!({"data": {"release": BASE64_STANDARD.encode("%")}}))
        .await
        .unwrap();
    let is_whole = async |stage: &Stage| {
        let secret = Object::new(stage.read("Secret", first).await?)?;
        Ok(Record::from_secret(&secret).is_ok())
    };
    vendor.stage.eventually("the record is whole", is_whole).await.unwrap();
    let writes = vendor.stage.writes_since(mark).await.unwrap();
    // Besides, the Watch says how many owners it has by now.
    assert!(
        writes.iter().all(|write| ["secrets", "watches"].contains(&&*write.resource)),
        "{}",
        pintle_tests::requests::told(&writes)
    );
    assert_eq!(revision(&vendor.ready("one").await), revision(&ready), "no new revision for it");

    // What Helm left behind an hour ago, in the middle of an upgrade.
    let secret = Object::new(vendor.stage.read("Secret", first).await.unwrap()).unwrap();
    let mut record = Record::from_secret(&secret).unwrap();
    record.version = 2;
    record.info.status = Status::PendingUpgrade;
    record.labels.clear();
    let hour_ago = (jiff::Timestamp::now() - std::time::Duration::from_secs(3600)).as_second();
    let (stuck, _) = record.to_secret(jiff::Timestamp::from_second(hour_ago).unwrap(), false).unwrap();
    vendor.stage.apply(stuck.to_value()).await.unwrap();
    vendor.wait("one", "past what was stuck", |widget| is_ready(widget) && revision(widget) == 3).await;

    // One that is young is left to whoever works on it.
    record.version = 4;
    let (young, _) = record.to_secret(jiff::Timestamp::now(), false).unwrap();
    vendor.stage.apply(young.to_value()).await.unwrap();
    vendor.until("one", "Reconciling", "HelmAtWork").await;
    vendor.stage.delete("Secret", "sh.helm.release.v1.one.v4").await.unwrap();
    vendor.wait("one", "Ready as before", |widget| is_ready(widget) && revision(widget) == 3).await;
    for text in ["b", "c", "d"] {
        vendor.apply("one", json!({"text": text})).await;
        vendor.shows("one-shown", text).await;
        vendor.ready("one").await;
    }
    let kept = async |stage: &Stage| {
        let names = stage.names("Secret").await?;
        let records: Vec<_> =
            names.iter().filter(|name| name.contains(".one.v")).map(String::as_str).collect();
        Ok(records == ["sh.helm.release.v1.one.v5", "sh.helm.release.v1.one.v6"])
    };
    vendor.stage.eventually("two revisions are kept", kept).await.unwrap();
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_could_not_be_written_is_written_again() {
    let mut vendor = Vendor::without_operator("helm-unwritten", &json!({}), &CHART).await;
    let (proxy, reach) = vendor.stage.proxy().await.unwrap();
    let first = "sh.helm.release.v1.one.v1";
    // The second write of it says what became of the revision.
    let writes = Matching::writes().of("secrets").named(first);
    proxy.rule(writes, Nth::From(2), Fault::Answer(Answer::internal()));
    vendor.stage.start_operator(reach);
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    let status = async |stage: &Stage| {
        let secret = stage.read("Secret", first).await?;
        anyhow::Ok(secret["metadata"]["labels"]["status"].clone())
    };
    assert_eq!(status(&vendor.stage).await.unwrap(), "pending-install", "nothing was refused");
    proxy.clear();
    let is_told = async |stage: &Stage| Ok(status(stage).await? == "deployed");
    vendor.stage.eventually("the record says that it is deployed", is_told).await.unwrap();
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_too_large_for_a_secret_is_kept_in_parts_and_says_so() {
    let large = "{{- range $n := until 9 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: 'large-{{ $n }}'}
data:
  noise: {{ range $i := until 250 }}{{ printf \"%d-%d\" $n $i | sha512sum }}{{ printf \"%d+%d\" $n $i | sha512sum }}{{ end }}
{{- end }}
";
    let large = large.replace("until 250", "until 400");
    let chart = [("templates/shown.yaml", SHOWN), ("templates/large.yaml", large.as_str())];
    let vendor = Vendor::new("helm-large", &json!({}), &chart).await;
    vendor.apply("one", json!({"text": "a"})).await;
    let widget = vendor.ready("one").await;
    assert_eq!(condition(&widget, "HelmRollbackUnavailable").0, "", "half the noise is packed away");
    let more = large.replace("until 9", "until 24").replace("until 400", "until 440");
    vendor.install(&[("templates/shown.yaml", SHOWN), ("templates/large.yaml", more.as_str())]).await;
    let widget = vendor.until("one", "HelmRollbackUnavailable", "RecordTooLarge").await;
    let name = format!("sh.helm.release.v1.one.v{}", revision(&widget));
    let secret = Object::new(vendor.stage.read("Secret", &name).await.unwrap()).unwrap();
    assert!(secret.annotation(PARTS).is_some_and(|count| count != "0"), "{:?}", secret.annotation(PARTS));
    if program().is_some() {
        let list = json_of(&vendor.stage, &["list"]).await;
        assert_eq!(list[0]["revision"], json!(revision(&widget).to_string()), "{list}");
        let said = helm(&vendor.stage, &["rollback", "one", &revision(&widget).to_string()]).await;
        assert!(said.starts_with("failed: "), "{said}");
        a_moment().await;
        assert_eq!(vendor.data("one-shown").await["text"], "a", "nothing was deleted by it");
    }
    vendor.delete("one").await;
    let names = vendor.stage.names("Secret").await.unwrap();
    assert!(names.iter().all(|name| !name.contains("one")), "{names:?}");
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_owners_of_one_name_do_not_share_a_release() {
    let named = json!({"releaseName": "{{ .spec.release }}"});
    let vendor = Vendor::new("helm-names", &named, &CHART).await;
    vendor.apply("one", json!({"release": "same", "text": "one"})).await;
    vendor.ready("one").await;
    vendor.apply("two", json!({"release": "same", "text": "two"})).await;
    let widget = vendor.until("two", "Stalled", "ReleaseNameTaken").await;
    assert!(super::message(&widget, "Stalled").contains("Widget helm-names/one"), "{widget:#}");
    assert_eq!(vendor.data("same-shown").await["text"], "one");
    let long = "a".repeat(60);
    vendor.apply("three", json!({"release": long, "text": "three"})).await;
    let ready = vendor.ready("three").await;
    let name = ready["status"]["deployedRelease"]["name"].as_str().unwrap().to_owned();
    assert!(name.len() == 53 && name.starts_with(&"a".repeat(40)), "{name}");
    assert_eq!(vendor.recorded(&name, 1).await, "deployed");
    vendor.end().await;
}

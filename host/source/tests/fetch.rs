//! Charts are fetched from ConfigMaps, folders, repositories and registries, and every fault names its place
//! and its end.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

#[path = "fetch/hostile.rs"]
mod hostile;
#[path = "fetch/mirrored.rs"]
mod mirrored;
#[path = "fetch/proxy.rs"]
mod proxy;
#[path = "fetch/registry.rs"]
mod registry;
#[path = "fetch/repository.rs"]
mod repository;
#[path = "fetch/server.rs"]
mod server;
#[path = "fetch/signed.rs"]
mod signed;

use std::{
    fs,
    path::Path,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{Answer, Given, Object, ObjectRef, Read, Record, Recorder};
use pintle_chart::{Chart, File};
use pintle_source::{Error, Online, Outcome, Packed, Request, Sources, artifact::Registries, index, pack};
use serde_json::{Value, json};

/// For repositories that need no server.
fn offline() -> Online<'static> {
    static REGISTRIES: LazyLock<Registries> = LazyLock::new(Registries::default);
    Online { registries: &REGISTRIES, now: Instant::now(), max_age: Duration::ZERO }
}

fn chart(name: &str, version: &str) -> Packed {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    pack(vec![
        File::new("Chart.yaml", metadata.as_bytes()),
        File::new("templates/0000-x.yaml", format!("# {name} {version}").as_bytes()),
    ])
    .unwrap()
}

fn packed_as_is(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, data) in files {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(data.len() as u64);
        header.set_cksum();
        archive.append(&header, *data).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", name).within("ns")
}

fn config_map(name: &str, version: &str, data: Value, binary: &[(&str, &[u8])]) -> Object {
    let binary: serde_json::Map<String, Value> =
        binary.iter().map(|(key, bytes)| ((*key).to_owned(), BASE64_STANDARD.encode(bytes).into())).collect();
    Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "binaryData": binary,
        "metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": version}}))
    .unwrap()
}

fn facts(objects: Vec<Object>) -> Record {
    let mut record = Record::default();
    for object in objects {
        record.insert(Read::Get(reference(object.name())), Given::Object(Answer::Found(Arc::new(object))));
    }
    record
}

/// A repository in ConfigMap `ns/charts`.
fn repository(charts: &[Packed], url: Option<&str>) -> Object {
    let archives: Vec<(&str, &[u8])> =
        charts.iter().map(|chart| (chart.file_name.as_str(), &chart.bytes[..])).collect();
    config_map("charts", "1", json!({"index.yaml": index(charts, url).unwrap()}), &archives)
}

fn request(version: &str) -> Request {
    Request { name: "c".into(), version: version.into(), url: "cm://ns/charts".into(), ..Request::default() }
}

async fn fetch(request: &Request, facts: &Record) -> Result<(String, String), Error> {
    match Sources::default().fetch(request, facts, offline()).await? {
        Outcome::Found(found) => Ok((found.chart.chart().metadata.version.clone(), found.place)),
        Outcome::NotYet => panic!("nobody looked"),
    }
}

/// The message with those of its sources, and the reason.
async fn fault(request: &Request, facts: &Record) -> (String, &'static str) {
    let error = fetch(request, facts).await.unwrap_err();
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    (text, error.reason())
}

#[tokio::test]
async fn a_config_map_with_several_charts_gives_the_version_that_is_meant() {
    let charts = [chart("c", "1.0.0"), chart("c", "1.2.0"), chart("d", "3.0.0")];
    for url in [None, Some("cm://ns/charts"), Some("configmap://ns/charts")] {
        let facts = facts(vec![repository(&charts, url)]);
        let expected = ("1.2.0".to_owned(), "cm://ns/charts/c-1.2.0.tgz".to_owned());
        assert_eq!(fetch(&request("^1"), &facts).await.unwrap(), expected, "{url:?}");
        assert_eq!(fetch(&request("v1.0.0"), &facts).await.unwrap().0, "1.0.0");
    }
}

#[tokio::test]
async fn an_index_may_point_to_another_config_map() {
    let packed = chart("c", "1.0.0");
    let text = index(std::slice::from_ref(&packed), Some("cm://ns/archives")).unwrap();
    let there = config_map("archives", "1", json!({}), &[(&packed.file_name, &packed.bytes)]);
    let facts = facts(vec![config_map("charts", "1", json!({"index.yaml": text}), &[]), there]);
    assert_eq!(fetch(&request("1.0.0"), &facts).await.unwrap().1, "cm://ns/archives/c-1.0.0.tgz");
}

#[tokio::test]
async fn what_nobody_looked_up_is_asked_for() {
    let empty = Record::default();
    let recorder = Recorder::new(&empty);
    let outcome = Sources::default().fetch(&request(""), &recorder, offline()).await.unwrap();
    assert!(matches!(outcome, Outcome::NotYet));
    assert_eq!(recorder.record().needs(), [Read::Get(reference("charts"))]);
}

#[tokio::test]
async fn equal_bytes_are_one_chart_and_a_changed_config_map_is_read_again() {
    let sources = Sources::default();
    let get = async |object: Object| match sources
        .fetch(&request(""), &facts(vec![object]), offline())
        .await
        .unwrap()
    {
        Outcome::Found(found) => found.chart,
        Outcome::NotYet => panic!("it is there"),
    };
    let one = get(repository(&[chart("c", "1.0.0")], None)).await;
    assert!(Arc::ptr_eq(&one, &get(repository(&[chart("c", "1.0.0")], None)).await));
    let packed = [chart("c", "1.0.0"), chart("c", "2.0.0")];
    let archives: Vec<(&str, &[u8])> =
        packed.iter().map(|chart| (chart.file_name.as_str(), &chart.bytes[..])).collect();
    let changed = config_map("charts", "2", json!({"index.yaml": index(&packed, None).unwrap()}), &archives);
    assert_eq!(get(changed).await.chart().metadata.version, "2.0.0");
}

#[tokio::test]
async fn a_changed_archive_behind_an_old_index_is_refused_also_when_the_old_one_is_known() {
    let sources = Sources::default();
    let old = chart("c", "1.0.0");
    let text = index(std::slice::from_ref(&old), None).unwrap();
    let object = |version: &str, bytes: &[u8]| {
        facts(vec![config_map("charts", version, json!({"index.yaml": text}), &[(&old.file_name, bytes)])])
    };
    assert!(sources.fetch(&request(""), &object("1", &old.bytes), offline()).await.is_ok());
    let error =
        sources.fetch(&request(""), &object("2", &chart("c", "6.6.6").bytes), offline()).await.unwrap_err();
    assert_eq!(error.reason(), "DigestMismatch");
}

#[tokio::test]
async fn a_pinned_digest_is_served_from_memory_and_from_the_cache_folder() {
    let folder = tempfile::tempdir().unwrap();
    let packed = chart("c", "1.0.0");
    let pinned = Request { digest: packed.digest.clone(), ..request("1.0.0") };
    let sources = Sources::new(Some(folder.path().to_owned()));
    let there = facts(vec![repository(std::slice::from_ref(&packed), None)]);
    assert!(matches!(sources.fetch(&pinned, &there, offline()).await, Ok(Outcome::Found(_))));
    let gone = Record::default();
    assert!(matches!(sources.fetch(&pinned, &gone, offline()).await, Ok(Outcome::Found(_))));
    let restarted = Sources::new(Some(folder.path().to_owned()));
    assert!(matches!(restarted.fetch(&pinned, &gone, offline()).await, Ok(Outcome::Found(_))));
    // A cache folder that was tampered with counts for nothing.
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    fs::write(file, chart("c", "6.6.6").bytes).unwrap();
    let restarted = Sources::new(Some(folder.path().to_owned()));
    assert!(matches!(restarted.fetch(&pinned, &gone, offline()).await, Ok(Outcome::NotYet)));
}

#[tokio::test]
async fn faults_of_config_maps_name_object_key_and_fix() {
    let packed = chart("c", "1.0.0");
    let text = index(std::slice::from_ref(&packed), None).unwrap();
    let with = |data: Value, binary: &[(&str, &[u8])]| facts(vec![config_map("charts", "1", data, binary)]);
    let archive = |bytes: &[u8]| {
        let text = "apiVersion: v1\nentries: {c: [{version: 1.0.0, urls: [c.tgz]}]}\n";
        with(json!({"index.yaml": text}), &[("c.tgz", bytes)])
    };
    let mut missing = Record::default();
    missing.insert(Read::Get(reference("charts")), Given::Object(Answer::Missing));
    let mut denied = Record::default();
    denied
        .insert(Read::Get(reference("charts")), Given::Object(Answer::Denied("get configmaps in ns".into())));
    let mut broken = repository(std::slice::from_ref(&packed), None);
    broken.set("binaryData", json!({"c-1.0.0.tgz": "%%"}));
    let cut = &packed.bytes[..packed.bytes.len() - 12];
    let large = vec![0; 33 << 20];
    for (facts, version, reason, says) in [
        (missing, "", "ConfigMapMissing", "ConfigMap ns/charts is missing: create it with `index.yaml`"),
        (denied, "", "ConfigMapDenied", "ConfigMap ns/charts may not be read (get configmaps in ns): give"),
        (
            with(json!({"a": "", "b": ""}), &[]),
            "",
            "KeyMissing",
            "ConfigMap ns/charts has no key \"index.yaml\": add it; it has a, b",
        ),
        (
            with(json!({"index.yaml": text}), &[]),
            "",
            "KeyMissing",
            "ConfigMap ns/charts has no key \"c-1.0.0.tgz\": add it; it has index.yaml",
        ),
        (
            with(json!({"index.yaml": "entries:\n- c\n"}), &[]),
            "",
            "IndexBroken",
            "cm://ns/charts/index.yaml:2: the index is broken",
        ),
        (
            with(json!({"index.yaml": "entries: {c: [{version: 1.0.0}]}"}), &[]),
            "",
            "IndexBroken",
            "cm://ns/charts: the entry of c 1.0.0 has no urls",
        ),
        (
            with(json!({"index.yaml": "entries: {d: []}"}), &[]),
            "",
            "ChartMissing",
            "cm://ns/charts has no chart \"c\"; it has d",
        ),
        (
            repository(std::slice::from_ref(&packed), None).into_facts(),
            "9",
            "VersionMissing",
            "cm://ns/charts has no version \"9\" of chart c; it has 1.0.0",
        ),
        (
            repository(std::slice::from_ref(&packed), None).into_facts(),
            "nine",
            "VersionInvalid",
            "\"nine\" is neither a version nor a range",
        ),
        (facts(vec![broken]), "", "KeyBroken", "ConfigMap ns/charts: key \"c-1.0.0.tgz\" is not base64"),
        (
            archive(cut),
            "",
            "ChartBroken",
            "cm://ns/charts/c.tgz is no chart: cannot unpack the chart: the archive is truncated",
        ),
        (
            archive(b"no tgz"),
            "",
            "ChartBroken",
            "cm://ns/charts/c.tgz is no chart: cannot unpack the chart: the archive is not a tgz",
        ),
        (
            archive(&packed_as_is(&[("c/../../etc/x", b"")])),
            "",
            "ChartBroken",
            "cm://ns/charts/c.tgz is no chart: cannot unpack the chart: \"c/../../etc/x\" is not inside",
        ),
        (
            archive(&packed_as_is(&[("c/big", &large)])),
            "",
            "ChartBroken",
            "cm://ns/charts/c.tgz is no chart: cannot unpack the chart: big has 34603008 bytes",
        ),
        (
            archive(&packed_as_is(&[("c/Chart.yaml", b"name: c\ntype: library\nversion: 1.0.0")])),
            "",
            "ChartNotInstallable",
            "cm://ns/charts/c.tgz cannot be installed: c is a chart of type library",
        ),
        (
            with(json!({"index.yaml": "entries: {c: [{version: 1.0.0, urls: ['file:///etc/x.tgz']}]}"}), &[]),
            "",
            "PathOutside",
            "cm://ns/charts/index.yaml: \"file:///etc/x.tgz\" leads out of the repository",
        ),
    ] {
        let (text, found) = fault(&request(version), &facts).await;
        assert!(text.starts_with(says), "{text:?} starts with {says:?}");
        assert_eq!(found, reason, "{text}");
    }
}

trait IntoFacts {
    fn into_facts(self) -> Record;
}

impl IntoFacts for Object {
    fn into_facts(self) -> Record {
        facts(vec![self])
    }
}

#[tokio::test]
async fn a_digest_that_differs_is_refused_whoever_named_it() {
    let packed = chart("c", "1.0.0");
    let there = facts(vec![repository(std::slice::from_ref(&packed), None)]);
    let pinned = Request { digest: format!("sha256:{}", "0".repeat(64)), ..request("") };
    let (text, reason) = fault(&pinned, &there).await;
    assert_eq!(reason, "DigestMismatch");
    assert!(text.contains("but chart.digest says sha256:000"), "{text}");
    let lying = index(std::slice::from_ref(&packed), None).unwrap().replace("digest: ", "digest: 0");
    let there = facts(vec![config_map(
        "charts",
        "1",
        json!({"index.yaml": lying}),
        &[(&packed.file_name, &packed.bytes)],
    )]);
    assert!(fault(&request(""), &there).await.0.contains("but the index says 0"));
}

#[tokio::test]
async fn schemes_that_are_not_served_say_which_are() {
    for url in ["s3://bucket/charts", "git+https://charts.example"] {
        let (text, reason) = fault(&Request { url: url.into(), ..request("") }, &Record::default()).await;
        assert_eq!(reason, "RepositoryNotServed");
        assert!(text.ends_with("cm://NAMESPACE/NAME or file:///FOLDER"), "{text}");
    }
}

fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (path, data) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, data).unwrap();
    }
}

fn in_folder(folder: &Path, version: &str) -> Request {
    Request { url: format!("file://{}", folder.display()), ..request(version) }
}

#[tokio::test]
async fn a_folder_with_an_index_is_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let charts = [chart("c", "1.0.0"), chart("c", "1.1.0")];
    write(folder.path(), &[("index.yaml", index(&charts, None).unwrap().as_bytes())]);
    for chart in &charts {
        write(folder.path(), &[(&chart.file_name, &chart.bytes)]);
    }
    let none = Record::default();
    assert_eq!(fetch(&in_folder(folder.path(), "1.x"), &none).await.unwrap().0, "1.1.0");
    fs::remove_file(folder.path().join("c-1.1.0.tgz")).unwrap();
    assert_eq!(fault(&in_folder(folder.path(), ""), &none).await.1, "FileUnreadable");
}

#[tokio::test]
async fn charts_that_simply_lie_in_a_folder_are_found_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let packed = chart("c", "1.5.0");
    write(
        folder.path(),
        &[
            ("c-1.0.0/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("c-1.0.0/templates/x.yaml", b"a: 1"),
            ("c-1.0.0/.helmignore", b"*.bak"),
            ("c-1.0.0/x.bak", b"gone"),
            ("c/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.2.0\n"),
            ("c-lib-9.0.0/Chart.yaml", b"apiVersion: v2\nname: c-lib\nversion: 9.0.0\n"),
            ("c-notes.txt", b"no chart"),
            (&packed.file_name, &packed.bytes),
        ],
    );
    let none = Record::default();
    for (version, expected) in [("", "1.5.0"), ("1.0.0", "1.0.0"), ("~1.2", "1.2.0")] {
        assert_eq!(fetch(&in_folder(folder.path(), version), &none).await.unwrap().0, expected);
    }
    let Outcome::Found(found) =
        Sources::default().fetch(&in_folder(folder.path(), "1.0.0"), &none, offline()).await.unwrap()
    else {
        panic!("it is there")
    };
    let paths: Vec<&str> = found.chart.chart().files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, [".helmignore"]);
}

#[tokio::test]
async fn paths_and_links_that_leave_the_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("charts");
    let packed = chart("c", "1.0.0");
    write(folder.path(), &[("secret.tgz", &packed.bytes)]);
    let none = Record::default();
    for url in ["../secret.tgz", "file:///etc/hostname", "https://x.example/c.tgz", "a/../../secret.tgz"] {
        let text = format!("entries: {{c: [{{version: 1.0.0, urls: ['{url}']}}]}}");
        write(&inside, &[("index.yaml", text.as_bytes())]);
        assert_eq!(fault(&in_folder(&inside, ""), &none).await.1, "PathOutside", "{url}");
    }
    fs::remove_file(inside.join("index.yaml")).unwrap();
    write(&inside, &[("c/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\n")]);
    std::os::unix::fs::symlink("/etc/passwd", inside.join("c/passwd")).unwrap();
    assert_eq!(fault(&in_folder(&inside, ""), &none).await.1, "PathOutside");
    assert_eq!(fault(&in_folder(&folder.path().join("nope"), ""), &none).await.1, "FileUnreadable");
}

/// The recipes of the Special Resource Operator, where they are present beside the checkout.
#[tokio::test]
async fn recipes_of_the_special_resource_operator_are_found_in_their_folder() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
    let beside = || checkout.ancestors().map(|folder| folder.join("shared")).find(|shared| shared.is_dir());
    let shared = std::env::var_os("PINTLE_SHARED").map(Into::into).or_else(beside);
    let recipes = shared.unwrap_or_default().join("conformance/sro-recipes");
    if !recipes.is_dir() {
        eprintln!(
            "skipped: simple-kmod, ping-pong, centos-simple-kmod are in conformance/sro-recipes of PINTLE_SHARED, which is absent"
        );
        return;
    }
    for name in ["simple-kmod", "ping-pong", "centos-simple-kmod"] {
        let request = Request { name: name.into(), version: "0.0.1".into(), ..in_folder(&recipes, "") };
        let request = Request { version: "0.0.1".into(), ..request };
        let Outcome::Found(found) =
            Sources::default().fetch(&request, &Record::default(), offline()).await.unwrap()
        else {
            panic!("{name} is there")
        };
        assert!(!found.chart.states().is_empty(), "{name}");
        assert_eq!(found.chart.chart().name(), name);
        let chart: &Chart = found.chart.chart();
        assert!(chart.digest.starts_with("sha256:"));
    }
}

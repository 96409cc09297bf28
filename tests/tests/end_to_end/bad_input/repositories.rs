//! Faults of repositories and registries that charts come from.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle_tests::stage;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    case::Case,
    chart::{Chart, Repository},
    registry::Forward,
    server::{Asked, Reply, Server},
};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// A repository under `/charts` that holds these archives.
fn honest(asked: &Asked, repository: &Repository) -> Reply {
    let Some(name) = asked.target.strip_prefix("/charts/") else { return Reply::status(404) };
    if name == "index.yaml" {
        return Reply::ok(repository.index.clone());
    }
    let found = repository.archives.iter().find(|(archive, _)| archive == name);
    found.map_or_else(|| Reply::status(404), |(_, bytes)| Reply::ok(bytes.clone()))
}

fn at(url: &str) -> Value {
    json!({"chart": {"repository": {"url": url}}})
}

async fn is_refused(case: &Case, spec: Value) {
    case.own(spec).await;
    case.fails().await;
    case.lacks(&["first"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_down() {
    let case = Case::begin("repository-down").await;
    let repository = Chart::steps().repository();
    let server = Server::start(move |asked, _| honest(asked, &repository)).await;
    let forward = Forward::reserve().await;
    is_refused(&case, at(&format!("http://127.0.0.1:{}/charts", forward.port()))).await;
    let _up = forward.start(&format!("127.0.0.1:{}", server.port)).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_refuses() {
    let case = Case::begin("repository-refuses").await;
    let repository = Chart::steps().repository();
    let server = Server::start(move |asked, _| match asked.authorization.as_deref() {
        Some("Basic YW5uOmh1bnRlcjI=") => honest(asked, &repository),
        _ => Reply::status(401),
    })
    .await;
    let spec = |user: &str, password: &str| {
        let url = server.url("/charts");
        json!({"chart": {"repository": {"url": url, "username": user, "password": password}}})
    };
    is_refused(&case, spec("ann", "wrong")).await;
    case.own(spec("ann", "hunter2")).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_answers_late() {
    let case = Case::begin("repository-answers-late").await;
    let (repository, turns) = (Chart::steps().repository(), Arc::new(AtomicUsize::new(0)));
    let server = Server::start(move |asked, _| {
        if asked.target == "/charts/again" {
            return Reply::to("/charts/again");
        }
        match turns.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::status(503),
            1 => Reply::Cut(repository.index.clone().into_bytes()),
            2 => Reply::to("/charts/again"),
            _ => honest(asked, &repository),
        }
    })
    .await;
    is_refused(&case, at(&server.url("/charts"))).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_lies() {
    let case = Case::begin("repository-lies").await;
    let (repository, turns) = (Chart::steps().repository(), Arc::new(AtomicUsize::new(0)));
    let mut other = Chart::steps();
    other.put("templates/0000-first.yaml", b"kind: Other\n");
    let other = other.repository();
    let server = Server::start(move |asked, _| {
        if asked.target.ends_with(".tgz") && turns.fetch_add(1, Ordering::Relaxed) == 0 {
            return honest(asked, &other);
        }
        honest(asked, &repository)
    })
    .await;
    is_refused(&case, at(&server.url("/charts"))).await;
    case.ready().await;
    case.end().await;
}

/// Pushes a blob and its manifest to the control plane's registry, as `helm push` would.
async fn push_chart(name: &str, bytes: &[u8]) {
    let registry = stage::plane().await.unwrap().registry().unwrap();
    let address = format!("http://{registry}/v2/{name}");
    let client = reqwest::Client::new();
    let digest = |bytes: &[u8]| {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    };
    for blob in [&b"{}"[..], bytes] {
        let begun = client.post(format!("{address}/blobs/uploads/")).send().await.unwrap();
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        let mark = if place.contains('?') { '&' } else { '?' };
        let put = client.put(format!("{place}{mark}digest={}", digest(blob))).body(blob.to_vec());
        assert!(put.send().await.unwrap().status().is_success());
    }
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": CONFIG, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": CONTENT, "digest": digest(bytes), "size": bytes.len()}]
    });
    let put = client.put(format!("{address}/manifests/0.1.0"));
    let put = put.header("Content-Type", "application/vnd.oci.image.manifest.v1+json");
    assert!(put.body(manifest.to_string()).send().await.unwrap().status().is_success());
}

async fn oci(folder: &str) -> String {
    format!("oci://{}/{folder}", stage::plane().await.unwrap().registry().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_lacks_chart() {
    let case = Case::begin("registry-lacks-chart").await;
    is_refused(&case, at(&oci("lacks").await)).await;
    push_chart("lacks/steps", &Chart::steps().repository().archives[0].1).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_has_plugin() {
    let case = Case::begin("registry-has-plugin").await;
    let registry = stage::plane().await.unwrap().registry().unwrap();
    let artifact = pintle_dev::registry::Artifact { component: b"\0asm".to_vec(), ..Default::default() };
    pintle_dev::registry::push(&format!("{registry}/plugins/steps:0.1.0"), &artifact).await.unwrap();
    is_refused(&case, at(&oci("plugins").await)).await;
    push_chart("charts/steps", &Chart::steps().repository().archives[0].1).await;
    case.own(at(&oci("charts").await)).await;
    case.ready().await;
    case.end().await;
}

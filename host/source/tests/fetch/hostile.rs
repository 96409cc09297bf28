//! Registries that lie, for charts and for plugins.

use std::time::{Duration, Instant};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_source::{
    Access, Request, Sources,
    artifact::{Component, PullError},
    keyring::Keyring,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    chart,
    repository::{as_user, fault, get, registries, wanted},
    server::{Asked, Reply, Server},
};

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PLUGIN: &str = "application/wasm";

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// A manifest with one layer of these bytes.
fn manifest(kind: &str, bytes: &[u8]) -> Value {
    let config = if kind == CHART {
        "application/vnd.cncf.helm.config.v1+json"
    } else {
        "application/vnd.wasm.config.v0+json"
    };
    json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": config, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": kind, "digest": digest(bytes), "size": bytes.len()}]
    })
}

/// A registry with one repository `r/c`, whose tag 1.0.0 is this manifest, and its blob these bytes.
fn one(asked: &Asked, manifest: &Value, blob: &[u8]) -> Reply {
    let text = manifest.to_string();
    if asked.target.starts_with("/v2/r/c/manifests/") {
        return Reply::ok(text.clone()).with("Docker-Content-Digest", digest(text.as_bytes()));
    }
    if asked.target.starts_with("/v2/r/c/blobs/") { Reply::ok(blob) } else { Reply::status(404) }
}

async fn pull(server: &Server, access: &Access) -> Result<Component, PullError> {
    registries().pull_with(&server.oci("/r/c:1.0.0"), access).await
}

/// What is said of a plugin and of a chart in this registry.
async fn both(server: &Server) -> [(String, &'static str); 2] {
    let plugin = pull(server, &Access::default()).await.map(|_| ()).unwrap_err();
    let text = format!("{plugin}: {:?}", std::error::Error::source(&plugin).map(ToString::to_string));
    [(text, plugin.reason()), fault(&wanted(&server.oci("/r"), "1.0.0")).await]
}

#[tokio::test]
async fn bytes_that_are_others_than_promised_are_refused() {
    let component = b"component".to_vec();
    let swapped =
        Server::start(move |asked, _| one(asked, &manifest(PLUGIN, &component), b"c0mponent")).await;
    let error = pull(&swapped, &Access::default()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, PullError::WrongDigest { .. }), "{error}");
    let packed = chart("c", "1.0.0").bytes;
    let other = chart("c", "1.0.1").bytes;
    let swapped = Server::start(move |asked, _| one(asked, &manifest(CHART, &packed), &other)).await;
    let (text, reason) = fault(&wanted(&swapped.oci("/r"), "1.0.0")).await;
    assert_eq!(reason, "DigestMismatch", "{text}");
}

#[tokio::test]
async fn a_manifest_that_is_another_than_its_digest_is_refused() {
    let server = Server::start(|asked, _| {
        let text = manifest(PLUGIN, b"x").to_string();
        let claimed =
            if asked.target.contains("sha256") { digest(text.as_bytes()) } else { digest(b"other") };
        Reply::ok(text).with("Docker-Content-Digest", claimed)
    })
    .await;
    let by_tag = pull(&server, &Access::default()).await.map(|_| ()).unwrap_err();
    assert!(matches!(by_tag, PullError::WrongDigest { .. }), "{by_tag}");
    let pinned = server.oci(&format!("/r/c@sha256:{}", "0".repeat(64)));
    let by_digest = registries().pull(&pinned, None).await.map(|_| ()).unwrap_err();
    assert!(matches!(by_digest, PullError::WrongDigest { .. }), "{by_digest}");
}

#[tokio::test]
async fn other_shapes_of_manifests_are_named() {
    let twice = |kind: &str| {
        let mut manifest = manifest(kind, b"x");
        let layer = manifest["layers"][0].clone();
        manifest["layers"].as_array_mut().unwrap().push(layer);
        manifest
    };
    let index = json!({"schemaVersion": 2, "manifests": []});
    let huge = {
        let mut manifest = manifest(PLUGIN, b"x");
        manifest["layers"][0]["size"] = json!(64 << 20);
        manifest
    };
    for (manifest, plugin, chart) in [
        (index, "it is an index of several images", "it is an index of several images"),
        (
            twice(PLUGIN),
            "it has 2 layers, one is allowed",
            "its configuration is of type application/vnd.wasm",
        ),
        (twice(CHART), "it has 2 layers, one is allowed", "it has several layers of a chart's type"),
        (huge, "its layer has 67108864 bytes", "its configuration is of type"),
        (manifest("image/layer", b"x"), "its layer is of type image/layer", "its configuration is of type"),
    ] {
        let server = Server::start(move |asked, _| one(asked, &manifest, b"x")).await;
        let [(one, reason), (other, broken)] = both(&server).await;
        assert!(one.contains(plugin) && reason == "NotAPlugin", "{one} ({reason})");
        assert!(other.contains(chart) && broken == "ChartBroken", "{other} ({broken})");
    }
}

#[tokio::test]
async fn an_answer_that_unpacks_to_more_is_taken_as_it_is() {
    let server = Server::start(|asked, _| {
        let reply = one(asked, &manifest(PLUGIN, b"small"), &[0x1f, 0x8b, 8, 0, 0]);
        if asked.target.contains("/blobs/") { reply.with("Content-Encoding", "gzip") } else { reply }
    })
    .await;
    let error = pull(&server, &Access::default()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, PullError::WrongDigest { .. }), "{error}");
}

#[tokio::test]
async fn a_blob_without_an_end_or_in_drops_ends_in_time() {
    for slow in [true, false] {
        let server = Server::start(move |asked, _| match (asked.target.contains("/blobs/"), slow) {
            (true, true) => Reply::Drip,
            (true, false) => Reply::Endless,
            _ => one(asked, &manifest(PLUGIN, &[0; 100_000]), b""),
        })
        .await;
        let begun = Instant::now();
        let error = pull(&server, &Access::default()).await.map(|_| ()).unwrap_err();
        let fits = match slow {
            true => matches!(error, PullError::TimedOut { .. }),
            false => matches!(error, PullError::Failed { .. }),
        };
        assert!(fits, "{error}");
        assert!(begun.elapsed() < Duration::from_secs(8));
    }
}

/// A registry that gives tokens to `ann` for `hunter2`.
fn with_tokens(asked: &Asked, port: u16, then: impl Fn() -> Reply) -> Reply {
    if asked.target.starts_with("/token?") {
        let scope = asked.target.contains("scope=repository%3Ar%2Fc%3Apull");
        return match asked.authorization.as_deref() {
            Some("Basic YW5uOmh1bnRlcjI=") if scope => Reply::ok(r#"{"access_token": "t0ken"}"#),
            _ => Reply::status(401),
        };
    }
    if asked.authorization.as_deref() == Some("Bearer t0ken") {
        return then();
    }
    let challenge =
        format!("Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"s\",scope=\"repository:r/c:pull\"");
    Reply::status(401).with("WWW-Authenticate", challenge)
}

#[tokio::test]
async fn tokens_are_asked_for_once_a_pull_and_refusals_end() {
    let server = Server::start(|asked, port| {
        with_tokens(asked, port, || one(asked, &manifest(PLUGIN, b"component"), b"component"))
    })
    .await;
    let component = pull(&server, &as_user("ann", "hunter2")).await.map_err(|error| error.to_string());
    assert_eq!(&*component.unwrap().bytes, b"component");
    let tokens =
        |server: &Server| server.asked().iter().filter(|asked| asked.target.starts_with("/token")).count();
    assert_eq!((tokens(&server), server.asked().len()), (1, 4));
    for access in [Access::default(), as_user("ann", "wrong")] {
        let error = pull(&server, &access).await.map(|_| ()).unwrap_err();
        assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    }
    // A registry that refuses the very tokens it has given.
    let server = Server::start(|asked, port| {
        with_tokens(asked, port, || {
            let challenge = format!("Bearer realm=\"http://127.0.0.1:{port}/token\"");
            Reply::status(401).with("WWW-Authenticate", challenge)
        })
    })
    .await;
    let error = pull(&server, &as_user("ann", "hunter2")).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn credentials_go_to_no_realm_that_is_not_to_be_trusted() {
    let thief = Server::start(|_, _| Reply::ok(r#"{"token": "x"}"#)).await;
    let stolen = thief.port;
    for (realm, why) in [
        ("http://charts.example/token".to_owned(), "it does not speak TLS"),
        ("file:///etc/passwd".to_owned(), "it does not speak TLS"),
        ("nowhere".to_owned(), "it is no address"),
        (format!("ftp://127.0.0.1:{stolen}/"), "it does not speak TLS"),
    ] {
        let shown = realm.clone();
        let server = Server::start(move |_, _| {
            Reply::status(401).with("WWW-Authenticate", format!("Bearer realm=\"{realm}\""))
        })
        .await;
        let request = Request { access: as_user("ann", "hunter2"), ..wanted(&server.oci("/r"), "1.0.0") };
        let (text, reason) = fault(&request).await;
        assert_eq!(reason, "RepositoryUntrusted", "{text}");
        assert!(
            text.contains(&format!("wants tokens from {shown}, where no credentials are sent: {why}")),
            "{text}"
        );
    }
    assert!(thief.asked().is_empty());
}

#[tokio::test]
async fn a_blob_elsewhere_is_fetched_without_credentials() {
    let elsewhere = Server::start(|_, _| Reply::ok("component")).await;
    let port = elsewhere.port;
    let server = Server::start(move |asked, own| {
        with_tokens(asked, own, || match asked.target.contains("/blobs/") {
            true => Reply::to(format!("http://127.0.0.1:{port}/signed?s=1")),
            false => one(asked, &manifest(PLUGIN, b"component"), b""),
        })
    })
    .await;
    assert!(pull(&server, &as_user("ann", "hunter2")).await.is_ok());
    assert!(elsewhere.asked().iter().all(|asked| asked.authorization.is_none()));
    assert_eq!(elsewhere.asked().len(), 1);
}

#[tokio::test]
async fn of_several_credentials_each_is_tried_and_the_last_fits() {
    let right = BASE64_STANDARD.encode("ann:hunter2");
    let server = Server::start(|asked, _| {
        if asked.authorization.as_deref() == Some("Basic YW5uOmh1bnRlcjI=") {
            return one(asked, &manifest(PLUGIN, b"component"), b"component");
        }
        Reply::status(401).with("WWW-Authenticate", "Basic realm=\"r\"")
    })
    .await;
    let secret = |place: String, auth: &str| {
        Keyring::parse(json!({"auths": {place: {"auth": auth}}}).to_string().as_bytes()).unwrap()
    };
    let host = format!("127.0.0.1:{}", server.port);
    let wrong = BASE64_STANDARD.encode("ann:wrong");
    let keyring = secret(format!("{host}/r/c"), &wrong)
        .and(secret(format!("{host}/r"), &BASE64_STANDARD.encode("bob:wrong")))
        .and(secret(host.clone(), &right));
    let access = Access { keyring: keyring.into(), ..Access::default() };
    assert!(pull(&server, &access).await.is_ok());
    let others = secret(format!("{host}/other"), &right).and(secret("127.0.0.1:1".into(), &right));
    let access = Access { keyring: others.into(), ..Access::default() };
    let error = pull(&server, &access).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
}

#[tokio::test]
async fn tags_are_read_page_by_page_and_pages_without_an_end_are_refused() {
    let packed = chart("c", "1.3.0+b.1").bytes;
    let pages = move |asked: &Asked, endless: bool| match asked.target.as_str() {
        "/v2/r/c/tags/list" => Reply::ok(r#"{"name": "r/c", "tags": ["1.0.0", "latest"]}"#)
            .with("Link", "</v2/r/c/tags/list?last=x>; rel=\"next\""),
        "/v2/r/c/tags/list?last=x" if endless => {
            Reply::ok(r#"{"tags": ["1.1.0"]}"#).with("Link", "</v2/r/c/tags/list?last=x>; rel=\"next\"")
        }
        "/v2/r/c/tags/list?last=x" => Reply::ok(r#"{"tags": ["1.3.0_b.1", "2.0.0-rc.1"]}"#),
        _ => one(asked, &manifest(CHART, &packed), &packed),
    };
    let honest = pages.clone();
    let server = Server::start(move |asked, _| honest(asked, false)).await;
    let found = get(&Sources::default(), &wanted(&server.oci("/r"), "^1")).await.unwrap();
    assert_eq!(found.place, server.oci("/r/c:1.3.0_b.1"));
    assert_eq!(found.chart.chart().metadata.version, "1.3.0+b.1");
    let server = Server::start(move |asked, _| pages(asked, true)).await;
    let (text, reason) = fault(&wanted(&server.oci("/r"), "^1")).await;
    assert_eq!(reason, "RepositoryFailed");
    assert!(text.contains("a list of tags that ends"), "{text}");
}

#[tokio::test]
async fn what_is_not_there_says_what_to_look_at() {
    let server = Server::start(|_, _| Reply::status(404)).await;
    for (version, expected) in [("1.0.0+x", "1.0.0_x"), ("^1", "^1")] {
        let (text, reason) = fault(&wanted(&server.oci("/r"), version)).await;
        assert_eq!(reason, "VersionMissing");
        let place = server.oci("/r/c");
        let says =
            format!("{place} has no version {expected:?}: was it pushed, and are name and version right?");
        assert_eq!(text, says);
    }
}

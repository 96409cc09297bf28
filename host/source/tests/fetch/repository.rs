//! Charts from `http://`, from a server that may lie.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use pintle_api::Record;
use pintle_source::{
    Access, Credentials, Error, Found, Limits, Online, Outcome, Request, Sources, artifact::Registries, index,
};

use super::{
    chart,
    server::{Asked, Reply, Server},
};

/// Little patience, so that a test of it is short.
pub(crate) fn registries() -> Registries {
    let limits = Limits {
        connect: Duration::from_secs(2),
        idle: Duration::from_millis(400),
        whole: Duration::from_millis(1500),
        attempts: 3,
        pause: Duration::from_millis(5),
    };
    Registries::with_limits(&[], limits)
}

pub(crate) fn wanted(url: &str, version: &str) -> Request {
    Request { name: "c".into(), version: version.into(), url: url.into(), ..Request::default() }
}

pub(crate) async fn get(sources: &Sources, request: &Request) -> Result<Found, Error> {
    let registries = registries();
    let online = Online { registries: &registries, now: Instant::now(), max_age: Duration::ZERO };
    get_at(sources, request, online).await
}

pub(crate) async fn get_at(sources: &Sources, request: &Request, online: Online<'_>) -> Result<Found, Error> {
    match sources.fetch(request, &Record::default(), online).await? {
        Outcome::Found(found) => Ok(found),
        Outcome::NotYet => panic!("nothing has to be looked up in a cluster"),
    }
}

/// The message with those of its sources, and the reason.
pub(crate) async fn fault(request: &Request) -> (String, &'static str) {
    let error = get(&Sources::default(), request).await.unwrap_err();
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    (text, error.reason())
}

pub(crate) fn as_user(user: &str, password: &str) -> Access {
    let credentials = Some(Credentials { user: user.into(), password: password.into() });
    Access { credentials, ..Access::default() }
}

/// A repository of c 1.0.0 and 1.2.0 under `/charts`.
fn honest(asked: &Asked) -> Reply {
    let charts = [chart("c", "1.0.0"), chart("c", "1.2.0")];
    if asked.target == "/charts/index.yaml" {
        return Reply::ok(index(&charts, None).unwrap());
    }
    let found = charts.iter().find(|chart| asked.target == format!("/charts/{}", chart.file_name));
    found.map_or_else(|| Reply::status(404), |chart| Reply::ok(chart.bytes.clone()))
}

#[tokio::test]
async fn a_repository_gives_the_version_that_is_meant() {
    let server = Server::start(|asked, _| honest(asked)).await;
    for (url, version, expected) in
        [("/charts", "", "1.2.0"), ("/charts/", "~1.0", "1.0.0"), ("/charts", "v1.0.0", "1.0.0")]
    {
        let found = get(&Sources::default(), &wanted(&server.url(url), version)).await.unwrap();
        assert_eq!(found.chart.chart().metadata.version, expected);
        assert_eq!(found.place, server.url(&format!("/charts/c-{expected}.tgz")));
    }
}

#[tokio::test]
async fn an_index_is_asked_for_when_its_age_is_up_and_an_archive_once() {
    let server = Server::start(|asked, _| match asked.known.as_deref() {
        Some("\"one\"") => Reply::Full { status: 304, headers: Vec::new(), body: Vec::new() },
        _ => honest(asked).with("ETag", "\"one\""),
    })
    .await;
    let (sources, registries, begun) = (Sources::default(), registries(), Instant::now());
    let request = wanted(&server.url("/charts"), "");
    for (seconds, requests) in [(0, 1), (10, 1), (59, 1), (60, 2), (119, 2), (121, 3)] {
        let now = begun + Duration::from_secs(seconds);
        let online = Online { registries: &registries, now, max_age: Duration::from_secs(60) };
        get_at(&sources, &request, online).await.unwrap();
        assert_eq!(server.count("/charts/index.yaml"), requests, "after {seconds} s");
    }
    assert_eq!(server.count("/charts/c-1.2.0.tgz"), 1);
    assert_eq!(server.asked().iter().filter(|asked| asked.known.is_some()).count(), 2);
}

#[tokio::test]
async fn a_fault_in_what_is_known_is_mended_at_the_next_try_whatever_the_age() {
    let mended = Arc::new(AtomicBool::new(false));
    let now_right = Arc::clone(&mended);
    let server = Server::start(move |asked, _| match now_right.load(Ordering::Relaxed) {
        true => honest(asked),
        false => Reply::ok(index(&[chart("c", "0.9.0")], None).unwrap()),
    })
    .await;
    let (sources, registries) = (Sources::default(), registries());
    let max_age = Duration::from_secs(3600);
    let online = Online { registries: &registries, now: Instant::now(), max_age };
    let request = wanted(&server.url("/charts"), "1.2.0");
    assert_eq!(get_at(&sources, &request, online).await.unwrap_err().reason(), "VersionMissing");
    mended.store(true, Ordering::Relaxed);
    assert!(get_at(&sources, &request, online).await.is_ok());
}

#[tokio::test]
async fn a_hundred_callers_at_once_ask_once() {
    let server = Server::start(|asked, _| honest(asked)).await;
    let (sources, registries, now) = (Sources::default(), registries(), Instant::now());
    let request = wanted(&server.url("/charts"), "");
    let online = Online { registries: &registries, now, max_age: Duration::from_secs(60) };
    let all = (0..100).map(|_| get_at(&sources, &request, online));
    let found = futures::future::join_all(all).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(server.count("/charts/index.yaml"), 1);
}

#[tokio::test]
async fn what_is_known_is_used_while_the_repository_is_away_and_a_change_is_seen_after() {
    let (away, moved) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (gone, other) = (Arc::clone(&away), Arc::clone(&moved));
    let server = Server::start(move |asked, _| {
        if gone.load(Ordering::Relaxed) {
            return Reply::status(503);
        }
        if other.load(Ordering::Relaxed) && asked.target == "/charts/index.yaml" {
            return Reply::ok(index(&[chart("c", "1.0.0")], None).unwrap());
        }
        honest(asked)
    })
    .await;
    let (sources, request) = (Sources::default(), wanted(&server.url("/charts"), ""));
    assert!(get(&sources, &request).await.is_ok());
    away.store(true, Ordering::Relaxed);
    assert_eq!(get(&sources, &request).await.unwrap().chart.chart().metadata.version, "1.2.0");
    away.store(false, Ordering::Relaxed);
    moved.store(true, Ordering::Relaxed);
    assert_eq!(get(&sources, &request).await.unwrap().chart.chart().metadata.version, "1.0.0");
}

#[tokio::test]
async fn a_failure_that_passes_is_not_seen() {
    let tries = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |asked, _| match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::status(500),
        1 => Reply::Cut(b"apiVersion: v1\n".to_vec()),
        3 => Reply::status(429).with("Retry-After", "0"),
        _ => honest(asked),
    })
    .await;
    assert!(get(&Sources::default(), &wanted(&server.url("/charts"), "")).await.is_ok());
    assert_eq!(server.asked().len(), 5);
}

#[tokio::test]
async fn user_and_password_go_to_the_repository_and_nowhere_else() {
    let other = Server::start(|_, _| Reply::ok(chart("c", "1.0.0").bytes)).await;
    let elsewhere = other.port;
    let server = Server::start(move |asked, _| {
        if asked.authorization.as_deref() != Some("Basic YW5uOmh1bnRlcjI=") {
            return Reply::status(401);
        }
        match asked.target.as_str() {
            "/away/index.yaml" => {
                let url = format!("http://127.0.0.1:{elsewhere}");
                Reply::ok(index(&[chart("c", "1.0.0")], Some(&url)).unwrap())
            }
            "/moved/index.yaml" => Reply::ok(index(&[chart("c", "1.0.0")], None).unwrap()),
            "/moved/c-1.0.0.tgz" => Reply::to(format!("http://127.0.0.1:{elsewhere}/x.tgz")),
            _ => honest(asked),
        }
    })
    .await;
    let ask = async |path: &str, access: Access| {
        let request = Request { access, ..wanted(&server.url(path), "") };
        get(&Sources::default(), &request).await.map_err(|error| (error.to_string(), error.reason()))
    };
    let right = as_user("ann", "hunter2");
    assert!(ask("/charts", right.clone()).await.is_ok());
    for access in [Access::default(), as_user("ann", "wrong")] {
        let (text, reason) = ask("/charts", access).await.unwrap_err();
        assert_eq!(reason, "Unauthorized");
        assert!(text.ends_with(
            "/charts/index.yaml answered 401 Unauthorized: give user and password that may read it"
        ));
    }
    for path in ["/away", "/moved"] {
        assert!(ask(path, right.clone()).await.is_ok());
        assert!(other.asked().iter().all(|asked| asked.authorization.is_none()), "{path}");
    }
    assert!(ask("/away", Access { pass_credentials: true, ..right }).await.is_ok());
    assert!(other.asked().last().unwrap().authorization.is_some());
    let in_address = format!("http://ann:hunter2@127.0.0.1:{}/charts", server.port);
    assert!(get(&Sources::default(), &wanted(&in_address, "")).await.is_ok());
}

#[tokio::test]
async fn what_a_hostile_repository_does_is_named_and_ends() {
    let script = |asked: &Asked, port: u16| {
        let lie = |digest: &str| {
            let text = format!("entries: {{c: [{{version: 1.0.0, urls: [c.tgz], digest: {digest}}}]}}");
            Reply::ok(text)
        };
        match asked.target.as_str() {
            "/loop/index.yaml" => Reply::to("/loop/index.yaml"),
            "/file/index.yaml" => Reply::to("file:///etc/passwd"),
            "/endless/index.yaml" => Reply::Endless,
            "/silent/index.yaml" => Reply::Silent,
            "/drip/index.yaml" => Reply::Drip,
            "/cut/index.yaml" => Reply::Cut(b"entries: {}".to_vec()),
            "/broken/index.yaml" => Reply::ok("<html>"),
            "/teapot/index.yaml" => Reply::status(418),
            "/lie/index.yaml" => lie(&"0".repeat(64)),
            "/inside/index.yaml" => {
                Reply::ok("entries: {c: [{version: 1.0.0, urls: ['file:///etc/x.tgz']}]}")
            }
            "/bytes/index.yaml" => lie("''"),
            "/lie/c.tgz" => Reply::ok(chart("c", "6.6.6").bytes),
            "/bytes/c.tgz" => Reply::ok("no archive"),
            "/downgrade/index.yaml" => Reply::to(format!("ftp://127.0.0.1:{port}/")),
            _ => Reply::status(404),
        }
    };
    let server = Server::start(script).await;
    for (path, reason, says) in [
        ("/loop", "RepositoryUntrusted", "leads from one address to the next without an end"),
        ("/file", "RepositoryUntrusted", "leads to file:///etc/passwd, which is not followed"),
        ("/downgrade", "RepositoryUntrusted", "leads to ftp://127.0.0.1"),
        ("/endless", "TooLarge", "gave more than the 20971520 bytes that are read"),
        ("/silent", "RepositoryUnreachable", "took longer than"),
        ("/drip", "RepositoryUnreachable", "took longer than"),
        ("/cut", "RepositoryFailed", "broke off in the middle of its answer"),
        ("/broken", "IndexBroken", "the index is broken"),
        ("/teapot", "RepositoryFailed", "answered 418 I'm a teapot: so it is"),
        ("/lie", "DigestMismatch", "but the index says 000"),
        ("/inside", "PathOutside", "\"file:///etc/x.tgz\" leads out of the repository"),
        (
            "/bytes",
            "ChartBroken",
            "/bytes/c.tgz is no chart: cannot unpack the chart: the archive is not a tgz",
        ),
        ("/none", "NotFound", "/none/index.yaml answered 404 Not Found"),
    ] {
        let begun = Instant::now();
        let (text, found) = fault(&wanted(&server.url(path), "")).await;
        assert!(text.contains(says), "{text:?} contains {says:?}");
        assert_eq!(found, reason, "{text}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{path} took {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_named_without_its_password() {
    let server = Server::start(|_, _| Reply::Silent).await;
    let port = server.port;
    drop(server);
    let url = format!("http://ann:hunter2@127.0.0.1:{port}/charts");
    let (text, reason) = fault(&wanted(&url, "")).await;
    assert_eq!(reason, "RepositoryUnreachable");
    assert!(
        text.starts_with(&format!("http://127.0.0.1:{port}/charts/index.yaml does not answer; is it up"))
    );
    assert!(!text.contains("hunter2") && !text.contains("ann"), "{text}");
}

#[tokio::test]
async fn plain_http_behind_https_is_told_from_a_wrong_certificate() {
    let server = Server::start(|asked, _| honest(asked)).await;
    let (text, reason) = fault(&wanted(&format!("https://127.0.0.1:{}/charts", server.port), "")).await;
    assert_eq!(reason, "CertificateUntrusted");
    assert!(text.contains("does not speak TLS: if plain HTTP is meant"), "{text}");
}

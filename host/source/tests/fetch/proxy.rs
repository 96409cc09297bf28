//! Servers behind a proxy: those of the environment, and which servers are asked without one.
//!
//! Proxies are settings of a process, so each case is a process of its own: this program, told by its environment.

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_source::{Limits, Online, Request, Settings, Sources, artifact::Registries};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{
    chart,
    registry::{NAME, Options, PASSWORD, Registry, USER},
    repository::as_user,
};

/// The registry's port, and its authority in base64, for the process that asks.
const ASKS: &str = "PINTLE_TEST_ASKS";
/// Which host it asks.
const HOST: &str = "PINTLE_TEST_HOST";
/// What a proxy wants to hear from its users.
const SECRET: &str = "proxied:s3cret";
/// An address of this machine that is none of those which are never asked through a proxy.
const ANY: &str = "0.0.0.0";

/// A proxy that knows its users and leads everywhere to this machine.
struct Proxy {
    port: u16,
    tunnels: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tunnels = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&tunnels);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move { tunnel(stream, &seen).await });
            }
        });
        Self { port, tunnels, serving }
    }

    fn url(&self, user: &str) -> String {
        format!("http://{user}@127.0.0.1:{}", self.port)
    }

    /// Where its users wanted to go since the last time.
    fn tunnels(&self) -> Vec<String> {
        std::mem::take(&mut self.tunnels.lock().unwrap())
    }
}

/// One connection: `CONNECT host:port`, the user, then bytes in both directions.
async fn tunnel(mut stream: TcpStream, seen: &Mutex<Vec<String>>) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        (stream.read(&mut byte).await.ok()? == 1 && head.len() < 64 << 10).then(|| head.push(byte[0]))?;
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let place = head.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let user = format!("basic {}", BASE64_STANDARD.encode(SECRET)).to_ascii_lowercase();
    if !head.to_ascii_lowercase().contains(&format!("proxy-authorization: {user}")) {
        return stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await.ok();
    }
    let port: u16 = place.rsplit_once(':')?.1.parse().ok()?;
    seen.lock().unwrap().push(place);
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.ok()?;
    tokio::io::copy_bidirectional(&mut stream, &mut server).await.ok().map(drop)
}

/// What the process says that asks this host with these settings of its environment.
async fn ask(registry: &Registry, host: &str, settings: &[(&str, &str)]) -> String {
    let asks = format!("{} {}", registry.port, BASE64_STANDARD.encode(registry.authority()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    for name in [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ] {
        command.env_remove(name);
    }
    command.args([
        "--exact",
        "proxy::this_program_asks_when_it_is_told_to",
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    command.env(ASKS, asks).env(HOST, host).envs(settings.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines()
        .find_map(|line| line.split_once("answered: "))
        .map(|(_, said)| said.to_owned())
        .unwrap_or(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn this_program_asks_when_it_is_told_to() {
    let (Ok(asks), Ok(host)) = (std::env::var(ASKS), std::env::var(HOST)) else { return };
    let (port, authority) = asks.split_once(' ').unwrap();
    let settings =
        Settings { authorities: BASE64_STANDARD.decode(authority).unwrap(), ..Settings::default() };
    let limits = Limits { attempts: 1, connect: Duration::from_secs(2), ..Limits::default() };
    let registries = Registries::configured([(format!("{host}:{port}"), settings)].into(), limits);
    let access = as_user(USER, PASSWORD);
    let url = format!("oci://{host}:{port}/charts");
    let request = Request { name: "c".into(), version: "1.0.0".into(), url, access, ..Request::default() };
    let online = Online { registries: &registries, now: std::time::Instant::now(), max_age: Duration::ZERO };
    let fetched = Sources::default().fetch(&request, &pintle_api::Record::default(), online).await;
    println!(
        "\nanswered: {}",
        fetched.map_or_else(|error| error.reason().to_owned(), |_| "chart".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_asked_through_the_proxy_of_the_environment_but_for_those_that_are_named() {
    let registry = Registry::start(Options { tls: true, users: true, ..Options::default() });
    registry.push_chart(&chart("c", "1.0.0")).await;
    let proxy = Proxy::start().await;
    let (known, stranger) = (proxy.url(SECRET), proxy.url("nobody:x"));
    let place = |host: &str| format!("{host}:{}", registry.port);
    for variable in ["HTTPS_PROXY", "https_proxy"] {
        assert_eq!(ask(&registry, NAME, &[(variable, &known)]).await, "chart");
        let tunnels = proxy.tunnels();
        assert!(!tunnels.is_empty() && tunnels.iter().all(|to| *to == place(NAME)), "{tunnels:?}");
    }
    assert_eq!(ask(&registry, NAME, &[("HTTPS_PROXY", &stranger)]).await, "RepositoryUnreachable");
    // Another address is asked through it too, unless it is named; this machine never is.
    assert_eq!(ask(&registry, ANY, &[("HTTPS_PROXY", &known)]).await, "chart");
    assert_eq!(proxy.tunnels().first(), Some(&place(ANY)));
    for settings in [
        [("HTTPS_PROXY", known.as_str()), ("NO_PROXY", "other.test,0.0.0.0/8")],
        [("https_proxy", &known), ("no_proxy", ANY)],
    ] {
        assert_eq!(ask(&registry, ANY, &settings).await, "chart");
    }
    assert_eq!(ask(&registry, "127.0.0.1", &[("HTTPS_PROXY", &known)]).await, "chart");
    assert_eq!(proxy.tunnels(), [""; 0]);
}

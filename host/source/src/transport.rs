//! One bounded request: limits on bytes, time, redirects and attempts; credentials stay with their server.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, StatusCode, header};
use oci_distribution::Reference;
use reqwest::{Certificate, Client, Identity, Response, Url, redirect::Policy};

use crate::{
    access::{Access, Tls},
    remote::RemoteError,
    settings::Settings,
};

/// Redirects that are followed; as many as Go's client follows, which Helm uses.
const MAX_REDIRECTS: usize = 10;
/// Clients kept, one for each set of certificates; beyond that they are made anew.
const MAX_CLIENTS: usize = 16;
/// Bytes of an answer that is no success; they are only shown.
const MAX_REFUSAL: u64 = 64 << 10;
/// Characters of such an answer that stand in a message.
const SHOWN: usize = 200;
/// What a server may ask us to wait at most before we try again.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How long and how often a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until it accepts a connection.
    pub connect: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// For one answer, all attempts and redirects together.
    pub whole: Duration,
    /// Attempts where the next one may succeed.
    pub attempts: u32,
    /// Before the second attempt; each further pause is twice as long.
    pub pause: Duration,
}

/// Asks servers. What differs from one request to the next is in [`Ask`].
#[derive(Debug)]
pub(crate) struct Transport {
    settings: BTreeMap<String, Settings>,
    limits: Limits,
    clients: Mutex<HashMap<(Tls, bool), Client>>,
}

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) url: &'a Url,
    pub(crate) tls: &'a Tls,
    /// Value of the header, sent to the server of `url` alone.
    pub(crate) authorization: Option<&'a str>,
    /// Types that are understood.
    pub(crate) accept: &'a str,
    /// What we have already, by its tag.
    pub(crate) known: Option<&'a str>,
    /// Bytes of the answer.
    pub(crate) limit: u64,
}

/// What was answered: any status.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// What was asked for, as it is shown.
    url: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(15),
            whole: Duration::from_secs(60),
            attempts: 3,
            pause: Duration::from_millis(250),
        }
    }
}

// === impl Transport ===

impl Transport {
    /// With settings by `host:port`.
    pub(crate) fn new(settings: BTreeMap<String, Settings>, limits: Limits) -> Self {
        Self { settings, limits, clients: Mutex::default() }
    }

    /// What is asked for with what a registry's settings add: certificates, where none are given.
    pub(crate) fn access_for(&self, registry: &str, access: &Access) -> Access {
        let mut access = access.clone();
        let Some(settings) = self.settings.get(registry) else { return access };
        access.tls.insecure |= settings.insecure;
        if access.tls.authorities.is_empty() {
            access.tls.authorities.clone_from(&settings.authorities);
        }
        access
    }

    /// The same image in each mirror of its registry.
    pub(crate) fn mirrors(&self, of: &Reference) -> Vec<Reference> {
        let settings = self.settings.get(of.resolve_registry());
        let mirrors = settings.into_iter().flat_map(|settings| &settings.mirrors);
        let place = |mirror: &String| {
            let (host, path) = mirror.split_once('/').unwrap_or((mirror, ""));
            let path = path.trim_end_matches('/');
            let join = if path.is_empty() { "" } else { "/" };
            let (host, repository) = (host.to_owned(), format!("{path}{join}{}", of.repository()));
            match (of.digest(), of.tag()) {
                (Some(digest), _) => Reference::with_digest(host, repository, digest.to_owned()),
                (None, tag) => Reference::with_tag(host, repository, tag.unwrap_or("latest").to_owned()),
            }
        };
        mirrors.map(place).collect()
    }

    /// True for hosts that speak plain HTTP: those that are named, and this machine, as container engines
    /// have it.
    pub(crate) fn is_plain(&self, host_and_port: &str) -> bool {
        let host = host_and_port.rsplit_once(':').map_or(host_and_port, |(host, _)| host);
        is_loopback(host) || self.is_named_plain(host_and_port)
    }

    fn is_named_plain(&self, host_and_port: &str) -> bool {
        self.settings.get(host_and_port).is_some_and(|settings| settings.plain_http)
    }

    /// The answer of the last attempt: of any status, or why there is none.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, RemoteError> {
        let limit = self.limits.whole;
        match tokio::time::timeout(limit, self.attempts(ask)).await {
            Ok(answered) => answered,
            Err(_) => Err(RemoteError::TimedOut { url: shown(ask.url), seconds: limit.as_secs() }),
        }
    }

    /// As [`Transport::ask`], where all but success (and "not changed" for what is known) is an error.
    pub(crate) async fn get(&self, ask: Ask<'_>) -> Result<Answer, RemoteError> {
        self.ask(ask).await?.checked()
    }

    async fn attempts(&self, ask: Ask<'_>) -> Result<Answer, RemoteError> {
        let mut pause = self.limits.pause;
        for _ in 1..self.limits.attempts {
            let answered = self.follow(ask).await;
            let wait = match &answered {
                Ok(answer) if answer.may_pass() => answer.retry_after().unwrap_or(pause),
                Err(error) if error.is_transient() => pause,
                _ => return answered,
            };
            tokio::time::sleep(wait.min(MAX_PAUSE)).await;
            pause *= 2;
        }
        self.follow(ask).await
    }

    /// One attempt, through all redirects.
    async fn follow(&self, ask: Ask<'_>) -> Result<Answer, RemoteError> {
        let mut url = ask.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let own = same_origin(&url, ask.url);
            let response = self.send(&Ask { url: &url, ..ask }, own).await?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return read(response, shown(ask.url), ask.limit, self.limits).await;
            }
            url = self.next(&response, &url, ask.url)?;
        }
        Err(RemoteError::Redirects { url: shown(ask.url), last: shown(&url) })
    }

    async fn send(&self, ask: &Ask<'_>, with_authorization: bool) -> Result<Response, RemoteError> {
        let client = self.client(ask.tls, ask.url)?;
        let mut request = client.get(ask.url.clone()).header(header::ACCEPT, ask.accept);
        if let Some(authorization) = ask.authorization.filter(|_| with_authorization) {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if let Some(known) = ask.known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let failed = |error| RemoteError::of_request(shown(ask.url), error, self.limits.idle.as_secs());
        request.send().await.map_err(failed)
    }

    fn next(&self, response: &Response, from: &Url, first: &Url) -> Result<Url, RemoteError> {
        let place = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let refused = |to: &str| RemoteError::Downgrade { url: shown(first), to: to.to_owned() };
        let next = from.join(place.unwrap_or_default()).map_err(|_| refused("an address nobody can read"))?;
        match next.scheme() {
            "https" => Ok(next),
            "http" if from.scheme() == "http" || self.is_named_plain(&host_and_port(&next)) => Ok(next),
            _ => Err(refused(&shown(&next))),
        }
    }

    /// The client for these certificates. Proxies are those of the environment, and never for this machine.
    fn client(&self, tls: &Tls, url: &Url) -> Result<Client, RemoteError> {
        let key = (tls.clone(), is_loopback(url.host_str().unwrap_or_default()));
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        let client = build_client(tls, key.1, self.limits)?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

fn build_client(tls: &Tls, direct: bool, limits: Limits) -> Result<Client, RemoteError> {
    let pem = |what| move |source: reqwest::Error| RemoteError::Pem { what, source };
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(limits.connect)
        .read_timeout(limits.idle)
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")))
        .tls_danger_accept_invalid_certs(tls.insecure);
    if direct {
        builder = builder.no_proxy();
    }
    if !tls.authorities.is_empty() {
        let bundle = Certificate::from_pem_bundle(&tls.authorities).map_err(pem("certificate authority"))?;
        builder = builder.tls_certs_merge(bundle);
    }
    if !tls.identity.is_empty() {
        builder = builder.identity(Identity::from_pem(&tls.identity).map_err(pem("client certificate"))?);
    }
    builder.build().map_err(pem("certificate authority"))
}

async fn read(
    mut response: Response,
    url: String,
    limit: u64,
    limits: Limits,
) -> Result<Answer, RemoteError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let limit = if status.is_success() { limit } else { MAX_REFUSAL };
    if status.is_success() && response.content_length().is_some_and(|length| length > limit) {
        return Err(RemoteError::TooLarge { url, limit });
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => break,
            Ok(Some(_)) if !status.is_success() && body.len() as u64 >= limit => break,
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Err(error) if error.is_timeout() => {
                return Err(RemoteError::TimedOut { url, seconds: limits.idle.as_secs() });
            }
            Err(error) => return Err(RemoteError::Truncated { url, source: error.without_url() }),
        }
        if status.is_success() && body.len() as u64 > limit {
            return Err(RemoteError::TooLarge { url, limit });
        }
    }
    Ok(Answer { status, headers, body, url })
}

// === impl Answer ===

impl Answer {
    /// The answer where it is one, else what its status means.
    pub(crate) fn checked(self) -> Result<Self, RemoteError> {
        let Self { status, url, .. } = &self;
        let (url, status) = (url.clone(), *status);
        match status.as_u16() {
            200..=299 | 304 => Ok(self),
            401 | 403 => Err(RemoteError::Unauthorized { url, status }),
            404 | 410 => Err(RemoteError::NotFound { url, status }),
            _ => Err(RemoteError::Status { url, status, said: self.said() }),
        }
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn may_pass(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
    }

    fn retry_after(&self) -> Option<Duration> {
        self.header(header::RETRY_AFTER)?.trim().parse().ok().map(Duration::from_secs)
    }

    fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let shown: String = text.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect();
        if shown.trim().is_empty() { String::new() } else { format!(": {}", shown.trim()) }
    }
}

/// A url as it is shown: without credentials, and without a query, which may hold a signature.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// True when two addresses are of one server: scheme, host and port.
pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// `host:port` as it stands in a url: without the port where that is the scheme's own.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// True for names and addresses of this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn what_is_shown_of_a_url_holds_no_secret() {
        let url = Url::parse("https://ann:hunter2@charts.example/a/b.tgz?signature=s#f").unwrap();
        assert_eq!(shown(&url), "https://charts.example/a/b.tgz");
    }

    #[test]
    fn a_mirror_has_the_same_image_below_its_path() {
        let mirrors = vec!["m.example:5000/cache".to_owned(), "n.example".to_owned()];
        let settings = Settings { mirrors, ..Settings::default() };
        let transport = Transport::new([("r.example".to_owned(), settings)].into(), Limits::default());
        let places = |image: &str| -> Vec<String> {
            transport.mirrors(&image.parse().unwrap()).iter().map(Reference::whole).collect()
        };
        assert_eq!(places("r.example/a/b:1.0"), ["m.example:5000/cache/a/b:1.0", "n.example/a/b:1.0"]);
        let digest = format!("sha256:{}", "0".repeat(64));
        assert_eq!(places(&format!("r.example/a:1@{digest}"))[1], format!("n.example/a@{digest}"));
        assert!(places("s.example/a/b:1.0").is_empty());
    }

    #[test]
    fn this_machine_and_named_hosts_speak_plain_http() {
        let plain = Settings { plain_http: true, ..Settings::default() };
        let transport = Transport::new([("registry.lab:5000".to_owned(), plain)].into(), Limits::default());
        for (host, plain) in [
            ("127.0.0.1:5000", true),
            ("localhost", true),
            ("[::1]:80", true),
            ("registry.lab:5000", true),
            ("registry.lab", false),
            ("registry.lab:5001", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:80", false),
        ] {
            assert_eq!(transport.is_plain(host), plain, "{host}");
        }
    }
}

//! What a registry is asked: manifests, blobs and tags, each checked against its digest.

use std::collections::{BTreeMap, HashSet};

use http::{StatusCode, header};
use oci_distribution::Reference;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    access::{Access, Credentials, Tls},
    attached::referrers_tag,
    remote::RemoteError,
    transport::{Answer, Ask, Transport, host_and_port, is_loopback, same_origin, shown},
};

/// Bytes of a manifest; what registries themselves accept.
const MAX_MANIFEST: u64 = 4 << 20;
/// Bytes of a token's answer.
const MAX_TOKEN: u64 = 64 << 10;
/// Bytes of one page of tags.
const MAX_PAGE: u64 = 4 << 20;
/// Pages of tags; ten thousand tags of a hundred each.
const MAX_PAGES: usize = 100;
/// Pages of referrers; beyond them there are more than are ever looked at.
const MAX_REFERRER_PAGES: usize = 4;
/// Type of a list of manifests.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Types of manifests that are understood, an index of several among them, so that it can be named.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                         application/vnd.docker.distribution.manifest.v2+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json";

/// One repository of a registry, asked with one user for as long as this lives: a token is kept and goes
/// with it.
pub(crate) struct Session<'a> {
    transport: &'a Transport,
    tls: Tls,
    base: Url,
    registry: String,
    repository: String,
    /// Credentials that were not tried yet, the best last.
    untried: Vec<Credentials>,
    current: Option<Credentials>,
    authorization: Option<String>,
}

/// A manifest, read as far as it is needed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) artifact_type: String,
    pub(crate) config: Option<Descriptor>,
    pub(crate) layers: Vec<Descriptor>,
    /// What it is about.
    pub(crate) subject: Option<Descriptor>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// There in an index of several manifests alone.
    pub(crate) manifests: Option<serde_json::Value>,
}

/// Name, type and size of a blob.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) artifact_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A list of manifests.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

// === impl Session ===

impl<'a> Session<'a> {
    /// Nothing is asked yet.
    pub(crate) fn new(
        transport: &'a Transport,
        access: &Access,
        reference: &Reference,
    ) -> Result<Self, RemoteError> {
        let registry = reference.resolve_registry().to_owned();
        let access = transport.access_for(&registry, access);
        let repository = reference.repository().to_owned();
        // Whoever gives certificates means TLS, on this machine too.
        let plain = access.plain_http || (access.tls == Tls::default() && transport.is_plain(&registry));
        let scheme = if plain { "http" } else { "https" };
        let text = format!("{scheme}://{registry}/v2/{repository}/");
        let base = Url::parse(&text)
            .map_err(|error| RemoteError::Url { url: text.clone(), problem: error.to_string() })?;
        let mut untried = access.keyring.matching(&registry, &repository);
        untried.splice(0..0, access.credentials.clone());
        untried.reverse();
        let (current, tls) = (untried.pop(), access.tls);
        Ok(Self { transport, tls, base, registry, repository, untried, current, authorization: None })
    }

    /// The `host:port` that is asked.
    pub(crate) fn registry(&self) -> &str {
        &self.registry
    }

    /// The manifest of a reference, and its digest.
    pub(crate) async fn manifest(&mut self, of: &str) -> Result<(Manifest, String), RemoteError> {
        let (bytes, digest) = self.manifest_bytes(of).await?;
        let url = self.url(&format!("manifests/{of}"))?;
        let manifest = serde_json::from_slice(&bytes)
            .map_err(|_| RemoteError::Answer { url: shown(&url), expected: "a manifest" })?;
        Ok((manifest, digest))
    }

    /// The very bytes of a manifest, and their digest.
    pub(crate) async fn manifest_bytes(&mut self, of: &str) -> Result<(Vec<u8>, String), RemoteError> {
        let url = self.url(&format!("manifests/{of}"))?;
        let answer = self.get(&url, MANIFESTS, MAX_MANIFEST).await?;
        let actual = digest(&answer.body);
        let named = if of.starts_with("sha256:") {
            Some(of)
        } else {
            answer
                .headers
                .get("docker-content-digest")
                .and_then(|value| value.to_str().ok())
                .filter(|digest| digest.starts_with("sha256:"))
        };
        check(&url, named.unwrap_or(&actual), &actual)?;
        Ok((answer.body, actual))
    }

    /// A blob, which has this digest and at most these bytes.
    pub(crate) async fn blob(&mut self, of: &Descriptor, limit: u64) -> Result<Vec<u8>, RemoteError> {
        let url = self.url(&format!("blobs/{}", of.digest))?;
        if of.size > limit {
            return Err(RemoteError::TooLarge { url: shown(&url), limit });
        }
        let answer = self.get(&url, "*/*", limit.min(of.size.max(1))).await?;
        check(&url, &of.digest, &digest(&answer.body))?;
        Ok(answer.body)
    }

    /// What refers to a digest, as far as the registry tells: its own list, else that under a tag.
    pub(crate) async fn referrers(&mut self, of: &str) -> Result<Vec<Descriptor>, RemoteError> {
        let listed = match self.listed_referrers(of).await? {
            Some(listed) => listed,
            None => match self.manifest_bytes(&referrers_tag(of)).await {
                Ok((bytes, _)) => serde_json::from_slice::<Index>(&bytes).unwrap_or_default().manifests,
                Err(RemoteError::NotFound { .. }) => Vec::new(),
                Err(error) => return Err(error),
            },
        };
        Ok(listed.into_iter().filter(|one| is_digest(&one.digest)).collect())
    }

    /// The registry's own list of what refers to a digest; nothing where it keeps none.
    pub(crate) async fn listed_referrers(
        &mut self,
        of: &str,
    ) -> Result<Option<Vec<Descriptor>>, RemoteError> {
        let first = self.url(&format!("referrers/{of}"))?;
        let (mut url, mut all) = (first.clone(), Vec::new());
        for _ in 0..MAX_REFERRER_PAGES {
            let answer = match self.get(&url, INDEX, MAX_PAGE).await {
                Ok(answer) => answer,
                // Registries of before OCI 1.1 have no such place.
                Err(RemoteError::NotFound { .. }) => return Ok(None),
                Err(RemoteError::Status { status, .. }) if matches!(status.as_u16(), 400 | 405 | 501) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            let page: Index = serde_json::from_slice(&answer.body)
                .map_err(|_| RemoteError::Answer { url: shown(&url), expected: "a list of referrers" })?;
            all.extend(page.manifests);
            let next = answer.header(header::LINK).and_then(next_page).map(|next| url.join(next));
            match next {
                Some(Ok(next)) if same_origin(&next, &first) && next != url => url = next,
                _ => break,
            }
        }
        Ok(Some(all))
    }

    /// All tags of the repository.
    pub(crate) async fn tags(&mut self) -> Result<Vec<String>, RemoteError> {
        let first = self.url("tags/list")?;
        let (mut url, mut tags, mut seen) = (first.clone(), Vec::new(), HashSet::new());
        for _ in 0..MAX_PAGES {
            seen.insert(url.clone());
            let answer = self.get(&url, "application/json", MAX_PAGE).await?;
            let page: Tags = serde_json::from_slice(&answer.body)
                .map_err(|_| RemoteError::Answer { url: shown(&url), expected: "a list of tags" })?;
            tags.extend(page.tags.unwrap_or_default());
            let Some(next) = answer.header(header::LINK).and_then(next_page).map(str::to_owned) else {
                return Ok(tags);
            };
            let next = url.join(&next).ok().filter(|next| same_origin(next, &first) && !seen.contains(next));
            url = next.ok_or_else(|| RemoteError::Answer {
                url: shown(&first),
                expected: "a list of tags that ends",
            })?;
        }
        Err(RemoteError::Answer { url: shown(&first), expected: "a list of tags that ends" })
    }

    fn url(&self, path: &str) -> Result<Url, RemoteError> {
        // Not joined: `sha256:…` would be read as a scheme.
        let text = format!("{}{path}", self.base);
        Url::parse(&text).map_err(|error| RemoteError::Url { url: text, problem: error.to_string() })
    }

    /// Asks with what was accepted before; a refusal is met with what it asks for, once with each of the
    /// credentials there are.
    async fn get(&mut self, url: &Url, accept: &str, limit: u64) -> Result<Answer, RemoteError> {
        let mut answered = self.ask(url, accept, limit).await?;
        loop {
            if !matches!(answered.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return answered.checked();
            }
            if answered.status == StatusCode::UNAUTHORIZED && self.answer_challenge(url, &answered).await? {
                answered = self.ask(url, accept, limit).await?;
                if !matches!(answered.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                    return answered.checked();
                }
            }
            let Some(next) = self.untried.pop() else { return answered.checked() };
            (self.current, self.authorization) = (Some(next), None);
            answered = self.ask(url, accept, limit).await?;
        }
    }

    async fn ask(&self, url: &Url, accept: &str, limit: u64) -> Result<Answer, RemoteError> {
        let authorization = self.authorization.as_deref();
        let tls = &self.tls;
        self.transport.ask(Ask { url, tls, authorization, accept, known: None, limit }).await
    }

    /// Takes up a challenge; false when there is nothing new to answer with.
    async fn answer_challenge(&mut self, url: &Url, refusal: &Answer) -> Result<bool, RemoteError> {
        let challenges = refusal.headers.get_all(header::WWW_AUTHENTICATE).iter();
        for challenge in challenges.filter_map(|value| value.to_str().ok()) {
            let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
            if scheme.eq_ignore_ascii_case("basic") {
                let basic = self.current.as_ref().map(Credentials::basic);
                let is_new = basic.is_some() && basic != self.authorization;
                self.authorization = basic;
                return Ok(is_new);
            }
            if scheme.eq_ignore_ascii_case("bearer") {
                self.authorization = self.token(url, rest).await?.map(|token| format!("Bearer {token}"));
                return Ok(self.authorization.is_some());
            }
        }
        Ok(false)
    }

    /// The token a challenge asks for; nothing when its server refuses these credentials.
    async fn token(&self, url: &Url, challenge: &str) -> Result<Option<String>, RemoteError> {
        let parameter = |name| parameter(challenge, name);
        let realm = parameter("realm").unwrap_or_default();
        let mut address = self.realm(url, &realm)?;
        let scope = parameter("scope").unwrap_or_else(|| format!("repository:{}:pull", self.repository));
        if let Some(service) = parameter("service") {
            address.query_pairs_mut().append_pair("service", &service);
        }
        address.query_pairs_mut().append_pair("scope", &scope);
        let basic = self.current.as_ref().map(Credentials::basic);
        let ask = Ask {
            url: &address,
            tls: &self.tls,
            authorization: basic.as_deref(),
            accept: "application/json",
            known: None,
            limit: MAX_TOKEN,
        };
        let answer = match self.transport.get(ask).await {
            Err(RemoteError::Unauthorized { .. }) => return Ok(None),
            answered => answered?,
        };
        let expected = "a token";
        let broken = || RemoteError::Answer { url: shown(&address), expected };
        let token: Token = serde_json::from_slice(&answer.body).map_err(|_| broken())?;
        token.token.or(token.access_token).map(Some).ok_or_else(broken)
    }

    /// The address of a challenge, where credentials may go: with TLS, unless the registry itself has none;
    /// never to this machine or an address inside the node unless the registry is there too.
    fn realm(&self, url: &Url, realm: &str) -> Result<Url, RemoteError> {
        let refuse =
            |why| RemoteError::Realm { url: shown(url), realm: realm.chars().take(200).collect(), why };
        let address = Url::parse(realm).map_err(|_| refuse("it is no address"))?;
        let own = address.host_str() == url.host_str();
        match address.scheme() {
            "https" => {}
            "http" if own && url.scheme() == "http" => {}
            "http" if self.transport.is_plain(&host_and_port(&address)) && url.scheme() == "http" => {}
            _ => return Err(refuse("it does not speak TLS")),
        }
        let host = address.host_str().unwrap_or_default();
        if !own && (is_loopback(host) || is_link_local(host)) && !is_loopback(&self.host()) {
            return Err(refuse("it is inside this machine or its network"));
        }
        Ok(address)
    }

    fn host(&self) -> String {
        self.registry.rsplit_once(':').map_or(self.registry.as_str(), |(host, _)| host).to_owned()
    }
}

/// Addresses without a router between: where clouds hand out the credentials of a machine.
fn is_link_local(host: &str) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(address)) => address.is_link_local() || address.is_unspecified(),
        Ok(std::net::IpAddr::V6(address)) => address.is_unicast_link_local() || address.is_unspecified(),
        Err(_) => false,
    }
}

/// `name="value"` or `name=value` of a challenge.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').map_or((after, ""), |(value, _)| (value, &after[value.len()..])),
        };
        if key.trim_matches([' ', ',']).eq_ignore_ascii_case(name) {
            return Some(value.trim().to_owned());
        }
        rest = next;
    }
}

/// The address of the next page in a header `Link: <…>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let (address, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
    rest.contains("next").then_some(address)
}

/// `sha256:…` of bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// True for `sha256:` and 64 digits: nothing else becomes a part of an address.
fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn check(url: &Url, expected: &str, actual: &str) -> Result<(), RemoteError> {
    if expected == actual {
        return Ok(());
    }
    Err(RemoteError::Digest { url: shown(url), expected: expected.to_owned(), actual: actual.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_quoted_or_not() {
        let text = r#"realm="https://a.example/t?x=1,2",service=reg, scope="repository:a/b:pull,push""#;
        let found = |name| parameter(text, name);
        assert_eq!(found("realm").as_deref(), Some("https://a.example/t?x=1,2"));
        assert_eq!(found("service").as_deref(), Some("reg"));
        assert_eq!(found("SCOPE").as_deref(), Some("repository:a/b:pull,push"));
        assert_eq!(found("error"), None);
        for broken in ["", "realm", "realm=\"x", "=", "a==b=\"", ",,,"] {
            assert_eq!(parameter(broken, "realm"), None, "{broken}");
        }
    }

    #[test]
    fn pages_are_followed_by_their_links() {
        assert_eq!(
            next_page("</v2/a/tags/list?last=x&n=2>; rel=\"next\""),
            Some("/v2/a/tags/list?last=x&n=2")
        );
        for none in ["", "<a>; rel=\"prev\"", "a; rel=next", "<a"] {
            assert_eq!(next_page(none), None, "{none}");
        }
    }
}

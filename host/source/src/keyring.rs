//! Credentials for many servers: Docker's `config.json`, and the Secrets that hold one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::access::Credentials;

/// How long a credential helper may take.
const HELPER: Duration = Duration::from_secs(10);
/// Bytes of a configuration file; Kubernetes allows a Secret 1 MiB.
const MAX_CONFIG: u64 = 1 << 20;

/// Credentials by the servers they are for, the most exact first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keyring {
    keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    place: Place,
    credentials: Credentials,
}

/// What the key of an entry says: `host[:port][/path]`, where parts of the host may be patterns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    host: String,
    port: String,
    path: String,
}

/// A configuration file of container engines, and the programs it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DockerConfig {
    ring: Keyring,
    helpers: BTreeMap<String, String>,
    store: Option<String>,
}

/// Why a configuration gives no credentials.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// No JSON of that form.
    #[error("the text is no Docker configuration: write {{\"auths\": {{\"HOST\": {{\"auth\": \"…\"}}}}}}")]
    Broken(#[source] serde_json::Error),
    /// `auth` of an entry cannot be read.
    #[error("auths[{server:?}].auth is not base64 of user:password")]
    Auth {
        /// Key of the entry.
        server: String,
    },
    /// The file cannot be read.
    #[error("{path} cannot be read")]
    File {
        /// The path.
        path: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Config {
    auths: BTreeMap<String, Entry>,
    #[serde(rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
}

#[derive(Deserialize)]
struct Helped {
    #[serde(rename = "Username")]
    user: String,
    #[serde(rename = "Secret")]
    secret: String,
}

// === impl Keyring ===

impl Keyring {
    /// The credentials of a `config.json`, or of a Secret's `.dockerconfigjson`. Programs it names are left
    /// alone: whoever may write a Secret must not run one.
    ///
    /// # Errors
    /// When it has another form.
    pub fn parse(text: &[u8]) -> Result<Self, KeyringError> {
        Self::of(serde_json::from_slice(text).map_err(KeyringError::Broken)?)
    }

    /// The credentials of a Secret's `.dockercfg`, the form before: the servers without a key above them.
    ///
    /// # Errors
    /// When it has another form.
    pub fn parse_old(text: &[u8]) -> Result<Self, KeyringError> {
        let auths = serde_json::from_slice(text).map_err(KeyringError::Broken)?;
        Self::of(Config { auths, ..Config::default() })
    }

    /// All credentials of both, those of `self` first where they are equally exact.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.keys.extend(other.keys);
        self.sort();
        self
    }

    /// True without any credentials.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What to try for a repository of a registry, as the kubelet matches it: entries with the longest path
    /// first, hosts by pattern, a port only where the entry has one.
    #[must_use]
    pub fn matching(&self, registry: &str, repository: &str) -> Vec<Credentials> {
        let fitting = self.keys.iter().filter(|key| key.place.fits(registry, repository));
        fitting.map(|key| key.credentials.clone()).collect()
    }

    fn of(config: Config) -> Result<Self, KeyringError> {
        let mut ring = Self::default();
        for (server, entry) in config.auths {
            if let Some(credentials) = entry.credentials(&server)? {
                ring.keys.push(Key { place: Place::parse(&server), credentials });
            }
        }
        ring.sort();
        Ok(ring)
    }

    fn sort(&mut self) {
        self.keys.sort_by_key(|key| std::cmp::Reverse((key.place.path.len(), !key.place.is_pattern())));
    }
}

impl Entry {
    fn credentials(self, server: &str) -> Result<Option<Credentials>, KeyringError> {
        let Self { auth, username, password } = self;
        if auth.is_empty() {
            let named = !username.is_empty() || !password.is_empty();
            return Ok(named.then_some(Credentials { user: username, password }));
        }
        let broken = || KeyringError::Auth { server: server.to_owned() };
        let both = BASE64_STANDARD.decode(auth.trim()).map_err(|_| broken())?;
        let both = String::from_utf8(both).map_err(|_| broken())?;
        let (user, password) = both.split_once(':').ok_or_else(broken)?;
        let password = password.trim_end_matches('\0').to_owned();
        Ok(Some(Credentials { user: user.to_owned(), password }))
    }
}

impl Place {
    fn parse(server: &str) -> Self {
        let bare = server.split_once("://").map_or(server, |(_, rest)| rest);
        let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
        // Old entries name the version of the registry's interface; they are for all of it.
        let path = path.trim_end_matches('/');
        let path = if matches!(path, "v1" | "v2") { "" } else { path };
        let (host, port) = split_port(host);
        Self { host: host.to_ascii_lowercase(), port: port.to_owned(), path: path.to_owned() }
    }

    fn is_pattern(&self) -> bool {
        self.host.contains(['*', '?', '['])
    }

    fn fits(&self, registry: &str, repository: &str) -> bool {
        let (host, port) = split_port(registry);
        let host = host.to_ascii_lowercase();
        let same_path = self.path.is_empty()
            || repository
                .strip_prefix(&self.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let (ours, theirs): (Vec<_>, Vec<_>) = (self.host.split('.').collect(), host.split('.').collect());
        let same_host = ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(pattern, part)| matches(pattern.as_bytes(), part.as_bytes()));
        // An entry without a port is for every port of its host.
        same_host && same_path && (self.port.is_empty() || self.port == port)
    }
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    }
}

/// `*` and `?` inside one label of a host name.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            matches(rest, text) || text.split_first().is_some_and(|(_, after)| matches(pattern, after))
        }
        (Some((one, rest)), Some((other, after))) => (*one == b'?' || one == other) && matches(rest, after),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

// === impl DockerConfig ===

impl DockerConfig {
    /// The configuration in a file; nothing is in it when the file is not there.
    ///
    /// # Errors
    /// When it is there and cannot be read, or has another form.
    pub fn read(path: &Path) -> Result<Self, KeyringError> {
        let broken = |source| KeyringError::File { path: path.display().to_string(), source };
        let size = match std::fs::metadata(path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(broken(error)),
        };
        if size > MAX_CONFIG {
            return Err(broken(std::io::ErrorKind::FileTooLarge.into()));
        }
        let text = std::fs::read(path).map_err(broken)?;
        let mut config: Config = serde_json::from_slice(&text).map_err(KeyringError::Broken)?;
        let (helpers, store) = (std::mem::take(&mut config.helpers), config.store.take());
        Ok(Self { ring: Keyring::of(config)?, helpers, store })
    }

    /// Where container engines keep theirs: `config.json` in the folder of `DOCKER_CONFIG`, else in
    /// `~/.docker`.
    #[must_use]
    pub fn usual_path() -> Option<PathBuf> {
        let named = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = named("DOCKER_CONFIG").or_else(|| named("HOME").map(|home| home.join(".docker")));
        folder.map(|folder| folder.join("config.json"))
    }

    /// The credentials for one registry, a credential helper asked where the configuration names one. A
    /// helper that is not installed, or knows nothing, is passed over: the registry may be a public one.
    pub async fn keyring(&self, registry: &str) -> Keyring {
        let helper = self.helpers.get(registry).or(self.store.as_ref());
        let Some(helper) = helper else { return self.ring.clone() };
        let asked = tokio::time::timeout(HELPER, ask(helper, registry)).await;
        let Some(credentials) = asked.unwrap_or_default() else { return self.ring.clone() };
        let helped = Keyring { keys: vec![Key { place: Place::parse(registry), credentials }] };
        helped.and(self.ring.clone())
    }
}

/// One question to a credential helper, in its protocol: the server on its standard input.
async fn ask(helper: &str, registry: &str) -> Option<Credentials> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if helper.is_empty() || !helper.bytes().all(plain) {
        return None;
    }
    let spawned = Command::new(format!("docker-credential-{helper}"))
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            tracing::debug!(helper, %error, "a credential helper cannot be run");
            return None;
        }
    };
    child.stdin.take()?.write_all(registry.as_bytes()).await.ok()?;
    let output = child.wait_with_output().await.ok()?;
    if !output.status.success() {
        return None;
    }
    let Helped { user, secret } = serde_json::from_slice(&output.stdout).ok()?;
    Some(Credentials { user, password: secret })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn ring(auths: &serde_json::Value) -> Keyring {
        Keyring::parse(json!({"auths": auths}).to_string().as_bytes()).unwrap()
    }

    fn users(ring: &Keyring, registry: &str, repository: &str) -> Vec<String> {
        ring.matching(registry, repository).into_iter().map(|found| found.user).collect()
    }

    #[test]
    fn entries_match_as_the_kubelet_matches_them() {
        let entry = |user: &str| json!({"username": user, "password": "p"});
        let ring = ring(&json!({
            "r.example": entry("host"), "r.example/team": entry("team"), "r.example/team/deep": entry("deep"),
            "https://old.example/v1/": entry("old"), "*.pat.example": entry("pattern"),
            "port.example:5000": entry("port"), "R2.example": entry("upper"),
        }));
        for (registry, repository, expected) in [
            ("r.example", "other/x", &["host"][..]),
            ("r.example", "team/x", &["team", "host"]),
            ("r.example", "team/deep/x", &["deep", "team", "host"]),
            ("r.example", "teammate/x", &["host"]),
            ("r.example:5000", "x", &["host"]),
            ("old.example", "x", &["old"]),
            ("a.pat.example", "x", &["pattern"]),
            ("a.b.pat.example", "x", &[]),
            ("pat.example", "x", &[]),
            ("port.example:5000", "x", &["port"]),
            ("port.example", "x", &[]),
            ("port.example:5001", "x", &[]),
            ("r2.example", "x", &["upper"]),
            ("evil-r.example", "x", &[]),
        ] {
            assert_eq!(users(&ring, registry, repository), expected, "{registry}/{repository}");
        }
    }

    #[test]
    fn both_forms_of_an_entry_are_read_and_broken_ones_are_named() {
        let encoded = BASE64_STANDARD.encode("ann:pa:ss");
        let found = ring(&json!({"r": {"auth": encoded}})).matching("r", "x");
        assert_eq!(found, [Credentials { user: "ann".into(), password: "pa:ss".into() }]);
        assert!(ring(&json!({"r": {}})).is_empty());
        for auth in ["%%", "YW5u"] {
            let text = json!({"auths": {"r": {"auth": auth}}}).to_string();
            let error = Keyring::parse(text.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, "auths[\"r\"].auth is not base64 of user:password");
        }
        assert!(matches!(Keyring::parse(b"auths:"), Err(KeyringError::Broken(_))));
    }

    #[test]
    fn the_old_form_of_a_secret_is_read() {
        let text =
            json!({"r.example": {"username": "ann", "password": "p", "email": "a@b.example"}}).to_string();
        assert_eq!(users(&Keyring::parse_old(text.as_bytes()).unwrap(), "r.example", "x"), ["ann"]);
        assert!(matches!(Keyring::parse_old(b"[]"), Err(KeyringError::Broken(_))));
    }

    #[tokio::test]
    async fn a_helper_that_is_not_there_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        assert_eq!(DockerConfig::read(&path).unwrap(), DockerConfig::default());
        let text = json!({"auths": {"r": {"auth": BASE64_STANDARD.encode("a:b")}}, "credsStore": "no-such",
            "credHelpers": {"r": "none-here", "s": "../../bin/sh"}});
        std::fs::write(&path, text.to_string()).unwrap();
        let config = DockerConfig::read(&path).unwrap();
        for registry in ["r", "s", "t"] {
            let found = users(&config.keyring(registry).await, "r", "x");
            assert_eq!(found, ["a"], "{registry}");
        }
    }
}

//! Charts and plugins in a real registry: with TLS, with users, with client certificates.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use oci_distribution::{
    Client, Reference,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol, Config, ImageLayer},
    manifest::OciImageManifest,
    secrets::RegistryAuth,
};
use pintle_dev::binaries::{self, Tool};
use pintle_source::{Access, Packed, Request, Sources, Tls, artifact::PullError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use serde_json::json;
use tempfile::TempDir;

use super::{
    chart,
    repository::{as_user, fault, get, registries, wanted},
};

pub(super) const USER: &str = "ann";
pub(super) const PASSWORD: &str = "hunter2";
/// A name of the registry's that no resolver knows: who is to find it under that name needs a proxy.
pub(super) const NAME: &str = "registry.test";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// The registry's program, ended with the test.
pub(super) struct Registry {
    child: Child,
    pub(super) port: u16,
    /// Its certificates, where it speaks TLS.
    pki: Option<Pki>,
    _folder: TempDir,
}

/// An authority, a server's certificate, and a user's.
struct Pki {
    authority: String,
    identity: String,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) tls: bool,
    pub(super) users: bool,
    pub(super) client_certificates: bool,
    pub(super) expired: bool,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    pub(super) fn start(options: Options) -> Self {
        let programs =
            binaries::ensure(&mut |line| eprintln!("{line}")).unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let pki = options.tls.then(|| Pki::write(folder.path(), options.expired));
        let configuration = configuration(folder.path(), port, options);
        let path = folder.path().join("registry.yaml");
        fs::write(&path, serde_yaml::to_string(&configuration).unwrap()).unwrap();
        let child = Command::new(programs.path(Tool::Registry))
            .arg("serve")
            .arg(&path)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the registry does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port, pki, _folder: folder }
    }

    fn url(&self) -> String {
        format!("oci://127.0.0.1:{}/charts", self.port)
    }

    /// The authority that signed its certificate, as PEM.
    pub(super) fn authority(&self) -> String {
        self.pki.as_ref().map(|pki| pki.authority.clone()).unwrap_or_default()
    }

    /// Who trusts the registry, and is trusted by it.
    fn access(&self) -> Access {
        let mut access = as_user(USER, PASSWORD);
        if let Some(pki) = &self.pki {
            let (authorities, identity) = (pki.authority.clone().into(), pki.identity.clone().into());
            access.tls = Tls { authorities, identity, insecure: false };
        }
        access
    }

    fn client(&self) -> Client {
        let protocol = if self.pki.is_some() { ClientProtocol::Https } else { ClientProtocol::Http };
        let authority = self.pki.iter().map(|pki| Certificate {
            encoding: CertificateEncoding::Pem,
            data: pki.authority.clone().into(),
        });
        Client::new(ClientConfig {
            protocol,
            extra_root_certificates: authority.collect(),
            ..ClientConfig::default()
        })
    }

    async fn push(&self, name: &str, tag: &str, layers: &[ImageLayer], config: &str) -> String {
        let reference: Reference = format!("127.0.0.1:{}/{name}:{tag}", self.port).parse().unwrap();
        let config = Config::new("{}", config.to_owned(), None);
        let mut manifest = OciImageManifest::build(layers, &config, None);
        manifest.media_type = Some("application/vnd.oci.image.manifest.v1+json".to_owned());
        let auth = RegistryAuth::Basic(USER.to_owned(), PASSWORD.to_owned());
        let client = self.client();
        client.push(&reference, layers, config, &auth, Some(manifest)).await.unwrap();
        client.fetch_manifest_digest(&reference, &auth).await.unwrap()
    }

    /// Pushes a chart as `helm push` does; gives the digest of its manifest.
    pub(super) async fn push_chart(&self, packed: &Packed) -> String {
        let layers = [
            ImageLayer::new(packed.bytes.clone(), CONTENT.to_owned(), None),
            ImageLayer::new(&b"signed"[..], PROVENANCE.to_owned(), None),
        ];
        let metadata = &packed.metadata;
        let tag = metadata.version.replace('+', "_");
        self.push(&format!("charts/{}", metadata.name), &tag, &layers, CONFIG).await
    }
}

fn configuration(folder: &Path, port: u16, options: Options) -> serde_json::Value {
    let mut http = json!({"addr": format!("127.0.0.1:{port}")});
    if options.tls {
        http["tls"] = json!({"certificate": folder.join("server.crt"), "key": folder.join("server.key")});
    }
    if options.client_certificates {
        http["tls"]["clientcas"] = json!([folder.join("ca.crt")]);
    }
    let mut all =
        json!({"version": "0.1", "log": {"level": "error"}, "storage": {"inmemory": {}}, "http": http});
    if options.users {
        let path = folder.join("users");
        fs::write(&path, format!("{USER}:{}\n", bcrypt::hash(PASSWORD, 4).unwrap())).unwrap();
        all["auth"] = json!({"htpasswd": {"realm": "test", "path": path}});
    }
    all
}

impl Pki {
    fn write(folder: &Path, expired: bool) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let sign = |expired: bool| {
            let mut params = CertificateParams::default();
            params.subject_alt_names = [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED]
                .map(|address| SanType::IpAddress(address.into()))
                .into_iter()
                .chain([SanType::DnsName(NAME.try_into().unwrap())])
                .collect();
            if expired {
                params.not_after = rcgen::date_time_ymd(2020, 1, 1);
            }
            let key = KeyPair::generate().unwrap();
            (params.signed_by(&key, &authority).unwrap().pem(), key.serialize_pem())
        };
        let (server, user) = (sign(expired), sign(false));
        fs::write(folder.join("server.crt"), server.0).unwrap();
        fs::write(folder.join("server.key"), server.1).unwrap();
        fs::write(folder.join("ca.crt"), authority.pem()).unwrap();
        Self { authority: authority.pem(), identity: format!("{}\n{}", user.0, user.1) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_with_tls_and_users_gives_the_chart_that_is_meant() {
    let registry = Registry::start(Options { tls: true, users: true, ..Options::default() });
    let mut digests = Vec::new();
    for version in ["1.0.0", "1.2.0", "1.2.1+build.7", "2.0.0-rc.1"] {
        digests.push(registry.push_chart(&chart("c", version)).await);
    }
    let request = |version: &str| Request { access: registry.access(), ..wanted(&registry.url(), version) };
    let sources = Sources::default();
    for (version, expected) in [
        ("", "1.2.1+build.7"),
        ("~1.0", "1.0.0"),
        ("1.2.0", "1.2.0"),
        ("1.2.1+build.7", "1.2.1+build.7"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        (digests[0].as_str(), "1.0.0"),
    ] {
        let found =
            get(&sources, &request(version)).await.unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_eq!(found.chart.chart().metadata.version, expected, "{version}");
    }
    let pinned = Request { digest: chart("c", "1.2.0").digest, ..request("1.2.0") };
    assert!(get(&sources, &pinned).await.is_ok());
    let (text, reason) =
        fault(&Request { digest: format!("sha256:{}", "0".repeat(64)), ..request("1.2.0") }).await;
    assert_eq!(reason, "DigestMismatch", "{text}");
    assert_eq!(fault(&request("9.9.9")).await.1, "VersionMissing");
    for access in [Access { credentials: None, ..registry.access() }, {
        let wrong = as_user(USER, "wrong");
        Access { tls: registry.access().tls, ..wrong }
    }] {
        let (text, reason) = fault(&Request { access, ..request("1.2.0") }).await;
        assert_eq!(reason, "Unauthorized", "{text}");
        assert!(!text.contains("hunter2") && !text.contains("wrong"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_counts_only_when_its_authority_is_named() {
    let registry = Registry::start(Options { tls: true, ..Options::default() });
    registry.push_chart(&chart("c", "1.0.0")).await;
    let with = |tls: Tls| Request {
        access: Access { tls, ..Access::default() },
        ..wanted(&registry.url(), "1.0.0")
    };
    let authorities = registry.pki.as_ref().unwrap().authority.clone().into_bytes();
    assert!(get(&Sources::default(), &with(Tls { authorities, ..Tls::default() })).await.is_ok());
    assert!(get(&Sources::default(), &with(Tls { insecure: true, ..Tls::default() })).await.is_ok());
    let other = tempfile::tempdir().unwrap();
    let authorities = Pki::write(other.path(), false).authority.into_bytes();
    let (text, reason) = fault(&with(Tls { authorities, ..Tls::default() })).await;
    assert_eq!(reason, "CertificateUntrusted");
    assert!(
        text.contains("has a certificate that is not trusted here: name the authority that signed it"),
        "{text}"
    );
    let (text, reason) =
        fault(&with(Tls { authorities: b"-----BEGIN CERTIFICATE-----\nx".to_vec(), ..Tls::default() })).await;
    assert_eq!(reason, "CertificateInvalid", "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_may_ask_for_a_certificate_of_ours() {
    let registry = Registry::start(Options { tls: true, client_certificates: true, ..Options::default() });
    let request = |access: Access| Request { access, ..wanted(&registry.url(), "1.0.0") };
    // Nothing is pushed: to be told that says that the door was open.
    assert_eq!(fault(&request(registry.access())).await.1, "VersionMissing");
    let without = Access { tls: Tls { identity: Vec::new(), ..registry.access().tls }, ..Access::default() };
    let (text, reason) = fault(&request(without)).await;
    assert!(matches!(reason, "CertificateUntrusted" | "RepositoryUnreachable"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_is_no_certificate() {
    let registry = Registry::start(Options { tls: true, expired: true, ..Options::default() });
    let request = Request { access: registry.access(), ..wanted(&registry.url(), "1.0.0") };
    let (text, reason) = fault(&request).await;
    assert_eq!(reason, "CertificateUntrusted");
    assert!(text.contains("xpired"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_pulled_by_tag_and_by_digest_with_the_same_client() {
    let registry = Registry::start(Options { tls: true, users: true, ..Options::default() });
    let layer = ImageLayer::new(&b"\0asm component"[..], "application/wasm".to_owned(), None);
    let digest = registry.push("plugins/p", "1.0.0", &[layer], "application/vnd.wasm.config.v0+json").await;
    let place = format!("oci://127.0.0.1:{}/plugins/p", registry.port);
    for image in [format!("{place}:1.0.0"), format!("{place}@{digest}")] {
        let found = registries().pull_with(&image, &registry.access()).await;
        let found = found.unwrap_or_else(|error| panic!("{image}: {error}"));
        assert_eq!((found.digest.as_str(), &*found.bytes), (digest.as_str(), &b"\0asm component"[..]));
    }
    let error = registries().pull_with(&format!("{place}:2.0.0"), &registry.access()).await.map(|_| ());
    assert!(matches!(error, Err(PullError::NotFound { .. })), "{error:?}");
    let moved = ImageLayer::new(&b"other"[..], "application/wasm".to_owned(), None);
    registry.push("plugins/p", "1.0.0", &[moved], "application/vnd.wasm.config.v0+json").await;
    let pinned = registries().pull_with(&format!("{place}@{digest}"), &registry.access()).await;
    assert_eq!(&*pinned.unwrap_or_else(|error| panic!("{error}")).bytes, b"\0asm component");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_for_this_machine_and_named_hosts() {
    let registry = Registry::start(Options::default());
    registry.push_chart(&chart("c", "1.0.0")).await;
    assert!(get(&Sources::default(), &wanted(&registry.url(), "1.0.0")).await.is_ok());
    let with_tls = Access { tls: Tls { insecure: true, ..Tls::default() }, ..Access::default() };
    let (text, reason) =
        fault(&Request { access: with_tls.clone(), ..wanted(&registry.url(), "1.0.0") }).await;
    assert_eq!(reason, "CertificateUntrusted", "{text}");
    let named = Access { plain_http: true, ..with_tls };
    assert!(
        get(&Sources::default(), &Request { access: named, ..wanted(&registry.url(), "1.0.0") })
            .await
            .is_ok()
    );
}

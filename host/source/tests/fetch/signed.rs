//! Signatures and mirrors in registries that are away, lie, or know only the old way.

use std::{collections::BTreeMap, time::Duration};

use pintle_source::{
    Access, Limits, Settings,
    artifact::{Parts, PullError, Registries},
    bundle::{Attached, Bundle, Described},
    signature::{self, PrivateKey, Wanted},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    repository::{as_user, registries},
    server::{Asked, Reply, Server},
};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn plugin() -> Bundle {
    Bundle::new(Described { component: b"\0asm component".to_vec(), ..Described::default() })
}

/// A registry's content by target, for one repository `r/p` with a plugin under tag 1.
#[derive(Clone, Default)]
struct Content(BTreeMap<String, Vec<u8>>);

impl Content {
    fn of(plugin: &Bundle) -> Self {
        let mut content = Self::default();
        let mut archive = Vec::new();
        plugin.write("", &mut archive).unwrap();
        // Every blob of an image layout is a manifest or a blob of a registry; which one, its reader decides.
        let mut archive = tar::Archive::new(archive.as_slice());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            if path.starts_with("blobs/") {
                content.put(&digest(&bytes), &bytes);
            }
        }
        content.0.insert("manifests/1".to_owned(), plugin.manifest().to_vec());
        content
    }

    fn put(&mut self, digest: &str, bytes: &[u8]) {
        self.0.insert(format!("manifests/{digest}"), bytes.to_vec());
        self.0.insert(format!("blobs/{digest}"), bytes.to_vec());
    }

    fn list(&mut self, at: &str, manifests: &[Value]) {
        self.0.insert(
            at.to_owned(),
            json!({"schemaVersion": 2, "manifests": manifests}).to_string().into_bytes(),
        );
    }

    fn reply(&self, asked: &Asked) -> Reply {
        let target = asked.target.strip_prefix("/v2/r/p/").unwrap_or_default();
        self.0.get(target).map_or(Reply::status(404), |bytes| Reply::ok(bytes.clone()))
    }

    async fn serve(self) -> Server {
        Server::start(move |asked, _| self.reply(asked)).await
    }
}

fn listed(attached: &Attached) -> Value {
    json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": attached.digest(), "size": 1,
        "artifactType": BUNDLE})
}

/// A plugin with one signature, and whose it is.
fn signed() -> (Bundle, Attached, Wanted) {
    let (mut plugin, key) = (plugin(), PrivateKey::generate().unwrap());
    let attested = key.attest(&plugin).unwrap();
    plugin.attach(attested.clone());
    (plugin, attested, Wanted { keys: vec![key.public().unwrap()], ..Wanted::default() })
}

async fn pull(server: &Server) -> Result<Bundle, PullError> {
    registries().pull_plugin(&server.oci("/r/p:1"), &Access::default(), Parts::WithSignatures).await
}

fn tag_of(plugin: &Bundle) -> String {
    plugin.digest().replace(':', "-")
}

#[tokio::test]
async fn signatures_are_found_in_the_registrys_list_or_in_that_under_the_tag() {
    let (plugin, attested, wanted) = signed();
    for at in [format!("referrers/{}", plugin.digest()), format!("manifests/{}", tag_of(&plugin))] {
        let mut content = Content::of(&plugin);
        content.list(&at, &[listed(&attested)]);
        let pulled = pull(&content.serve().await).await.unwrap();
        assert_eq!(signature::verify(&pulled, &wanted).unwrap().len(), 1, "{at}");
        assert_eq!(pulled, plugin);
    }
    let without = pull(&Content::of(&plugin).serve().await).await.unwrap();
    assert_eq!(signature::verify(&without, &wanted).unwrap_err().reason(), "SignatureMissing");
}

#[tokio::test]
async fn a_list_may_name_what_it_likes_and_nothing_else_is_asked_for() {
    let (plugin, attested, wanted) = signed();
    let mut content = Content::of(&plugin);
    let named = |digest: &str| json!({"digest": digest, "artifactType": BUNDLE});
    let other = Bundle::new(Described { component: b"\0asm other".to_vec(), ..Described::default() });
    let foreign = PrivateKey::generate().unwrap().attest(&other).unwrap();
    content.put(&foreign.digest(), b"no manifest");
    let mut list = vec![
        named("../../../admin"),
        named("sha256:../../x"),
        named(&format!("sha256:{}", "0".repeat(64))),
        named(&foreign.digest()),
        json!({"digest": plugin.digest(), "artifactType": "application/spdx+json"}),
        listed(&attested),
    ];
    list.extend((0..1000).map(|number| named(&format!("sha256:{number:064x}"))));
    content.list(&format!("referrers/{}", plugin.digest()), &list);
    let server = content.serve().await;
    let pulled = pull(&server).await.unwrap();
    assert_eq!(pulled.attached().len(), 1);
    assert!(signature::verify(&pulled, &wanted).is_ok());
    let asked = server.asked();
    assert!(asked.len() < 50, "{} requests", asked.len());
    assert!(asked.iter().all(|asked| asked.target.starts_with("/v2/r/p/") && !asked.target.contains("..")));
}

#[tokio::test]
async fn a_signature_that_is_too_large_or_swapped_hides_no_other() {
    let (plugin, attested, wanted) = signed();
    let mut content = Content::of(&plugin);
    let large = json!({"schemaVersion": 2, "subject": {"digest": plugin.digest()},
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": digest(b"large"), "size": 2 << 20}]});
    let mut swapped = large.clone();
    swapped["layers"][0] = json!({"mediaType": BUNDLE, "digest": digest(b"swapped"), "size": 7});
    content.put(&digest(b"swapped"), b"other!!");
    let mut list = Vec::new();
    for manifest in [large.to_string(), swapped.to_string()] {
        content.put(&digest(manifest.as_bytes()), manifest.as_bytes());
        list.push(json!({"digest": digest(manifest.as_bytes()), "artifactType": BUNDLE}));
    }
    list.push(listed(&attested));
    content.list(&format!("referrers/{}", plugin.digest()), &list);
    let pulled = pull(&content.serve().await).await.unwrap();
    assert!(signature::verify(&pulled, &wanted).is_ok());
}

#[tokio::test]
async fn a_list_that_fails_is_not_the_same_as_no_signature() {
    let (plugin, ..) = signed();
    let content = Content::of(&plugin);
    for status in [500, 503] {
        let content = content.clone();
        let server = Server::start(move |asked, _| match asked.target.contains("/referrers/") {
            true => Reply::status(status),
            false => content.reply(asked),
        })
        .await;
        let error = pull(&server).await.unwrap_err();
        assert!(matches!(error, PullError::Failed { .. }) && error.may_pass(), "{error}");
    }
}

#[tokio::test]
async fn pages_of_referrers_end_and_lead_nowhere_else() {
    let (plugin, attested, wanted) = signed();
    let mut content = Content::of(&plugin);
    content.list("next", &[listed(&attested)]);
    let first = format!("/v2/r/p/referrers/{}", plugin.digest());
    let elsewhere = Server::start(|_, _| Reply::ok("{}")).await;
    for (next, is_signed) in
        [("/v2/r/p/next".to_owned(), true), (elsewhere.url("/next"), false), (first.clone(), false)]
    {
        let (content, first) = (content.clone(), first.clone());
        let server = Server::start(move |asked, _| match asked.target == first {
            true => Reply::ok(r#"{"manifests": []}"#).with("Link", format!("<{next}>; rel=\"next\"")),
            false => content.reply(asked),
        })
        .await;
        let pulled = pull(&server).await.unwrap();
        assert_eq!(signature::verify(&pulled, &wanted).is_ok(), is_signed);
    }
    assert!(elsewhere.asked().is_empty());
}

fn mirrored(registry: &Server, mirrors: Vec<String>) -> Registries {
    let settings = Settings { mirrors, ..Settings::default() };
    let limits = Limits { attempts: 2, pause: Duration::from_millis(5), ..Limits::default() };
    Registries::configured([(format!("127.0.0.1:{}", registry.port), settings)].into(), limits)
}

#[tokio::test]
async fn a_mirror_that_is_away_or_lies_is_passed_over_and_gets_no_password() {
    let plugin = plugin();
    let origin = Content::of(&plugin).serve().await;
    let mut lies = Content::of(&plugin);
    for bytes in lies.0.values_mut() {
        *bytes = bytes.iter().map(|byte| byte ^ 1).collect();
    }
    let lies = lies.serve().await;
    let honest = Content::of(&plugin);
    let honest = Server::start(move |asked, _| {
        let asked = Asked { target: asked.target.replace("/v2/cache/", "/v2/"), ..asked.clone() };
        honest.reply(&asked)
    })
    .await;
    let image = format!("{}@{}", origin.oci("/r/p"), plugin.digest());
    let (away, liar) = ("127.0.0.1:1".to_owned(), format!("127.0.0.1:{}", lies.port));
    let last = mirrored(&origin, vec![away.clone(), liar.clone()]);
    let pulled = last.pull_plugin(&image, &as_user("ann", "hunter2"), Parts::Plugin).await.unwrap();
    assert_eq!(pulled.digest(), plugin.digest());
    assert!(!origin.asked().is_empty() && !lies.asked().is_empty());
    let before = origin.asked().len();
    let cache = format!("127.0.0.1:{}/cache", honest.port);
    let first = mirrored(&origin, vec![away, liar, cache]);
    assert!(first.pull_plugin(&image, &as_user("ann", "hunter2"), Parts::Plugin).await.is_ok());
    assert_eq!(origin.asked().len(), before, "a mirror that has it is enough");
    let mirrors = lies.asked().into_iter().chain(honest.asked());
    assert!(mirrors.map(|asked| asked.authorization).all(|authorization| authorization.is_none()));
}

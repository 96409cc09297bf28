//! Charts from mirrors of their registries, which may be away, or lie.

use std::{collections::BTreeMap, time::Duration};

use pintle_source::{
    Access, Credentials, Limits, Online, Outcome, Packed, Request, Settings, Sources, artifact::Registries,
    digest_of, keyring::Keyring,
};
use serde_json::json;

use super::{
    chart,
    repository::as_user,
    server::{Reply, Server},
};

const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// What a registry has of these charts, by target below its repository.
fn content(charts: &[Packed]) -> BTreeMap<String, Vec<u8>> {
    let tags: Vec<_> = charts.iter().map(|packed| packed.metadata.version.clone()).collect();
    let tags = json!({"name": "charts/c", "tags": tags}).to_string().into_bytes();
    let mut content = BTreeMap::from([("tags/list".to_owned(), tags)]);
    for packed in charts {
        let digest = digest_of(&packed.bytes);
        let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": CONFIG, "digest": digest_of(b"{}"), "size": 2},
            "layers": [{"mediaType": CONTENT, "digest": digest, "size": packed.bytes.len()}]});
        content.insert(format!("manifests/{}", packed.metadata.version), manifest.to_string().into_bytes());
        content.insert(format!("blobs/{digest}"), packed.bytes.clone());
    }
    content
}

async fn serve(below: &'static str, content: BTreeMap<String, Vec<u8>>) -> Server {
    Server::start(move |asked, _| {
        let found = asked.target.strip_prefix(below).and_then(|target| content.get(target));
        found.map_or_else(|| Reply::status(404), |body| Reply::ok(body.clone()))
    })
    .await
}

/// The version of a chart, as it is fetched with these mirrors of its registry.
async fn fetch(origin: &Server, mirrors: &[String], version: &str, access: Access) -> Result<String, String> {
    let settings = Settings { mirrors: mirrors.to_vec(), ..Settings::default() };
    let limits = Limits { attempts: 1, ..Limits::default() };
    let registries =
        Registries::configured([(format!("127.0.0.1:{}", origin.port), settings)].into(), limits);
    let url = origin.oci("/charts");
    let request = Request { name: "c".into(), version: version.into(), url, access, ..Request::default() };
    let online = Online { registries: &registries, now: std::time::Instant::now(), max_age: Duration::ZERO };
    match Sources::default().fetch(&request, &pintle_api::Record::default(), online).await {
        Ok(Outcome::Found(found)) => Ok(found.chart.chart().metadata.version.clone()),
        Ok(Outcome::NotYet) => Err("NotYet".to_owned()),
        Err(error) => Err(error.reason().to_owned()),
    }
}

#[tokio::test]
async fn a_chart_comes_from_the_first_mirror_that_has_it() {
    let origin = serve("/v2/charts/c/", content(&[chart("c", "1.0.0"), chart("c", "1.1.0")])).await;
    let mirror = serve("/v2/cache/charts/c/", content(&[chart("c", "1.0.0")])).await;
    let mirrors = ["127.0.0.1:1".to_owned(), format!("127.0.0.1:{}/cache", mirror.port)];
    let ask = async |version: &str| fetch(&origin, &mirrors, version, as_user("ann", "hunter2")).await;
    assert_eq!(ask("1.0.0").await.as_deref(), Ok("1.0.0"));
    assert!(origin.asked().is_empty(), "a mirror that has it is enough");
    assert_eq!(ask("").await.as_deref(), Ok("1.0.0"), "its newest is that of the mirror");
    assert_eq!(ask("1.1.0").await.as_deref(), Ok("1.1.0"), "what no mirror has is in the registry");
    assert_eq!(ask("9.0.0").await, Err("VersionMissing".to_owned()), "and what that says counts");
    assert!(
        mirror.asked().iter().all(|asked| asked.authorization.is_none()),
        "its password is not for others"
    );
}

#[tokio::test]
async fn a_mirror_that_lies_about_bytes_is_passed_over_and_gets_the_credentials_that_are_for_it_alone() {
    let charts = [chart("c", "1.0.0")];
    let origin = serve("/v2/charts/c/", content(&charts)).await;
    let mut lies = content(&charts);
    lies.iter_mut().filter(|(target, _)| target.starts_with("blobs/")).for_each(|(_, bytes)| bytes[20] ^= 1);
    let liar = Server::start(move |asked, _| {
        if asked.authorization.is_none() {
            return Reply::status(401).with("WWW-Authenticate", "Basic realm=\"r\"");
        }
        let found = asked.target.strip_prefix("/v2/charts/c/").and_then(|target| lies.get(target));
        found.map_or_else(|| Reply::status(404), |body| Reply::ok(body.clone()))
    })
    .await;
    let place = format!("127.0.0.1:{}", liar.port);
    let config = json!({"auths": {place.clone(): {"username": "bob", "password": "other"}}}).to_string();
    let keyring = Keyring::parse(config.as_bytes()).unwrap().into();
    let access = Access { keyring, ..as_user("ann", "hunter2") };
    assert_eq!(fetch(&origin, &[place], "1.0.0", access).await.as_deref(), Ok("1.0.0"));
    assert!(origin.asked().iter().any(|asked| asked.target.contains("/blobs/")));
    let sent: Vec<_> = liar.asked().into_iter().filter_map(|asked| asked.authorization).collect();
    let bobs = as_basic(&Credentials { user: "bob".into(), password: "other".into() });
    assert!(!sent.is_empty() && sent.iter().all(|sent| *sent == bobs), "{sent:?}");
}

fn as_basic(credentials: &Credentials) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", credentials.user, credentials.password)))
}

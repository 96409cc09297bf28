//! How components come to the operator: signed or not, from registries with users, from a cache, in new versions.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle::scenario;
use pintle_api::SpecialResource;
use pintle_dev::binaries::{self, Tool};
use pintle_operator::Options;
use pintle_source::{
    Access, Credentials, Settings, Tls,
    artifact::{Parts, Registries},
    bundle::{Bundle, Described},
    signature::PrivateKey,
};
use pintle_tests::{Stage, stage};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use serde_json::{Value, json};

use crate::{
    bad_input::{chart::Chart, chart::fixture, encode},
    scenarios::script,
};

/// The first text of the guests' manifest, and what it asks for in a later version.
const MANIFEST: &str = r#";; manifest: {"manifest":"pintle.dev/manifest/v1","name":"guest","version":"#;

/// A stage with a namespace, and what its charts may apply.
async fn stage_of(name: &str) -> Stage {
    let stage = Stage::without_operator(name).await.unwrap();
    for text in fixture("rights.yaml").split("\n---\n") {
        stage.apply(serde_yaml::from_str(text).unwrap()).await.unwrap();
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-plugins", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}]
    });
    stage.apply(role).await.unwrap();
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await.unwrap();
    stage
}

/// A Plugin of the stage's name.
async fn plugin(stage: &Stage, image: &str, more: Value) {
    let mut spec = json!({"image": image});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let plugin = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": stage.name}, "spec": spec});
    stage.apply(plugin).await.unwrap();
}

/// An owner of chart `steps` whose second state waits for the Plugin of the stage's name.
fn owner(stage: &Stage, name: &str) -> Value {
    json!({
        "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
        "metadata": {"name": name, "labels": {"test": stage.name}},
        "spec": {"namespace": name, "set": {"wait": stage.name}, "chart": {"name": "steps", "version": "0.1.0",
            "repository": {"name": "tests", "url": format!("cm://{}/chart", stage.name)}}}
    })
}

async fn release(stage: &Stage) {
    stage.apply(Chart::steps().repository().config_map(&stage.name)).await.unwrap();
    stage.apply(owner(stage, &stage.name)).await.unwrap();
}

/// Waits until the owner waits for something with this reason, whose text has this part.
async fn waits_for(stage: &Stage, reason: &str, part: &str) {
    let blocked = |owner: &SpecialResource| {
        let states = owner.status.iter().flat_map(|status| &status.states);
        let mut blockers = states.flat_map(|state| &state.blockers);
        blockers.any(|blocker| blocker.reason == reason && blocker.message.contains(part))
    };
    stage.wait_until(&format!("waiting for {reason} with {part:?}"), blocked).await.unwrap();
}

/// Waits until the status of the stage's Plugin is as wanted; gives it.
async fn status(stage: &Stage, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let waited = stage
        .eventually(what, async |stage| {
            last = stage.read("Plugin", &stage.name).await?["status"].clone();
            Ok(wanted(&last))
        })
        .await;
    waited.unwrap_or_else(|error| panic!("{error}: {last:#}"));
    last
}

fn condition<'a>(status: &'a Value, kind: &str) -> (&'a str, &'a str, &'a str) {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind);
    let field = |name: &str| found.and_then(|found| found[name].as_str()).unwrap_or_default();
    (field("status"), field("reason"), field("message"))
}

/// The end of a test: every operator loads all Plugins, so this one goes.
async fn end(mut stage: Stage) {
    stage.stop_operator().await.unwrap();
    stage.delete("Plugin", &stage.name).await.unwrap();
}

/// A component like `ready` whose manifest has another version, and asks for something.
fn asking(version: &str, needs: &Value) -> Vec<u8> {
    let text = format!(
        "{MANIFEST}\"{version}\",\"needs\":{needs}}}\n(func (export \"pintle:plugin/readiness@0.1.0#check\") (param i32) (result i32)\n  (i32.const 256))"
    );
    encode::encode("asking", &text, &encode::wit())
}

/// Pushes a component under a tag; gives its image by tag and its digest.
async fn push_tagged(name: &str, component: Vec<u8>) -> (String, String) {
    let plane = stage::plane().await.unwrap();
    let pinned = stage::push(plane, name, component).await.unwrap();
    let (place, digest) = pinned.split_once('@').unwrap();
    (format!("{place}:1"), digest.to_owned())
}

async fn sign(image: &str, key: &PrivateKey) {
    let (registries, access) = (Registries::default(), Access::default());
    let plugin = registries.pull_plugin(image, &access, Parts::WithSignatures).await.unwrap();
    let bundle = key.attest(&plugin).unwrap();
    registries.attach(image, &plugin, &bundle, &access).await.unwrap();
}

fn key_secret(stage: &Stage, key: &PrivateKey) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cosign-pub", "namespace": stage.name},
        "data": {"cosign.pub": BASE64_STANDARD.encode(key.public().unwrap().pem())}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_plugin_is_ready_and_another_key_is_refused_by_name() {
    let mut stage = stage_of("signed-plugin").await;
    let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let (image, digest) = push_tagged("signed-plugin", asking("1.0.0", &json!({}))).await;
    sign(&image, &key).await;
    stage.apply(key_secret(&stage, &key)).await.unwrap();
    let secret = json!({"namespace": stage.name, "name": "cosign-pub", "key": "cosign.pub"});
    plugin(&stage, &image, json!({"verify": {"publicKeys": [{"secretRef": secret}]}})).await;
    stage.start();
    release(&stage).await;
    stage.wait_until_ready().await.unwrap();
    let fingerprint = key.public().unwrap().fingerprint();
    let ready = |status: &Value| condition(status, "Ready").0 == "True";
    let told = status(&stage, "Ready", ready).await;
    assert_eq!(told["signers"], json!([{"key": fingerprint}]), "{told:#}");
    assert_eq!((&told["digest"], &told["image"]), (&json!(digest), &json!(image)));
    let verified = condition(&told, "Verified");
    assert_eq!(verified, ("True", "Signed", format!("{digest} is signed by key {fingerprint}").as_str()));

    // A change of the key alone is enough: nobody touches the Plugin.
    stage.apply(key_secret(&stage, &other)).await.unwrap();
    let refused = |status: &Value| condition(status, "Verified").1 == "SignerNotTrusted";
    let told = status(&stage, "refused", refused).await;
    let (_, _, message) = condition(&told, "Ready");
    let wanted = format!("wanted key {}; found one by another key", other.public().unwrap().short());
    assert!(message.contains(&wanted), "{message}");
    stage.apply(key_secret(&stage, &key)).await.unwrap();
    status(&stage, "Ready again", ready).await;
    end(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsigned_plugin_holds_its_release_until_somebody_signs_it() {
    let mut stage = stage_of("unsigned-plugin").await;
    let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let (image, digest) = push_tagged("unsigned-plugin", asking("1.0.1", &json!({}))).await;
    let keys = json!({"publicKeys": [{"inline": key.public().unwrap().pem()}]});
    plugin(&stage, &format!("{}@{digest}", image.trim_end_matches(":1")), json!({"verify": keys})).await;
    stage.start();
    release(&stage).await;
    waits_for(&stage, "SignatureMissing", &format!("nobody signed {digest}")).await;
    sign(&image, &other).await;
    waits_for(&stage, "SignerNotTrusted", "found one by another key").await;
    sign(&image, &key).await;
    stage.wait_until_ready().await.unwrap();
    end(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_in_a_config_map_is_loaded_by_its_digest() {
    let mut stage = stage_of("config-map-plugin").await;
    let component = asking("1.0.2", &json!({}));
    let digest = pintle_source::digest_of(&component);
    stage
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin", "namespace": stage.name},
            "binaryData": {"p.wasm": BASE64_STANDARD.encode(&component)}}))
        .await
        .unwrap();
    let place = format!("cm://{}/plugin/p.wasm", stage.name);
    plugin(&stage, &place, json!({})).await;
    stage.start();
    release(&stage).await;
    waits_for(&stage, "NotPinned", "names no digest").await;
    plugin(&stage, &format!("{place}@sha256:{}", "ab".repeat(32)), json!({})).await;
    waits_for(&stage, "WrongDigest", &digest).await;
    plugin(&stage, &format!("{place}@{digest}"), json!({})).await;
    stage.wait_until_ready().await.unwrap();
    end(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_says_something_else_is_refused() {
    let mut stage = stage_of("manifest-mismatch").await;
    let mut component = asking("1.0.3", &json!({}));
    let noted = br#"{"manifest":"pintle.dev/manifest/v1","name":"guest","version":"1.0.2"}"#;
    let name = b"pintle.dev/manifest";
    let length = 1 + name.len() + noted.len();
    assert!(length < 128, "the length of the section is one byte");
    component.extend([0, u8::try_from(length).unwrap(), u8::try_from(name.len()).unwrap()]);
    component.extend(name.iter().chain(noted));
    let image = stage::push(stage::plane().await.unwrap(), "manifest-mismatch", component).await.unwrap();
    plugin(&stage, &image, json!({})).await;
    stage.start();
    release(&stage).await;
    waits_for(&stage, "ManifestMismatch", "its version differs").await;
    end(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_asks_for_more_waits_and_shows_the_difference() {
    let mut stage = stage_of("upgrade-asks").await;
    let plane = stage::plane().await.unwrap();
    let old = stage::push(plane, "upgrade-old", asking("1.0.0", &json!({}))).await.unwrap();
    let read = json!({"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"]});
    let new = stage::push(plane, "upgrade-new", asking("2.0.0", &json!({"read": [read]}))).await.unwrap();
    let digest = |image: &str| json!(image.split_once('@').unwrap().1);
    plugin(&stage, &old, json!({})).await;
    stage.start();
    release(&stage).await;
    stage.wait_until_ready().await.unwrap();

    plugin(&stage, &new, json!({})).await;
    let held = |status: &Value| condition(status, "Ready").1 == "UpgradeHeld";
    let told = status(&stage, "held", held).await;
    assert_eq!((&told["digest"], &told["upgrade"]["digest"]), (&digest(&old), &digest(&new)), "{told:#}");
    let line = format!("spec.grants.read: [{}]", serde_json::to_value(&read).unwrap());
    assert_eq!(told["upgrade"]["missing"], json!([line]));
    let (granted, reason, message) = condition(&told, "Granted");
    assert_eq!((granted, reason), ("False", "UpgradeAsksForMore"));
    assert!(
        message.contains("guest 2.0.0 asks for more than guest 1.0.0") && message.contains(&line),
        "{message}"
    );
    stage.wait_until_ready().await.unwrap();

    // Also for an operator that never ran the version before.
    stage.stop_operator().await.unwrap();
    stage.start();
    stage.apply(owner(&stage, "upgrade-asks-more")).await.unwrap();
    stage
        .eventually("still held", async |stage| {
            let owner = stage.read("SpecialResource", "upgrade-asks-more").await?;
            Ok(condition(&owner["status"], "Ready").0 == "True")
        })
        .await
        .unwrap();
    let told = stage.read("Plugin", &stage.name).await.unwrap()["status"].clone();
    assert!(held(&told) && told["digest"] == digest(&old), "{told:#}");

    plugin(&stage, &new, json!({"grants": {"read": [read]}})).await;
    let upgraded =
        |status: &Value| status["digest"] == digest(&new) && condition(status, "Granted").0 == "True";
    let told = status(&stage, "upgraded", upgraded).await;
    assert_eq!(
        (&told["upgrade"], &told["asked"], &told["granted"]),
        (&Value::Null, &json!([line]), &json!([line]))
    );
    stage.delete("SpecialResource", "upgrade-asks-more").await.unwrap();
    end(stage).await;
}

/// A registry with TLS and users, which ends with the test.
struct Registry {
    child: Child,
    port: u16,
    authority: String,
    _folder: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    fn start() -> Self {
        let programs = binaries::ensure(&mut |line| eprintln!("{line}")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let authority = certificates(folder.path());
        let at = |name: &str| folder.path().join(name);
        fs::write(at("users"), format!("ann:{}\n", bcrypt::hash("hunter2", 4).unwrap())).unwrap();
        let config = json!({"version": "0.1", "log": {"level": "error"}, "storage": {"inmemory": {}},
            "http": {"addr": format!("127.0.0.1:{port}"),
                "tls": {"certificate": at("server.crt"), "key": at("server.key")}},
            "auth": {"htpasswd": {"realm": "test", "path": at("users")}}});
        fs::write(at("registry.yaml"), config.to_string()).unwrap();
        let mut command = Command::new(programs.path(Tool::Registry));
        command
            .arg("serve")
            .arg(at("registry.yaml"))
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the registry does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port, authority, _folder: folder }
    }

    fn access(&self) -> Access {
        let credentials = Credentials { user: "ann".to_owned(), password: "hunter2".to_owned() };
        let tls = Tls { authorities: self.authority.clone().into_bytes(), ..Tls::default() };
        Access { credentials: Some(credentials), tls, ..Access::default() }
    }

    /// Pushes a component; gives its image by digest.
    async fn push(&self, name: &str, component: Vec<u8>) -> String {
        let place = format!("oci://127.0.0.1:{}/{name}", self.port);
        let bundle = Bundle::new(Described { component, ..Described::default() });
        let digest = Registries::default().push_with(&format!("{place}:1"), &bundle, &self.access()).await;
        format!("{place}@{}", digest.unwrap())
    }
}

/// A server's certificate in a folder; gives that of its authority.
fn certificates(folder: &Path) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("server.crt"), params.signed_by(&key, &authority).unwrap().pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    authority.pem()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_pull_secrets_the_one_that_fits_opens_a_registry_with_tls_and_users() {
    let mut stage = stage_of("pull-secrets").await;
    let registry = Registry::start();
    let image = registry.push("vendor/plugin", asking("1.0.4", &json!({}))).await;
    let host = format!("127.0.0.1:{}", registry.port);
    let secret = |name: &str, place: &str, password: &str| {
        let config = json!({"auths": {place: {"username": "ann", "password": password}}}).to_string();
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": stage.name},
            "data": {".dockerconfigjson": BASE64_STANDARD.encode(config)}})
    };
    for secret in [
        secret("elsewhere", "registry.example", "hunter2"),
        secret("wrong", &format!("{host}/vendor"), "wrong"),
        secret("right", &host, "hunter2"),
    ] {
        stage.apply(secret).await.unwrap();
    }
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "right"}],
        "metadata": {"name": "puller", "namespace": stage.name}});
    stage.apply(account).await.unwrap();
    let settings = Settings { authorities: registry.authority.clone().into_bytes(), ..Settings::default() };
    let registries = BTreeMap::from([(host, settings)]);
    let options = Options { registries, ..stage.options(stage.reach()) };
    let named = |names: &[&str]| -> Value {
        names.iter().map(|name| json!({"namespace": stage.name, "name": name})).collect()
    };
    plugin(&stage, &image, json!({"pullSecrets": named(&["elsewhere", "wrong"])})).await;
    let right = json!({"pullSecrets": named(&["elsewhere", "wrong", "right"])});
    let of_account = json!({"pullSecrets": named(&["elsewhere", "wrong"]),
        "pullServiceAccount": {"namespace": stage.name, "name": "puller"}});
    stage.start_operator_with(options);
    release(&stage).await;
    waits_for(&stage, "Unauthorized", "refuses to show").await;
    plugin(&stage, &image, right).await;
    stage.wait_until_ready().await.unwrap();
    // Another Plugin in its place, with the secrets of an account alone.
    stage.release_owner().await.unwrap();
    stage.delete("Plugin", &stage.name).await.unwrap();
    plugin(&stage, &image, of_account).await;
    stage.apply(owner(&stage, "pull-secrets-account")).await.unwrap();
    stage
        .eventually("Ready with the account", async |stage| {
            let owner = stage.read("SpecialResource", "pull-secrets-account").await?;
            Ok(condition(&owner["status"], "Ready").0 == "True")
        })
        .await
        .unwrap();
    stage.delete("SpecialResource", "pull-secrets-account").await.unwrap();
    end(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_outlives_the_operator_and_the_registry() {
    let mut stage = stage_of("plugin-cache").await;
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start();
    let image = registry.push("vendor/cached", asking("1.0.5", &json!({}))).await;
    let config = json!({"auths": {format!("127.0.0.1:{}", registry.port): {"username": "ann", "password": "hunter2"}}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": stage.name},
        "data": {".dockerconfigjson": BASE64_STANDARD.encode(config.to_string())}});
    stage.apply(secret).await.unwrap();
    let settings = Settings { authorities: registry.authority.clone().into_bytes(), ..Settings::default() };
    let registries = BTreeMap::from([(format!("127.0.0.1:{}", registry.port), settings)]);
    let options = |stage: &Stage| Options {
        registries: registries.clone(),
        plugin_cache: Some(folder.path().to_owned()),
        ..stage.options(stage.reach())
    };
    plugin(&stage, &image, json!({"pullSecrets": [{"namespace": stage.name, "name": "pull"}]})).await;
    stage.start_operator_with(options(&stage));
    release(&stage).await;
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
    let key = stage.of_kind_in("Secret", scenario::SYSTEM).get("pintle-plugin-cache").await.unwrap();
    assert!(serde_json::to_value(key).unwrap()["data"]["key"].is_string());
    let digest = image.split_once("@sha256:").unwrap().1;
    assert!(folder.path().join(format!("pulled/{digest}.tar")).is_file());
    let compiled = |folder: &Path| -> BTreeMap<_, _> {
        let entries = fs::read_dir(folder.join("code")).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap())).collect()
    };
    let before = compiled(folder.path());
    assert!(!before.is_empty());

    drop(registry);
    stage.start_operator_with(options(&stage));
    stage.apply(owner(&stage, "plugin-cache-later")).await.unwrap();
    stage
        .eventually("Ready without the registry", async |stage| {
            let owner = stage.read("SpecialResource", "plugin-cache-later").await?;
            Ok(condition(&owner["status"], "Ready").0 == "True")
        })
        .await
        .unwrap();
    let after = compiled(folder.path());
    assert!(
        before.iter().all(|entry| after.get(entry.0) == Some(entry.1)),
        "what was compiled was compiled again"
    );
    stage.delete("SpecialResource", "plugin-cache-later").await.unwrap();
    end(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_a_chart_names_is_pulled_with_the_secrets_of_its_releases_namespace() {
    let mut stage = stage_of("component-secret").await;
    let registry = Registry::start();
    let image = registry.push("vendor/named", asking("1.0.6", &json!({}))).await;
    let host = format!("127.0.0.1:{}", registry.port);
    let (reference, _) = image.trim_start_matches("oci://").split_once('@').unwrap();
    let policy = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "PluginPolicy",
        "metadata": {"name": stage.name}, "spec": {"match": {"images": [reference], "unsigned": true}}});
    stage.apply(policy).await.unwrap();
    let settings = Settings { authorities: registry.authority.clone().into_bytes(), ..Settings::default() };
    let registries = BTreeMap::from([(host.clone(), settings)]);
    stage.start_operator_with(Options { registries, ..stage.options(stage.reach()) });
    stage.apply(Chart::steps().repository().config_map(&stage.name)).await.unwrap();
    let mut named = owner(&stage, &stage.name);
    named["spec"]["set"]["wait"] = json!(image);
    stage.apply(named).await.unwrap();
    waits_for(&stage, "Unauthorized", "in namespace component-secret").await;
    let config = json!({"auths": {host: {"username": "ann", "password": "hunter2"}}}).to_string();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull", "namespace": stage.name},
        "data": {".dockerconfigjson": BASE64_STANDARD.encode(config)}});
    stage.apply(secret).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
    let policies: kube::Api<pintle_api::PluginPolicy> = kube::Api::all(stage.client.clone());
    policies.delete(&stage.name, &kube::api::DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_held_by_a_hook_whose_registry_is_gone() {
    let mut stage = stage_of("cached-deletion").await;
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start();
    let component = tokio::task::spawn_blocking(|| stage::component("scripted-hook")).await.unwrap().unwrap();
    let image = registry.push("vendor/hook", component).await;
    let host = format!("127.0.0.1:{}", registry.port);
    let config = json!({"auths": {host.clone(): {"username": "ann", "password": "hunter2"}}}).to_string();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": stage.name},
        "data": {".dockerconfigjson": BASE64_STANDARD.encode(config)}});
    stage.apply(secret).await.unwrap();
    let settings = Settings { authorities: registry.authority.clone().into_bytes(), ..Settings::default() };
    let registries = BTreeMap::from([(host, settings)]);
    let options = |stage: &Stage| Options {
        registries: registries.clone(),
        plugin_cache: Some(folder.path().to_owned()),
        ..stage.options(stage.reach())
    };
    let read = json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]}]);
    let pull = json!([{"namespace": stage.name, "name": "pull"}]);
    plugin(&stage, &image, json!({"pullSecrets": pull, "grants": {"read": read}})).await;
    stage.start_operator_with(options(&stage));
    stage.apply(Chart::steps().repository().config_map(&stage.name)).await.unwrap();
    let mut hooked = owner(&stage, &stage.name);
    hooked["spec"]["set"] = json!({});
    hooked["spec"]["plugins"] = json!({"hooks": [stage.name]});
    stage.apply(hooked).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();

    drop(registry);
    let held = json!({"does": "hold", "reason": "Held", "message": "not before the backup is done"});
    script(&stage, &[("delete-pre", held)]).await;
    let owners: kube::Api<SpecialResource> = kube::Api::all(stage.client.clone());
    owners.delete(&stage.name, &kube::api::DeleteParams::default()).await.unwrap();
    stage.start_operator_with(options(&stage));
    waits_for(&stage, "Held", "not before the backup is done").await;
    script(&stage, &[]).await;
    let is_gone = async |stage: &Stage| Ok(stage.find("SpecialResource", &stage.name).await?.is_none());
    stage.eventually("the owner is gone", is_gone).await.unwrap();
    end(stage).await;
}

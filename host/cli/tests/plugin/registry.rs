//! Components to and from a real registry.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use pintle_dev::binaries::{self, Tool};
use serde_json::json;

use crate::pintle::{guest_named, pintle_in};

/// A registry in memory, on this machine; it ends with the test.
struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    fn start(folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let config = json!({"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": true}},
            "storage": {"inmemory": {}}, "http": {"addr": address}});
        let path = folder.join("registry.yaml");
        fs::write(&path, config.to_string()).unwrap();
        let binaries = binaries::ensure(&mut |line| eprintln!("{line}")).unwrap();
        let mut command = Command::new(binaries.path(Tool::Registry));
        let command = command.env("OTEL_TRACES_EXPORTER", "none").arg("serve").arg(path);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let registry = Self { process, address };
        let given_up = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(&registry.address).is_err() {
            assert!(Instant::now() < given_up, "the registry does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        registry
    }

    fn image(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_is_pushed_is_pulled_inspected_saved_and_loaded_with_the_same_digest() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path());
    let (component, image) = (guest_named("daemonset-rollout"), registry.image("vendor/rollout:1.0"));
    let pushed = pintle_in(folder.path(), ["push", component, &image, "-o", "json"]).json();
    let digest = pushed["digest"].as_str().unwrap();
    assert_eq!(pushed["pinned"], format!("{}@{digest}", registry.image("vendor/rollout")));
    let pinned = pushed["pinned"].as_str().unwrap();

    pintle_in(folder.path(), ["pull", pinned, "--file", "pulled.wasm"]).ok();
    assert_eq!(fs::read(folder.path().join("pulled.wasm")).unwrap(), fs::read(component).unwrap());
    let about = pintle_in(folder.path(), ["inspect", &image]).ok();
    assert!(about.contains(&format!("image: {image}@{digest}")), "{about}");

    pintle_in(folder.path(), ["save", &image, "bundle.tar"]).ok();
    let elsewhere = Registry::start(folder.path());
    let there = elsewhere.image("mirror/rollout:1.0");
    let loaded = pintle_in(folder.path(), ["load", "bundle.tar", &there, "-o", "json"]).json();
    assert_eq!(loaded["digest"], digest);
    let again = pintle_in(folder.path(), ["push", component, &there, "-o", "json"]).json();
    assert_eq!(again["digest"], digest, "equal components have equal digests");
}

#[test]
fn what_is_signed_is_verified_inspected_and_carries_its_signatures_along() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path());
    let (component, image) = (guest_named("daemonset-rollout"), registry.image("vendor/signed:1.0"));
    pintle_in(folder.path(), ["push", component, &image]).ok();
    let unsigned = pintle_in(folder.path(), ["sign", &image]).failed();
    assert!(unsigned.contains("could not read cosign.key; --generate makes a key there"), "{unsigned}");
    let signed = pintle_in(folder.path(), ["sign", &image, "--generate", "-o", "json"]).json();
    let key = signed["key"].as_str().unwrap();
    let again = pintle_in(folder.path(), ["sign", &image, "--generate"]).failed();
    assert!(again.contains("cosign.key is there already"), "{again}");

    let verified = pintle_in(folder.path(), ["verify", &image, "--key", "cosign.pub"]).ok();
    assert!(verified.contains(&format!("signed by key {key}")), "{verified}");
    let about = pintle_in(folder.path(), ["inspect", &image]).ok();
    assert!(about.contains("signed    bundle, by a key"), "{about}");
    assert!(about.contains("simple signature, by a key"), "{about}");

    pintle_in(folder.path(), ["sign", &image, "--key", "other.key", "--generate"]).ok();
    let both = pintle_in(
        folder.path(),
        ["verify", &image, "--key", "other.pub", "--key", "cosign.pub", "-o", "json"],
    );
    assert_eq!(both.json()["signers"].as_array().unwrap().len(), 2);

    let saved = pintle_in(folder.path(), ["save", &image, "signed.tar", "-o", "json"]).json();
    assert_eq!(saved["signatures"], 4, "two keys in two forms");
    pintle_in(folder.path(), ["verify", "signed.tar", "--key", "cosign.pub"]).ok();
    let elsewhere = Registry::start(folder.path());
    let there = elsewhere.image("mirror/signed:1.0");
    pintle_in(folder.path(), ["load", "signed.tar", &there]).ok();
    for key in ["cosign.pub", "other.pub"] {
        pintle_in(folder.path(), ["verify", &there, "--key", key]).ok();
    }
}

#[test]
fn who_did_not_sign_is_told_from_who_did() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path());
    let (component, image) = (guest_named("daemonset-rollout"), registry.image("vendor/refused:1.0"));
    pintle_in(folder.path(), ["push", component, &image]).ok();
    // A key that signed something else.
    let other = registry.image("vendor/other:1.0");
    pintle_in(folder.path(), ["push", guest_named("driver-loaded"), &other]).ok();
    pintle_in(folder.path(), ["sign", &other, "--generate"]).ok();
    let nobody = pintle_in(folder.path(), ["verify", &image, "--key", "cosign.pub"]).failed();
    assert!(nobody.contains("nobody signed sha256:") && nobody.contains("wanted key sha256:"), "{nobody}");
    pintle_in(folder.path(), ["sign", &image, "--key", "mine.key", "--generate"]).ok();
    let other = pintle_in(folder.path(), ["verify", &image, "--key", "cosign.pub"]).failed();
    assert!(other.contains("found one by another key"), "{other}");
    let identity = ["verify", &image, "--identity", "ann@example.org", "--issuer", "https://i.example"];
    let keyless = pintle_in(folder.path(), identity).failed();
    assert!(keyless.contains("found one by a key, where none is wanted"), "{keyless}");
    let logged =
        pintle_in(folder.path(), ["verify", &image, "--key", "mine.pub", "--transparency-log"]).failed();
    assert!(logged.contains("one without an entry in a log of the trust root"), "{logged}");
}

#[test]
fn a_registry_that_has_not_or_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::start(folder.path());
    let missing = pintle_in(folder.path(), ["pull", &registry.image("vendor/none:1")]).failed();
    assert!(missing.contains("was it pushed, and is the tag right?"), "{missing}");
    let no_plugin = folder.path().join("text.wasm");
    fs::write(&no_plugin, "hello").unwrap();
    let refused = pintle_in(folder.path(), ["push", "text.wasm", &registry.image("vendor/text:1")]).failed();
    assert!(refused.contains("text.wasm is no plugin that could be loaded"), "{refused}");
    let away = pintle_in(folder.path(), ["pull", "oci://127.0.0.1:1/vendor/none:1"]).failed();
    assert!(away.contains("registry 127.0.0.1:1 does not answer"), "{away}");
    let wrong = pintle_in(folder.path(), ["pull", "registry/none"]).failed();
    assert!(wrong.contains("it does not begin with oci://"), "{wrong}");
}

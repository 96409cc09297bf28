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

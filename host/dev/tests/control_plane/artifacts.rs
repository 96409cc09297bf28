//! Guests are built, pushed and pulled.

use std::path::Path;

use oci_distribution::client::{Client, ClientConfig, ClientProtocol};
use oci_distribution::secrets::RegistryAuth;
use pintle_dev::guest;
use pintle_dev::registry::{Artifact, CONFIG_TYPE, LAYER_TYPE, push};

use crate::support::plane;

fn client() -> Client {
    Client::new(ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() })
}

#[tokio::test]
async fn a_pushed_plugin_is_pulled_by_digest_with_the_layout_of_the_cncf() {
    let registry = plane().registry().unwrap();
    let artifact = Artifact {
        component: b"\0asm\x0d\0\x01\0".to_vec(),
        exports: vec!["pintle:plugin/readiness@0.1.0".to_owned()],
        annotations: [("dev.pintle.manifest".to_owned(), "{}".to_owned())].into(),
        ..Artifact::default()
    };
    let tagged = format!("oci://{registry}/vendor/plugin:1.0.0");
    let digest = push(&tagged, &artifact).await.unwrap();
    assert_eq!(push(&tagged, &artifact).await.unwrap(), digest, "the same component has the same digest");

    let reference = format!("{registry}/vendor/plugin@{digest}").parse().unwrap();
    let pulled = client().pull(&reference, &RegistryAuth::Anonymous, vec![LAYER_TYPE]).await.unwrap();
    assert_eq!(pulled.digest.unwrap(), digest);
    assert_eq!(pulled.layers.len(), 1);
    assert_eq!(
        (pulled.layers[0].media_type.as_str(), &*pulled.layers[0].data),
        (LAYER_TYPE, &*artifact.component)
    );
    let manifest = pulled.manifest.unwrap();
    assert_eq!(manifest.config.media_type, CONFIG_TYPE);
    assert_eq!(manifest.annotations.unwrap()["dev.pintle.manifest"], "{}");
    let config: serde_json::Value = serde_json::from_slice(&pulled.config.data).unwrap();
    assert_eq!(config["layerDigests"][0], manifest.layers[0].digest);
    assert_eq!(config["component"]["exports"][0], "pintle:plugin/readiness@0.1.0");
}

#[tokio::test]
async fn a_push_to_nowhere_says_where() {
    let error = push("127.0.0.1:1/vendor/plugin:1", &Artifact::default()).await.unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:1/vendor/plugin:1"), "{error}");
    let error = push("Not A Reference", &Artifact::default()).await.unwrap_err();
    assert!(error.to_string().contains("Not A Reference"), "{error}");
}

#[test]
fn a_guest_of_the_workspace_is_built_as_a_component() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut lines = Vec::new();
    let component =
        guest::build(&workspace, "driver-loaded", &mut |line| lines.push(line.to_owned())).unwrap();
    let bytes = std::fs::read(component).unwrap();
    // The version field tells a component (13, layer 1) from a core module (1, layer 0).
    assert!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "{:?}", bytes.get(..8));
    let home = std::env::var("HOME").unwrap();
    assert!(
        !bytes.windows(home.len()).any(|window| window == home.as_bytes()),
        "a path of this machine is in it"
    );
    assert!(!lines.is_empty());
    let error = guest::build(&workspace, "no-such-guest", &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("no-such-guest"), "{error}");
}

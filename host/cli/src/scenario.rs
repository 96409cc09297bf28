//! The example of the demo and of the tests: the operator's objects, a chart in a ConfigMap, a plugin
//! in a registry, and the SpecialResource that names them.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{DynamicObject, GroupVersionKind},
    discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind},
};
use pintle_chart::File;
use pintle_dev::{
    nodes,
    simulate::{Line, Simulators},
};
use pintle_source::{index, pack};
use serde_json::{Value, json};

/// Namespace of the operator.
pub const SYSTEM: &str = "pintle-system";
/// ServiceAccount of the operator.
pub const ACCOUNT: &str = "pintle";

/// How long a kind may take to be served once its definition is there.
const SERVED_WITHIN: Duration = Duration::from_secs(10);

/// What `kubectl apply -k deploy/base` applies, without the Deployment: here the operator is a process.
const DEPLOY: [&str; 7] = [
    include_str!("../../../deploy/base/namespace.yaml"),
    include_str!("../../../deploy/base/crds.yaml"),
    include_str!("../../../deploy/base/rbac.yaml"),
    include_str!("../../../deploy/base/rbac-simple-kmod.yaml"),
    include_str!("../../../deploy/base/rbac-memcached.yaml"),
    include_str!("../../../deploy/base/rbac-memcached-backup.yaml"),
    include_str!("../../../deploy/base/rbac-ptemplate.yaml"),
];
/// The example's objects, as the README has them.
const PLUGIN: &str = include_str!("../../../deploy/example/plugin.yaml");
const SPECIAL_RESOURCE: &str = include_str!("../../../deploy/example/special-resource.yaml");

/// Installs CustomResourceDefinitions, account and rights of the operator.
///
/// # Errors
/// When the API server refuses an object.
pub async fn install_operator(client: &Client) -> anyhow::Result<()> {
    for text in DEPLOY {
        for object in documents(text)? {
            apply(client, object).await?;
        }
    }
    wait_for_definitions(client).await
}

/// Packs a chart's folder into the ConfigMap `simple-kmod-chart` that `cm://` reads, in a namespace
/// that is made first.
///
/// # Errors
/// When the folder is no chart, or the API server refuses an object.
pub async fn install_chart(client: &Client, folder: &Path, namespace: &str, map: &str) -> anyhow::Result<()> {
    let url = format!("cm://{namespace}/{map}");
    let files = read_folder(folder).with_context(|| format!("could not read {}", folder.display()))?;
    let packed = pack(files).with_context(|| format!("could not pack {}", folder.display()))?;
    let index = index(std::slice::from_ref(&packed), Some(&url))?;
    apply(client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
    let mut archives = serde_json::Map::new();
    archives.insert(packed.file_name.clone(), json!(base64_of(&packed.bytes)));
    apply(
        client,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": map, "namespace": namespace},
            "data": {"index.yaml": index},
            "binaryData": archives
        }),
    )
    .await
}

/// Every file below a folder, by its path from there.
fn read_folder(folder: &Path) -> std::io::Result<Vec<File>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(inside) = path.strip_prefix(folder) {
                files.push(File::new(inside.to_string_lossy(), &std::fs::read(&path)?));
            }
        }
    }
    Ok(files)
}

/// The example's Plugin, with the image it was pushed to.
///
/// # Errors
/// When the API server refuses it.
pub async fn install_plugin(client: &Client, image: &str) -> anyhow::Result<()> {
    for mut object in documents(PLUGIN)? {
        object["spec"]["image"] = json!(image);
        apply(client, object).await?;
    }
    Ok(())
}

/// The example's SpecialResource.
///
/// # Errors
/// When the file in `deploy/example` cannot be read.
pub fn special_resource() -> anyhow::Result<Value> {
    documents(SPECIAL_RESOURCE)?.into_iter().next().context("deploy/example/special-resource.yaml is empty")
}

/// Teaches the simulated nodes what a driver container of simple-kmod prints while it loads its modules.
pub fn teach_driver(simulators: &Simulators) {
    simulators.logs().rule(|container| {
        let is_driver = container.name.ends_with("driver-container");
        is_driver.then(|| Line::driver(nodes::KERNEL, &["simple-kmod", "simple-procfs-kmod"]))
    });
}

/// Server-side apply of one object as an administrator.
///
/// # Errors
/// When its kind is not served, or the API server refuses it.
pub async fn apply(client: &Client, object: Value) -> anyhow::Result<()> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
    let (group, version) = match text("/apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("/apiVersion")),
    };
    let gvk = GroupVersionKind { group, version, kind: kind.clone() };
    let (resource, capabilities) =
        served(client, &gvk).await.with_context(|| format!("the cluster does not serve {kind}"))?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &namespace, &resource),
    };
    let params = PatchParams::apply("pintle-demo").force();
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .with_context(|| format!("could not apply {kind} {name}"))?;
    Ok(())
}

/// How a kind is served. A definition is established a moment before every kind of it is found.
async fn served(client: &Client, kind: &GroupVersionKind) -> kube::Result<(ApiResource, ApiCapabilities)> {
    let given_up = Instant::now() + SERVED_WITHIN;
    loop {
        match pinned_kind(client, kind).await {
            Err(_) if Instant::now() < given_up => tokio::time::sleep(Duration::from_millis(100)).await,
            found => return found,
        }
    }
}

/// The folder of a chart of ours in the source tree this program was built from.
#[must_use]
pub fn chart_folder(name: &str) -> PathBuf {
    source_tree().join("charts").join(name)
}

/// The source tree this program was built from.
#[must_use]
pub fn source_tree() -> &'static Path {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.parent().and_then(Path::parent).unwrap_or(folder)
}

async fn wait_for_definitions(client: &Client) -> anyhow::Result<()> {
    use kube::runtime::{conditions::is_crd_established, wait::await_condition};
    let api: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(client.clone());
    for definition in pintle_api::crd::all() {
        let name = definition.metadata.name.unwrap_or_default();
        let established = await_condition(api.clone(), &name, is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), established)
            .await
            .map_err(|_| anyhow!("{name} is not established after 30 s"))?
            .with_context(|| format!("could not watch {name}"))?;
    }
    Ok(())
}

fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let parts = text.split("\n---").map(|part| part.trim_start_matches('-'));
    let parsed =
        parts.map(|part| serde_yaml::from_str::<Value>(part).context("a file in deploy/ is no YAML"));
    parsed.filter(|value| !matches!(value, Ok(Value::Null))).collect()
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    BASE64_STANDARD.encode(bytes)
}

//! A plugin, loaded as the operator would load it, from a file or a registry.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow, bail};
use pintle_api::plugin::{Grants, PluginSpec};
use pintle_plugin::{Artifact, Engine, LoadError, Options, Plugin};
use pintle_source::{artifact::Parts, bundle::Bundle, signature};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{progress::Progress, transfer::RegistryArgs};

/// Which plugin, and how it is installed.
#[derive(Debug, clap::Args)]
pub(super) struct Settings {
    /// A component, or `oci://registry/name:tag`.
    pub(super) plugin: String,
    /// A Plugin object (YAML): its config, grants, limits and wasi count. Without it the plugin gets what
    /// its manifest asks for.
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// The plugin's config (YAML or JSON), instead of that in the Plugin object.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// A plugin that can be called.
pub(super) struct Loaded {
    pub(super) plugin: Plugin,
    pub(super) bytes: Arc<[u8]>,
    pub(super) spec: PluginSpec,
    /// `sha256:…` of the manifest in the registry, where it came from one.
    pub(super) digest: Option<String>,
    /// What its signatures say there, each in a line; nothing of it is verified.
    pub(super) signatures: Vec<String>,
}

/// Loads a plugin. What it needs is granted unless a Plugin object says otherwise.
pub(super) async fn load(settings: &Settings, progress: &Progress) -> anyhow::Result<Loaded> {
    let pulled = match settings.plugin.starts_with("oci://") {
        true => Some(pull(&settings.plugin, &settings.registry, progress).await?),
        false => None,
    };
    let bytes = match &pulled {
        Some(pulled) => pulled.component().into(),
        None => read(Path::new(&settings.plugin))?,
    };
    let spec = settings.spec()?;
    progress.step(&format!("compiling {}", settings.plugin));
    let mut loaded = load_bytes(&name_of(&settings.plugin), bytes, spec).await?;
    loaded.digest = pulled.as_ref().map(Bundle::digest);
    loaded.signatures = pulled.as_ref().map(signature::claims).unwrap_or_default();
    match settings.object {
        Some(_) => Ok(loaded),
        None => loaded.with_needs().await,
    }
}

/// The bytes of a component, from a file or a registry.
pub(super) async fn bytes_of(
    image: &str,
    registry: &RegistryArgs,
    progress: &Progress,
) -> anyhow::Result<Arc<[u8]>> {
    if !image.starts_with("oci://") {
        return read(Path::new(image));
    }
    Ok(pull(image, registry, progress).await?.component().into())
}

/// Loads a component as its spec says; wasi is offered where it is needed.
pub(super) async fn load_bytes(name: &str, bytes: Arc<[u8]>, mut spec: PluginSpec) -> anyhow::Result<Loaded> {
    let engine = Engine::new(&Options::default())?;
    let artifact =
        || Artifact { name: name.to_owned(), digest: "sha256:0".to_owned(), bytes: Arc::clone(&bytes) };
    let plugin = match Plugin::load(&engine, artifact(), &spec).await {
        Err(LoadError::NeedsWasi { .. }) => {
            spec.wasi = true;
            Plugin::load(&engine, artifact(), &spec).await
        }
        loaded => loaded,
    };
    let plugin = plugin.map_err(|error| match error {
        LoadError::Config(_) => anyhow!(error).context("give it a config it accepts with --config FILE"),
        error => anyhow!(error),
    })?;
    Ok(Loaded { plugin, bytes, spec, digest: None, signatures: Vec::new() })
}

impl Loaded {
    /// The same plugin with all that its manifest asks for.
    async fn with_needs(mut self) -> anyhow::Result<Self> {
        self.spec.grants = self.needs()?;
        self.plugin = self.plugin.rebind(&self.spec).await.context("its own needs cannot be granted")?;
        Ok(self)
    }

    /// What its manifest asks for, as grants.
    pub(super) fn needs(&self) -> anyhow::Result<Grants> {
        let needs = serde_json::to_value(&self.plugin.manifest().needs)?;
        serde_json::from_value(needs).context("the needs in its manifest are no grants")
    }

    /// The same plugin without a grant.
    pub(super) async fn without_grants(&self) -> anyhow::Result<Plugin> {
        let spec = PluginSpec { grants: Grants::default(), ..self.spec.clone() };
        Ok(self.plugin.rebind(&spec).await?)
    }
}

impl Settings {
    fn spec(&self) -> anyhow::Result<PluginSpec> {
        let mut spec = match &self.object {
            Some(path) => {
                let object: Value = read_yaml(path)?;
                let spec = object.get("spec").cloned().unwrap_or_default();
                serde_json::from_value(spec).with_context(|| {
                    format!("{} is no Plugin object; see `pintle plugin inspect`", path.display())
                })?
            }
            None => empty_spec()?,
        };
        if let Some(path) = &self.config {
            let config: Map<String, Value> = read_yaml(path)?;
            spec.config = config;
        }
        Ok(spec)
    }
}

/// A Plugin that is granted nothing.
pub(super) fn empty_spec() -> anyhow::Result<PluginSpec> {
    Ok(serde_json::from_value(json!({"image": "oci://local/plugin:0"}))?)
}

/// `driver-loaded` of `target/driver_loaded.wasm` and of `oci://r/driver-loaded:1`.
fn name_of(plugin: &str) -> String {
    let last = plugin.rsplit('/').next().unwrap_or(plugin);
    last.split(['.', ':', '@']).next().unwrap_or(last).replace('_', "-")
}

pub(super) fn read(path: &Path) -> anyhow::Result<Arc<[u8]>> {
    if path.is_dir() {
        bail!("{0} is a folder; `pintle plugin build {0}` makes a component of it", path.display())
    }
    let bytes = std::fs::read(path).with_context(|| format!("could not read {}", path.display()))?;
    Ok(bytes.into())
}

pub(super) fn read_yaml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    serde_yaml::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
}

async fn pull(image: &str, registry: &RegistryArgs, progress: &Progress) -> anyhow::Result<Bundle> {
    progress.step(&format!("pulling {image}"));
    let access = registry.access()?;
    Ok(registry.registries().pull_plugin(image, &access, Parts::WithSignatures).await?)
}

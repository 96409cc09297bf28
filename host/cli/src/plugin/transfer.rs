//! `push`, `pull`, `save` and `load`: components between files and registries.

use std::{
    collections::BTreeMap,
    fs,
    io::{IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_plugin::Plugin;
use pintle_source::{
    Access, Tls,
    artifact::{Credentials, Parts, Registries},
    bundle::{Bundle, Described},
    signature,
};
use serde_json::json;

use super::{Output, loaded, print, progress::Progress, section};

/// How a registry is spoken to.
#[derive(Debug, clap::Args)]
pub(super) struct RegistryArgs {
    /// A registry (`host:port`) that speaks plain HTTP; those on this machine do.
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) plain_http: Vec<String>,
    /// Certificates of authorities (PEM) that are trusted too.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// User of the registry.
    #[arg(long, requires = "password_stdin")]
    user: Option<String>,
    /// Reads the password from standard input, so that no list of processes shows it.
    #[arg(long, requires = "user")]
    password_stdin: bool,
}

/// Arguments of `push`.
#[derive(Debug, clap::Args)]
pub(super) struct PushArgs {
    /// The component.
    file: PathBuf,
    /// `oci://registry/name:tag`.
    image: String,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Arguments of `pull`.
#[derive(Debug, clap::Args)]
pub(super) struct PullArgs {
    /// `oci://registry/name:tag` or `…@sha256:…`.
    image: String,
    /// The file to write; without one the name of the image with `.wasm`.
    #[arg(short, long)]
    file: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Arguments of `save`.
#[derive(Debug, clap::Args)]
pub(super) struct SaveArgs {
    /// `oci://registry/name:tag` or `…@sha256:…`.
    image: String,
    /// The archive to write, an OCI image layout.
    file: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Arguments of `load`.
#[derive(Debug, clap::Args)]
pub(super) struct LoadArgs {
    /// The archive.
    file: PathBuf,
    /// `oci://registry/name:tag`.
    image: String,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) async fn push(args: PushArgs, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let PushArgs { file, image, registry } = args;
    let bytes = loaded::read(&file)?;
    // A component that nobody could load is not worth a tag. Its config is the administrator's, so one
    // that wants some is described by the manifest that `build` has put into it.
    let described = match loaded::load_bytes("pushed", bytes.clone(), loaded::empty_spec()?).await {
        Ok(loaded) => describe(&bytes, &loaded.plugin)?,
        Err(error) => match section::manifest(&bytes) {
            Ok(Some(manifest)) => Described {
                component: bytes.to_vec(),
                annotations: annotations(&manifest)?,
                ..Described::default()
            },
            _ => return Err(error.context(format!("{} is no plugin that could be loaded", file.display()))),
        },
    };
    let bundle = Bundle::new(described);
    let digest = send(&bundle, &image, &registry, progress).await?;
    told(output, &image, &digest)
}

pub(super) async fn pull(args: PullArgs, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let PullArgs { image, file, registry } = args;
    progress.step(&format!("pulling {image}"));
    let pulled = registry.registries().pull_with(&image, &registry.access()?).await?;
    let file = file.unwrap_or_else(|| PathBuf::from(base_name(&image)).with_extension("wasm"));
    write(&file, &pulled.bytes)?;
    let text = format!("{} ({} bytes, {})\n", file.display(), pulled.bytes.len(), pulled.digest);
    print(output, &text, &json!({"file": file, "digest": pulled.digest, "bytes": pulled.bytes.len()}))
}

pub(super) async fn save(args: SaveArgs, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let SaveArgs { image, file, registry } = args;
    progress.step(&format!("pulling {image}"));
    let access = registry.access()?;
    let bundle = registry.registries().pull_plugin(&image, &access, Parts::WithSignatures).await?;
    let mut archive = Vec::new();
    bundle.write(&image, &mut archive)?;
    write(&file, &archive)?;
    let signatures = signature::claims(&bundle).len();
    let size = archive.len();
    let text = format!("{} ({size} bytes, {}, {signatures} signatures)\n", file.display(), bundle.digest());
    let json = json!({"file": file, "digest": bundle.digest(), "image": image, "signatures": signatures});
    print(output, &text, &json)
}

pub(super) async fn load(args: LoadArgs, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let LoadArgs { file, image, registry } = args;
    let archive = fs::File::open(&file).with_context(|| format!("could not open {}", file.display()))?;
    let (_, bundle) = Bundle::read(archive).with_context(|| format!("could not load {}", file.display()))?;
    let digest = send(&bundle, &image, &registry, progress).await?;
    told(output, &image, &digest)
}

async fn send(
    bundle: &Bundle,
    image: &str,
    registry: &RegistryArgs,
    progress: &Progress,
) -> anyhow::Result<String> {
    progress.step(&format!("pushing {image}"));
    Ok(registry.registries().push_with(image, bundle, &registry.access()?).await?)
}

/// What is pinned in a Plugin object.
fn told(output: Output, image: &str, digest: &str) -> anyhow::Result<()> {
    let pinned = format!("{}@{digest}", without_tag(image));
    print(output, &format!("{pinned}\n"), &json!({"image": image, "digest": digest, "pinned": pinned}))
}

/// A component with what registries and scanners are told about it.
fn describe(bytes: &[u8], plugin: &Plugin) -> anyhow::Result<Described> {
    let manifest = match section::manifest(bytes)? {
        Some(manifest) => manifest,
        None => serde_json::to_string(plugin.manifest())?,
    };
    let exports = plugin.offers().iter().map(|export| format!("pintle:plugin/{}", export.as_str())).collect();
    let imports = plugin.imports().to_vec();
    Ok(Described { component: bytes.to_vec(), exports, imports, annotations: annotations(&manifest)? })
}

fn annotations(manifest: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let parsed: serde_json::Value = serde_json::from_str(manifest).context("its manifest is no JSON")?;
    let mut annotations = BTreeMap::from([(section::ANNOTATION.to_owned(), manifest.to_owned())]);
    for (key, field) in [("title", "name"), ("version", "version"), ("description", "description")] {
        if let Some(text) = parsed.get(field).and_then(|value| value.as_str()).filter(|text| !text.is_empty())
        {
            annotations.insert(format!("org.opencontainers.image.{key}"), text.to_owned());
        }
    }
    Ok(annotations)
}

impl RegistryArgs {
    /// The client for what is asked of registries.
    pub(super) fn registries(&self) -> Registries {
        Registries::new(&self.plain_http)
    }

    /// User, password and authorities, where they are given.
    pub(super) fn access(&self) -> anyhow::Result<Access> {
        let read =
            |path: &PathBuf| fs::read(path).with_context(|| format!("could not read {}", path.display()));
        let authorities = self.ca_file.as_ref().map(read).transpose()?.unwrap_or_default();
        let tls = Tls { authorities, ..Tls::default() };
        Ok(Access { credentials: self.credentials()?, tls, ..Access::default() })
    }

    /// User and password, where they are given.
    pub(super) fn credentials(&self) -> anyhow::Result<Option<Credentials>> {
        let Some(user) = &self.user else { return Ok(None) };
        if std::io::stdin().is_terminal() {
            bail!("--password-stdin reads the password from a pipe: `… --password-stdin < FILE`")
        }
        let mut password = String::new();
        std::io::stdin().read_to_string(&mut password).context("could not read the password")?;
        Ok(Some(Credentials {
            user: user.clone(),
            password: password.trim_end_matches(['\r', '\n']).to_owned(),
        }))
    }
}

/// `driver-loaded` of `oci://registry/plugins/driver-loaded:1.0`.
fn base_name(image: &str) -> String {
    let name = without_tag(image);
    name.rsplit('/').next().unwrap_or("plugin").to_owned()
}

pub(super) fn without_tag(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_told_from_ports() {
        assert_eq!(without_tag("oci://127.0.0.1:5000/a/b:1.0"), "oci://127.0.0.1:5000/a/b");
        assert_eq!(without_tag("oci://127.0.0.1:5000/a/b"), "oci://127.0.0.1:5000/a/b");
        assert_eq!(without_tag("oci://r/b:1@sha256:0"), "oci://r/b");
        assert_eq!(base_name("oci://127.0.0.1:5000/a/b:1.0"), "b");
    }
}

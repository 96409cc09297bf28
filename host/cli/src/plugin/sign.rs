//! `pintle plugin sign`: signs what is in a registry with a key of one's own, as `cosign sign --key` does.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_source::{
    artifact::Parts,
    signature::{self, PrivateKey, Wanted},
};
use serde_json::json;

use super::{
    Output, print,
    progress::Progress,
    transfer::{RegistryArgs, without_tag},
};

/// The variable with the password of a private key, as cosign has it.
const PASSWORD: &str = "COSIGN_PASSWORD";

/// Arguments of `pintle plugin sign`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// `oci://registry/name:tag` or `…@sha256:…`.
    image: String,
    /// A private key as cosign keeps it; its password stands in COSIGN_PASSWORD.
    #[arg(long, value_name = "FILE", default_value = "cosign.key")]
    key: PathBuf,
    /// Makes the key first, and its public key beside it; none is replaced.
    #[arg(long)]
    generate: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { image, key: path, generate, registry } = args;
    let password = std::env::var(PASSWORD).unwrap_or_default();
    let key = if generate { make(&path, &password)? } else { open(&path, &password)? };
    let (access, registries) = (registry.access()?, registry.registries());
    progress.step(&format!("pulling {image}"));
    let mut plugin = registries.pull_plugin(&image, &access, Parts::WithSignatures).await?;
    let before = registries.simple_signatures(&image, &plugin, &access).await?;
    let place = without_tag(&image);
    let name = place.strip_prefix("oci://").unwrap_or(place);
    let signatures = [key.attest(&plugin)?, key.sign_simply(&plugin, name, before.as_ref())?];
    progress.step(&format!("pushing signatures of {}", plugin.digest()));
    for signature in signatures {
        registries.attach(&image, &plugin, &signature, &access).await?;
        plugin.attach(signature);
    }
    let public = key.public()?;
    // What nobody could verify must not look as if it were signed.
    signature::verify(&plugin, &Wanted { keys: vec![public.clone()], ..Wanted::default() })
        .context("the signatures do not verify")?;
    let pinned = format!("{place}@{}", plugin.digest());
    let text = format!("{pinned}\nsigned by key {}\n", public.fingerprint());
    print(output, &text, &json!({"pinned": pinned, "digest": plugin.digest(), "key": public.fingerprint()}))
}

fn open(path: &Path, password: &str) -> anyhow::Result<PrivateKey> {
    let pem = fs::read_to_string(path)
        .with_context(|| format!("could not read {}; --generate makes a key there", path.display()))?;
    PrivateKey::open(&pem, password.as_bytes()).with_context(|| format!("could not open {}", path.display()))
}

/// A new key in a file that nobody else may read, and its public key in one that everybody may.
fn make(path: &Path, password: &str) -> anyhow::Result<PrivateKey> {
    let public_path = path.with_extension("pub");
    for path in [path, &public_path] {
        if path.exists() {
            bail!("{} is there already; take --generate away to sign with it", path.display())
        }
    }
    let key = PrivateKey::generate()?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let could_not = || format!("could not write {}", path.display());
    let mut file = options.open(path).with_context(could_not)?;
    file.write_all(key.seal(password.as_bytes())?.as_bytes()).with_context(could_not)?;
    fs::write(&public_path, key.public()?.pem())
        .with_context(|| format!("could not write {}", public_path.display()))?;
    Ok(key)
}

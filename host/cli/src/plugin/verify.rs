//! `pintle plugin verify`: would the operator load this, given whom a Plugin names?

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use pintle_api::plugin_policy::Signer;
use pintle_source::{
    artifact::Parts,
    bundle::Bundle,
    signature::{self, IdentityPattern, PublicKey, TrustRoot, Wanted},
};
use serde_json::json;

use super::{Output, print, progress::Progress, transfer::RegistryArgs};
use crate::operator::read_trust_root;

/// Arguments of `pintle plugin verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// `oci://registry/name:tag`, or an archive that `save` wrote: that needs no network.
    plugin: String,
    /// A public key that may have signed; may be given again.
    #[arg(long, value_name = "FILE", required_unless_present = "identity")]
    key: Vec<PathBuf>,
    /// An identity that may have signed: an email, or the URL of a workflow; `*` stops at a slash, `**` does not.
    #[arg(long, value_name = "SUBJECT", requires = "issuer")]
    identity: Option<String>,
    /// Who vouches for the identity.
    #[arg(long, value_name = "URL", requires = "identity")]
    issuer: Option<String>,
    /// Authorities and logs (Sigstore's `trusted_root.json`); default: the public instance's.
    #[arg(long, value_name = "FILE")]
    trust_root: Option<PathBuf>,
    /// Signatures by keys must be in a log too.
    #[arg(long)]
    transparency_log: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let wanted = wanted(&args)?;
    let plugin = plugin(&args, progress).await?;
    let signers = signature::verify(&plugin, &wanted)?;
    let mut text = format!("{}\n", plugin.digest());
    for signer in &signers {
        text += &match signer {
            Signer::Key(key) => format!("signed by key {key}\n"),
            Signer::Identity { issuer, subject } => format!("signed by {subject} of {issuer}\n"),
        };
    }
    print(output, &text, &json!({"digest": plugin.digest(), "signers": signers}))
}

async fn plugin(args: &Args, progress: &Progress) -> anyhow::Result<Bundle> {
    let Args { plugin, registry, .. } = args;
    if !plugin.starts_with("oci://") {
        let archive = fs::File::open(plugin).with_context(|| format!("could not open {plugin}"))?;
        return Ok(Bundle::read(archive).with_context(|| format!("could not read {plugin}"))?.1);
    }
    progress.step(&format!("pulling {plugin}"));
    let access = registry.access()?;
    Ok(registry.registries().pull_plugin(plugin, &access, Parts::WithSignatures).await?)
}

fn wanted(args: &Args) -> anyhow::Result<Wanted> {
    let Args { key, identity, issuer, trust_root, transparency_log, .. } = args;
    let read = |path: &PathBuf| {
        let pem = fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
        PublicKey::parse(&pem).with_context(|| format!("could not use {}", path.display()))
    };
    let keys = key.iter().map(read).collect::<anyhow::Result<_>>()?;
    let identities = match (issuer, identity) {
        (Some(issuer), Some(subject)) => vec![IdentityPattern::new(issuer, subject)?],
        _ => Vec::new(),
    };
    let root = match trust_root {
        Some(path) => Some(TrustRoot::parse(&read_trust_root(path)?)?),
        None if *transparency_log || !identities.is_empty() => Some(TrustRoot::public()?),
        None => None,
    };
    Ok(Wanted { keys, identities, root, transparency_log: *transparency_log })
}

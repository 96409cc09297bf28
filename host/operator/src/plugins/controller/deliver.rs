//! From `spec.image` to a plugin whose bytes and signers are known.

use std::path::Path;

use pintle_api::{
    Object,
    plugin::{PluginSpec, PullPolicy, SignerIdentity, Verify},
    plugin_policy::Signer,
};
use pintle_source::{
    Access, Store,
    artifact::{Parts, PullError, is_pinned, registry_of},
    bundle::{Bundle, Described},
    keyring::DockerConfig,
    signature::{self, IdentityPattern, PublicKey, TrustRoot, VerifyError, Wanted},
};

use super::{Fault, Stage, inputs::Inputs, place::Place};
use crate::{context::Context, error_text::one_line, plugins::Unready};

/// Bytes of a component in a file; as of one in a registry.
const MAX_FILE: u64 = 32 << 20;

/// A plugin whose digest was checked, and who signed it.
pub(super) struct Delivered {
    pub(super) plugin: Bundle,
    pub(super) signers: Vec<Signer>,
}

/// What is delivered, and how.
pub(super) struct Order<'a> {
    pub(super) ctx: &'a Context,
    pub(super) spec: &'a PluginSpec,
    pub(super) inputs: &'a Inputs,
}

/// The image that is pulled: a tag is resolved once, and the digest that was recorded for the very same text is
/// what is pulled from then on.
pub(super) fn wanted_image(object: &Object, spec: &PluginSpec) -> String {
    let recorded = object.str_at("/status/digest").filter(|digest| !digest.is_empty());
    let is_same = object.str_at("/status/image") == Some(&spec.image);
    match recorded.filter(|_| is_same && spec.pull_policy != PullPolicy::Always && !is_pinned(&spec.image)) {
        Some(digest) => pinned(&spec.image, digest),
        None => spec.image.clone(),
    }
}

/// The same image by a digest.
pub(super) fn pinned(image: &str, digest: &str) -> String {
    format!("{}@{digest}", without_tag(image))
}

fn without_tag(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

impl Order<'_> {
    /// Gets a plugin and verifies it.
    ///
    /// Without `spec.verify` a component must be named by its digest, or the operator must allow any.
    pub(super) async fn fill(&self, place: &Place, image: &str) -> Result<Delivered, Fault> {
        let wanted = self.wanted().map_err(Fault::at(Stage::Verify))?;
        if wanted.is_none() && !is_pinned(&self.spec.image) && !self.ctx.options.allow_unsigned {
            return Err(Fault { stage: Stage::Verify, unready: not_pinned(&self.spec.image) });
        }
        match place {
            Place::Registry => self.pull(image, wanted.as_ref()).await,
            Place::ConfigMap(_, digest) => {
                let bytes = self.inputs.component.clone().unwrap_or_default();
                self.take(bytes, digest.as_deref(), wanted.as_ref())
            }
            Place::File(path, digest) => {
                let bytes = self.file(path).await.map_err(Fault::at(Stage::Pull))?;
                self.take(bytes, digest.as_deref(), wanted.as_ref())
            }
        }
    }

    async fn pull(&self, image: &str, wanted: Option<&Wanted>) -> Result<Delivered, Fault> {
        let store = self.ctx.shelf.store.as_ref();
        let may_use_store = self.spec.pull_policy != PullPolicy::Always;
        if let Some(kept) = store.filter(|_| may_use_store).and_then(|store| kept(store, image)) {
            // What was signed since then is in the registry alone.
            if let Ok(signers) = verify(&kept, wanted) {
                return Ok(Delivered { plugin: kept, signers });
            }
        }
        if self.spec.pull_policy == PullPolicy::Never {
            return Err(Fault { stage: Stage::Pull, unready: not_kept(image) });
        }
        let parts = match (wanted, store) {
            (None, None) => Parts::Plugin,
            _ => Parts::WithSignatures,
        };
        let access = self.access(image).await.map_err(Fault::at(Stage::Pull))?;
        let pulled = self.ctx.plugins.registries.pull_plugin(image, &access, parts).await;
        let plugin = pulled.map_err(|err| Fault { stage: Stage::Pull, unready: Unready::from_pull(&err) })?;
        let signers = verify(&plugin, wanted)
            .map_err(|err| Fault { stage: Stage::Verify, unready: Unready::from_verify(&err) })?;
        if let Some(store) = store.cloned() {
            let kept = plugin.clone();
            // A slow disk holds up nobody; a lost one is told in the log.
            drop(tokio::task::spawn_blocking(move || store.put(&kept)).await);
        }
        Ok(Delivered { plugin, signers })
    }

    fn take(
        &self,
        component: Vec<u8>,
        digest: Option<&str>,
        wanted: Option<&Wanted>,
    ) -> Result<Delivered, Fault> {
        let actual = pintle_source::digest_of(&component);
        if let Some(expected) = digest.filter(|expected| *expected != actual) {
            let err = PullError::WrongDigest {
                image: self.spec.image.clone(),
                expected: expected.to_owned(),
                actual,
            };
            return Err(Fault { stage: Stage::Pull, unready: Unready::from_pull(&err) });
        }
        let plugin = Bundle::new(Described { component, ..Described::default() });
        let signers = verify(&plugin, wanted)
            .map_err(|err| Fault { stage: Stage::Verify, unready: Unready::from_verify(&err) })?;
        Ok(Delivered { plugin, signers })
    }

    /// The bytes of a component in one of the folders that the operator was given for it.
    async fn file(&self, path: &Path) -> Result<Vec<u8>, Unready> {
        let refuse = |reason: &str, message: String, may_pass| {
            Err(Unready { reason: reason.to_owned(), message, may_pass })
        };
        let shown = path.display();
        let Ok(real) = tokio::fs::canonicalize(path).await else {
            return refuse(
                "NotFound",
                format!("{shown} is not there in the operator's container; mount it"),
                true,
            );
        };
        let folders = self.ctx.options.plugin_folders.iter();
        if !folders.filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder)) {
            let message = format!(
                "{shown} is in no folder that plugins may come from; run the operator with --plugin-folder FOLDER"
            );
            return refuse("NotAllowed", message, false);
        }
        match tokio::fs::metadata(&real).await {
            Ok(found) if found.is_file() && found.len() <= MAX_FILE => {}
            _ => {
                return refuse("NotAPlugin", format!("{shown} is no file of at most {MAX_FILE} bytes"), true);
            }
        }
        match tokio::fs::read(&real).await {
            Ok(bytes) => Ok(bytes),
            Err(err) => refuse("NotFound", format!("{shown} cannot be read: {err}"), true),
        }
    }

    /// As whom the registry is asked: with the secrets of the Plugin, then with those of the operator itself.
    async fn access(&self, image: &str) -> Result<Access, Unready> {
        let mut keyring = self.inputs.keyring.clone();
        if let Some(path) = &self.ctx.options.registry_config {
            let broken =
                |message| Unready { reason: "PullConfigInvalid".to_owned(), message, may_pass: true };
            let config = DockerConfig::read(path).map_err(|err| broken(one_line(&err)))?;
            let registry = registry_of(image).map_err(|err| Unready::from_pull(&err))?;
            keyring = keyring.and(config.keyring(&registry).await);
        }
        Ok(Access { keyring: keyring.into(), ..Access::default() })
    }

    /// Whose signatures count; nothing where nobody's are asked for.
    fn wanted(&self) -> Result<Option<Wanted>, Unready> {
        let Some(verify) = &self.spec.verify else { return Ok(None) };
        let Verify { identities, transparency_log, .. } = verify;
        let invalid =
            |reason: &str, message: String| Unready { reason: reason.to_owned(), message, may_pass: false };
        let keys = self.inputs.keys.iter().map(|pem| PublicKey::parse(pem));
        let keys: Result<Vec<_>, _> = keys.collect();
        let keys = keys.map_err(|err| {
            invalid("InvalidKey", format!("an entry of spec.verify.publicKeys: {}", one_line(&err)))
        })?;
        let pattern =
            |SignerIdentity { issuer, subject }: &SignerIdentity| IdentityPattern::new(issuer, subject);
        let identities: Result<Vec<_>, _> = identities.iter().map(pattern).collect();
        let identities = identities.map_err(|err| {
            invalid("InvalidIdentity", format!("an entry of spec.verify.identities: {err}"))
        })?;
        let needs_root = *transparency_log || !identities.is_empty();
        let root = needs_root.then(|| self.root()).transpose();
        let root = root.map_err(|err| invalid("TrustRootInvalid", one_line(&err)))?;
        Ok(Some(Wanted { keys, identities, root, transparency_log: *transparency_log }))
    }

    /// The trust root of the Plugin, else the operator's, else the public one. One that is named and broken is
    /// never replaced by another.
    fn root(&self) -> Result<TrustRoot, signature::RootError> {
        match self.inputs.root.as_ref().or(self.ctx.options.trust_root.as_ref()) {
            Some(text) => TrustRoot::parse(text),
            None => TrustRoot::public(),
        }
    }
}

fn kept(store: &Store, image: &str) -> Option<Bundle> {
    store.get(image.rsplit_once('@')?.1)
}

fn verify(plugin: &Bundle, wanted: Option<&Wanted>) -> Result<Vec<Signer>, VerifyError> {
    wanted.map_or(Ok(Vec::new()), |wanted| signature::verify(plugin, wanted))
}

fn not_pinned(image: &str) -> Unready {
    let names = match image.starts_with("oci://") {
        true => "a tag, and what a tag means may change",
        false => "no digest, and what is there may change",
    };
    Unready {
        reason: "NotPinned".to_owned(),
        message: format!(
            "`{image}` names {names}; name under spec.verify who signs it, write …@sha256:…, or run the operator with \
             --allow-unsigned"
        ),
        may_pass: false,
    }
}

fn not_kept(image: &str) -> Unready {
    Unready {
        reason: "NotInCache".to_owned(),
        message: format!(
            "`{image}` is not in the operator's cache, and spec.pullPolicy is Never; pull it once with IfNotPresent"
        ),
        may_pass: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_cut_and_a_port_is_not() {
        for (image, expected) in [
            ("oci://127.0.0.1:5000/a:1.0", "oci://127.0.0.1:5000/a@sha256:00"),
            ("oci://127.0.0.1:5000/a", "oci://127.0.0.1:5000/a@sha256:00"),
            ("oci://r/a:1@sha256:11", "oci://r/a@sha256:00"),
        ] {
            assert_eq!(pinned(image, "sha256:00"), expected);
        }
    }
}

//! Components that charts name themselves, `oci://…@sha256:…`: only as far as a PluginPolicy lets them (D60).

use std::{collections::BTreeSet, time::Duration};

use pintle_api::{Facts, PluginPolicy, Query, Record, plugin::PluginSpec, plugin_policy::Signer};
use pintle_plan::fnv1a;
use pintle_plugin::{
    Artifact, Plugin,
    policy::{Admitted, Candidate, admit},
};
use pintle_source::{
    Access,
    artifact::{Parts, PullError, registry_of},
    bundle::Bundle,
    keyring::{DockerConfig, Keyring},
    signature::{self, IdentityPattern, PublicKey, TrustRoot, Wanted},
};
use serde_json::{Value, json};

use super::{Loaded, Unready};
use crate::{
    context::{Context, Key},
    error_text::one_line,
    images::keyring_of,
};

/// What such a reference begins with.
const SCHEME: &str = "oci://";
/// First pause before a registry is asked again; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(2);
/// Longest pause before a registry is asked again.
const LONGEST: Duration = Duration::from_secs(300);
/// The annotation of an image with the manifest of its plugin.
const ANNOTATION: &str = "pintle.dev/manifest";
/// Letters of a short name before the digest.
const NAME: usize = 40;
/// Letters of a digest that tell two components of one name apart.
const DIGEST: usize = 7;

/// True for a component that a chart names itself.
pub(crate) fn is_reference(name: &str) -> bool {
    name.starts_with(SCHEME)
}

/// What a plugin is called in conditions and status: its name, or the end of its reference with a part of the
/// digest.
pub(crate) fn spoken(name: &str) -> String {
    let Some(rest) = name.strip_prefix(SCHEME) else { return name.to_owned() };
    let (path, digest) = rest.split_once("@sha256:").unwrap_or((rest, ""));
    let last = path.rsplit('/').next().unwrap_or(path);
    let last = last.split(':').next().unwrap_or(last);
    let (last, digest): (String, String) =
        (last.chars().take(NAME).collect(), digest.chars().take(DIGEST).collect());
    if digest.is_empty() { last } else { format!("{last}-{digest}") }
}

/// Lets a component in or refuses it, as the policies are now. A change of one asks again.
pub(crate) async fn reconcile(ctx: &Context, reference: &str) -> Option<Duration> {
    let key = Key::Component(reference.to_owned());
    let callers = ctx.ledger.callers_of(reference);
    if callers.is_empty() {
        ctx.plugins.forget(reference);
        ctx.watches.register(&key.holder(), &Record::default());
        return None;
    }
    let (policies, reads) = ctx.know(&key, observe).await;
    ctx.watches.register(&key.holder(), &reads);
    let mark = mark(&policies);
    if ctx.plugins.find(reference).is_some_and(|known| {
        known.generation == mark && known.plugin.as_ref().err().is_none_or(|unready| !unready.may_pass)
    }) {
        return None;
    }
    let plugin = load(ctx, reference, &policies, &callers).await;
    let unready = plugin.as_ref().err().cloned();
    ctx.plugins.keep(reference, Loaded { generation: mark, plugin });
    callers.into_iter().for_each(|caller| ctx.queue.wake(caller));
    let tries = ctx.ledger.count_try(&key, unready.is_some());
    unready.filter(|unready| unready.may_pass).map(|_| PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST))
}

/// Every policy that can be read; the keys of each are signers too.
fn observe(facts: &dyn Facts) -> Vec<PluginPolicy> {
    let query = Query {
        api_version: "pintle.dev/v1alpha1".to_owned(),
        kind: "PluginPolicy".to_owned(),
        namespace: None,
        label_selector: None,
    };
    let found = facts.list(&query).found().unwrap_or_default();
    let read =
        found.iter().filter_map(|policy| serde_json::from_value::<PluginPolicy>(policy.to_value()).ok());
    read.map(with_keys).collect()
}

fn with_keys(mut policy: PluginPolicy) -> PluginPolicy {
    let about = &mut policy.spec.r#match;
    let keys = about.public_keys.iter().filter_map(|pem| PublicKey::parse(pem).ok());
    let keys: Vec<_> = keys.map(|key| Signer::Key(key.fingerprint())).collect();
    about.signers.extend(keys);
    policy
}

fn mark(policies: &[PluginPolicy]) -> i64 {
    let specs = policies.iter().map(|policy| json!([policy.metadata.name, policy.spec]).to_string());
    i64::from_ne_bytes(fnv1a(specs.collect::<Vec<_>>().join("\n").as_bytes()).to_ne_bytes())
}

async fn load(
    ctx: &Context,
    reference: &str,
    policies: &[PluginPolicy],
    callers: &[Key],
) -> Result<Plugin, Unready> {
    // Who could not let it in whatever it is, is told so before a registry is asked.
    let unknown =
        Candidate { reference: reference.to_owned(), digest: digest_in(reference), ..Candidate::default() };
    let early = admit(policies, &unknown);
    if let Err(refusal) = &early
        && !policies.iter().any(|policy| may_let_in(policy, &unknown))
    {
        return Err(refused(refusal.to_string()));
    }
    let namespaces = namespaces(ctx, callers).await;
    let access = access(ctx, reference, &namespaces).await?;
    let pulled = ctx.plugins.registries.pull_plugin(reference, &access, Parts::WithSignatures).await;
    let bundle = pulled.map_err(|err| not_pulled(&err, &namespaces))?;
    let (signers, doubt) = signers(ctx, &bundle, policies);
    let candidate = Candidate { digest: bundle.digest(), signers, version: version(&bundle), ..unknown };
    let Admitted { grants, limits, policy } = admit(policies, &candidate).map_err(|refusal| {
        refused([Some(refusal.to_string()), doubt].into_iter().flatten().collect::<Vec<_>>().join(": "))
    })?;
    tracing::info!(reference, policy, "a component that a chart names is let in");
    let spec = json!({"image": reference, "grants": grants, "limits": limits});
    let spec: PluginSpec = serde_json::from_value(spec).map_err(|err| refused(err.to_string()))?;
    let artifact =
        Artifact { name: spoken(reference), digest: bundle.digest(), bytes: bundle.component().into() };
    super::load(ctx, artifact, &spec).await.map_err(|err| Unready::from_load(&err))
}

/// Whether a policy could let it in if only the right ones had signed it.
fn may_let_in(policy: &PluginPolicy, unknown: &Candidate) -> bool {
    let mut open = policy.clone();
    open.spec.r#match.signers.clear();
    open.spec.r#match.unsigned = true;
    open.spec.min_version.clear();
    admit(&[open], unknown).is_ok()
}

/// Who of those that policies name signed it, and why nobody is known to have.
fn signers(ctx: &Context, bundle: &Bundle, policies: &[PluginPolicy]) -> (Vec<Signer>, Option<String>) {
    let about = policies.iter().map(|policy| &policy.spec.r#match);
    let keys: Vec<_> = about
        .clone()
        .flat_map(|about| &about.public_keys)
        .filter_map(|pem| PublicKey::parse(pem).ok())
        .collect();
    let identities = about.flat_map(|about| &about.signers).filter_map(|signer| match signer {
        Signer::Identity { issuer, subject } => IdentityPattern::new(issuer, subject).ok(),
        Signer::Key(_) => None,
    });
    let identities: Vec<_> = identities.collect();
    if keys.is_empty() && identities.is_empty() {
        return (Vec::new(), None);
    }
    let root = match (&ctx.options.trust_root, identities.is_empty()) {
        (_, true) => Ok(None),
        (Some(text), false) => TrustRoot::parse(text).map(Some),
        (None, false) => TrustRoot::public().map(Some),
    };
    let root = match root {
        Ok(root) => root,
        Err(err) => return (Vec::new(), Some(one_line(&err))),
    };
    match signature::verify(bundle, &Wanted { keys, identities, root, transparency_log: false }) {
        Ok(signers) => (signers, None),
        Err(err) => (Vec::new(), Some(one_line(&err))),
    }
}

/// The namespaces of the releases that name the component.
async fn namespaces(ctx: &Context, callers: &[Key]) -> BTreeSet<String> {
    let mut namespaces = BTreeSet::new();
    for key in callers {
        let Key::Owner(target) = key else { continue };
        let (owner, _) = ctx.know(key, |facts| facts.get(target)).await;
        let front = owner.found().and_then(|owner| ctx.front_of(&owner)?.ok());
        namespaces.extend(front.map(|front| front.release.namespace));
    }
    namespaces
}

/// As whom the registry is asked: with the Secrets for registries in the namespaces of the releases, then as the
/// operator itself. A chart brings no credentials. A component that is there is there for every release that names
/// its digest, whoever's credentials it was pulled with.
async fn access(ctx: &Context, reference: &str, namespaces: &BTreeSet<String>) -> Result<Access, Unready> {
    let mut keyring = Keyring::default();
    for namespace in namespaces {
        match keyring_of(&ctx.caches, namespace).await {
            Ok(found) => keyring = keyring.and(found),
            Err(why) => tracing::warn!(namespace, why, "credentials for registries cannot be read"),
        }
    }
    if let Some(path) = &ctx.options.registry_config {
        let broken = |message| Unready { reason: "PullConfigInvalid".to_owned(), message, may_pass: true };
        let config = DockerConfig::read(path).map_err(|err| broken(one_line(&err)))?;
        let registry = registry_of(reference).map_err(|err| Unready::from_pull(&err))?;
        keyring = keyring.and(config.keyring(&registry).await);
    }
    Ok(Access { keyring: keyring.into(), ..Access::default() })
}

/// A chart has no `spec.pullSecrets`: its credentials are those of its namespace.
fn not_pulled(err: &PullError, namespaces: &BTreeSet<String>) -> Unready {
    let unready = Unready::from_pull(err);
    let PullError::Unauthorized { registry, image, .. } = err else { return unready };
    let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
    let message = format!(
        "registry {registry} refuses to show `{image}`; make a Secret that may pull it with `kubectl create secret \
         docker-registry` in namespace {}",
        namespaces.join(" or ")
    );
    Unready { message, ..unready }
}

/// Version in the manifest that was signed with the image.
fn version(bundle: &Bundle) -> String {
    let annotations = bundle.annotations();
    let manifest = annotations.get(ANNOTATION).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let version = manifest.and_then(|manifest| manifest.get("version")?.as_str().map(str::to_owned));
    version.unwrap_or_default()
}

fn digest_in(reference: &str) -> String {
    reference.rsplit_once('@').map(|(_, digest)| digest.to_owned()).unwrap_or_default()
}

fn refused(message: String) -> Unready {
    Unready { reason: "PluginNotAdmitted".to_owned(), message, may_pass: false }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn policy(more: Value) -> PluginPolicy {
        let mut spec = json!({"match": {"images": ["r.example/vendor/*"], "signers": [{"key": "sha256:k"}]}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        PluginPolicy::new("p", serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_reference_has_a_short_name_that_tells_two_versions_apart() {
        let digest = "0123456789".repeat(6);
        assert_eq!(
            spoken(&format!("oci://r.example:5000/vendor/driver-loaded:1@sha256:{digest}")),
            "driver-loaded-0123456"
        );
        assert_eq!(spoken("driver-loaded"), "driver-loaded");
        assert!(is_reference("oci://r/a@sha256:1") && !is_reference("ociplugin"));
    }

    #[test]
    fn no_registry_is_asked_for_what_no_policy_could_let_in() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let unknown = |name: &str| Candidate {
            reference: format!("oci://r.example/{name}@{digest}"),
            digest: digest.clone(),
            ..Candidate::default()
        };
        assert!(may_let_in(&policy(json!({"minVersion": "2.0"})), &unknown("vendor/a")));
        assert!(!may_let_in(&policy(json!({})), &unknown("other/a")));
        assert!(!may_let_in(&policy(json!({"deniedDigests": [digest]})), &unknown("vendor/a")));
    }

    #[test]
    fn another_policy_is_another_mark() {
        assert_eq!(mark(&[policy(json!({}))]), mark(&[policy(json!({}))]));
        assert_ne!(mark(&[policy(json!({}))]), mark(&[policy(json!({"minVersion": "1"}))]));
        assert_ne!(mark(&[]), mark(&[policy(json!({}))]));
    }
}

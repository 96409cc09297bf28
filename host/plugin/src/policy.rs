//! Which components a chart may name itself: decided by PluginPolicies, and by nothing that is not known.

use std::cmp::Ordering;

use pintle_api::{
    PluginPolicy,
    plugin::{Grants, Limits},
    plugin_policy::{PluginPolicySpec, PolicyMatch, Signer},
};

use crate::grants::ImagePattern;

/// A component that a chart names, with all that was verified about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// `registry.example/vendor/name`, with or without `oci://`, tag and digest.
    pub reference: String,
    /// `sha256:…` of the manifest that was pulled.
    pub digest: String,
    /// Who signed this digest, each verified. Empty when nobody did, or nobody could be verified.
    pub signers: Vec<Signer>,
    /// Version in what was signed; empty where it has none.
    pub version: String,
}

/// What a policy lets a component do.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// Name of the policy.
    pub policy: String,
    /// What it may read, return and have done.
    pub grants: Grants,
    /// What one call may use.
    pub limits: Limits,
}

/// Why a chart may not name a component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyRefusal {
    /// No policy is about it.
    #[error(
        "a chart may name only installed Plugins and what a PluginPolicy lets it name; no PluginPolicy has \
         {reference} among spec.match.images"
    )]
    NoPolicy {
        /// What was named.
        reference: String,
    },
    /// What was pulled is not pinned.
    #[error("{reference} names no digest; write {reference}@sha256:…, so that a moved tag changes nothing")]
    NotPinned {
        /// What was named.
        reference: String,
    },
    /// It was withdrawn.
    #[error("PluginPolicy {policy} has {digest} among spec.deniedDigests")]
    Withdrawn {
        /// Which policy.
        policy: String,
        /// Which digest.
        digest: String,
    },
    /// None of the signers of the policy signed it, as far as could be verified.
    #[error("none of spec.match.signers of PluginPolicy {policy} signed {digest}")]
    NotSigned {
        /// Which policy.
        policy: String,
        /// Which digest.
        digest: String,
    },
    /// It is older than the policy wants, or does not say how old it is.
    #[error("the signed version of {digest} is {version:?}, PluginPolicy {policy} wants at least {least}")]
    TooOld {
        /// Which policy.
        policy: String,
        /// Which digest.
        digest: String,
        /// Its version.
        version: String,
        /// The least version.
        least: String,
    },
}

/// Decides by the first policy, in the order of their names, that is about the component and lets it in.
/// A digest that any policy about it withdrew is refused, whatever others say.
///
/// # Errors
/// When none lets it in: the refusal of the first that is about it.
pub fn admit(policies: &[PluginPolicy], candidate: &Candidate) -> Result<Admitted, PolicyRefusal> {
    let reference = bare(&candidate.reference);
    let about = |policy: &&PluginPolicy| {
        let patterns = policy.spec.r#match.images.iter().filter_map(|text| ImagePattern::parse(text));
        patterns.into_iter().any(|pattern| pattern.matches(reference))
    };
    let mut policies: Vec<_> = policies.iter().filter(about).collect();
    policies.sort_unstable_by_key(|policy| name_of(policy));
    let no_policy = || PolicyRefusal::NoPolicy { reference: reference.to_owned() };
    let first = policies.first().ok_or_else(no_policy)?;
    if !candidate.reference.contains("@sha256:") || !is_pinned_to(candidate) {
        return Err(PolicyRefusal::NotPinned { reference: reference.to_owned() });
    }
    let withdrawn = |policy: &&&PluginPolicy| policy.spec.denied_digests.contains(&candidate.digest);
    if let Some(policy) = policies.iter().find(withdrawn) {
        let (policy, digest) = (name_of(policy), candidate.digest.clone());
        return Err(PolicyRefusal::Withdrawn { policy, digest });
    }
    let refusal = decide(first, candidate);
    let mut others = policies.iter().skip(1).map(|policy| decide(policy, candidate));
    refusal.or_else(|first| others.find_map(Result::ok).ok_or(first))
}

fn decide(policy: &PluginPolicy, candidate: &Candidate) -> Result<Admitted, PolicyRefusal> {
    let PluginPolicySpec { r#match, min_version, grants, limits, .. } = &policy.spec;
    let (name, digest) = (name_of(policy), candidate.digest.clone());
    let PolicyMatch { signers, unsigned, .. } = r#match;
    let is_signed = candidate.signers.iter().any(|signer| signers.contains(signer));
    // A policy that names nobody and does not say `unsigned` lets nothing in.
    let may_be_unsigned = *unsigned && signers.is_empty();
    if !is_signed && !may_be_unsigned {
        return Err(PolicyRefusal::NotSigned { policy: name, digest });
    }
    if !min_version.is_empty() && !is_at_least(&candidate.version, min_version) {
        let (version, least) = (candidate.version.clone(), min_version.clone());
        return Err(PolicyRefusal::TooOld { policy: name, digest, version, least });
    }
    Ok(Admitted { policy: name, grants: grants.clone(), limits: limits.clone() })
}

/// True when the digest in the reference is the one that was pulled.
fn is_pinned_to(candidate: &Candidate) -> bool {
    let digest = candidate.reference.rsplit_once('@').map(|(_, digest)| digest);
    digest == Some(&candidate.digest) && candidate.digest.len() == "sha256:".len() + 64
}

/// The reference without scheme, tag and digest.
fn bare(reference: &str) -> &str {
    let reference = reference.strip_prefix("oci://").unwrap_or(reference);
    let reference = reference.split_once('@').map_or(reference, |(name, _)| name);
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => reference,
    }
}

fn name_of(policy: &PluginPolicy) -> String {
    policy.metadata.name.clone().unwrap_or_default()
}

/// Compares `1.10.0` with `1.9`: numbers part by part; what is before a release (`-rc.1`) is older than
/// it; what is no version is older than everything.
fn is_at_least(version: &str, least: &str) -> bool {
    match (parts(version), parts(least)) {
        (Some((numbers, pre)), Some((least_numbers, least_pre))) => match numbers.cmp(&least_numbers) {
            Ordering::Greater => true,
            Ordering::Less => false,
            // Before releases are only compared as far as that: equal, or a release.
            Ordering::Equal => pre.is_empty() || pre == least_pre,
        },
        _ => false,
    }
}

fn parts(version: &str) -> Option<([u64; 3], &str)> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split_once('+').map_or(version, |(version, _)| version);
    let (numbers, pre) = version.split_once('-').unwrap_or((version, ""));
    let mut found = [0; 3];
    let mut given = numbers.split('.');
    for (at, slot) in found.iter_mut().enumerate() {
        match given.next() {
            Some(number) => *slot = number.parse().ok()?,
            None if at > 0 => break,
            None => return None,
        }
    }
    given.next().is_none().then_some((found, pre))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::{Value, json};

    use super::*;

    fn policy(name: &str, spec: Value) -> PluginPolicy {
        PluginPolicy::new(name, serde_json::from_value(spec).unwrap())
    }

    fn digest() -> String {
        format!("sha256:{}", "a".repeat(64))
    }

    fn key() -> Signer {
        Signer::Key("sha256:k".into())
    }

    fn candidate(name: &str) -> Candidate {
        Candidate {
            reference: format!("oci://r.example/{name}:1.0@{}", digest()),
            digest: digest(),
            signers: vec![key()],
            version: "1.4.0".into(),
        }
    }

    fn vendor(more: Value) -> PluginPolicy {
        let mut spec = json!({"match": {"images": ["r.example/vendor/*"], "signers": [{"key": "sha256:k"}]},
            "grants": {"read": [{"apiGroups": [""], "kinds": ["Node"]}]}, "limits": {"timeout": "1s"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy("vendor", spec)
    }

    #[test]
    fn a_component_gets_the_rights_of_the_policy_that_lets_it_in() {
        let admitted = admit(&[vendor(json!({}))], &candidate("vendor/driver")).unwrap();
        assert_eq!((admitted.policy.as_str(), admitted.limits.timeout.as_str()), ("vendor", "1s"));
        assert_eq!(admitted.grants.read.len(), 1);
    }

    #[test]
    fn without_a_policy_about_it_nothing_is_let_in() {
        for policies in [vec![], vec![vendor(json!({}))]] {
            let refused = admit(&policies, &candidate("other/driver"));
            assert_eq!(refused, Err(PolicyRefusal::NoPolicy { reference: "r.example/other/driver".into() }));
        }
    }

    #[test]
    fn what_nobody_signed_is_refused_unless_the_policy_says_that_it_may_be() {
        let unsigned = Candidate { signers: Vec::new(), ..candidate("vendor/driver") };
        let other = Candidate { signers: vec![Signer::Key("sha256:x".into())], ..candidate("vendor/driver") };
        for candidate in [&unsigned, &other] {
            let refused = admit(&[vendor(json!({}))], candidate);
            assert!(matches!(refused, Err(PolicyRefusal::NotSigned { .. })));
        }
        let nobody = vendor(json!({"match": {"images": ["r.example/vendor/*"]}}));
        assert!(admit(&[nobody], &candidate("vendor/driver")).is_err(), "naming nobody lets nobody in");
        let open = vendor(json!({"match": {"images": ["r.example/vendor/*"], "unsigned": true}}));
        assert!(admit(&[open], &unsigned).is_ok());
    }

    #[test]
    fn an_identity_is_issuer_and_subject_together() {
        let signers = json!([{"identity": {"issuer": "https://issuer.example", "subject": "release"}}]);
        let identity = |subject: &str| Candidate {
            signers: vec![Signer::Identity {
                issuer: "https://issuer.example".into(),
                subject: subject.into(),
            }],
            ..candidate("vendor/driver")
        };
        let policy = vendor(json!({"match": {"images": ["r.example/vendor/*"], "signers": signers}}));
        assert!(admit(std::slice::from_ref(&policy), &identity("release")).is_ok());
        assert!(admit(&[policy], &identity("release-of-somebody-else")).is_err());
    }

    #[test]
    fn a_reference_without_the_digest_that_was_pulled_is_refused() {
        let tag = Candidate { reference: "oci://r.example/vendor/driver:1.0".into(), ..candidate("x") };
        let other = Candidate { digest: format!("sha256:{}", "b".repeat(64)), ..candidate("vendor/driver") };
        for candidate in [tag, other] {
            let refused = admit(&[vendor(json!({}))], &candidate);
            assert!(matches!(refused, Err(PolicyRefusal::NotPinned { .. })), "{refused:?}");
        }
    }

    #[test]
    fn an_old_version_and_a_withdrawn_digest_are_refused() {
        let newer = vendor(json!({"minVersion": "1.5"}));
        assert!(matches!(admit(&[newer], &candidate("vendor/driver")), Err(PolicyRefusal::TooOld { .. })));
        let unknown = Candidate { version: String::new(), ..candidate("vendor/driver") };
        assert!(admit(&[vendor(json!({"minVersion": "0.1"}))], &unknown).is_err());
        let withdrawn =
            policy("z-security", json!({"match": {"images": ["r.example/**"]}, "deniedDigests": [digest()]}));
        let refused = admit(&[vendor(json!({})), withdrawn], &candidate("vendor/driver"));
        assert!(matches!(refused, Err(PolicyRefusal::Withdrawn { policy, .. }) if policy == "z-security"));
    }

    #[test]
    fn versions_are_compared_by_number() {
        for (version, least, expected) in [
            ("1.10.0", "1.9", true),
            ("1.9.9", "1.10", false),
            ("v2", "1.99.99", true),
            ("1.2.0-rc.1", "1.2.0", false),
            ("1.2.0-rc.1", "1.1.9", true),
            ("1.2.0+build", "1.2.0", true),
            ("latest", "0.0.0", false),
            ("1.2.3.4", "1.2", false),
        ] {
            assert_eq!(is_at_least(version, least), expected, "{version} and {least}");
        }
    }
}

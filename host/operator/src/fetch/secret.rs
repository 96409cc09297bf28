//! What a Secret adds to how a chart's repository is asked. It is watched: a change of it wakes the release.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{Answer, Facts, Object, ObjectRef, special_resource::RepositorySecret};
use pintle_source::{
    Access, Credentials, Tls,
    keyring::{Keyring, KeyringError},
};

use super::Wanted;

/// Where it is named, in messages.
const FIELD: &str = "chart.repository.secretRef";

/// Why it adds nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{FIELD} names a Secret of namespace {0}; a SpecialResource may name those of its own alone")]
    Foreign(String),
    #[error("{0}, named in {FIELD}, is not there; create it")]
    Missing(String),
    #[error("{object}, named in {FIELD}, may not be read: {why}")]
    Denied { object: String, why: String },
    #[error("{0}, named in {FIELD}, is not known yet")]
    NotYet(String),
    #[error("{object}, named in {FIELD}: {key} is no text")]
    NotText { object: String, key: &'static str },
    #[error("{0}, named in {FIELD}, has {1} without {2}; add it")]
    Half(String, &'static str, &'static str),
    #[error(
        "{0}, named in {FIELD}, has none of username, .dockerconfigjson, ca.crt and tls.crt; add what the repository \
         asks for"
    )]
    Empty(String),
    #[error("{object}, named in {FIELD}: .dockerconfigjson cannot be used")]
    Config {
        object: String,
        #[source]
        source: KeyringError,
    },
}

/// The access an owner gives, and over it that of the Secret it names.
pub(super) fn over(facts: &dyn Facts, wanted: &Wanted<'_>, given: &Access) -> Result<Access, Fault> {
    let Some(RepositorySecret { namespace, name }) = &wanted.chart.repository.secret_ref else {
        return Ok(given.clone());
    };
    let own = wanted.namespace;
    if !namespace.is_empty() && namespace != own && !wanted.is_of_watch {
        return Err(Fault::Foreign(namespace.clone()));
    }
    let namespace = if namespace.is_empty() { own } else { namespace.as_str() };
    let target = ObjectRef::new("v1", "Secret", name).within(namespace);
    let (live, object) = (facts.get(&target), target.to_string());
    match live {
        Answer::Found(live) => with(&live, &object, given),
        Answer::Missing | Answer::KindUnknown => Err(Fault::Missing(object)),
        Answer::Denied(why) => Err(Fault::Denied { object, why }),
        Answer::NotYet => Err(Fault::NotYet(object)),
    }
}

fn with(live: &Object, object: &str, given: &Access) -> Result<Access, Fault> {
    let text = |key: &'static str| text(live, object, key);
    let both = |one: &'static str, other: &'static str| match (text(one)?, text(other)?) {
        (Some(first), Some(second)) => Ok(Some((first, second))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Fault::Half(object.to_owned(), one, other)),
        (None, Some(_)) => Err(Fault::Half(object.to_owned(), other, one)),
    };
    let user = both("username", "password")?;
    let keyring = text(".dockerconfigjson")?.map(|config| Keyring::parse(config.as_bytes())).transpose();
    let keyring = keyring.map_err(|source| Fault::Config { object: object.to_owned(), source })?;
    let (authority, identity) = (text("ca.crt")?, both("tls.crt", "tls.key")?);
    if user.is_none() && keyring.is_none() && authority.is_none() && identity.is_none() {
        return Err(Fault::Empty(object.to_owned()));
    }
    let Access { credentials, keyring: ring, tls, pass_credentials, plain_http } = given.clone();
    let as_user = |(user, password)| Credentials { user, password };
    Ok(Access {
        credentials: user.map(as_user).or(credentials),
        keyring: keyring.map_or(ring, Into::into),
        tls: Tls {
            authorities: authority.map_or(tls.authorities, String::into_bytes),
            identity: identity.map_or(tls.identity, |(chain, key)| format!("{chain}\n{key}").into_bytes()),
            insecure: tls.insecure,
        },
        pass_credentials,
        plain_http,
    })
}

fn text(live: &Object, object: &str, key: &'static str) -> Result<Option<String>, Fault> {
    let Some(value) = live.at("/data").and_then(|data| data.get(key)) else { return Ok(None) };
    let bytes = value.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Some).ok_or_else(|| Fault::NotText { object: object.to_owned(), key })
}

// === impl Fault ===

impl Fault {
    /// CamelCase word for conditions.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Foreign(_) | Self::Denied { .. } => "Forbidden",
            Self::Missing(_) => "SecretMissing",
            Self::NotYet(_) => "SecretUnknown",
            Self::NotText { .. } | Self::Half(..) | Self::Empty(_) | Self::Config { .. } => "SecretInvalid",
        }
    }

    /// Time alone may mend it; what an event mends is not asked for again.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::NotYet(_))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::unwrap_in_result, reason = "tests stop at the first surprise")]
    use std::sync::Arc;

    use pintle_api::{Given, Read, Record, special_resource::HelmChart};
    use serde_json::{Value, json};

    use super::*;

    fn chart(repository: Value) -> HelmChart {
        let mut repository = repository;
        repository["name"] = json!("r");
        repository["url"] = json!("https://charts.example");
        serde_json::from_value(json!({"name": "c", "version": "1.0.0", "repository": repository})).unwrap()
    }

    fn ask(data: &Value, repository: Value) -> Result<Access, Fault> {
        let encoded = data.as_object().unwrap().iter();
        let encoded: serde_json::Map<_, _> = encoded
            .map(|(key, text)| (key.clone(), json!(BASE64_STANDARD.encode(text.as_str().unwrap()))))
            .collect();
        let secret = Object::new(json!({"apiVersion": "v1", "kind": "Secret", "data": encoded,
            "metadata": {"name": "s", "namespace": "ns"}}))
        .unwrap();
        let mut facts = Record::default();
        facts.insert(Read::Get(secret.reference()), Given::Object(Answer::Found(Arc::new(secret))));
        let gone = ObjectRef::new("v1", "Secret", "gone").within("ns");
        facts.insert(Read::Get(gone), Given::Object(Answer::Missing));
        let given = Credentials { user: "given".into(), password: "p".into() };
        let tls = Tls { authorities: b"given".to_vec(), ..Tls::default() };
        let (chart, owner) = (chart(repository), ObjectRef::new("example/v1", "Owner", "o"));
        let wanted = Wanted { chart: &chart, owner: &owner, namespace: "ns", is_of_watch: false };
        over(&facts, &wanted, &Access { credentials: Some(given), tls, ..Access::default() })
    }

    #[test]
    fn what_a_secret_has_counts_over_what_the_owner_says() {
        let named = || json!({"secretRef": {"name": "s"}});
        let access = ask(&json!({"username": "ann", "password": "hunter2"}), named()).unwrap();
        assert_eq!(access.credentials.unwrap().user, "ann");
        assert_eq!(access.tls.authorities, b"given");
        let tls = json!({"ca.crt": "CA", "tls.crt": "CERT", "tls.key": "KEY"});
        let access = ask(&tls, named()).unwrap();
        assert_eq!(access.credentials.unwrap().user, "given");
        assert_eq!((access.tls.authorities, access.tls.identity), (b"CA".to_vec(), b"CERT\nKEY".to_vec()));
        let config = json!({"auths": {"r.example": {"username": "me", "password": "x"}}}).to_string();
        let access = ask(&json!({".dockerconfigjson": config}), named()).unwrap();
        assert_eq!(access.keyring.matching("r.example", "c").len(), 1);
        let access = ask(&json!({}), json!({})).unwrap();
        assert_eq!(access.credentials.unwrap().user, "given", "no Secret is named");
    }

    #[test]
    fn each_fault_names_the_secret_and_the_fix_and_never_a_value() {
        let named = |name: &str| json!({"secretRef": {"name": name}});
        for (data, repository, reason, says) in [
            (
                json!({}),
                named("gone"),
                "SecretMissing",
                "Secret ns/gone, named in chart.repository.secretRef",
            ),
            (json!({}), named("unread"), "SecretUnknown", "is not known yet"),
            (json!({"other": "s3cret"}), named("s"), "SecretInvalid", "has none of username"),
            (json!({"username": "ann"}), named("s"), "SecretInvalid", "has username without password"),
            (json!({"tls.key": "s3cret"}), named("s"), "SecretInvalid", "has tls.key without tls.crt"),
            (json!({".dockerconfigjson": "s3cret"}), named("s"), "SecretInvalid", "cannot be used"),
            (
                json!({}),
                json!({"secretRef": {"name": "s", "namespace": "kube-system"}}),
                "Forbidden",
                "a Secret of namespace kube-system",
            ),
        ] {
            let fault = ask(&data, repository).unwrap_err();
            let text = crate::error_text::one_line(&fault);
            assert_eq!(fault.reason(), reason, "{text}");
            assert!(text.contains(says) && !text.contains("s3cret"), "{text}");
        }
    }
}

//! What a Plugin names beside its image: pull secrets, keys, a trust root, a component in a ConfigMap. A change of
//! any of them loads the plugin again.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{
    Answer, Facts, Object, ObjectRef,
    plugin::{KeyOf, PluginSpec, TextSource, Verify},
};
use pintle_source::keyring::{Keyring, KeyringError};

use super::{Fault, Stage, place::Place};
use crate::{error_text::one_line, plugins::Unready};

/// Reads one form of a pull secret.
type Parse = fn(&[u8]) -> Result<Keyring, KeyringError>;

/// What a Plugin names, as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Inputs {
    pub(super) keyring: Keyring,
    /// Public keys in PEM.
    pub(super) keys: Vec<String>,
    /// A trust root of its own.
    pub(super) root: Option<String>,
    /// A component that is in a ConfigMap.
    pub(super) component: Option<Vec<u8>>,
}

/// Reads all that a Plugin names; all of it is read before the first that is missing is told, so that all of it is
/// watched.
pub(super) fn observe(facts: &dyn Facts, spec: &PluginSpec, place: &Place) -> Result<Inputs, Fault> {
    let keyring = keyring(facts, spec);
    let verify = spec.verify.clone().unwrap_or_default();
    let Verify { public_keys, trust_root, .. } = &verify;
    let keys: Vec<_> = public_keys.iter().map(|key| text(facts, key, "spec.verify.publicKeys")).collect();
    let root = trust_root.as_ref().map(|root| text(facts, root, "spec.verify.trustRoot")).transpose();
    let component = match place {
        Place::ConfigMap(of, _) => component(facts, of).map(Some),
        Place::Registry | Place::File(..) => Ok(None),
    };
    let at = |stage: Stage| move |unready: Unready| Fault { stage, unready };
    Ok(Inputs {
        keyring: keyring.map_err(at(Stage::Pull))?,
        keys: keys.into_iter().collect::<Result<_, _>>().map_err(at(Stage::Verify))?,
        root: root.map_err(at(Stage::Verify))?,
        component: component.map_err(at(Stage::Pull))?,
    })
}

/// The credentials of all pull secrets, those of the service account after those that are named.
fn keyring(facts: &dyn Facts, spec: &PluginSpec) -> Result<Keyring, Unready> {
    let named = spec
        .pull_secrets
        .iter()
        .map(|secret| ObjectRef::new("v1", "Secret", &secret.name).within(&secret.namespace));
    let mut named: Vec<_> = named.map(|secret| (secret, "spec.pullSecrets".to_owned())).collect();
    if let Some(account) = &spec.pull_service_account {
        let target = ObjectRef::new("v1", "ServiceAccount", &account.name).within(&account.namespace);
        let account = found(facts, &target, "spec.pullServiceAccount")?;
        let secrets =
            account.at("/imagePullSecrets").and_then(|list| list.as_array().cloned()).unwrap_or_default();
        let names = secrets.iter().filter_map(|entry| entry.get("name")?.as_str());
        let place = format!("imagePullSecrets of {target}");
        let of = |name| {
            ObjectRef::new("v1", "Secret", name).within(target.namespace.as_deref().unwrap_or_default())
        };
        named.extend(names.map(|name| (of(name), place.clone())));
    }
    let read: Vec<_> = named.iter().map(|(secret, place)| secret_keyring(facts, secret, place)).collect();
    read.into_iter().try_fold(Keyring::default(), |all, one| Ok(all.and(one?)))
}

fn secret_keyring(facts: &dyn Facts, secret: &ObjectRef, place: &str) -> Result<Keyring, Unready> {
    let live = found(facts, secret, place)?;
    let invalid = |problem: String| Unready {
        reason: "PullSecretInvalid".to_owned(),
        message: format!("{secret}, named in {place}, {problem}"),
        may_pass: false,
    };
    let forms: [(&str, Parse); 2] =
        [(".dockerconfigjson", Keyring::parse), (".dockercfg", Keyring::parse_old)];
    for (key, parse) in forms {
        if let Some(bytes) = data(&live, key) {
            return parse(&bytes).map_err(|error| invalid(format!("cannot be used: {}", one_line(&error))));
        }
    }
    Err(invalid(
        "has neither .dockerconfigjson nor .dockercfg; make it with `kubectl create secret docker-registry`"
            .to_owned(),
    ))
}

fn component(facts: &dyn Facts, of: &KeyOf) -> Result<Vec<u8>, Unready> {
    let target = ObjectRef::new("v1", "ConfigMap", &of.name).within(&of.namespace);
    let live = found(facts, &target, "spec.image")?;
    data(&live, &of.key).ok_or_else(|| Unready {
        reason: "NotFound".to_owned(),
        message: format!(
            "{target} has no key {:?}; make it with `kubectl create configmap {} --from-file={}=COMPONENT`",
            of.key, of.name, of.key
        ),
        may_pass: false,
    })
}

/// A text that is given in one of three ways.
fn text(facts: &dyn Facts, source: &TextSource, place: &str) -> Result<String, Unready> {
    let invalid = |message: String| Unready { reason: "InvalidSpec".to_owned(), message, may_pass: false };
    let (kind, of) = match source {
        TextSource { inline, secret_ref: None, config_map_ref: None } if !inline.is_empty() => {
            return Ok(inline.clone());
        }
        TextSource { inline, secret_ref: Some(of), config_map_ref: None } if inline.is_empty() => {
            ("Secret", of)
        }
        TextSource { inline, secret_ref: None, config_map_ref: Some(of) } if inline.is_empty() => {
            ("ConfigMap", of)
        }
        _ => {
            return Err(invalid(format!(
                "an entry of {place} has one of inline, secretRef and configMapRef; write one"
            )));
        }
    };
    let target = ObjectRef::new("v1", kind, &of.name).within(&of.namespace);
    let live = found(facts, &target, place)?;
    let bytes = data(&live, &of.key).ok_or_else(|| Unready {
        reason: "KeyMissing".to_owned(),
        message: format!("{target}, named in {place}, has no key {:?}; add it", of.key),
        may_pass: false,
    })?;
    String::from_utf8(bytes)
        .map_err(|_| invalid(format!("{target}, named in {place}: {} is no text", of.key)))
}

fn found(facts: &dyn Facts, target: &ObjectRef, place: &str) -> Result<Arc<Object>, Unready> {
    let unready = |reason: &str, message: String, may_pass| {
        Err(Unready { reason: reason.to_owned(), message, may_pass })
    };
    match facts.get(target) {
        Answer::Found(live) => Ok(live),
        Answer::Denied(why) => {
            unready("Forbidden", format!("{target}, named in {place}, may not be read: {why}"), true)
        }
        Answer::NotYet => unready("NotRead", format!("{target}, named in {place}, is not read yet"), true),
        Answer::Missing | Answer::KindUnknown => {
            let reason = if place == "spec.pullSecrets" { "PullSecretMissing" } else { "ObjectMissing" };
            unready(reason, format!("{target}, named in {place}, is not there; create it"), true)
        }
    }
}

/// The bytes of a key, of a Secret or a ConfigMap.
fn data(live: &Object, key: &str) -> Option<Vec<u8>> {
    let of = |field: &str| live.json().get(field)?.get(key)?.as_str();
    match live.kind() {
        "Secret" => BASE64_STANDARD.decode(of("data")?).ok(),
        _ => match of("binaryData") {
            Some(text) => BASE64_STANDARD.decode(text).ok(),
            None => of("data").map(|text| text.as_bytes().to_vec()),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::{Given, Read, Record};
    use serde_json::{Value, json};

    use super::*;

    fn facts(objects: Value) -> Record {
        let mut record = Record::default();
        for object in objects.as_array().unwrap() {
            let object = Object::new(object.clone()).unwrap();
            record.insert(Read::Get(object.reference()), Given::Object(Answer::Found(Arc::new(object))));
        }
        record
    }

    fn spec(more: Value) -> PluginSpec {
        let mut spec = json!({"image": "oci://r.example/p:1"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn secret(name: &str, key: &str, config: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "n"},
            "data": {key: BASE64_STANDARD.encode(config.to_string())}})
    }

    #[test]
    fn several_secrets_of_both_forms_and_of_an_account_are_one_keyring() {
        let entry = |user: &str| json!({"username": user, "password": "p"});
        let facts = facts(json!([
            secret("one", ".dockerconfigjson", &json!({"auths": {"other": entry("x"), "r.example/p": entry("exact")}})),
            secret("old", ".dockercfg", &json!({"r.example": entry("old")})),
            secret("account", ".dockerconfigjson", &json!({"auths": {"*.example": entry("account")}})),
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "n"},
                "imagePullSecrets": [{"name": "account"}]}
        ]));
        let spec = spec(
            json!({"pullSecrets": [{"namespace": "n", "name": "old"}, {"namespace": "n", "name": "one"}],
            "pullServiceAccount": {"namespace": "n", "name": "a"}}),
        );
        let inputs = observe(&facts, &spec, &Place::Registry).unwrap();
        let users: Vec<_> =
            inputs.keyring.matching("r.example", "p").into_iter().map(|found| found.user).collect();
        assert_eq!(users, ["exact", "old", "account"]);
    }

    #[test]
    fn what_is_missing_or_has_another_form_is_named() {
        let facts = facts(json!([
            secret("plain", "password", &json!("x")),
            secret("broken", ".dockerconfigjson", &json!("text"))
        ]));
        let named = |name: &str| spec(json!({"pullSecrets": [{"namespace": "n", "name": name}]}));
        for (name, reason, says) in [
            ("none", "NotRead", "is not read yet"),
            ("plain", "PullSecretInvalid", "has neither .dockerconfigjson nor .dockercfg"),
            ("broken", "PullSecretInvalid", "cannot be used"),
        ] {
            let Fault { unready, stage } = observe(&facts, &named(name), &Place::Registry).unwrap_err();
            assert_eq!((unready.reason.as_str(), stage), (reason, Stage::Pull));
            assert!(unready.message.contains(says) && unready.message.contains(name), "{}", unready.message);
        }
    }

    #[test]
    fn a_text_is_given_in_one_way() {
        let facts = facts(json!([
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
                "data": {"k": "text"}, "binaryData": {"b": BASE64_STANDARD.encode("bytes")}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"},
                "data": {"k": BASE64_STANDARD.encode("secret")}}
        ]));
        let of = |name: &str, key: &str| json!({"namespace": "n", "name": name, "key": key});
        for (source, expected) in [
            (json!({"inline": "own"}), Ok("own")),
            (json!({"configMapRef": of("c", "k")}), Ok("text")),
            (json!({"configMapRef": of("c", "b")}), Ok("bytes")),
            (json!({"secretRef": of("s", "k")}), Ok("secret")),
            (json!({"secretRef": of("s", "none")}), Err("KeyMissing")),
            (json!({}), Err("InvalidSpec")),
            (json!({"inline": "own", "secretRef": of("s", "k")}), Err("InvalidSpec")),
        ] {
            let read =
                text(&facts, &serde_json::from_value(source.clone()).unwrap(), "spec.verify.publicKeys");
            assert_eq!(
                read.map_err(|unready| unready.reason),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{source}"
            );
        }
    }
}

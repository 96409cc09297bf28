//! The memory of a release in its Secret.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{Answer, Facts, Object, ObjectRef, names};
use pintle_cluster::{ApiError, Apply, Expect};
use pintle_plan::{Memory, Release, SCHEMA};
use serde_json::json;

use crate::context::Context;

/// Type of the Secret.
const TYPE: &str = "pintle.dev/state";
/// Key inside it.
const KEY: &str = "memory";

/// The Secret that a release's memory lies in.
pub(crate) fn secret_of(release: &Release) -> ObjectRef {
    ObjectRef::new("v1", "Secret", &format!("pintle.{}", release.name)).within(&release.namespace)
}

/// The memory of a release; an empty one where there is none, or where nobody can read it any more:
/// what it held is found again in the cluster.
pub(crate) fn observe(facts: &dyn Facts, release: &Release) -> Answer<Memory> {
    match facts.get(&secret_of(release)) {
        Answer::Found(secret) => Answer::Found(read(&secret, release)),
        Answer::Missing | Answer::KindUnknown => Answer::Found(Memory::default()),
        Answer::NotYet => Answer::NotYet,
        Answer::Denied(why) => Answer::Denied(why),
    }
}

fn read(secret: &Object, release: &Release) -> Memory {
    if secret.label(names::OWNER) != Some(&release.owner_uid) {
        return Memory { version: secret.resource_version().map(str::to_owned), ..Memory::default() };
    }
    let text = secret.str_at(&format!("/data/{KEY}")).and_then(|text| BASE64_STANDARD.decode(text).ok());
    let memory: Option<Memory> = text.and_then(|text| serde_json::from_slice(&text).ok());
    let version = secret.resource_version().map(str::to_owned);
    match memory {
        Some(memory) if memory.schema <= SCHEMA => Memory { version, ..memory },
        _ => {
            tracing::warn!(secret = %secret.reference(), "the memory of the release cannot be read; it begins anew");
            Memory { version, ..Memory::default() }
        }
    }
}

/// Writes the memory, unless somebody else has written it since it was read: who knows less than what is stored
/// must not act.
pub(crate) async fn store(ctx: &Context, release: &Release, memory: &mut Memory) -> Result<(), ApiError> {
    let target = secret_of(release);
    let mut secret = Object::default_of("v1", "Secret", &target.name);
    secret.map_mut(&["metadata"]).insert("namespace".to_owned(), json!(release.namespace));
    secret.set_label(names::OWNER, &release.owner_uid);
    secret.set_label(names::MANAGED_BY, names::MANAGER);
    secret.set_annotation(names::OWNED_BY, &release.owner.to_string());
    if release.owner.namespace.as_ref().is_none_or(|namespace| *namespace == release.namespace) {
        let owner = json!([{
            "apiVersion": release.owner.api_version, "kind": release.owner.kind, "name": release.owner.name,
            "uid": release.owner_uid
        }]);
        secret.map_mut(&["metadata"]).insert("ownerReferences".to_owned(), owner);
    }
    let stored = Memory { schema: SCHEMA, ..memory.clone() };
    let text = BASE64_STANDARD.encode(serde_json::to_vec(&stored).unwrap_or_default());
    secret.set("type", json!(TYPE));
    secret.set("data", json!({KEY: text}));
    let expect = memory.version.clone().map_or(Expect::Absent, Expect::Version);
    let applied = ctx.writer.apply(&secret, &Apply { force: true, expect, manager: None }).await?;
    memory.version = applied.object.resource_version().map(str::to_owned);
    Ok(())
}

#[cfg(test)]
mod tests {
    use pintle_api::watch::Adopt;
    use pintle_plan::Flavor;

    use super::*;

    fn release() -> Release {
        Release {
            name: "r".into(),
            namespace: "ns".into(),
            owner: ObjectRef::new("v1", "X", "x"),
            owner_uid: "u".into(),
            chart_digest: String::new(),
            flavor: Flavor::Watch,
            adopt: Adopt::IfUnowned,
            gates_all: false,
            leaves_drift: false,
            is_forced_out: false,
            timeout: None,
        }
    }

    fn secret(owner: &str, text: &str) -> Object {
        let mut secret = Object::default_of("v1", "Secret", "pintle.r");
        secret.set_label(names::OWNER, owner);
        secret.set("data", json!({KEY: BASE64_STANDARD.encode(text)}));
        secret
    }

    #[test]
    fn a_broken_or_foreign_memory_is_an_empty_one() {
        let good = r#"{"schema": 1, "revision": 7}"#;
        assert_eq!(read(&secret("u", good), &release()).revision, 7);
        assert_eq!(read(&secret("other", good), &release()).revision, 0);
        assert_eq!(read(&secret("u", "{"), &release()).revision, 0);
        assert_eq!(read(&secret("u", r#"{"schema": 99}"#), &release()), Memory::default());
    }
}

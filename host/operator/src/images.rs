//! Whether an image is in its registry, asked with the credentials of the release's namespace and no others
//! (D55).

use std::sync::{Arc, OnceLock, Weak};

use pintle_api::{Answer, Facts, LogTail, Object, ObjectRef, Query, Read, Record};
use pintle_cluster::{Caches, Holder, Resolve};
use pintle_source::{
    Access,
    artifact::{PullError, Registries},
    keyring::Keyring,
};

use crate::error_text::one_line;

/// Type of the Secrets that hold credentials for registries.
const TYPE: &str = "kubernetes.io/dockerconfigjson";

/// Asks registries for images.
pub(crate) struct Images {
    registries: Registries,
    caches: OnceLock<Weak<Caches>>,
}

/// The world as a release sees it: the same for all, but for images, which are asked for with the release's
/// credentials.
pub(crate) struct ReleaseFacts {
    pub(crate) caches: Arc<Caches>,
    pub(crate) namespace: String,
}

// === impl Images ===

impl Images {
    /// It knows no Secrets before [`Images::look_into`].
    pub(crate) fn new(registries: Registries) -> Self {
        Self { registries, caches: OnceLock::new() }
    }

    /// Where Secrets are found.
    pub(crate) fn look_into(&self, caches: &Arc<Caches>) {
        // A second call would be about the same caches.
        let _ = self.caches.set(Arc::downgrade(caches));
    }

    async fn answer(&self, text: &str) -> Answer<String> {
        let (image, namespace) = parts(text);
        let access = match self.access(namespace).await {
            Ok(access) => access,
            Err(why) => return Answer::Denied(why),
        };
        match self.registries.resolve(image, &access).await {
            Ok(digest) => Answer::Found(digest),
            Err(PullError::NotFound { .. }) => Answer::Missing,
            Err(err) => Answer::Denied(one_line(&err)),
        }
    }

    async fn access(&self, namespace: &str) -> Result<Access, String> {
        let Some(caches) = self.caches.get().and_then(Weak::upgrade) else {
            return Err("the operator is not connected yet".to_owned());
        };
        Ok(Access { keyring: keyring_of(&caches, namespace).await?.into(), ..Access::default() })
    }
}

/// The credentials in a namespace's Secrets for registries. One that cannot be read is left out: it may be for another
/// registry.
///
/// # Errors
/// Why nobody may see them, or does yet.
pub(crate) async fn keyring_of(caches: &Caches, namespace: &str) -> Result<Keyring, String> {
    let query = Query {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(namespace.to_owned()),
        label_selector: None,
    };
    let holder = Holder::Part("images");
    caches.fetch(&[Read::List(query.clone())], &holder).await;
    let secrets = caches.list(&query);
    // What nobody asks for again soon is not watched any longer.
    caches.release(&holder);
    match secrets {
        Answer::Found(secrets) => {
            Ok(secrets.iter().filter_map(|secret| keyring_in(secret)).fold(Keyring::default(), Keyring::and))
        }
        Answer::Denied(why) => Err(why),
        Answer::Missing | Answer::KindUnknown | Answer::NotYet => {
            Err(format!("the Secrets of namespace {namespace} are not known yet"))
        }
    }
}

#[async_trait::async_trait]
impl Resolve for Images {
    async fn resolve(&self, image: &str) -> Answer<String> {
        self.answer(image).await
    }
}

// === impl ReleaseFacts ===

impl Facts for ReleaseFacts {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        self.caches.get(target)
    }

    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        self.caches.list(query)
    }

    fn tail(&self, log: &LogTail) -> Answer<String> {
        self.caches.tail(log)
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        self.caches.resolve(&within(image, &self.namespace))
    }
}

/// Reads as the caches know them: an image together with the namespace whose credentials it is asked with.
pub(crate) fn reads_within(reads: &[Read], namespace: &str) -> Vec<Read> {
    let known = |read: &Read| match read {
        Read::Resolve(image) => Read::Resolve(within(image, namespace)),
        other => other.clone(),
    };
    reads.iter().map(known).collect()
}

/// A record as the caches know it.
pub(crate) fn record_within(record: &Record, namespace: &str) -> Record {
    let known = record.iter().map(|(read, given)| {
        let read = match read {
            Read::Resolve(image) => Read::Resolve(within(image, namespace)),
            other => other.clone(),
        };
        (read, given.clone())
    });
    known.collect::<Vec<_>>().into()
}

/// A reference has no space in it, and a namespace neither.
fn within(image: &str, namespace: &str) -> String {
    format!("{image} {namespace}")
}

fn parts(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

fn keyring_in(secret: &Object) -> Option<Keyring> {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    if secret.str_at("/type") != Some(TYPE) {
        return None;
    }
    let text = BASE64_STANDARD.decode(secret.str_at("/data/.dockerconfigjson")?).ok()?;
    Keyring::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use pintle_api::Given;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_is_asked_for_within_its_namespace_and_other_reads_are_as_they_were() {
        let target = ObjectRef::new("v1", "Node", "n");
        let reads = [Read::Resolve("r.example/a:1".to_owned()), Read::Get(target.clone())];
        let known = reads_within(&reads, "ns");
        assert_eq!(known, [Read::Resolve("r.example/a:1 ns".to_owned()), Read::Get(target)]);
        assert_eq!(parts("r.example/a:1 ns"), ("r.example/a:1", "ns"));
        let given = Given::Text(Answer::Missing);
        let record: Record = vec![(reads[0].clone(), given.clone())].into();
        let known = record_within(&record, "ns");
        assert_eq!(
            known.iter().collect::<Vec<_>>(),
            [(&Read::Resolve("r.example/a:1 ns".to_owned()), &given)]
        );
    }

    #[test]
    fn credentials_are_those_of_secrets_for_registries() {
        let secret = |kind: &str| {
            let config = json!({"auths": {"r.example": {"username": "me", "password": "x"}}}).to_string();
            Object::new(json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
                "data": {".dockerconfigjson": BASE64_STANDARD.encode(config)}}))
            .unwrap()
        };
        assert!(!keyring_in(&secret(TYPE)).unwrap().matching("r.example", "a").is_empty());
        assert!(keyring_in(&secret("Opaque")).is_none());
    }
}

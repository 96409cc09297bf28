//! Charts in a ConfigMap: `data["index.yaml"]`, and each archive under its name in `binaryData`.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{Answer, Facts, Object, ObjectRef};
use serde_json::{Map, Value};

use crate::{
    address::Address,
    error::Error,
    index::{INDEX, Index},
};

/// A ConfigMap that was read.
pub(crate) struct Repository {
    url: String,
    object: Arc<Object>,
}

impl Repository {
    /// Reads the ConfigMap; nothing when nobody has looked yet.
    ///
    /// # Errors
    /// When it is missing or must not be read.
    pub(crate) fn open(namespace: &str, name: &str, facts: &dyn Facts) -> Result<Option<Self>, Error> {
        let target = ObjectRef::new("v1", "ConfigMap", name).within(namespace);
        let object = format!("{namespace}/{name}");
        match facts.get(&target) {
            Answer::Found(found) => Ok(Some(Self { url: format!("cm://{object}"), object: found })),
            Answer::NotYet => Ok(None),
            Answer::Missing | Answer::KindUnknown => Err(Error::ConfigMapMissing { object }),
            Answer::Denied(right) => Err(Error::Denied { object, right }),
        }
    }

    /// The url without what is optional in it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The index.
    ///
    /// # Errors
    /// When the key is missing or holds no index.
    pub(crate) fn index(&self) -> Result<Index, Error> {
        let place = format!("{}/{INDEX}", self.url);
        match self.keys("data").and_then(|keys| keys.get(INDEX)).and_then(Value::as_str) {
            Some(text) => Index::parse(text, &place),
            None => {
                let bytes = self.binary(INDEX)?;
                Index::parse(&String::from_utf8_lossy(&bytes), &place)
            }
        }
    }

    /// The key that a url of the index means: relative, or absolute and in this very ConfigMap; with the
    /// namespace and name of another ConfigMap where the url names that.
    ///
    /// # Errors
    /// When the url leads to something else than a ConfigMap.
    pub(crate) fn locate(&self, url: &str) -> Result<(Option<(String, String)>, String), Error> {
        let outside = || Error::Outside { place: format!("{}/{INDEX}", self.url), path: url.to_owned() };
        if !url.contains("://") {
            return Ok((None, url.trim_start_matches("./").to_owned()));
        }
        let (map, key) = url.rsplit_once('/').ok_or_else(outside)?;
        match Address::parse(map).map_err(|_| outside())? {
            Address::ConfigMap { namespace, name } if format!("cm://{namespace}/{name}") == self.url => {
                Ok((None, key.to_owned()))
            }
            Address::ConfigMap { namespace, name } => Ok((Some((namespace, name)), key.to_owned())),
            Address::Folder(_) | Address::Http(_) | Address::Registry(_) => Err(outside()),
        }
    }

    /// What tells this content of a key from another one; nothing for an object without a version.
    pub(crate) fn version_of(&self, key: &str) -> Option<String> {
        let (uid, version) = (self.object.uid()?, self.object.resource_version()?);
        Some(format!("{}/{key}@{uid}.{version}", self.url))
    }

    /// The bytes of a key of `binaryData`.
    ///
    /// # Errors
    /// When the key is missing or damaged.
    pub(crate) fn binary(&self, key: &str) -> Result<Vec<u8>, Error> {
        let text = self.keys("binaryData").and_then(|keys| keys.get(key)).and_then(Value::as_str);
        let text = text.ok_or_else(|| Error::KeyMissing {
            place: self.place(),
            key: key.to_owned(),
            present: self.present(),
        })?;
        BASE64_STANDARD.decode(text).map_err(|source| Error::KeyBroken {
            place: self.place(),
            key: key.to_owned(),
            source,
        })
    }

    fn place(&self) -> String {
        self.object.reference().to_string()
    }

    fn present(&self) -> Vec<String> {
        let keys = ["data", "binaryData"].into_iter().filter_map(|field| self.keys(field));
        keys.flat_map(|keys| keys.keys().cloned()).collect()
    }

    fn keys(&self, field: &str) -> Option<&Map<String, Value>> {
        self.object.json().get(field)?.as_object()
    }
}

//! Where the component of a Plugin is.

use std::path::PathBuf;

use pintle_api::plugin::KeyOf;

use crate::plugins::Unready;

/// Where the component of a Plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a registry.
    Registry,
    /// In a ConfigMap, perhaps with the digest of its bytes: for development.
    ConfigMap(KeyOf, Option<String>),
    /// In a folder of the operator's, perhaps with the digest of its bytes: for development.
    File(PathBuf, Option<String>),
}

impl Place {
    /// Reads `spec.image`; what begins with no scheme that is known here is for the registry's client to refuse.
    pub(super) fn parse(image: &str) -> Result<Self, Unready> {
        let (bare, digest) = match image.split_once("@sha256:") {
            Some((bare, digest)) => (bare, Some(format!("sha256:{digest}"))),
            None => (image, None),
        };
        if let Some(rest) = bare.strip_prefix("cm://").or_else(|| bare.strip_prefix("configmap://")) {
            return match *rest.split('/').collect::<Vec<_>>() {
                [namespace, name, key] if [namespace, name, key].iter().all(|part| !part.is_empty()) => {
                    let [namespace, name, key] = [namespace, name, key].map(str::to_owned);
                    Ok(Self::ConfigMap(KeyOf { namespace, name, key }, digest))
                }
                _ => Err(invalid(image, "cm://NAMESPACE/NAME/KEY")),
            };
        }
        match bare.strip_prefix("file://") {
            Some(path) if path.starts_with('/') => Ok(Self::File(PathBuf::from(path), digest)),
            Some(_) => Err(invalid(image, "file:///PATH")),
            None => Ok(Self::Registry),
        }
    }
}

fn invalid(image: &str, form: &str) -> Unready {
    Unready {
        reason: "InvalidReference".to_owned(),
        message: format!("`{image}` names no component; write {form}"),
        may_pass: false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn places_are_read_with_their_digests() {
        assert_eq!(Place::parse("oci://r.example/p@sha256:00").unwrap(), Place::Registry);
        let key = KeyOf { namespace: "ns".into(), name: "n".into(), key: "p.wasm".into() };
        assert_eq!(Place::parse("cm://ns/n/p.wasm").unwrap(), Place::ConfigMap(key.clone(), None));
        let digest = Some("sha256:00".to_owned());
        assert_eq!(Place::parse("cm://ns/n/p.wasm@sha256:00").unwrap(), Place::ConfigMap(key, digest));
        assert_eq!(Place::parse("file:///a/b.wasm").unwrap(), Place::File("/a/b.wasm".into(), None));
        for broken in ["cm://ns/n", "cm://ns//k", "file://a"] {
            assert_eq!(Place::parse(broken).unwrap_err().reason, "InvalidReference", "{broken}");
        }
    }
}

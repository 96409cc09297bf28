//! What the url of a chart repository says.

use std::path::PathBuf;

use crate::{error::Error, repository::without_user};

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// `cm://namespace/name`, `configmap://namespace/name`.
    ConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// `file:///folder`.
    Folder(PathBuf),
    /// `https://host/path`, `http://host/path`.
    Http(String),
    /// `oci://host/path`.
    Registry(String),
}

impl Address {
    /// Reads a url.
    ///
    /// # Errors
    /// When the scheme is not served or the rest has another shape.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let shape = |expected| Error::Address { url: without_user(url), expected };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| shape("SCHEME://…"))?;
        match scheme.to_ascii_lowercase().as_str() {
            "cm" | "configmap" => match *rest.trim_end_matches('/').split('/').collect::<Vec<_>>() {
                [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
                    Ok(Self::ConfigMap { namespace: namespace.to_owned(), name: name.to_owned() })
                }
                _ => Err(shape("cm://NAMESPACE/NAME")),
            },
            "file" => match rest {
                path if path.starts_with('/') => Ok(Self::Folder(PathBuf::from(path))),
                _ => Err(shape("file:///FOLDER")),
            },
            "http" | "https" if rest.is_empty() => Err(shape("https://HOST/PATH")),
            "http" | "https" => Ok(Self::Http(url.to_owned())),
            "oci" if rest.trim_matches('/').is_empty() => Err(shape("oci://HOST/PATH")),
            "oci" => Ok(Self::Registry(format!("oci://{rest}"))),
            _ => Err(Error::Scheme { url: without_user(url), scheme: scheme.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_maps_and_folders_are_read() {
        let config_map = Address::ConfigMap { namespace: "ns".into(), name: "n".into() };
        for url in ["cm://ns/n", "configmap://ns/n", "cm://ns/n/", "CM://ns/n"] {
            assert_eq!(Address::parse(url).ok(), Some(config_map.clone()), "{url}");
        }
        assert_eq!(Address::parse("file:///charts/x").ok(), Some(Address::Folder("/charts/x".into())));
    }

    #[test]
    fn what_is_not_served_is_named_with_what_is() {
        for (url, says) in [
            (
                "s3://bucket/charts",
                "repositories of scheme s3 are not served, as \"s3://bucket/charts\": use https://HOST/PATH, \
                 oci://HOST/PATH, cm://NAMESPACE/NAME or file:///FOLDER",
            ),
            ("https://", "\"https://\" is no repository: write https://HOST/PATH"),
            ("oci:///", "\"oci:///\" is no repository: write oci://HOST/PATH"),
            ("charts", "\"charts\" is no repository: write SCHEME://…"),
            ("cm://ns", "\"cm://ns\" is no repository: write cm://NAMESPACE/NAME"),
            ("cm://ns/a/b", "\"cm://ns/a/b\" is no repository: write cm://NAMESPACE/NAME"),
            ("cm:///n", "\"cm:///n\" is no repository: write cm://NAMESPACE/NAME"),
            ("file://charts", "\"file://charts\" is no repository: write file:///FOLDER"),
        ] {
            assert_eq!(Address::parse(url).map_err(|error| error.to_string()), Err(says.to_owned()));
        }
    }
}

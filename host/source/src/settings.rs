//! What an administrator says about registries: mirrors, certificates, which of them speak plain HTTP.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// How one registry is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where its plugins and charts are looked for first, in order: `host[:port][/path]`, its repositories below the
    /// path.
    pub mirrors: Vec<String>,
    /// Certificates of authorities as PEM, besides those of this machine; empty: none.
    pub authorities: Vec<u8>,
    /// It speaks no TLS.
    pub plain_http: bool,
    /// Its certificate is not checked.
    pub insecure: bool,
}

/// Why a file gives no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It cannot be read.
    #[error("{path} cannot be read")]
    File {
        /// The path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It has another form.
    #[error(
        "{path} has another form than `registries: {{HOST: {{mirrors: [HOST/PATH], caFile: FILE, plainHttp: false, \
         insecure: false}}}}`"
    )]
    Form {
        /// The path.
        path: PathBuf,
        /// What the reader says.
        #[source]
        source: serde_yaml::Error,
    },
    /// A place that is none.
    #[error("{path}: {place:?} is no registry: write host:port, or host:port/path for a mirror")]
    Place {
        /// The path.
        path: PathBuf,
        /// What is written there.
        place: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    registries: BTreeMap<String, Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    mirrors: Vec<String>,
    ca_file: Option<PathBuf>,
    plain_http: bool,
    insecure: bool,
}

/// Settings by the `host:port` of registries, out of a YAML file; relative paths in it begin at its folder.
///
/// # Errors
/// When it, or a file it names, cannot be read or has another form.
pub fn read_settings(path: &Path) -> Result<BTreeMap<String, Settings>, SettingsError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| SettingsError::File { path: path.to_owned(), source })
    };
    let file: File = serde_yaml::from_slice(&read(path)?)
        .map_err(|source| SettingsError::Form { path: path.to_owned(), source })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut all = BTreeMap::new();
    for (host, Entry { mirrors, ca_file, plain_http, insecure }) in file.registries {
        let places = std::iter::once((&host, false)).chain(mirrors.iter().map(|mirror| (mirror, true)));
        for (place, may_have_path) in places {
            if !is_place(place, may_have_path) {
                return Err(SettingsError::Place { path: path.to_owned(), place: place.clone() });
            }
        }
        let authorities = ca_file.map_or(Ok(Vec::new()), |file| read(&folder.join(file)))?;
        all.insert(host, Settings { mirrors, authorities, plain_http, insecure });
    }
    Ok(all)
}

fn is_place(place: &str, may_have_path: bool) -> bool {
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    let plain = |text: &str, more: &[char]| {
        text.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(&letter))
    };
    !host.is_empty()
        && plain(host, &['.', '-', ':', '[', ']'])
        && (may_have_path || !place.contains('/'))
        && plain(path, &['.', '-', '_', '/'])
        && !path.contains("..")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::unwrap_in_result, reason = "tests stop at the first surprise")]
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, Settings>, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), "PEM").unwrap();
        std::fs::write(folder.path().join("registries.yaml"), text).unwrap();
        read_settings(&folder.path().join("registries.yaml"))
    }

    #[test]
    fn a_file_says_how_each_registry_is_spoken_to() {
        let text = "registries:\n  r.example:\n    mirrors: ['m.example:5000/cache']\n    caFile: ca.pem\n  \
                    lab:5000: {plainHttp: true}\n";
        let found = read(text).unwrap();
        assert_eq!(found["r.example"].mirrors, ["m.example:5000/cache"]);
        assert_eq!(found["r.example"].authorities, b"PEM");
        assert!(found["lab:5000"].plain_http && !found["r.example"].plain_http);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        for (text, says) in [
            ("registries: {r: {mirror: [m]}}", "has another form than `registries:"),
            ("registries: {'https://r': {}}", "\"https://r\" is no registry"),
            ("registries: {r: {mirrors: [m/../x]}}", "\"m/../x\" is no registry"),
            ("registries: {r: {caFile: none.pem}}", "none.pem cannot be read"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}

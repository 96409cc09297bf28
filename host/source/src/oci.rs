//! Charts behind `oci://`, in Helm's layout: a layer with the archive, beside it perhaps its provenance.

use std::sync::Arc;

use oci_distribution::Reference;
use pintle_chart::semver::{Constraint, Version};

use crate::{
    access::Access,
    aged::{Aged, Fresh, Question},
    artifact::parse_reference,
    charts::Online,
    error::Error,
    registry::{Descriptor, Manifest, Session},
    remote::RemoteError,
    repository::MAX_PACKED,
};

/// Types of the layer that is the archive: today's, and that of Helm before 3.7.
const CONTENT: [&str; 2] = ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];
/// Type of the configuration, which is `Chart.yaml` as JSON.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// What is known of registries.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    tags: Aged<Vec<String>>,
    layers: Aged<Descriptor>,
}

/// One chart of a registry.
pub(crate) struct Chart<'a> {
    reference: Reference,
    /// The same chart elsewhere, where it is looked for first.
    mirrors: Vec<Reference>,
    place: String,
    access: &'a Access,
    online: &'a Online<'a>,
}

impl Registry {
    /// Asks anew the next time.
    pub(crate) fn forget(&self, place: &str) {
        self.tags.forget(place);
        self.layers.forget(place);
    }
}

impl<'a> Chart<'a> {
    /// A chart by its address, `oci://registry/path/name`, which may end in `:tag` or `@sha256:…`.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn open(url: &str, access: &'a Access, online: &'a Online<'a>) -> Result<Self, Error> {
        let broken =
            |problem: String| RemoteError::Url { url: crate::repository::without_user(url), problem };
        let reference = parse_reference(url).map_err(|error| broken(error.to_string()))?;
        let place = format!("oci://{}/{}", reference.registry(), reference.repository());
        let mirrors = online.registries.transport().mirrors(&reference);
        Ok(Self { reference, mirrors, place, access, online })
    }

    /// What a version means, as Helm reads it: an exact one is a tag, with `_` for `+`; of a range the newest
    /// tag that fits. `sha256:…` is the manifest itself.
    ///
    /// # Errors
    /// When no tag fits, or the registry does not answer.
    pub(crate) async fn resolve(&self, known: &Registry, version: &str) -> Result<String, Error> {
        if let Some(digest) = self.reference.digest() {
            return Ok(digest.to_owned());
        }
        if version.starts_with("sha256:") {
            return Ok(version.to_owned());
        }
        if Version::parse(version).is_ok() {
            return Ok(version.replace('+', "_"));
        }
        if version.is_empty()
            && let Some(tag) = self.tag()
        {
            return Ok(tag.to_owned());
        }
        let question = self.question(&self.place);
        let ask = async |_: Option<&_>| Ok(Fresh::New(self.tags().await?, None));
        let tags = known.tags.get(question, ask).await.map_err(|error| self.missing(version, error))?;
        newest(&tags, version, self.reference.repository(), &self.place)
    }

    /// The layer that is the archive of a resolved version.
    ///
    /// # Errors
    /// When it is not there, or is no chart.
    pub(crate) async fn layer(&self, known: &Registry, resolved: &str) -> Result<Arc<Descriptor>, Error> {
        let what = format!("{} {resolved}", self.place);
        let question = self.question(&what);
        let ask = async |_: Option<&_>| {
            Ok(Fresh::New(self.content(&self.manifest(resolved).await?, resolved)?, None))
        };
        let found = known.layers.get(question, ask).await;
        found.map_err(|error| self.missing(resolved, error))
    }

    /// The bytes of a layer.
    ///
    /// # Errors
    /// When they cannot be had, or are others than its digest says.
    pub(crate) async fn archive(&self, layer: &Descriptor) -> Result<Vec<u8>, Error> {
        for mut mirror in self.mirrors() {
            match mirror.blob(layer, MAX_PACKED).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => self.pass_over(&mirror, &error),
            }
        }
        Ok(self.session()?.blob(layer, MAX_PACKED).await?)
    }

    async fn tags(&self) -> Result<Vec<String>, RemoteError> {
        for mut mirror in self.mirrors() {
            match mirror.tags().await {
                Ok(tags) => return Ok(tags),
                Err(error) => self.pass_over(&mirror, &error),
            }
        }
        self.session()?.tags().await
    }

    async fn manifest(&self, resolved: &str) -> Result<Manifest, RemoteError> {
        for mut mirror in self.mirrors() {
            match mirror.manifest(resolved).await {
                Ok((manifest, _)) => return Ok(manifest),
                Err(error) => self.pass_over(&mirror, &error),
            }
        }
        Ok(self.session()?.manifest(resolved).await?.0)
    }

    /// Sessions with the mirrors, in order. What is given for the registry itself, its credentials and its
    /// certificates, is not for others.
    fn mirrors(&self) -> Vec<Session<'_>> {
        let access = Access { keyring: Arc::clone(&self.access.keyring), ..Access::default() };
        let transport = self.online.registries.transport();
        self.mirrors.iter().filter_map(|mirror| Session::new(transport, &access, mirror).ok()).collect()
    }

    fn pass_over(&self, mirror: &Session<'_>, error: &RemoteError) {
        tracing::warn!(chart = self.place, mirror = mirror.registry(), %error, "a mirror does not give the chart");
    }

    /// `oci://registry/path/name:version`.
    pub(crate) fn place(&self, resolved: &str) -> String {
        let mark = if resolved.starts_with("sha256:") { '@' } else { ':' };
        format!("{}{mark}{resolved}", self.place)
    }

    /// The tag in the address; `latest` is what a reference has without one.
    fn tag(&self) -> Option<&str> {
        self.reference.tag().filter(|tag| *tag != "latest")
    }

    fn question<'b>(&'b self, what: &'b str) -> Question<'b> {
        Question { what, access: self.access, now: self.online.now, max_age: self.online.max_age }
    }

    /// A session with the registry itself: what it says is what counts.
    fn session(&self) -> Result<Session<'_>, RemoteError> {
        Session::new(self.online.registries.transport(), self.access, &self.reference)
    }

    fn content(&self, manifest: &Manifest, resolved: &str) -> Result<Descriptor, Error> {
        let refuse = |problem: String| Error::NotAChart { place: self.place(resolved), problem };
        if manifest.manifests.is_some() {
            return Err(refuse("it is an index of several images".to_owned()));
        }
        if let Some(config) = manifest.config.as_ref().filter(|config| config.media_type != CONFIG) {
            return Err(refuse(format!("its configuration is of type {}", config.media_type)));
        }
        let is_content = |layer: &&Descriptor| CONTENT.contains(&layer.media_type.as_str());
        match *manifest.layers.iter().filter(is_content).collect::<Vec<_>>() {
            [layer] => Ok(layer.clone()),
            [] => Err(refuse("it has no layer of a chart's type".to_owned())),
            _ => Err(refuse("it has several layers of a chart's type".to_owned())),
        }
    }

    fn missing(&self, version: &str, error: Error) -> Error {
        match error {
            Error::Remote(RemoteError::NotFound { .. }) => {
                Error::NotPushed { place: self.place.clone(), version: version.to_owned() }
            }
            other => other,
        }
    }
}

/// The newest tag that a range means. Tags that are no versions count for nothing.
fn newest(tags: &[String], version: &str, chart: &str, place: &str) -> Result<String, Error> {
    let range = Constraint::parse(if version.is_empty() { "*" } else { version })
        .map_err(|source| Error::Version { chart: chart.to_owned(), version: version.to_owned(), source })?;
    let read = |tag: &String| Version::parse_strict(&tag.replace('_', "+")).ok();
    let mut versions: Vec<_> = tags.iter().filter_map(|tag| Some((read(tag)?, tag))).collect();
    versions.sort_by(|(one, _), (other, _)| other.cmp(one));
    let found = versions.iter().find(|(parsed, _)| range.matches(parsed));
    found.map(|(_, tag)| (*tag).clone()).ok_or_else(|| Error::VersionMissing {
        place: place.to_owned(),
        chart: chart.to_owned(),
        version: version.to_owned(),
        present: versions.iter().map(|(_, tag)| tag.replace('_', "+")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_means_the_newest_tag_that_is_a_version() {
        let tags = ["1.0.0", "1.2.0", "1.10.0_build.5", "2.0.0-rc.1", "latest", "v3.0.0", "1.9"];
        let tags = tags.map(str::to_owned);
        let found = |version| newest(&tags, version, "c", "oci://r/c").map_err(|error| error.to_string());
        assert_eq!(found("").as_deref(), Ok("1.10.0_build.5"));
        assert_eq!(found("~1.2").as_deref(), Ok("1.2.0"));
        assert_eq!(found(">1.10-0").as_deref(), Ok("2.0.0-rc.1"));
        assert_eq!(
            found("^9"),
            Err(
                "oci://r/c has no version \"^9\" of chart c; it has 2.0.0-rc.1, 1.10.0+build.5, 1.2.0, 1.0.0"
                    .into()
            )
        );
    }
}

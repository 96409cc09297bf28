//! From a repository's address and a version to a chart that can be rendered.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::{Facts, special_resource::HelmChart, watch::WatchChart};
use pintle_chart::{Chart, Compiled, digest_of};

use crate::{
    access::Access,
    address::Address,
    artifact::Registries,
    cache::Cache,
    config_map,
    error::Error,
    folder::{self, Content},
    index::Entry,
    oci,
    repository::{Indexes, Repository, Target, without_user},
    transport::shown,
};

/// Fetches charts, and keeps them by the digest of their bytes. One for the whole process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    cache: Arc<Cache>,
    indexes: Arc<Indexes>,
    registry: Arc<oci::Registry>,
}

/// Leave to ask servers, and how old their answers may be.
#[derive(Clone, Copy, Debug)]
pub struct Online<'a> {
    /// Asks them.
    pub registries: &'a Registries,
    /// The time now: a later call has the same or a later one.
    pub now: Instant,
    /// How old an index may be, the tags of a registry, or what a tag meant, before they are asked for
    /// again. Nothing: each time.
    pub max_age: Duration,
}

/// The chart that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Name in the repository's index.
    pub name: String,
    /// A version or a range; empty: the newest release. In a registry also `sha256:…` of a manifest.
    pub version: String,
    /// The repository: `cm://NAMESPACE/NAME`, `file:///FOLDER`, `https://HOST/PATH`, `oci://HOST/PATH`; of a
    /// registry all that stands before the chart's name.
    pub url: String,
    /// `sha256:…` that the archive must have; empty: any.
    pub digest: String,
    /// As whom its server is asked.
    pub access: Access,
}

/// A chart that was fetched. Equal digests are one and the same `chart`.
#[derive(Clone, Debug)]
pub struct Found {
    /// Ready to be rendered; its digest is in [`Chart::digest`].
    pub chart: Arc<Compiled>,
    /// Where it was found: `cm://ns/name/chart-1.0.0.tgz`.
    pub place: String,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The chart.
    Found(Found),
    /// A read that nobody has looked up yet: fetch it and ask again.
    NotYet,
}

/// A chart's bytes, before anything in them was looked at.
struct Fetched {
    place: String,
    content: Content,
    /// What tells this content from a later one at the same place, where the repository has such a thing.
    version: Option<String>,
    /// Digest in the index; empty where it has none.
    digest: String,
}

enum Step {
    Fetched(Fetched),
    Known(Found),
    NotYet,
}

impl Sources {
    /// Keeps charts in memory, and archives in `folder` too where one is given.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { cache: Arc::new(Cache::new(folder)), ..Self::default() }
    }

    /// The chart that is wanted. ConfigMaps are read through `facts` alone. A chart named by digest that was
    /// fetched before is given without asking its repository.
    ///
    /// # Errors
    /// One variant per fault; see [`Error::is_transient`] for whether trying again may help.
    ///
    /// # Cancellation
    /// Safe: what was read so far is forgotten, or kept for the next call.
    pub async fn fetch(
        &self,
        request: &Request,
        facts: &dyn Facts,
        online: Online<'_>,
    ) -> Result<Outcome, Error> {
        let address = Address::parse(&request.url)?;
        if let Some(found) = self.pinned(request).await? {
            return Ok(Outcome::Found(found));
        }
        let fetched = self.fetch_from(&address, request, facts, online).await;
        if fetched.as_ref().is_err_and(|error| !error.is_transient()) {
            self.forget(&address, request);
        }
        fetched
    }

    /// The chart in the archive behind `url` of the request itself: there is no index, and no name.
    ///
    /// # Errors
    /// When it cannot be had, or is no chart.
    pub async fn archive(&self, request: &Request, online: Online<'_>) -> Result<Arc<Compiled>, Error> {
        let bytes = download(&request.url, &request.access, online).await?;
        let (place, content) = (without_user(&request.url), Content::Archive(bytes));
        let fetched = Fetched { place, content, version: None, digest: String::new() };
        Ok(self.admit(request, fetched).await?.chart)
    }

    async fn fetch_from(
        &self,
        address: &Address,
        request: &Request,
        facts: &dyn Facts,
        online: Online<'_>,
    ) -> Result<Outcome, Error> {
        let step = match address {
            Address::ConfigMap { namespace, name } => self.config_map(request, namespace, name, facts)?,
            Address::Folder(path) => {
                let (wanted, path) = (request.clone(), path.clone());
                blocking(&request.url, move || from_folder(&wanted, &path)).await.map(Step::Fetched)?
            }
            Address::Http(url) => self.repository(request, url, &online).await?,
            Address::Registry(url) => self.registry(request, &below(url, &request.name), &online).await?,
        };
        match step {
            Step::Fetched(fetched) => self.admit(request, fetched).await.map(Outcome::Found),
            Step::Known(found) => Ok(Outcome::Found(found)),
            Step::NotYet => Ok(Outcome::NotYet),
        }
    }

    /// A fault that was found in what a server said is mended by what it says next.
    fn forget(&self, address: &Address, request: &Request) {
        match address {
            Address::Http(url) => {
                if let Ok(repository) = Repository::open(url, &request.access) {
                    repository.forget(&self.indexes);
                }
            }
            Address::Registry(url) => self.registry.forget(&below(url, &request.name)),
            Address::ConfigMap { .. } | Address::Folder(_) => {}
        }
    }

    /// The chart whose digest is asked for, from memory or the cache folder.
    async fn pinned(&self, request: &Request) -> Result<Option<Found>, Error> {
        if request.digest.is_empty() {
            return Ok(None);
        }
        let digest = normal(&request.digest);
        let place = format!("{} ({digest})", without_user(&request.url));
        if let Some(chart) = self.cache.chart(&digest) {
            return Ok(Some(Found { chart, place }));
        }
        let Some(bytes) = self.cache.archive(&digest) else { return Ok(None) };
        let fetched = Fetched { place, content: Content::Archive(bytes), version: None, digest };
        self.admit(request, fetched).await.map(Some)
    }

    fn config_map(
        &self,
        request: &Request,
        namespace: &str,
        name: &str,
        facts: &dyn Facts,
    ) -> Result<Step, Error> {
        let Some(mut repository) = config_map::Repository::open(namespace, name, facts)? else {
            return Ok(Step::NotYet);
        };
        let index = repository.index()?;
        let entry = index.find(&request.name, &request.version, repository.url())?;
        let (other, key) = repository.locate(first_url(entry, request, repository.url())?)?;
        if let Some((namespace, name)) = other {
            match config_map::Repository::open(&namespace, &name, facts)? {
                Some(other) => repository = other,
                None => return Ok(Step::NotYet),
            }
        }
        let place = format!("{}/{key}", repository.url());
        let version = repository.version_of(&key);
        if let Some(chart) = version.as_deref().and_then(|version| self.cache.known(version)) {
            let found = &chart.chart().digest;
            check_digest(&place, found, &entry.digest, "the index")?;
            check_digest(&place, found, &request.digest, "chart.digest")?;
            return Ok(Step::Known(Found { chart, place }));
        }
        let content = Content::Archive(repository.binary(&key)?);
        Ok(Step::Fetched(Fetched { place, content, version, digest: entry.digest.clone() }))
    }

    /// An archive that a repository's index names, downloaded when it is not known by its digest.
    async fn repository(&self, request: &Request, url: &str, online: &Online<'_>) -> Result<Step, Error> {
        let repository = Repository::open(url, &request.access)?;
        let answered = repository.index(online, &self.indexes).await?;
        let place = repository.url();
        let entry = answered.index.find(&request.name, &request.version, &place)?;
        let archive = match repository.target(first_url(entry, request, &place)?)? {
            Target::Archive(archive) => archive,
            Target::Registry(url) => {
                let exact = Request { version: String::new(), ..request.clone() };
                return self.registry(&exact, &url, online).await;
            }
        };
        let place = shown(&archive);
        // An index without digests says nothing of the bytes: they are those of this very index.
        let version = format!("{place}@{}", answered.digest);
        if let Some(found) = self.known(request, &place, &entry.digest, Some(&version))? {
            return Ok(Step::Known(found));
        }
        let content = Content::Archive(repository.archive(online, &archive).await?);
        Ok(Step::Fetched(Fetched { place, content, version: Some(version), digest: entry.digest.clone() }))
    }

    /// A chart of a registry, pulled when its layer is not known.
    async fn registry(&self, request: &Request, url: &str, online: &Online<'_>) -> Result<Step, Error> {
        let chart = oci::Chart::open(url, &request.access, online)?;
        let resolved = chart.resolve(&self.registry, &request.version).await?;
        let layer = chart.layer(&self.registry, &resolved).await?;
        let place = chart.place(&resolved);
        if let Some(found) = self.known(request, &place, &layer.digest, None)? {
            return Ok(Step::Known(found));
        }
        let content = Content::Archive(chart.archive(&layer).await?);
        Ok(Step::Fetched(Fetched { place, content, version: None, digest: layer.digest.clone() }))
    }

    /// The chart that was fetched before under this digest or, where none is named, under this version.
    fn known(
        &self,
        request: &Request,
        place: &str,
        digest: &str,
        version: Option<&str>,
    ) -> Result<Option<Found>, Error> {
        let chart = match (digest, version) {
            ("", Some(version)) => self.cache.known(version),
            (digest, _) => self.cache.chart(&normal(digest)),
        };
        let Some(chart) = chart else { return Ok(None) };
        check_digest(place, &chart.chart().digest, &request.digest, "chart.digest")?;
        Ok(Some(Found { chart, place: place.to_owned() }))
    }

    /// Checks the bytes, reads the chart in them where it is not known yet, and keeps it.
    async fn admit(&self, request: &Request, fetched: Fetched) -> Result<Found, Error> {
        let (cache, pinned) = (Arc::clone(&self.cache), request.digest.clone());
        let place = fetched.place.clone();
        blocking(&place, move || admit(&cache, &pinned, fetched)).await
    }
}

impl From<&HelmChart> for Request {
    fn from(chart: &HelmChart) -> Self {
        Self {
            name: chart.name.clone(),
            version: chart.version.clone(),
            url: chart.repository.url.clone(),
            digest: chart.digest.clone(),
            access: Access::default(),
        }
    }
}

impl From<&WatchChart> for Request {
    fn from(chart: &WatchChart) -> Self {
        Self {
            name: chart.name.clone(),
            version: chart.version.clone(),
            url: chart.repository.url.clone(),
            digest: chart.digest.clone(),
            access: Access::default(),
        }
    }
}

/// The bytes behind a web address: at most those of a packed chart.
///
/// # Errors
/// When they cannot be had.
pub async fn download(url: &str, access: &Access, online: Online<'_>) -> Result<Vec<u8>, Error> {
    let (repository, address) = Repository::around(url, access)?;
    repository.archive(&online, &address).await
}

/// The chart of this name below an address of a registry.
fn below(url: &str, name: &str) -> String {
    format!("{}/{name}", url.trim_end_matches('/')).trim_end_matches('/').to_owned()
}

/// Runs what reads a disk or takes long on a thread that may block: a large chart takes a second to unpack.
pub(crate) async fn blocking<T: Send + 'static>(
    place: &str,
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let joined = tokio::task::spawn_blocking(run).await;
    joined.unwrap_or_else(|_| Err(Error::Interrupted { place: place.to_owned() }))
}

fn from_folder(request: &Request, path: &Path) -> Result<Fetched, Error> {
    let repository = folder::Repository::open(path)?;
    let index = repository.index(&request.name)?;
    let url = repository.url();
    let entry = index.find(&request.name, &request.version, &url)?;
    let (place, content) = repository.content(first_url(entry, request, &url)?)?;
    Ok(Fetched { place, content, version: None, digest: entry.digest.clone() })
}

fn first_url<'a>(entry: &'a Entry, request: &Request, place: &str) -> Result<&'a str, Error> {
    entry.urls.first().map(String::as_str).ok_or_else(|| Error::NoUrl {
        place: place.to_owned(),
        chart: request.name.clone(),
        version: entry.version.clone(),
    })
}

fn admit(cache: &Cache, pinned: &str, fetched: Fetched) -> Result<Found, Error> {
    let Fetched { place, content, version, digest } = fetched;
    let broken = |source| Error::Chart { place: place.clone(), source };
    let (chart, archive) = match content {
        Content::Archive(bytes) => {
            let found = digest_of(&bytes);
            check_digest(&place, &found, &digest, "the index")?;
            check_digest(&place, &found, pinned, "chart.digest")?;
            if let Some(chart) = cache.chart(&found) {
                cache.keep(&chart, version);
                return Ok(Found { chart, place });
            }
            (Chart::from_archive(&bytes).map_err(broken)?, Some(bytes))
        }
        Content::Files(files) => (Chart::from_folder(files).map_err(broken)?, None),
    };
    check_digest(&place, &chart.digest, pinned, "chart.digest")?;
    if let Some(chart) = cache.chart(&chart.digest) {
        return Ok(Found { chart, place });
    }
    if let Some(bytes) = archive {
        cache.store(&chart.digest, &bytes);
    }
    let compiled = Compiled::new(Arc::new(chart));
    let chart = Arc::new(compiled.map_err(|source| Error::NotInstallable { place: place.clone(), source })?);
    cache.keep(&chart, version);
    Ok(Found { chart, place })
}

fn check_digest(place: &str, found: &str, expected: &str, named_by: &'static str) -> Result<(), Error> {
    if expected.is_empty() || normal(expected) == found {
        return Ok(());
    }
    let (place, found, expected) = (place.to_owned(), found.to_owned(), expected.to_owned());
    Err(Error::Digest { place, found, expected, named_by })
}

/// Helm writes digests into an index without the name of the hash.
fn normal(digest: &str) -> String {
    let digest = digest.to_ascii_lowercase();
    if digest.contains(':') { digest } else { format!("sha256:{digest}") }
}

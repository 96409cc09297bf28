//! The chart a command line names: a folder, an archive, a registry, a repository.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::Record;
use pintle_chart::{
    Chart, ChartError, File,
    archive::{MAX_ARCHIVE, MAX_ENTRIES, MAX_FILE},
    ignore::Rules,
};
use pintle_source::{
    Access, Credentials, Online, Outcome, Request, Sources, Tls,
    artifact::Registries,
    keyring::{DockerConfig, Keyring},
};

use super::{
    failure::{Failure, missing_dependencies},
    values::open_failed,
};

/// Folders inside each other; links may make more than there are.
const MAX_DEPTH: usize = 32;

/// Where the chart is, and as whom its server is asked.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are bools")]
pub(super) struct Args {
    /// The repository (https://…) that CHART names a chart of.
    #[arg(long)]
    repo: Option<String>,
    /// A version or a range; without one the newest release.
    #[arg(long)]
    version: Option<String>,
    /// Releases that are not final count too.
    #[arg(long)]
    devel: bool,
    /// User of the repository or registry.
    #[arg(long)]
    username: Option<String>,
    /// Password of the repository or registry.
    #[arg(long)]
    password: Option<String>,
    /// Credentials are for all servers that the repository's index points to.
    #[arg(long)]
    pass_credentials: bool,
    /// Certificates of authorities, as PEM.
    #[arg(long)]
    ca_file: Option<PathBuf>,
    /// Our certificate, as PEM.
    #[arg(long)]
    cert_file: Option<PathBuf>,
    /// Its key.
    #[arg(long)]
    key_file: Option<PathBuf>,
    /// Do not check the server's certificate.
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Speak plain HTTP with a registry.
    #[arg(long)]
    plain_http: bool,
}

/// The chart itself, read and not yet checked.
pub(super) fn locate(args: &Args, place: &str) -> Result<Arc<Chart>, Failure> {
    let place = place.trim();
    if args.repo.is_none() {
        if let Ok(found) = fs::metadata(place) {
            return if found.is_dir() { from_folder(Path::new(place)) } else { from_file(Path::new(place)) };
        }
        if place.starts_with('/') || place.starts_with('.') {
            return Err(Failure::new(format!("path \"{place}\" not found")));
        }
    }
    let version = match (&args.version, args.devel) {
        (Some(version), _) if !version.trim().is_empty() => version.trim().to_owned(),
        (_, true) => ">0.0.0-0".to_owned(),
        _ => String::new(),
    };
    online(args, place, version)
}

/// Refuses what Helm does not install, in its words.
pub(super) fn check(chart: &Chart) -> Result<(), Failure> {
    let metadata = &chart.metadata;
    if !matches!(metadata.kind.as_str(), "" | "application") {
        return Err(Failure::new(format!("{} charts are not installable", metadata.kind)));
    }
    let is_there = |name: &str| chart.dependencies.iter().any(|inner| inner.name() == name);
    let named = metadata.dependencies.iter().map(|dependency| dependency.name.as_str());
    let missing: Vec<&str> = named.filter(|name| !is_there(name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(Failure::new(missing_dependencies(&missing.join(", ")))) }
}

/// The same chart, whose values nobody checks.
pub(super) fn without_schemas(chart: &Chart) -> Arc<Chart> {
    let dependencies = chart.dependencies.iter().map(|inner| without_schemas(inner)).collect();
    Arc::new(Chart { schema: None, dependencies, ..chart.clone() })
}

/// The bytes behind an address.
pub(super) fn download(url: &str, now: Instant) -> Result<Vec<u8>, Failure> {
    let registries = Registries::default();
    let online = Online { registries: &registries, now, max_age: Duration::ZERO };
    let bytes = block_on(pintle_source::download(url, &Access::default(), online))?;
    bytes.map_err(|error| Failure::of(&error))
}

pub(super) fn from_file(path: &Path) -> Result<Arc<Chart>, Failure> {
    let shown = path.display().to_string();
    let size = fs::metadata(path).map_err(|error| open_failed(&shown, &error))?.len();
    if size > MAX_ARCHIVE {
        return Err(Failure::new(format!(
            "{shown} has {size} bytes, more than the {MAX_ARCHIVE} of a chart"
        )));
    }
    let bytes = fs::read(path).map_err(|error| open_failed(&shown, &error))?;
    let is_yaml = [".yaml", ".yml"].iter().any(|end| shown.ends_with(end));
    if is_yaml && !bytes.starts_with(&[0x1f, 0x8b]) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        return Err(Failure::new(format!(
            "file '{}' seems to be a YAML file, but expected a gzipped archive",
            path.display()
        )));
    }
    Ok(Arc::new(Chart::from_archive(&bytes)?))
}

pub(super) fn from_folder(folder: &Path) -> Result<Arc<Chart>, Failure> {
    let metadata = folder.join("Chart.yaml");
    if !metadata.is_file() {
        let path = std::path::absolute(&metadata).unwrap_or(metadata);
        let path = path.display();
        return Err(Failure::new(format!(
            "unable to detect chart at {path}: open {path}: no such file or directory"
        )));
    }
    let text = fs::read_to_string(folder.join(".helmignore")).unwrap_or_default();
    let rules = Rules::parse(&text).map_err(ChartError::from)?;
    let mut files = Vec::new();
    collect(folder, "", &rules, &mut files, 0)?;
    Ok(Arc::new(Chart::from_folder(files)?))
}

/// The files below a folder that `.helmignore` leaves; links are followed, as Helm does.
fn collect(
    folder: &Path,
    inside: &str,
    rules: &Rules,
    files: &mut Vec<File>,
    depth: usize,
) -> Result<(), Failure> {
    if depth > MAX_DEPTH || files.len() > MAX_ENTRIES {
        return Err(Failure::new(format!("{} has too many files or folders for a chart", folder.display())));
    }
    let shown = folder.display().to_string();
    let entries = fs::read_dir(folder).map_err(|error| open_failed(&shown, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| open_failed(&shown, &error))?;
        let name = entry.file_name();
        let path = format!("{inside}{}", name.to_string_lossy());
        let shown = entry.path().display().to_string();
        let found = fs::metadata(entry.path()).map_err(|error| open_failed(&shown, &error))?;
        if found.is_dir() {
            // A file nobody would name: where it is ignored, the folder is.
            if !rules.ignore(&format!("{path}/\u{1}")) {
                collect(&entry.path(), &format!("{path}/"), rules, files, depth + 1)?;
            }
            continue;
        }
        if rules.ignore(&path) && path != ".helmignore" {
            continue;
        }
        if !found.is_file() {
            return Err(Failure::new(format!(
                "cannot load irregular file {shown} as it has file mode type bits set"
            )));
        }
        if found.len() > MAX_FILE {
            let size = found.len();
            return Err(Failure::new(format!(
                "chart file \"{name}\" is larger than the maximum file size {MAX_FILE} ({size} bytes)",
                name = name.to_string_lossy()
            )));
        }
        let bytes = fs::read(entry.path()).map_err(|error| open_failed(&shown, &error))?;
        files.push(File::new(path, &bytes));
    }
    Ok(())
}

fn online(args: &Args, place: &str, version: String) -> Result<Arc<Chart>, Failure> {
    let Args { repo, plain_http, .. } = args;
    let mut request = Request { version, ..Request::default() };
    match repo {
        Some(repo) => (request.url, request.name) = (repo.clone(), place.to_owned()),
        None if place.starts_with("oci://") => split_reference(place, &mut request)?,
        None if place.starts_with("http://") || place.starts_with("https://") => {
            place.clone_into(&mut request.url);
        }
        None => return Err(no_such_repository(place)),
    }
    let registries = Registries::default();
    let now = Online { registries: &registries, now: Instant::now(), max_age: Duration::ZERO };
    let found = block_on(async {
        request.access = access(args, &request.url).await?;
        request.access.plain_http = *plain_http;
        let sources = Sources::default();
        if request.name.is_empty() {
            return sources.archive(&request, now).await.map_err(|error| Failure::of(&error));
        }
        match sources.fetch(&request, &Record::default(), now).await {
            Ok(Outcome::Found(found)) => Ok(found.chart),
            Ok(Outcome::NotYet) => Err(Failure::new(format!("{place} needs a cluster to be read"))),
            Err(error) => Err(Failure::of(&error)),
        }
    })??;
    Ok(Arc::clone(found.chart()))
}

/// `oci://registry/path/name[:tag][@digest]` as repository, name and version. A tag or digest in the address
/// wins over no version, and must be the version where there is one.
fn split_reference(place: &str, request: &mut Request) -> Result<(), Failure> {
    let (bare, digest) = place.split_once('@').map_or((place, None), |(bare, digest)| (bare, Some(digest)));
    let (folder, last) = bare.rsplit_once('/').unwrap_or((bare, ""));
    let (name, tag) = last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
    if name.is_empty() || folder.len() <= "oci://".len() {
        return Err(Failure::new(format!("{place} names no chart: write oci://HOST/PATH/NAME")));
    }
    if let Some(tag) = tag {
        let tag = tag.replace('_', "+");
        if !request.version.is_empty() && request.version != tag {
            return Err(Failure::new(format!(
                "chart reference and version mismatch: {} is not {tag}",
                request.version
            )));
        }
        request.version = tag;
    }
    (request.url, request.name) = (folder.to_owned(), name.to_owned());
    if let Some(digest) = digest {
        digest.clone_into(&mut request.version);
    }
    Ok(())
}

fn no_such_repository(place: &str) -> Failure {
    match place.split_once('/') {
        Some((repository, _)) => Failure::new(format!("repo {repository} not found")),
        None => Failure::new(format!(
            "non-absolute URLs should be in form of repo_name/path_to_chart, got: {place}"
        )),
    }
}

async fn access(args: &Args, url: &str) -> Result<Access, Failure> {
    let Args { username, password, pass_credentials, ca_file, cert_file, key_file, .. } = args;
    let given = username.is_some() || password.is_some();
    let credentials = given.then(|| Credentials {
        user: username.clone().unwrap_or_default(),
        password: password.clone().unwrap_or_default(),
    });
    let keyring = match url.strip_prefix("oci://") {
        Some(rest) => {
            let registry = rest.split('/').next().unwrap_or_default();
            docker_config()?.keyring(registry).await
        }
        None => Keyring::default(),
    };
    let mut identity = pem(cert_file.as_deref())?;
    identity.extend(pem(key_file.as_deref())?);
    let tls =
        Tls { authorities: pem(ca_file.as_deref())?, identity, insecure: args.insecure_skip_tls_verify };
    Ok(Access {
        credentials,
        keyring: keyring.into(),
        pass_credentials: *pass_credentials,
        tls,
        ..Access::default()
    })
}

/// Helm's own file where its variable names one, else that of container engines.
fn docker_config() -> Result<DockerConfig, Failure> {
    let named = std::env::var_os("HELM_REGISTRY_CONFIG").map(PathBuf::from).filter(|path| path.is_file());
    match named.or_else(DockerConfig::usual_path) {
        Some(path) => DockerConfig::read(&path).map_err(|error| Failure::of(&error)),
        None => Ok(DockerConfig::default()),
    }
}

fn pem(path: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let Some(path) = path else { return Ok(Vec::new()) };
    fs::read(path).map_err(|error| open_failed(&path.display().to_string(), &error))
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| Failure::of(&error))?.block_on(future))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_reference_is_taken_apart() {
        let split = |place: &str, version: &str| {
            let mut request = Request { version: version.to_owned(), ..Request::default() };
            split_reference(place, &mut request).map(|()| (request.url, request.name, request.version))
        };
        let parts = |url: &str, name: &str, version: &str| (url.into(), name.into(), version.into());
        assert_eq!(split("oci://r:5000/a/c", "^1").unwrap(), parts("oci://r:5000/a", "c", "^1"));
        assert_eq!(split("oci://r:5000/c:1.0.0_b", "").unwrap(), parts("oci://r:5000", "c", "1.0.0+b"));
        assert_eq!(split("oci://r/c@sha256:00", "").unwrap(), parts("oci://r", "c", "sha256:00"));
        assert!(split("oci://r/c:1.0.0", "2.0.0").is_err());
        assert!(split("oci://r", "").is_err());
        assert!(split("oci://r/", "").is_err());
    }
}

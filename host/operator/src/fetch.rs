//! Fetch: the chart an owner names, compiled.

mod secret;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::{
    Facts, ObjectRef, Record, Recorder,
    special_resource::{HelmChart, HelmRepository},
};
use pintle_plan::Trouble;
use pintle_source::{Access, Credentials, Online, Outcome, Request, Tls};

use crate::{
    charts::Loaded,
    context::{Context, Key},
    error_text::one_line,
    front::Front,
};

/// Rounds in which a source may find reads nobody had looked up.
const ROUNDS: usize = 16;

/// How old an index of a repository may be, the tags of a registry, and what a tag meant. A pass that only
/// looks again asks no server.
const MAX_AGE: Duration = Duration::from_secs(300);
/// Bytes of a file with certificates; the bundle of a distribution has 250 KB.
const MAX_PEM: u64 = 4 << 20;

/// Why there is no chart.
pub(crate) struct Problem {
    /// CamelCase word for the very fault.
    pub(crate) word: &'static str,
    /// The sentence with place and fix.
    pub(crate) message: String,
    /// Time alone may mend it.
    pub(crate) may_pass: bool,
    /// What was read: a change of it may mend it.
    pub(crate) reads: Record,
}

/// Who says that there is no chart.
enum Refused {
    Secret(secret::Fault),
    Source(pintle_source::Error),
}

/// Which chart is wanted, by whom.
pub(crate) struct Wanted<'a> {
    pub(crate) chart: &'a HelmChart,
    /// Who names it.
    pub(crate) owner: &'a ObjectRef,
    /// Namespace of the release that the chart is for.
    pub(crate) namespace: &'a str,
    /// An administrator names it, who may name Secrets of any namespace.
    pub(crate) is_of_watch: bool,
}

/// The chart that a release is of, and what was read for it.
pub(crate) async fn run(ctx: &Context, key: &Key, front: &Front) -> Result<(Arc<Loaded>, Record), Problem> {
    let Front { release, chart: named, .. } = front;
    let (owner, namespace) = (&release.owner, release.namespace.as_str());
    chart(ctx, key, &Wanted { chart: named, owner, namespace, is_of_watch: front.is_watched() }).await
}

/// A chart that an owner names, and what was read for it.
pub(crate) async fn chart(
    ctx: &Context,
    key: &Key,
    wanted: &Wanted<'_>,
) -> Result<(Arc<Loaded>, Record), Problem> {
    let access = match access(&wanted.chart.repository).await {
        Ok(access) => access,
        Err(message) => return Err(problem("FileUnreadable", message, true, Record::default())),
    };
    let request = Request::from(wanted.chart);
    let online = Online { registries: &ctx.plugins.registries, now: Instant::now(), max_age: MAX_AGE };
    let mut rounds = 0;
    loop {
        let recorder = Recorder::new(&*ctx.caches);
        let _ = recorder.get(wanted.owner);
        let fetched = match secret::over(&recorder, wanted, &access) {
            Ok(access) => {
                let request = Request { access, ..request.clone() };
                ctx.sources.fetch(&request, &recorder, online).await.map_err(Refused::Source)
            }
            Err(fault) => Err(Refused::Secret(fault)),
        };
        let reads = recorder.into_record();
        let needs = reads.needs();
        rounds += 1;
        if !needs.is_empty() && rounds <= ROUNDS {
            ctx.caches.fetch(&needs, &key.holder()).await;
            continue;
        }
        return match fetched {
            Ok(Outcome::Found(found)) => Ok((ctx.charts.load(&found.chart), reads)),
            Ok(Outcome::NotYet) => {
                let message = "the chart's repository cannot be read yet".to_owned();
                Err(problem("RepositoryUnknown", message, true, reads))
            }
            Err(refused) => Err(refused.problem(reads)),
        };
    }
}

/// As whom the repository is asked, as its owner says; files are those of the operator's container.
async fn access(repository: &HelmRepository) -> Result<Access, String> {
    let HelmRepository { username, password, cert_file, key_file, ca_file, insecure_skip_tls_verify, .. } =
        repository;
    let credentials = Credentials { user: username.clone(), password: password.clone() };
    let mut identity = pem("certFile", cert_file).await?;
    identity.extend(pem("keyFile", key_file).await?);
    Ok(Access {
        credentials: (!username.is_empty() || !password.is_empty()).then_some(credentials),
        tls: Tls {
            authorities: pem("caFile", ca_file).await?,
            identity,
            insecure: *insecure_skip_tls_verify,
        },
        ..Access::default()
    })
}

/// The content of a file with certificates; nothing where none is named.
async fn pem(field: &str, path: &str) -> Result<Vec<u8>, String> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let broken = |why: String| {
        format!(
            "chart.repository.{field}: {path} cannot be read in the operator's container ({why}): mount it there"
        )
    };
    let size = tokio::fs::metadata(path).await.map_err(|err| broken(err.to_string()))?;
    if !size.is_file() || size.len() > MAX_PEM {
        return Err(broken("it is no file of certificates".to_owned()));
    }
    tokio::fs::read(path).await.map_err(|err| broken(err.to_string()))
}

fn problem(word: &'static str, message: String, may_pass: bool, reads: Record) -> Problem {
    Problem { word, message, may_pass, reads }
}

// === impl Refused ===

impl Refused {
    fn problem(&self, reads: Record) -> Problem {
        match self {
            Self::Secret(fault) => problem(fault.reason(), one_line(fault), fault.may_pass(), reads),
            Self::Source(err) => {
                problem(err.reason(), one_line(err), err.is_transient() || err.is_remote(), reads)
            }
        }
    }
}

// === impl Problem ===

impl Problem {
    /// What is told of it: SRO's one word for conditions, and our own for the fault.
    pub(crate) fn trouble(&self) -> Trouble<'_> {
        Trouble { reason: "ChartFailure", word: self.word, message: &self.message }
    }

    /// The same problem, which a change of what was read before may mend too.
    pub(crate) fn after(mut self, reads: &Record) -> Self {
        self.reads.extend(reads.clone());
        self
    }

    /// The same of the chart of a dependency.
    pub(crate) fn trouble_of_dependency(&self) -> Trouble<'_> {
        Trouble { reason: "DependencyChartFailure", ..self.trouble() }
    }
}

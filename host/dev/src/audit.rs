//! What the API server was asked: its audit log, read back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

/// The audit log of one control plane. The control plane's own programs are not in it.
///
/// An event is written when its answer has been sent, so a request that just returned may be missing for a moment:
/// ask [`Audit::settled`] before counting.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
}

/// A place in the log: everything after it is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

/// One request as the API server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The user name; ServiceAccounts are `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural resource, empty for requests outside resources.
    pub resource: String,
    /// `status`, `log`, … or empty.
    pub subresource: String,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
    /// Empty for lists and for creations with a generated name.
    pub name: String,
    /// The path and query that were asked for.
    pub uri: String,
    /// The HTTP status; 0 while a watch runs.
    pub code: u16,
    /// What the request's program calls itself.
    pub user_agent: String,
    /// Answered, or a watch that has begun.
    pub stage: Stage,
    /// When it came in.
    pub time: Timestamp,
}

/// What the event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A watch, or another long answer, has begun; another event follows when it ends.
    Started,
    /// The answer has been sent.
    Complete,
    /// The API server failed inside.
    Panic,
}

impl Request {
    /// Whether it may have changed something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            // Questions that are asked by creating: nothing is stored.
            && !matches!(self.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io")
            && self.subresource != "token"
    }

    /// `verb resource[/subresource]`, the key of [`Audit::counts`].
    pub fn key(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.verb, self.resource, self.subresource)
    }
}

impl Audit {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The present end of the log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn mark(&self) -> io::Result<Mark> {
        Ok(Mark(self.path.metadata()?.len()))
    }

    /// Waits until nothing has been written for 50 ms (the API server writes an event within a few), and marks the end.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn settled(&self) -> io::Result<Mark> {
        const QUIET: Duration = Duration::from_millis(50);
        let mut before = self.mark()?;
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.mark()?;
            if now == before {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Every event of a user, oldest first.
    ///
    /// # Errors
    /// The log cannot be read, or holds something that is no audit event.
    pub fn requests(&self, user: &str) -> io::Result<Vec<Request>> {
        self.requests_since(user, Mark::default())
    }

    /// The events of a user that were written after a mark, oldest first.
    ///
    /// # Errors
    /// The log cannot be read, or holds something that is no audit event.
    pub fn requests_since(&self, user: &str, mark: Mark) -> io::Result<Vec<Request>> {
        let all = self.all_since(mark)?;
        Ok(all.into_iter().filter(|request| request.user == user).collect())
    }

    /// The events of all users that were written after a mark, oldest first.
    ///
    /// # Errors
    /// The log cannot be read, or holds something that is no audit event.
    pub fn all_since(&self, mark: Mark) -> io::Result<Vec<Request>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(mark.0))?;
        let mut reader = BufReader::new(file);
        let (mut requests, mut line) = (Vec::new(), String::new());
        while reader.read_line(&mut line)? > 0 {
            // The last line may still be in the writing.
            if line.ends_with('\n') {
                requests.push(serde_json::from_str::<Event>(&line)?.into());
            }
            line.clear();
        }
        Ok(requests)
    }

    /// How often a user asked for what since a mark. A watch counts once, when it begins.
    ///
    /// # Errors
    /// The log cannot be read, or holds something that is no audit event.
    pub fn counts(&self, user: &str, mark: Mark) -> io::Result<Counts> {
        let requests = self.requests_since(user, mark)?;
        let mut counts = Counts::default();
        for request in
            requests.iter().filter(|request| (request.verb == "watch") == (request.stage == Stage::Started))
        {
            counts.add(request);
        }
        Ok(counts)
    }
}

/// How often was asked for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All requests.
    pub total: usize,
    /// Those that may have changed something.
    pub writes: usize,
    /// By verb and resource, as [`Request::key`] has it.
    pub by_key: BTreeMap<String, usize>,
}

impl Counts {
    fn add(&mut self, request: &Request) {
        self.total += 1;
        self.writes += usize::from(request.is_write());
        *self.by_key.entry(request.key()).or_default() += 1;
    }
}

/// The fields of `audit.k8s.io/v1 Event` that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: EventUser,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct EventUser {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl From<Event> for Request {
    fn from(event: Event) -> Self {
        let ObjectRef { api_group, resource, subresource, namespace, name } = event.object_ref;
        let stage = match event.stage.as_str() {
            "ResponseStarted" => Stage::Started,
            "Panic" => Stage::Panic,
            _ => Stage::Complete,
        };
        Self {
            user: event.user.username,
            verb: event.verb,
            group: api_group,
            resource,
            subresource,
            namespace,
            name,
            uri: event.request_uri,
            code: event.response_status.code,
            user_agent: event.user_agent,
            stage,
            time: event.request_received_timestamp,
        }
    }
}

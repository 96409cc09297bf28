//! What an operator asked the API server for, from the audit log.

use std::collections::{BTreeMap, BTreeSet};

use pintle_dev::audit::{Mark, Request, Stage as Progress};

use crate::{Stage, stage::plane};

// === impl Stage ===

impl Stage {
    /// The present end of the audit log, once all that was answered is in it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn mark(&self) -> anyhow::Result<Mark> {
        Ok(plane().await?.audit().settled().await?)
    }

    /// The end of the audit log at this very moment.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn mark_now(&self) -> anyhow::Result<Mark> {
        Ok(plane().await?.audit().mark()?)
    }

    /// Everything the test's operator was answered since a mark, oldest first. A watch is there once, from
    /// its begin.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn requests_since(&self, mark: Mark) -> anyhow::Result<Vec<Request>> {
        let audit = plane().await?.audit();
        audit.settled().await?;
        let mut requests = audit.requests_since(&self.user, mark)?;
        requests.retain(|request| (request.verb == "watch") == (request.stage == Progress::Started));
        requests.sort_by_key(|request| request.time);
        Ok(requests)
    }

    /// The successful writes of the test's operator since a mark, but for Events, which tell and change nothing.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn writes_since(&self, mark: Mark) -> anyhow::Result<Vec<Request>> {
        let mut requests = self.requests_since(mark).await?;
        requests.retain(|request| is_change(request) && (200..300).contains(&request.code));
        Ok(requests)
    }
}

/// Whether a request asks for a change of an object of somebody's.
#[must_use]
pub fn is_change(request: &Request) -> bool {
    request.is_write() && !matches!(request.resource.as_str(), "events" | "leases")
}

/// `resource[/subresource] [namespace/]name` of a request.
#[must_use]
pub fn object_of(request: &Request) -> String {
    let slash = if request.subresource.is_empty() { "" } else { "/" };
    let namespace =
        if request.namespace.is_empty() { String::new() } else { format!("{}/", request.namespace) };
    format!("{}{slash}{} {namespace}{}", request.resource, request.subresource, request.name)
}

/// How often each object came to be by one of these requests.
#[must_use]
pub fn creations(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    let created = requests.iter().filter(|request| is_change(request) && request.code == 201);
    for request in created.filter(|request| request.subresource.is_empty()) {
        *count.entry(object_of(request)).or_default() += 1;
    }
    count
}

/// The objects whose creation or deletion was cut off with its client: the server does it all the same or not,
/// and logs neither.
#[must_use]
pub fn cut_off(requests: &[Request]) -> BTreeSet<String> {
    let cut = requests.iter().filter(|request| is_change(request) && request.code == 504);
    cut.filter(|request| request.subresource.is_empty()).map(object_of).collect()
}

/// The requests, one a line, for a message.
#[must_use]
pub fn told(requests: &[Request]) -> String {
    let line = |request: &Request| {
        format!("{} {} {} {}\n", request.time, request.verb, object_of(request), request.code)
    };
    requests.iter().map(line).collect()
}

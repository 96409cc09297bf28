//! The loop of one watch: list, follow, resume, list again when the server has forgotten where we were.
//!
//! The list comes as a stream (WatchList) without a resourceVersion, which makes it as new as the moment
//! it was asked for; a server that cannot do that is asked for pages. kube's own watcher asks for any
//! version and does not tell which one a list had, and both are needed to put our own writes in between.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt as _};
use kube::core::WatchEvent;
use pintle_api::{Gvk, Object};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{
    counters::Verb,
    link::{Failure, Link, Query, RawEvent},
};

/// The server ends a watch after this many seconds, and it is resumed.
const WATCH_SECONDS: u64 = 300;
/// Bookmarks come about every minute; a connection without any is dead.
const IDLE: Duration = Duration::from_secs(150);
/// Objects on a page of a list.
const PAGE: &str = "500";
/// First pause after a failure; it doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest pause after a failure: a server that was away is found again this soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A watch that lived this long counts as a success.
const LIVED: Duration = Duration::from_secs(5);

/// What is watched.
pub(crate) struct Source {
    pub(crate) gvk: Gvk,
    /// `daemonsets.apps`, for counters.
    pub(crate) resource: String,
    /// Path of the collection.
    pub(crate) path: String,
    pub(crate) fields: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) metadata_only: bool,
}

/// Who is told.
pub(crate) trait Sink: Send + Sync {
    /// A list begins; what it does not name is gone at its end.
    fn begin(&self);
    /// One object of the list.
    fn listed(&self, object: Object);
    /// The list is complete; this is its resourceVersion.
    fn done(&self, version: &str);
    /// An object came or changed.
    fn applied(&self, object: Object);
    /// An object went, or left the selector.
    fn deleted(&self, object: Object);
    /// Something failed; it is tried again.
    fn failed(&self, failure: &Failure);
}

/// Where a watch stands.
enum At {
    /// Nothing is known.
    Start,
    /// Everything up to this resourceVersion is known.
    Version(String),
}

/// Why a stretch of watching ended.
enum End {
    /// To be resumed at once.
    Closed,
    /// To be tried again after a pause.
    Failed(Failure),
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

struct Informer<'a> {
    link: &'a Link,
    source: &'a Source,
    sink: &'a dyn Sink,
    at: At,
    /// Cleared for good where the server refuses to stream a list.
    streams_lists: bool,
}

/// Follows until the server does not serve the path any more.
pub(crate) async fn follow(link: &Link, source: &Source, sink: &dyn Sink) {
    let mut informer = Informer { link, source, sink, at: At::Start, streams_lists: true };
    let mut pause = PAUSE;
    loop {
        let began = Instant::now();
        let end = informer.stretch().await;
        if began.elapsed() >= LIVED {
            pause = PAUSE;
        }
        let told = match end {
            End::Closed if began.elapsed() >= LIVED => continue,
            End::Closed => None,
            End::Failed(failure) if failure.code() == Some(404) => return,
            End::Failed(failure) => {
                informer.forget_on(&failure);
                sink.failed(&failure);
                retry_after(&failure)
            }
        };
        let spread = 0.5 + rand::random::<f64>();
        tokio::time::sleep(told.unwrap_or_else(|| pause.mul_f64(spread))).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn retry_after(failure: &Failure) -> Option<Duration> {
    match failure {
        Failure::Status { retry_after, .. } => *retry_after,
        _ => None,
    }
}

impl Informer<'_> {
    /// One list, or one watch from where we are.
    async fn stretch(&mut self) -> End {
        let listed = match &self.at {
            At::Version(version) => {
                let version = version.clone();
                return self.watch(Some(version)).await;
            }
            At::Start if self.streams_lists => return self.watch(None).await,
            At::Start => self.list().await,
        };
        match listed {
            Ok(version) => {
                self.sink.done(&version);
                self.watch_from(version).await
            }
            Err(failure) => End::Failed(failure),
        }
    }

    async fn watch_from(&mut self, version: String) -> End {
        self.at = At::Version(version.clone());
        self.watch(Some(version)).await
    }

    /// Pages, for servers that do not stream lists.
    async fn list(&mut self) -> Result<String, Failure> {
        self.sink.begin();
        let mut next = String::new();
        loop {
            let mut query = self.query().with("limit", PAGE);
            if !next.is_empty() {
                query = query.with("continue", &next);
            }
            let request = query.get_as(self.accept("PartialObjectMetadataList"));
            let page: Page = self.link.send(Verb::List, &self.source.resource, request).await?.json()?;
            page.items
                .into_iter()
                .filter_map(|item| self.object(item))
                .for_each(|object| self.sink.listed(object));
            if page.metadata.next.is_empty() {
                return Ok(page.metadata.resource_version);
            }
            next = page.metadata.next;
        }
    }

    async fn watch(&mut self, version: Option<String>) -> End {
        let query = self.query().with("watch", "true").with("allowWatchBookmarks", "true");
        let query = query.with("timeoutSeconds", &WATCH_SECONDS.to_string());
        let query = match &version {
            Some(version) => query.with("resourceVersion", version),
            None => query.with("sendInitialEvents", "true").with("resourceVersionMatch", "NotOlderThan"),
        };
        let request = match query.stream_as(self.accept("PartialObjectMetadata")) {
            Ok(request) => request,
            Err(error) => return End::Failed(Failure::Malformed(error)),
        };
        match self.link.watch(&self.source.resource, request).await {
            Ok(events) => self.read(events, version.is_none()).await,
            Err(failure) if version.is_none() && cannot_stream(&failure) => {
                self.streams_lists = false;
                End::Closed
            }
            Err(failure) => End::Failed(failure),
        }
    }

    async fn read(
        &mut self,
        events: impl Stream<Item = Result<RawEvent, Failure>>,
        mut listing: bool,
    ) -> End {
        let mut events = pin!(events);
        let sink = self.sink;
        if listing {
            self.sink.begin();
        }
        loop {
            let event = match tokio::time::timeout(IDLE, events.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(failure))) => return End::Failed(failure),
                Ok(None) | Err(_) => return End::Closed,
            };
            match event {
                WatchEvent::Added(json) | WatchEvent::Modified(json) if listing => {
                    self.object(json).into_iter().for_each(|object| self.sink.listed(object));
                }
                WatchEvent::Added(json) | WatchEvent::Modified(json) => {
                    self.event(json, |object| sink.applied(object))
                }
                WatchEvent::Deleted(json) => self.event(json, |object| sink.deleted(object)),
                WatchEvent::Bookmark(bookmark) => {
                    let ends_list = bookmark.metadata.annotations.contains_key("k8s.io/initial-events-end");
                    if listing && ends_list {
                        listing = false;
                        self.sink.done(&bookmark.metadata.resource_version);
                    }
                    if !listing {
                        self.at = At::Version(bookmark.metadata.resource_version);
                    }
                }
                WatchEvent::Error(status) => return End::Failed(Failure::of_status(*status, None)),
            }
        }
    }

    /// Remembers how far we are, then tells.
    fn event(&mut self, json: Map<String, Value>, tell: impl FnOnce(Object)) {
        let Some(object) = self.object(json) else { return };
        if let (At::Version(_), Some(version)) = (&self.at, object.resource_version()) {
            self.at = At::Version(version.to_owned());
        }
        tell(object);
    }

    /// Items of lists have no kind, and metadata-only answers have another.
    fn object(&self, mut json: Map<String, Value>) -> Option<Object> {
        json.insert("apiVersion".to_owned(), Value::from(self.source.gvk.api_version()));
        json.insert("kind".to_owned(), Value::from(self.source.gvk.kind.as_str()));
        Object::new(Value::Object(json)).ok()
    }

    /// 410: the server has forgotten our version. 401 and 403: what happens meanwhile is not seen.
    fn forget_on(&mut self, failure: &Failure) {
        if matches!(failure.code(), Some(400 | 401 | 403 | 410 | 422)) {
            self.at = At::Start;
        }
    }

    fn query(&self) -> Query {
        let query = Query::new(&self.source.path);
        let query = match &self.source.fields {
            Some(fields) => query.with("fieldSelector", fields),
            None => query,
        };
        match &self.source.labels {
            Some(labels) => query.with("labelSelector", labels),
            None => query,
        }
    }

    fn accept(&self, partial: &str) -> &'static str {
        match (self.source.metadata_only, partial) {
            (false, _) => "application/json",
            (true, "PartialObjectMetadataList") => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            (true, _) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }
}

/// The feature is off (1.33 by default), or an aggregated server does not know it.
fn cannot_stream(failure: &Failure) -> bool {
    let says = |status: &kube::core::Status| status.message.contains("sendInitialEvents");
    matches!(failure.code(), Some(400 | 422)) && failure.status().is_some_and(says)
}

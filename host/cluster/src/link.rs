//! One HTTP request to the API server: counted, bounded in time, its failure as data.

use std::{error::Error as _, sync::Arc, time::Duration};

use futures::{AsyncBufRead, Stream, StreamExt as _};
use http::{Method, Request, Response};
use kube::{
    client::Body,
    core::{Status, WatchEvent},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::counters::{Counters, Verb};

/// How long the server may take for one answer; its own limit for requests is 60 s, and a lease does
/// not live that long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A client with the account's name and the counters.
pub(crate) struct Link {
    pub(crate) client: kube::Client,
    pub(crate) account: String,
    pub(crate) counters: Arc<Counters>,
}

/// A successful answer.
pub(crate) struct Reply {
    /// 200, or 201 where something was made.
    pub(crate) code: u16,
    /// Texts of the `Warning` headers.
    pub(crate) warnings: Vec<String>,
    body: Vec<u8>,
}

/// A path and its query, encoded.
pub(crate) struct Query {
    uri: String,
    has_query: bool,
}

/// Why a request has no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server answered with an error.
    #[error("the API server answered {code}", code = status.code)]
    Status {
        /// What it answered.
        #[source]
        status: Box<Status>,
        /// `Retry-After`, as header or in the answer.
        retry_after: Option<Duration>,
    },
    /// The request was not sent.
    #[error("could not reach the API server")]
    Unreachable(#[source] Box<kube::Error>),
    /// The request was sent, what became of it is unknown.
    #[error("the connection broke before the API server answered")]
    Broken(#[source] Box<kube::Error>),
    /// The request was sent, and no answer came in time.
    #[error("the API server did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// The answer is not what the API promises.
    #[error("could not read the API server's answer")]
    Unreadable(#[source] serde_json::Error),
    /// The request could not be built from its parts.
    #[error("could not build the request")]
    Malformed(#[source] http::Error),
}

/// One event of a watch, as JSON.
pub(crate) type RawEvent = WatchEvent<Map<String, Value>>;

/// A request that was built, or why it was not.
pub(crate) type Built = Result<Request<Body>, http::Error>;

// === impl Link ===

impl Link {
    /// Sends and reads the whole answer.
    pub(crate) async fn send(&self, verb: Verb, resource: &str, request: Built) -> Result<Reply, Failure> {
        self.counters.add(verb, resource);
        let request = request.map_err(Failure::Malformed)?;
        let answer = async {
            let response = self.client.send(request).await.map_err(Failure::of_connection)?;
            Reply::read(response).await
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Opens a watch; the stream ends when the server ends it.
    pub(crate) async fn watch(
        &self,
        resource: &str,
        request: Request<Vec<u8>>,
    ) -> Result<impl Stream<Item = Result<RawEvent, Failure>> + Send + use<>, Failure> {
        self.counters.add(Verb::Watch, resource);
        let open = self.client.request_events::<Map<String, Value>>(request);
        let events = tokio::time::timeout(ANSWER_TIMEOUT, open).await.map_err(|_| Failure::TimedOut)?;
        Ok(events.map_err(Failure::of_kube)?.map(|event| event.map_err(Failure::of_kube)))
    }

    /// Opens a log or another text that may be long; the caller reads as much of it as it wants.
    pub(crate) async fn open(
        &self,
        resource: &str,
        request: Request<Vec<u8>>,
    ) -> Result<impl AsyncBufRead + use<>, Failure> {
        self.counters.add(Verb::Get, resource);
        let open = self.client.request_stream(request);
        let opened = tokio::time::timeout(ANSWER_TIMEOUT, open).await.map_err(|_| Failure::TimedOut)?;
        opened.map_err(Failure::of_kube)
    }
}

// === impl Reply ===

impl Reply {
    async fn read(response: Response<Body>) -> Result<Self, Failure> {
        let (parts, body) = response.into_parts();
        let body = body.collect_bytes().await.map_err(|e| Failure::Broken(Box::new(e)))?;
        if parts.status.is_success() {
            let warnings = parts.headers.get_all(http::header::WARNING).iter();
            let warnings = warnings.filter_map(|header| warning_text(header.to_str().ok()?)).collect();
            return Ok(Self { code: parts.status.as_u16(), warnings, body: body.to_vec() });
        }
        let header = parts.headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = header.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        Err(Failure::of_status(status_of(parts.status.as_u16(), &body), retry_after))
    }

    /// The answer as a type.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(Failure::Unreadable)
    }
}

/// What the server said, also where a proxy before it answered with a page of its own.
fn status_of(code: u16, body: &[u8]) -> Status {
    let parsed = serde_json::from_slice::<Status>(body).ok().filter(|status| status.code == code);
    parsed.unwrap_or_else(|| {
        let text: String = String::from_utf8_lossy(body).trim().chars().take(1024).collect();
        Status::failure(&text, "").with_code(code)
    })
}

/// The text of `299 - "text"` (RFC 7234 §5.5), its escapes undone.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.split_once('"')?.1;
    let quoted = quoted.rsplit_once('"').map_or(quoted, |(text, _)| text);
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(char) = chars.next() {
        text.push(if char == '\\' { chars.next()? } else { char });
    }
    Some(text)
}

// === impl Query ===

impl Query {
    pub(crate) fn new(path: &str) -> Self {
        Self { uri: path.to_owned(), has_query: false }
    }

    /// Adds `key=value`, the value percent-encoded.
    pub(crate) fn with(mut self, key: &str, value: &str) -> Self {
        self.uri.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.uri.push_str(key);
        self.uri.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                self.uri.push(char::from(byte));
            } else {
                self.uri.push_str(&format!("%{byte:02X}"));
            }
        }
        self
    }

    pub(crate) fn get(self) -> Built {
        Request::get(self.uri).body(Body::empty())
    }

    pub(crate) fn get_as(self, accept: &str) -> Built {
        Request::get(self.uri).header(http::header::ACCEPT, accept).body(Body::empty())
    }

    /// The same for a watch or a log, which are read bit by bit.
    pub(crate) fn stream_as(self, accept: &str) -> Result<Request<Vec<u8>>, http::Error> {
        Request::get(self.uri).header(http::header::ACCEPT, accept).body(Vec::new())
    }

    pub(crate) fn post(self, body: &Value) -> Built {
        self.write(Method::POST, "application/json", body)
    }

    pub(crate) fn put(self, body: &Value) -> Built {
        self.write(Method::PUT, "application/json", body)
    }

    pub(crate) fn patch(self, content_type: &str, body: &Value) -> Built {
        self.write(Method::PATCH, content_type, body)
    }

    pub(crate) fn delete(self, body: &Value) -> Built {
        self.write(Method::DELETE, "application/json", body)
    }

    fn write(self, method: Method, content_type: &str, body: &Value) -> Built {
        Request::builder()
            .method(method)
            .uri(self.uri)
            .header(http::header::CONTENT_TYPE, content_type)
            .header(http::header::ACCEPT, "application/json")
            .body(Body::from(body.to_string().into_bytes()))
    }
}

// === impl Failure ===

impl Failure {
    /// What the server answered, where it answered.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The code the server answered with, where it answered.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    pub(crate) fn of_status(status: Status, header: Option<Duration>) -> Self {
        let told = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|s| *s > 0);
        let retry_after = header.or(told.map(|seconds| Duration::from_secs(u64::from(seconds))));
        Self::Status { status: Box::new(status), retry_after }
    }

    pub(crate) fn of_kube(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(*status, None),
            kube::Error::SerdeError(source) => Self::Unreadable(source),
            other => Self::of_connection(other),
        }
    }

    fn of_connection(error: kube::Error) -> Self {
        if was_not_sent(&error) { Self::Unreachable(Box::new(error)) } else { Self::Broken(Box::new(error)) }
    }
}

/// True when the connection was refused or its handshake failed: the server has not seen the request.
fn was_not_sent(error: &kube::Error) -> bool {
    if matches!(error, kube::Error::Auth(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_)) {
        return true;
    }
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            use std::io::ErrorKind::{
                AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable,
            };
            let kinds = [ConnectionRefused, HostUnreachable, NetworkUnreachable, AddrNotAvailable];
            if kinds.contains(&io.kind()) {
                return true;
            }
        }
        // The pool's error is of a crate that is not named here; its text for a failed handshake is fixed.
        if cause.to_string() == "client error (Connect)" {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_warning_loses_its_frame_and_its_escapes() {
        let header = r#"299 - "unknown field \"spec.x\"""#;
        assert_eq!(warning_text(header).unwrap(), r#"unknown field "spec.x""#);
        assert_eq!(warning_text("299 -"), None);
    }

    #[test]
    fn selectors_are_encoded_once() {
        let request = Query::new("/api/v1/pods").with("labelSelector", "a in (b,c)").with("watch", "true");
        assert_eq!(
            request.get().unwrap().uri().to_string(),
            "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&watch=true"
        );
    }

    #[test]
    fn a_page_of_a_proxy_still_has_a_code_and_a_text() {
        let status = status_of(502, b"<html>bad gateway</html>");
        assert_eq!((status.code, status.message.as_str()), (502, "<html>bad gateway</html>"));
    }
}

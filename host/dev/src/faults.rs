//! A proxy between a client and the API server that lets tests break things: the one place where faults are injected.

mod gate;
mod request;
mod schedule;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use request::Request;
pub use schedule::{Answer, Fault, Matching, Nth, Rule};

use crate::ControlPlane;
use crate::cluster::Error;
use schedule::{Decision, Schedule};

/// The largest body that is passed on, in bytes: the API server itself takes 3 MiB.
const LARGEST_BODY: usize = 16 << 20;

/// Time in which a written event reaches a client on loopback.
const FLUSHED: Duration = Duration::from_millis(50);

type Hook = Arc<dyn Fn(u64, Request) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A proxy in front of one API server. It speaks plain HTTP and passes the bearer token on; watches are not buffered.
///
/// It ends when it is dropped, and with the runtime on which it was started.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    client: reqwest::Client,
    schedule: Mutex<Schedule>,
    writes: Mutex<Vec<Request>>,
    /// Lists by path, for [`Fault::StaleList`].
    lists: Mutex<HashMap<String, Bytes>>,
    hook: Mutex<Option<Hook>>,
    away: watch::Sender<bool>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("upstream", &self.upstream)
            .field("schedule", &self.schedule)
            .finish_non_exhaustive()
    }
}

impl FaultProxy {
    /// A proxy without faults in front of `plane`.
    ///
    /// # Errors
    /// No port is free, or the certificate of the control plane cannot be read.
    pub async fn start(plane: &ControlPlane) -> Result<Self, Error> {
        let authority = plane.authority().map_err(Error::io("read the certificate of the control plane"))?;
        let client =
            build_client(&authority).map_err(io::Error::other).map_err(Error::io("make a client"))?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(Error::io("find a free port"))?;
        let port = listener.local_addr().map_err(Error::io("find a free port"))?.port();
        let shared = Arc::new(Shared {
            upstream: plane.url(),
            client,
            schedule: Mutex::default(),
            writes: Mutex::default(),
            lists: Mutex::default(),
            hook: Mutex::default(),
            away: watch::Sender::new(false),
        });
        let gate = gate::Gate { listener, away: shared.away.subscribe() };
        let routes = axum::Router::new().fallback(pass).with_state(shared.clone());
        let task = tokio::spawn(async move {
            // It serves until it is aborted.
            drop(axum::serve(gate, routes).await);
        });
        Ok(Self { port, shared, task })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The same user by way of the proxy.
    ///
    /// # Errors
    /// Never in practice: the address of the proxy is one.
    pub fn config(&self, direct: &kube::Config) -> Result<kube::Config, Error> {
        let mut config = direct.clone();
        config.cluster_url =
            self.url().parse().map_err(io::Error::other).map_err(Error::io("name the proxy"))?;
        config.root_cert = None;
        Ok(config)
    }

    /// Adds a rule; of the rules that apply to a request the oldest wins.
    pub fn rule(&self, matching: Matching, nth: Nth, fault: Fault) {
        locked(&self.shared.schedule).add(Rule { matching, nth, fault });
    }

    /// Removes all rules.
    pub fn clear(&self) {
        locked(&self.shared.schedule).clear();
    }

    /// The API server is away from now on: open connections break, new ones are dropped.
    pub fn go_away(&self) {
        self.shared.away.send_replace(true);
    }

    /// The API server is back.
    pub fn come_back(&self) {
        self.shared.away.send_replace(false);
    }

    /// The writes that the API server has done, in the order of its answers.
    pub fn writes(&self) -> Vec<Request> {
        locked(&self.shared.writes).clone()
    }

    /// Calls `hook` with the number (from one) of each write that the API server has done, before the client gets the
    /// answer: what ends the client there leaves it knowing nothing of the write.
    pub fn after_write<F>(&self, hook: impl Fn(u64, Request) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let hook: Hook = Arc::new(move |count, request| Box::pin(hook(count, request)));
        *locked(&self.shared.hook) = Some(hook);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.away.send_replace(true);
    }
}

fn build_client(authority: &[u8]) -> Result<reqwest::Client, reqwest::Error> {
    let authority = reqwest::Certificate::from_pem(authority)?;
    // The environment may name a proxy for the outside world; loopback is not it.
    reqwest::Client::builder().tls_certs_only([authority]).no_proxy().build()
}

async fn pass(State(shared): State<Arc<Shared>>, request: axum::extract::Request) -> Response {
    let parsed = Request::parse(request.method(), request.uri());
    let list = request.uri().path().to_owned();
    let Decision { fault, remember } = locked(&shared.schedule).decide(&parsed);
    match fault {
        Some(Fault::Answer(answer)) => return injected(&answer),
        Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
        Some(Fault::StaleList) => {
            if let Some(stale) = locked(&shared.lists).get(&list) {
                return json_response(StatusCode::OK, stale.clone());
            }
        }
        _ => {}
    }
    let answer = match forward(&shared, request).await {
        Ok(answer) => answer,
        Err(error) => return broken(&error),
    };
    if parsed.is_write() && answer.status().is_success() {
        record(&shared, parsed).await;
    }
    if remember && answer.status().is_success() {
        return remembered(&shared, list, answer).await;
    }
    match fault {
        Some(Fault::Lose(answer)) => injected(&answer),
        Some(Fault::CutWatch { after_events }) => relay(answer, |events| cut(events, after_events)),
        Some(Fault::MuteWatch { after_events }) => relay(answer, |events| mute(events, after_events)),
        Some(Fault::DelayWatch(delay)) => relay(answer, |events| delayed(events, delay)),
        _ => relay(answer, |events| events),
    }
}

/// Passes a list on and keeps it for [`Fault::StaleList`].
async fn remembered(shared: &Shared, list: String, answer: reqwest::Response) -> Response {
    let status = answer.status();
    match answer.bytes().await {
        Ok(body) => {
            locked(&shared.lists).insert(list, body.clone());
            json_response(status, body)
        }
        Err(error) => broken(&error),
    }
}

async fn record(shared: &Shared, request: Request) {
    let count = {
        let mut writes = locked(&shared.writes);
        writes.push(request.clone());
        u64::try_from(writes.len()).unwrap_or(u64::MAX)
    };
    let hook = locked(&shared.hook).clone();
    if let Some(hook) = hook {
        hook(count, request).await;
    }
}

async fn forward(
    shared: &Shared,
    request: axum::extract::Request,
) -> Result<reqwest::Response, Box<dyn std::error::Error>> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let body = axum::body::to_bytes(body, LARGEST_BODY).await?;
    let mut headers = head.headers;
    remove_hop_by_hop(&mut headers);
    headers.remove(header::HOST);
    let url = format!("{}{path}", shared.upstream);
    Ok(shared.client.request(head.method, url).headers(headers).body(body).send().await?)
}

/// Headers of one connection, which the next one has its own of.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH, KEEP_ALIVE] {
        headers.remove(name);
    }
}

type Events = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The answer of the API server, its body passed on as it comes.
fn relay(answer: reqwest::Response, through: impl FnOnce(Events) -> Events) -> Response {
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    remove_hop_by_hop(&mut headers);
    let body: Events = Box::pin(answer.bytes_stream().map(|part| part.map_err(io::Error::other)));
    let mut response = Response::new(Body::from_stream(through(body)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Whole events only, `count` of them; then the connection breaks.
fn cut(events: Events, count: u64) -> Events {
    let parts = lines(events).take(usize::try_from(count).unwrap_or(usize::MAX));
    let end = futures::stream::once(async {
        // A connection that breaks loses what has not been sent yet: the events before must be on their way.
        tokio::time::sleep(FLUSHED).await;
        Err(io::ErrorKind::ConnectionReset.into())
    });
    Box::pin(parts.chain(end))
}

/// The first `count` events, and then silence on an open connection.
fn mute(events: Events, count: u64) -> Events {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let seen = lines(events).enumerate();
    Box::pin(seen.filter_map(move |(index, line)| {
        futures::future::ready((index < count || line.is_err()).then_some(line))
    }))
}

/// Every event `delay` after its arrival: the time runs from then, so a burst is late once and not once an event.
fn delayed(events: Events, delay: Duration) -> Events {
    let stamped = lines(events).map(move |line| (tokio::time::Instant::now() + delay, line));
    // Events must be taken in while earlier ones wait, or their time would begin only then.
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    let feed = async move {
        futures::pin_mut!(stamped);
        while let Some(event) = stamped.next().await {
            if send.send(event).is_err() {
                break;
            }
        }
    };
    let feed = AbortOnDrop(tokio::spawn(feed));
    let out = futures::stream::unfold((receive, feed), |(mut receive, feed)| async move {
        let (due, line) = receive.recv().await?;
        tokio::time::sleep_until(due).await;
        Some((line, (receive, feed)))
    });
    Box::pin(out)
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One item a line, with its end: the API server writes one event a line.
fn lines(events: Events) -> impl Stream<Item = io::Result<Bytes>> + Send {
    futures::stream::unfold((events, Vec::new()), |(mut events, mut held)| async move {
        loop {
            if let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                let rest = held.split_off(end + 1);
                return Some((Ok(Bytes::from(held)), (events, rest)));
            }
            match events.next().await {
                Some(Ok(part)) => held.extend_from_slice(&part),
                Some(Err(error)) => return Some((Err(error), (events, held))),
                None if held.is_empty() => return None,
                None => return Some((Ok(Bytes::from(held)), (events, Vec::new()))),
            }
        }
    })
}

fn injected(answer: &Answer) -> Response {
    let mut response = json_response(answer.code(), answer.body().to_string());
    if let Some(seconds) = answer.retry_after() {
        let seconds = HeaderValue::from(seconds);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// What a client sees when the API server itself cannot be reached.
fn broken(error: &dyn std::fmt::Display) -> Response {
    let mut response = Response::new(Body::from(format!("the API server behind the proxy: {error}")));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

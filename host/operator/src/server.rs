//! What the operator serves: health, readiness, metrics, and how releases stand.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::{ConnectInfo, Path, State},
    http::StatusCode,
    routing::get,
};
use pintle_plugin::transcript::Transcript;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::{context::Context, metrics::Metrics};

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[error("could not listen on {address}")]
pub struct ServeError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Whether the operator can do its work; told by whoever starts it.
pub(crate) type Readiness = watch::Receiver<bool>;

/// Serves metrics until the process ends.
pub(crate) async fn metrics(address: SocketAddr, metrics: Arc<Metrics>) -> Result<(), ServeError> {
    let routes = Router::new()
        .route("/metrics", get(|State(metrics): State<Arc<Metrics>>| async move { text(metrics.render()) }))
        .with_state(metrics);
    serve(address, routes).await
}

/// Serves health and readiness until the process ends.
pub(crate) async fn health(
    address: SocketAddr,
    ready: Readiness,
    ctx: Arc<Context>,
) -> Result<(), ServeError> {
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || ready_answer(ready.clone())))
        .route("/releases", get(releases))
        .route("/plugins/{name}/calls", get(calls))
        .with_state(ctx);
    serve(address, routes).await
}

async fn ready_answer(ready: Readiness) -> (StatusCode, &'static str) {
    if *ready.borrow() { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "starting") }
}

/// What this process works on; the full picture of a release is in its status.
async fn releases(State(ctx): State<Arc<Context>>) -> Json<Value> {
    let size = ctx.caches.size();
    Json(json!({
        "leads": ctx.leads(),
        "queued": ctx.queue.len(),
        "watches": size.interests,
        "objects": size.objects,
    }))
}

/// The last calls of a plugin, as `pintle plugin record` takes them. They hold objects of the cluster, so
/// only this machine is told: who may forward a port of this pod may also read what it reads.
async fn calls(
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    State(ctx): State<Arc<Context>>,
    Path(name): Path<String>,
) -> Result<Json<Vec<Transcript>>, (StatusCode, &'static str)> {
    if !peer.ip().to_canonical().is_loopback() {
        return Err((StatusCode::FORBIDDEN, "ask from this machine, as by kubectl port-forward\n"));
    }
    if ctx.plugins.find(&name).is_none() {
        return Err((StatusCode::NOT_FOUND, "no Plugin of that name is loaded\n"));
    }
    Ok(Json(ctx.plugins.calls.of(&name)))
}

fn text(body: String) -> ([(&'static str, &'static str); 1], String) {
    ([("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")], body)
}

async fn serve(address: SocketAddr, routes: Router) -> Result<(), ServeError> {
    let fail = |source| ServeError { address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    axum::serve(listener, routes.into_make_service_with_connect_info::<SocketAddr>()).await.map_err(fail)
}

//! Faults of the way to the API server.

use std::time::Duration;

use pintle_dev::faults::FaultProxy;
use pintle_operator::Reach;
use pintle_tests::stage;
use serde_json::json;

use super::case::{Case, push_guest};

/// How long the API server stays away.
const AWAY: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn api_server_away() {
    let mut case = Case::without_operator("api-server-away").await;
    let plane = stage::plane().await.unwrap();
    let proxy = FaultProxy::start(plane).await.unwrap();
    let account = stage::account(plane).await.unwrap();
    case.stage.start_operator(Reach::Given(Box::new(proxy.config(&account).unwrap())));
    case.start_with_plugin().await;
    case.fails().await;
    let versions = (case.is_applied("first").await, case.is_applied("second").await);
    let image = push_guest("ready").await;
    proxy.go_away();
    case.plugin(&image, json!({})).await;
    tokio::time::sleep(AWAY).await;
    case.fails().await;
    case.lacks(&["third"]).await;
    proxy.come_back();
    case.ready().await;
    case.is_untouched("first", &versions.0).await;
    case.is_untouched("second", &versions.1).await;
    case.end().await;
}

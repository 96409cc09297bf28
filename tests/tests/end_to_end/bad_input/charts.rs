//! Faults of where the chart is and of its archive.

use serde_json::json;

use super::{
    case::Case,
    chart::{Chart, tgz},
};

#[tokio::test(flavor = "multi_thread")]
async fn config_map_missing() {
    let case = Case::begin("config-map-missing").await;
    case.own(json!({})).await;
    case.fails().await;
    case.lacks(&["first"]).await;
    case.install(Chart::steps()).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_missing() {
    let case = Case::begin("key-missing").await;
    let mut repository = Chart::steps().repository();
    repository.archives[0].0 = "steps.tgz".to_owned();
    case.install_repository(&repository).await;
    case.own(json!({})).await;
    case.fails().await;
    case.lacks(&["first"]).await;
    case.install(Chart::steps()).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_broken() {
    let case = Case::begin("index-broken").await;
    let mut repository = Chart::steps().repository();
    repository.index = "apiVersion: v1\nentries:\n  steps: [\n".to_owned();
    breaks_and_is_mended(&case, &repository).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_truncated() {
    let case = Case::begin("archive-truncated").await;
    let whole = Chart::steps().repository();
    let half = whole.archives[0].1[..whole.archives[0].1.len() / 2].to_vec();
    breaks_and_is_mended(&case, &whole.with_archive(half)).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_escapes() {
    let case = Case::begin("archive-escapes").await;
    let repository = Chart::steps().repository().with_archive(tgz("steps/../../etc/passwd", b"root"));
    breaks_and_is_mended(&case, &repository).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_too_large() {
    let case = Case::begin("archive-too-large").await;
    let repository =
        Chart::steps().repository().with_archive(tgz("steps/values.yaml", &vec![b' '; 33 << 20]));
    breaks_and_is_mended(&case, &repository).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_missing() {
    let case = Case::begin("version-missing").await;
    case.install(Chart::steps()).await;
    case.own(json!({"chart": {"version": "9.9.9"}})).await;
    case.fails().await;
    case.lacks(&["first"]).await;
    case.own(json!({})).await;
    case.ready().await;
    case.end().await;
}

/// A release that is Ready keeps all it has when its repository breaks, and goes on when it is mended.
async fn breaks_and_is_mended(case: &Case, broken: &super::chart::Repository) {
    case.start(Chart::steps()).await;
    case.ready().await;
    let version = case.is_applied("first").await;
    case.install_repository(broken).await;
    case.fails().await;
    case.is_untouched("first", &version).await;
    case.is_applied("third").await;
    case.install(Chart::steps()).await;
    case.ready().await;
    case.is_untouched("first", &version).await;
}

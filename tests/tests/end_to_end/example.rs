//! The example of the documentation, from ConfigMap to Ready.

use pintle_tests::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_example_becomes_ready() {
    let mut stage = Stage::new("becomes-ready").await.unwrap();
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
}

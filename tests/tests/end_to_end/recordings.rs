//! Calls of a running operator, made again elsewhere.

use std::{net::TcpListener, time::Duration};

use pintle_plugin::{Artifact, Engine, Options as EngineOptions, Plugin, transcript::Transcript};
use pintle_tests::{Stage, stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_running_operator_is_made_again_to_the_byte_without_a_cluster() {
    let mut stage = Stage::without_operator("recordings").await.unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = stage.options(stage.reach());
    stage.start_operator_with(pintle_operator::Options { health: Some(address), ..options });
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();

    let missing = reqwest::get(format!("http://{address}/plugins/nobody/calls")).await.unwrap();
    assert_eq!(missing.status(), 404);
    let url = format!("http://{address}/plugins/driver-loaded/calls");
    let answer = reqwest::Client::new().get(&url).timeout(Duration::from_secs(5)).send().await.unwrap();
    let text = answer.text().await.unwrap();
    assert!(!text.contains("managedFields"), "what no guest sees is not told");
    let calls: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(!calls.is_empty(), "the example waits by that plugin");

    let bytes = tokio::task::spawn_blocking(|| stage::component("driver-loaded")).await.unwrap().unwrap();
    let engine = Engine::new(&EngineOptions::default()).unwrap();
    for call in &calls {
        let transcript = Transcript::parse(&call.to_string()).unwrap();
        let artifact = Artifact {
            name: transcript.plugin.name.clone(),
            digest: transcript.plugin.digest.clone(),
            bytes: bytes.clone().into(),
        };
        let plugin = Plugin::load(&engine, artifact, &transcript.plugin.spec).await.unwrap();
        assert_eq!(plugin.component_digest(), transcript.plugin.component);
        let result = transcript.replay(&plugin).await;
        assert!(transcript.is_reproduced_by(&result), "{}", transcript.answer);
    }
    // The last call of the only target ended well: that is why the example is ready.
    assert!(calls.iter().any(|call| call["answer"]["verdict"] == "ready"), "{text}");
    stage.stop_operator().await.unwrap();
}

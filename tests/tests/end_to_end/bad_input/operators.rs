//! An operator that ends in the middle, and two at once.

use std::time::Duration;

use pintle_dev::faults::{FaultProxy, Request};
use pintle_operator::Reach;
use pintle_tests::{Stage, stage};
use serde_json::json;

use super::{
    case::{Case, push_guest, reach},
    chart::Chart,
};

/// How long nothing may be written after all is ready.
const QUIET: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn operator_ended() {
    let mut case = Case::begin("operator-ended").await;
    case.start_with_plugin().await;
    case.fails().await;
    let versions = (case.is_applied("first").await, case.is_applied("second").await);
    case.stage.kill_operator().await;
    case.plugin(&push_guest("ready").await, json!({})).await;
    case.stage.start_operator(reach().await);
    case.ready().await;
    case.is_untouched("first", &versions.0).await;
    case.is_untouched("second", &versions.1).await;
    case.end().await;
}

/// Two operators of one test, each by a proxy of its own that counts its writes.
struct Pair {
    case: Case,
    second: Stage,
    proxies: [FaultProxy; 2],
}

impl Pair {
    async fn start(name: &str, lease: Option<&str>) -> Self {
        let case = Case::without_operator(name).await;
        let second = Stage::without_operator(name).await.unwrap();
        let plane = stage::plane().await.unwrap();
        let proxies = [FaultProxy::start(plane).await.unwrap(), FaultProxy::start(plane).await.unwrap()];
        let mut pair = Self { case, second, proxies };
        let account = stage::account(plane).await.unwrap();
        for (stage, proxy) in [&mut pair.case.stage, &mut pair.second].into_iter().zip(&pair.proxies) {
            let reach = Reach::Given(Box::new(proxy.config(&account).unwrap()));
            let mut options = stage.options(reach);
            options.election = lease.map(str::to_owned);
            stage.start_operator_with(options);
        }
        pair
    }

    /// Writes of each operator besides those of the lease and of Plugins, which serve every test.
    fn writes(&self) -> [Vec<Request>; 2] {
        let counts = |request: &Request| !["leases", "plugins"].contains(&request.resource.as_str());
        self.proxies.each_ref().map(|proxy| proxy.writes().into_iter().filter(counts).collect())
    }

    async fn end(mut self) {
        self.second.stop_operator().await.unwrap();
        self.case.end().await;
    }
}

/// Without an election both work on the same owner. Nothing is lost: both come to the same, and rest.
#[tokio::test(flavor = "multi_thread")]
async fn two_operators() {
    let pair = Pair::start("two-operators", None).await;
    pair.case.start(Chart::with_fault("template-error")).await;
    pair.case.fails().await;
    pair.case.install(Chart::steps()).await;
    pair.case.ready().await;
    pair.case.is_applied("third").await;
    tokio::time::sleep(QUIET).await;
    let before = pair.writes();
    tokio::time::sleep(QUIET).await;
    assert_eq!(pair.writes(), before, "they fight");
    pair.end().await;
}

/// With an election the second one writes nothing until the first one lets go.
#[tokio::test(flavor = "multi_thread")]
async fn two_operators_elected() {
    let mut pair = Pair::start("two-operators-elected", Some("two-operators-elected")).await;
    pair.case.start(Chart::with_fault("template-error")).await;
    pair.case.fails().await;
    let leads = pair.writes().map(|writes| !writes.is_empty());
    assert_eq!(leads.iter().filter(|leads| **leads).count(), 1, "{:?}", pair.writes());
    let leader = if leads[0] { &mut pair.case.stage } else { &mut pair.second };
    leader.stop_operator().await.unwrap();
    pair.case.install(Chart::steps()).await;
    pair.case.ready().await;
    assert!(pair.writes().iter().all(|writes| !writes.is_empty()));
    pair.end().await;
}

//! What a converged release costs: nothing. And that one operator alone writes.

use std::time::{Duration, Instant};

use pintle_dev::audit::Request;
use pintle_tests::{
    Account, Stage,
    requests::{is_change, object_of, told},
    stage::plane,
};

/// How long a converged release is watched; benches do it for longer.
fn silence() -> Duration {
    let named = std::env::var("PINTLE_QUIET_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(named.unwrap_or(20))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converged_release_costs_no_request() {
    let mut stage = Stage::without_operator("silent").await.unwrap();
    let mut options = stage.options(stage.reach());
    options.election = Some("silent".to_owned());
    stage.start_operator_with(options);
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();
    // What was needed on the way, such as the events of its pods, is let go within five seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let mark = stage.mark().await.unwrap();
    tokio::time::sleep(silence()).await;
    let requests = stage.requests_since(mark).await.unwrap();
    let is_lease = |request: &Request| request.resource == "leases";
    // Other tests' objects and kinds come and go meanwhile: what was deleted is asked for once more, and so is what
    // is served.
    let is_others = |request: &Request| {
        let is_plugin = request.resource == "plugins" && request.name != "driver-loaded";
        let is_discovery = request.resource.is_empty();
        is_plugin || is_discovery || !matches!(request.namespace.as_str(), "" | "silent" | "default")
    };
    let noise: Vec<_> = requests
        .into_iter()
        .filter(|request| request.verb != "watch" && !is_lease(request) && !is_others(request))
        .collect();
    assert!(noise.is_empty(), "{}", told(&noise));
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_state_begins_when_the_one_before_is_ready() {
    let mut stage = Stage::without_operator("prompt").await.unwrap();
    let mark = stage.mark_now().await.unwrap();
    stage.start();
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
    let writes = stage.writes_since(mark).await.unwrap();
    let at = |wanted: &str| {
        let found = writes.iter().find(|write| object_of(write).starts_with(wanted));
        found.unwrap_or_else(|| panic!("{wanted} was written:\n{}", told(&writes))).time
    };
    // State 0000 is ready when its ImageStream is there: the BuildConfig is not demanded yet.
    let (ready, next) = (at("imagestreams "), at("serviceaccounts "));
    let between = next.duration_since(ready);
    eprintln!("from the last write of state 0000 to the first of state 1000: {} ms", between.as_millis());
    assert!(between.as_millis() < 250, "{} ms:\n{}", between.as_millis(), told(&writes));
}

/// Two operators of one release, with accounts of their own and one lease.
async fn pair(name: &str) -> (Stage, Stage) {
    let mut first = Stage::without_operator(name).await.unwrap();
    let account =
        Account::like_the_operators(plane().await.unwrap(), &format!("{name}-second")).await.unwrap();
    let mut second = Stage::with_account(name, account).await.unwrap();
    for stage in [&mut first, &mut second] {
        let mut options = stage.options(stage.reach());
        options.election = Some(name.to_owned());
        options.identity.clone_from(&stage.user);
        stage.start_operator_with(options);
        // The first is elected before the second begins.
        let lease = async |stage: &Stage| {
            let leases = stage.of_kind_in("Lease", pintle::scenario::SYSTEM);
            Ok(leases.get_opt(&stage.name).await?.is_some())
        };
        stage.eventually("somebody leads", lease).await.unwrap();
    }
    (first, second)
}

/// Takes a role away and gives the time until it is back.
async fn disturb(stage: &Stage) -> Duration {
    let name = format!("{}-driver-container", stage.name);
    let started = Instant::now();
    stage.delete("Role", &name).await.unwrap();
    let is_back = async |stage: &Stage| Ok(stage.find("Role", &name).await?.is_some());
    stage.eventually("the role is back", is_back).await.unwrap();
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_operators_one_writes_and_the_other_follows_a_graceful_stop() {
    let (mut first, mut second) = pair("heir").await;
    let mark = first.mark_now().await.unwrap();
    first.install_example().await.unwrap();
    first.wait_until_ready().await.unwrap();
    let standby = second.requests_since(mark).await.unwrap();
    assert!(standby.iter().all(|request| !is_change(request)), "{}", told(&standby));
    assert!(standby.iter().all(|request| request.verb != "watch"), "a standby holds no caches");
    assert!(!first.writes_since(mark).await.unwrap().is_empty());
    let stopped = Instant::now();
    first.stop_operator().await.unwrap();
    disturb(&second).await;
    let took = stopped.elapsed();
    eprintln!("taken over {took:?} after a graceful stop");
    assert!(took < Duration::from_secs(4), "a lease that was let go is free within 2 s: {took:?}");
    second.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_operator_follows_a_crash() {
    let (mut first, mut second) = pair("orphan").await;
    first.install_example().await.unwrap();
    first.wait_until_ready().await.unwrap();
    let crashed = Instant::now();
    first.kill_operator().await;
    let mark = second.mark().await.unwrap();
    disturb(&second).await;
    let took = crashed.elapsed();
    eprintln!("taken over {took:?} after a crash");
    assert!(took > Duration::from_secs(8), "nobody takes a lease that may still be held: {took:?}");
    assert!(took < Duration::from_secs(22), "a lease ends 17 s after its last renewal: {took:?}");
    let late = first.writes_since(mark).await.unwrap();
    assert!(late.is_empty(), "{}", told(&late));
    second.stop_operator().await.unwrap();
}

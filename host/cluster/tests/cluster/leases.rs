//! Who may write, and when.

use std::time::{Duration, Instant};

use pintle_cluster::{Apply, Cause, Leadership, LeaseSettings, NotLeading};
use serde_json::json;

use crate::{
    support::{OPERATOR, World, connect_as, connect_to, plane, soon},
    wire::Wire,
};

/// The usual times by five, since the test waits for them; a lease counts in whole seconds.
fn settings(namespace: &str, identity: &str) -> LeaseSettings {
    LeaseSettings {
        duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(400),
        write_deadline: Duration::from_millis(1600),
        ..LeaseSettings::new(namespace, "pintle", identity)
    }
}

/// Looks every few milliseconds whether both lead, until dropped.
fn never_both(one: &Leadership, two: &Leadership) -> tokio::task::JoinHandle<()> {
    let (one, two) = (one.clone(), two.clone());
    tokio::spawn(async move {
        loop {
            assert!(!(one.leads() && two.leads()), "both lead");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
}

#[tokio::test]
async fn a_released_lease_is_taken_over_at_once() {
    let world = World::new("lease-release").await;
    let (a, b) = (connect_as(OPERATOR).await, connect_as(OPERATOR).await);
    let first = a.campaign(settings("lease-release", "first"));
    soon("the first leads", first.elected()).await.unwrap();
    let second = b.campaign(settings("lease-release", "second"));
    let watch = never_both(&first, &second);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(second.permit().err(), Some(NotLeading::Standby));
    let permit = first.permit().unwrap();
    let releasing = tokio::spawn({
        let first = first.clone();
        async move { first.release().await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!releasing.is_finished(), "a write is under way");
    assert_eq!(first.permit().err(), Some(NotLeading::Ended));
    drop(permit);
    let begun = Instant::now();
    soon("the release", releasing).await.unwrap();
    soon("the second leads", second.elected()).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(!watch.is_finished());
    watch.abort();
    drop(world);
}

#[tokio::test]
async fn a_leader_that_lost_the_server_stops_writing_before_another_begins() {
    let world = World::new("lease-expiry").await;
    let (wire, config) = Wire::before(plane().config(OPERATOR).unwrap()).await;
    let (a, b) = (connect_to(config).await, connect_as(OPERATOR).await);
    let first = a.campaign(settings("lease-expiry", "first"));
    soon("the first leads", first.elected()).await.unwrap();
    let second = b.campaign(settings("lease-expiry", "second"));
    let watch = never_both(&first, &second);
    let map = world.map("a", json!({}));
    a.writer(first.clone()).apply(&map, &Apply::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(first.leads() && !second.leads(), "a renewed lease is not taken over");
    wire.cut();
    soon("the first has lost", first.ended()).await;
    let writes = a.counters.writes();
    let error = a.writer(first.clone()).apply(&map, &Apply::default()).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotLeading(NotLeading::Ended)), "{error:?}");
    assert_eq!(a.counters.writes(), writes);
    soon("the second leads", second.elected()).await.unwrap();
    b.writer(second.clone()).apply(&map, &Apply::default()).await.unwrap();
    wire.mend();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(second.leads() && !first.leads());
    assert!(!watch.is_finished());
    watch.abort();
}

#[tokio::test]
async fn no_write_starts_long_after_the_last_renewal() {
    let world = World::new("lease-late").await;
    let (wire, config) = Wire::before(plane().config(OPERATOR).unwrap()).await;
    let cluster = connect_to(config).await;
    let slow = LeaseSettings {
        renew_deadline: Duration::from_secs(20),
        write_deadline: Duration::from_millis(700),
        ..settings("lease-late", "slow")
    };
    let leadership = cluster.campaign(slow);
    soon("it leads", leadership.elected()).await.unwrap();
    assert!(leadership.permit().is_ok());
    wire.cut();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert!(matches!(leadership.permit().err(), Some(NotLeading::Unrenewed(_))));
    wire.mend();
    crate::support::eventually("a renewal", async || leadership.leads().then_some(())).await;
    drop(world);
}

#[tokio::test]
async fn of_many_candidates_at_once_one_leads() {
    let world = World::new("lease-many").await;
    let cluster = connect_as(OPERATOR).await;
    let all: Vec<Leadership> = (0..5)
        .map(|number| cluster.campaign(settings("lease-many", &format!("candidate-{number}"))))
        .collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert!(all.iter().filter(|one| one.leads()).count() <= 1);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(all.iter().filter(|one| one.leads()).count(), 1);
    drop(world);
}

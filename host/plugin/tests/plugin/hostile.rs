//! Hostile and odd guests: each ends soon, with a failure that says what it did.

use std::time::{Duration, Instant};

use pintle_api::{Record, Verdict};
use pintle_plugin::{Outcome, limits};
use serde_json::json;

use crate::setting::{call, check_once, line, load, target};

/// A call may take its timeout, here 300 ms, and what a busy machine adds.
const SOON: Duration = Duration::from_secs(2);

async fn check(name: &str, expected: &str) {
    let plugin = load(name, &json!({})).await.unwrap();
    let began = Instant::now();
    let result = plugin.check(call(Record::default()), target()).await;
    let (took, line) = (began.elapsed(), line(&result));
    assert!(line.starts_with(expected), "{name}: expected {expected:?}, got {line:?}");
    assert!(took < SOON, "{name}: {took:?}");
    assert!(result.stats.memory <= limits::MEMORY, "{name}: {:?}", result.stats);
}

#[tokio::test]
async fn a_guest_that_is_ready_is_ready_and_one_that_waits_says_for_what() {
    check("ready", "Ready").await;
    check("pending", "Pending([Blocker { object: None, node: Some(\"node-a\"), reason: \"DriverNotLoaded\"")
        .await;
    check("modest", "Ready").await;
}

#[tokio::test]
async fn a_trap_costs_one_call_and_a_panic_brings_its_message() {
    check("trap", "trap WithBackOff: the plugin trapped: wasm trap: wasm `unreachable`").await;
    let result = check_once("panic", &json!({})).await;
    assert!(
        line(&result).ends_with("it last said: panicked at src/lib.rs:7: index out of bounds"),
        "{}",
        line(&result)
    );
}

#[tokio::test]
async fn what_never_ends_is_cut_within_its_timeout() {
    check("loop", "timeout WithBackOff: the plugin did not end within 300ms").await;
    check("fill", "timeout WithBackOff").await;
}

#[tokio::test]
async fn what_takes_without_end_is_stopped_at_its_limit() {
    check("grow", "oom WithBackOff: the plugin wanted ").await;
    check("tables", "oom WithBackOff: the plugin wanted 10001 table elements").await;
    check("recursion", "trap WithBackOff: the plugin ran out of stack, 524288 bytes").await;
}

#[tokio::test]
async fn what_is_handed_over_is_limited_and_must_be_what_the_contract_says() {
    check("huge", "invalid WhenInputsChange: what the plugin returned cannot be taken over").await;
    check("utf8", "invalid WhenInputsChange: what the plugin returned cannot be taken over").await;
    check("verdict", "invalid WhenInputsChange: what the plugin returned cannot be taken over").await;
    check("watches", "invalid WhenInputsChange").await;
}

#[tokio::test]
async fn a_flood_of_lines_or_reads_ends_the_call() {
    check("flood", "budget WithBackOff: the plugin logged more than 10000 lines").await;
    check("reads", "budget WhenInputsChange: the plugin read too much: more than 100 objects or pages").await;
}

#[tokio::test]
async fn lines_over_the_budget_are_dropped_and_counted_and_the_answer_stands() {
    let result = check_once("chatty", &json!({})).await;
    assert_eq!(line(&result), "Ready");
    assert_eq!(result.log_lines_dropped, 50);
}

#[tokio::test]
async fn a_plugin_without_readiness_is_not_called_for_it() {
    check("mapper", "invalid WhenInputsChange: the plugin does not export readiness").await;
}

#[tokio::test]
async fn an_answer_is_clamped_and_cleaned() {
    let result = check_once("pending", &json!({})).await;
    let Outcome::Answered(checked) = result.outcome else { panic!("{:?}", result.outcome) };
    assert_eq!(checked.recheck, Some(Duration::from_secs(1)), "0 ms would be a busy loop");
    assert_eq!(checked.progress, Some(100));
    assert_eq!(checked.verdict.blockers()[0].message, "pending: wait [31m for it");
}

#[tokio::test]
async fn no_wait_is_without_a_blocker() {
    let result = check_once("silent", &json!({})).await;
    let Outcome::Answered(checked) = result.outcome else { panic!("{:?}", result.outcome) };
    let Verdict::Pending(blockers) = checked.verdict else { panic!("{:?}", checked.verdict) };
    assert_eq!(blockers[0].object.as_ref().unwrap().to_string(), "DaemonSet n/d");
}

#[tokio::test]
async fn the_memory_of_a_plugin_is_what_its_object_says() {
    let result = check_once("grow", &json!({"limits": {"memory": "2Mi"}})).await;
    let failure = line(&result);
    assert!(failure.contains("spec.limits.memory gives 2097152"), "{failure}");
    assert!(result.stats.memory <= 2 * limits::MIB);
}

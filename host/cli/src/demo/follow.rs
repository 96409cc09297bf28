//! The example on screen until it is ready.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::{Api, Client, runtime::watcher::watch_object};
use pintle_api::{SpecialResource, special_resource::SpecialResourceStatus, status::StateStatus};

use super::screen::Screen;

/// Follows the example; gives whether it became ready, and the seconds it took.
pub(super) async fn until_ready(
    client: &Client,
    screen: &Screen,
    timeout: Duration,
) -> anyhow::Result<(bool, f64)> {
    let api: Api<SpecialResource> = Api::all(client.clone());
    let started = Instant::now();
    let mut told = Vec::new();
    let mut changes = Box::pin(watch_object(api, "simple-kmod"));
    screen.step("following SpecialResource simple-kmod");
    let ready = tokio::time::timeout(timeout, async {
        while let Some(change) = changes.next().await {
            // The watch starts again by itself after an error.
            let Ok(Some(object)) = change else { continue };
            let status = object.status.unwrap_or_default();
            tell(screen, &status, &mut told);
            if is_ready(&status) {
                return true;
            }
        }
        false
    })
    .await
    .unwrap_or(false);
    Ok((ready, started.elapsed().as_secs_f64()))
}

fn is_ready(status: &SpecialResourceStatus) -> bool {
    status.conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True")
}

/// One line for each state whose phase or first blocker is another than before.
fn tell(screen: &Screen, status: &SpecialResourceStatus, told: &mut Vec<String>) {
    for (at, state) in status.states.iter().enumerate() {
        let line = line_of(state);
        let before = told.get(at);
        if before != Some(&line) {
            screen.say(&line);
        }
        if at < told.len() {
            told.splice(at..=at, [line]);
        } else {
            told.push(line);
        }
    }
    // A state without a sentence is `Ready: `.
    let state = status.state.trim_end_matches([':', ' ']);
    if !state.is_empty() {
        screen.detail(state);
    }
}

fn line_of(state: &StateStatus) -> String {
    let phase = format!("{:?}", state.phase).to_lowercase();
    let blocker = state.blockers.first().map(|blocker| {
        let object = blocker.object.as_ref().map(|object| format!("{object} ")).unwrap_or_default();
        format!(": {object}{}", blocker.reason)
    });
    format!("  {} {phase} {}/{}{}", state.name, state.ready, state.objects, blocker.unwrap_or_default())
}

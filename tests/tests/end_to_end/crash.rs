//! Ended anywhere, the operator comes to the same end: one run for each write of the undisturbed one, and
//! one for each watch, by enumeration.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use pintle_dev::faults::{Fault, FaultProxy, Matching, Nth};
use pintle_tests::{
    Stage,
    requests::{creations, told},
    snapshot::difference,
};
use serde_json::Value;

/// Runs that go on at once: two cores are busy with four.
const AT_ONCE: usize = 4;
/// Time in which the writes that follow a Ready status are done.
const AFTERMATH: Duration = Duration::from_secs(1);

/// How a run ended.
struct End {
    snapshot: BTreeMap<String, Value>,
    /// Writes in the order of their answers.
    writes: Vec<String>,
    /// Resources that were watched.
    watched: BTreeSet<String>,
    /// The operator was ended, or a watch was cut.
    was_disturbed: bool,
}

/// What goes wrong in a run.
#[derive(Clone, Debug)]
enum Disturbance {
    None,
    /// The operator ends when this write is done, before it hears of it.
    EndAfter(u64),
    /// The first watch of this resource breaks after so many events.
    Cut(String, u64),
}

/// One run of the example with one disturbance, to its end.
async fn run(name: &str, what: &Disturbance) -> anyhow::Result<End> {
    let mut stage = Stage::without_operator(name).await?;
    let (proxy, reach) = stage.proxy().await?;
    let mark = stage.mark_now().await?;
    stage.start_operator(reach.clone());
    let mut was_disturbed = !matches!(what, Disturbance::EndAfter(_));
    if let Disturbance::Cut(resource, after_events) = what {
        let after_events = *after_events;
        proxy.rule(Matching::verbs(&["watch"]).of(resource), Nth::Only(1), Fault::CutWatch { after_events });
    }
    let mut ended = end_after(&stage, &proxy, what);
    stage.install_example().await?;
    tokio::select! {
        ready = stage.wait_until_ready() => {
            ready?;
            // What is written after the release was called ready may be the write that ends it.
            if matches!(what, Disturbance::EndAfter(_)) {
                was_disturbed = matches!(tokio::time::timeout(AFTERMATH, &mut ended).await, Ok(Ok(())));
            }
        }
        Ok(()) = &mut ended => was_disturbed = true,
    }
    if matches!(what, Disturbance::EndAfter(_)) && was_disturbed {
        stage.kill_operator().await;
        stage.start_operator(reach);
    }
    stage.wait_until_ready().await?;
    stage.mark().await?;
    let end = collect(&stage, &proxy, mark, was_disturbed).await.with_context(|| format!("{what:?}"));
    match what {
        // The write it waits for may be yet to come, so it may end by itself meanwhile.
        Disturbance::EndAfter(_) if !was_disturbed => stage.kill_operator().await,
        _ => stage.stop_operator().await?,
    }
    end
}

/// Tells when the operator was ended.
fn end_after(stage: &Stage, proxy: &FaultProxy, what: &Disturbance) -> tokio::sync::oneshot::Receiver<()> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let (Disturbance::EndAfter(wanted), Some(trigger)) = (what, stage.trigger()) else { return told };
    let (wanted, tell) = (*wanted, std::sync::Arc::new(std::sync::Mutex::new(Some(tell))));
    proxy.after_write(move |count, _| {
        let (trigger, tell) = (trigger.clone(), std::sync::Arc::clone(&tell));
        async move {
            if count != wanted {
                return;
            }
            // The request ends with its client: what ends the client must not end with it.
            let ending = tokio::spawn(async move {
                trigger.pull().await;
                let tell = tell.lock().unwrap().take();
                tell.map(|tell| tell.send(()));
            });
            drop(ending.await);
        }
    });
    told
}

/// The end state, after it was checked that every object came to be once.
async fn collect(
    stage: &Stage,
    proxy: &FaultProxy,
    mark: pintle_dev::audit::Mark,
    was_disturbed: bool,
) -> anyhow::Result<End> {
    let requests = stage.requests_since(mark).await?;
    let twice: Vec<_> = creations(&requests).into_iter().filter(|(_, count)| *count != 1).collect();
    anyhow::ensure!(twice.is_empty(), "created more than once: {twice:?}\n{}", told(&requests));
    let watched = requests.iter().filter(|request| request.verb == "watch");
    let watched = watched.map(|request| request.resource.clone()).collect();
    let line = |request: &pintle_dev::faults::Request| {
        let name = format!("{} {}/{} {}", request.verb, request.resource, request.subresource, request.name);
        name.replace(&stage.name, "NAME")
    };
    let writes = proxy.writes().iter().map(line).collect();
    Ok(End { snapshot: stage.snapshot().await?, writes, watched, was_disturbed })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_operator_that_ends_after_any_write_comes_to_the_same_end() {
    let started = Instant::now();
    // The first run also brings the Plugin's status, which all share.
    run("crash-warm", &Disturbance::None).await.unwrap();
    let calm = run("crash-calm", &Disturbance::None).await.unwrap();
    let count = u64::try_from(calm.writes.len()).unwrap();
    assert!(count > 15, "{:#?}", calm.writes);
    let only = std::env::var("PINTLE_ENDED_AFTER").ok().and_then(|text| text.parse().ok());
    let wanted = (1..=count).filter(|write| only.is_none_or(|only: u64| *write == only));
    let runs = stream::iter(wanted).map(async |write| {
        let end = run(&format!("crash-{write:02}"), &Disturbance::EndAfter(write)).await?;
        let differs = difference(&calm.snapshot, &end.snapshot);
        anyhow::ensure!(
            differs.is_empty(),
            "ended after write {write}, it came to another end:\n{differs}\n{:#?}",
            end.writes
        );
        anyhow::Ok(end.was_disturbed)
    });
    let disturbed: Vec<_> = runs.buffer_unordered(AT_ONCE).try_collect().await.unwrap();
    let disturbed = disturbed.into_iter().filter(|was| *was).count();
    let seconds = started.elapsed().as_secs();
    eprintln!("{count} writes, {disturbed} runs in which the operator was ended, {seconds} s");
    // States that are told between two writes depend on the clock, so a run may have a write or two less.
    assert!(only.is_some() || disturbed + 3 >= calm.writes.len(), "{disturbed} of {count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_watch_that_breaks_changes_nothing() {
    let calm = run("cut-calm", &Disturbance::None).await.unwrap();
    let watched: Vec<_> = calm.watched.iter().cloned().enumerate().collect();
    assert!(watched.len() >= 10, "{watched:?}");
    let runs = stream::iter(watched).map(async |(at, resource)| {
        let end = run(&format!("cut-{at:02}"), &Disturbance::Cut(resource.clone(), 1)).await?;
        let differs = difference(&calm.snapshot, &end.snapshot);
        anyhow::ensure!(differs.is_empty(), "with the watch of {resource} cut:\n{differs}");
        anyhow::Ok(resource)
    });
    let cut: Vec<_> = runs.buffer_unordered(AT_ONCE).try_collect().await.unwrap();
    eprintln!("cut once each: {cut:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_operator_finds_a_ready_release_and_writes_nothing() {
    let mut stage = Stage::new("restarted").await.unwrap();
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();
    stage.stop_operator().await.unwrap();
    let (before, mark) = (stage.snapshot().await.unwrap(), stage.mark().await.unwrap());
    let started = Instant::now();
    stage.start();
    // It has looked at the release when it follows the pods of its workload.
    let has_looked = async |stage: &Stage| {
        let requests = stage.requests_since(mark).await?;
        Ok(requests.iter().any(|request| request.verb == "watch" && request.resource == "pods"))
    };
    stage.eventually("the new operator looks at the release", has_looked).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "after {:?}", started.elapsed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut writes = stage.writes_since(mark).await.unwrap();
    // Plugins are everybody's: those of other tests come and go meanwhile.
    writes.retain(|request| request.resource != "plugins");
    assert!(writes.is_empty(), "{}", told(&writes));
    let owner = stage.read("SpecialResource", &stage.name).await.unwrap();
    assert_eq!(owner["status"]["state"], "Ready: ");
    // It is not asleep either: what is deleted comes back.
    stage.delete("Role", "restarted-driver-container").await.unwrap();
    let is_back = async |stage: &Stage| Ok(stage.find("Role", "restarted-driver-container").await?.is_some());
    stage.eventually("the role is back", is_back).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let differs = difference(&before, &stage.snapshot().await.unwrap());
    assert_eq!(differs, "");
    stage.stop_operator().await.unwrap();
}

//! Ended after any write of a release with hooks, the operator comes to the same end: nothing that a hook wanted
//! is made or done twice, by enumeration.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use pintle_dev::faults::FaultProxy;
use pintle_tests::{
    Stage,
    requests::{creations, object_of, told},
    stage::{plane, push_plugin},
};
use serde_json::{Value, json};

use super::around::{grant_rights, grants, script};

/// Runs that go on at once.
const AT_ONCE: usize = 4;
/// Time in which the writes that follow a Ready status are done.
const AFTERMATH: Duration = Duration::from_secs(1);

/// How a run ended.
struct End {
    /// What was made and done, by object, with how often.
    effects: BTreeMap<String, u32>,
    writes: usize,
    was_disturbed: bool,
}

/// A chart whose first state has a hook that keeps something, owns a pod, and has another pod deleted.
async fn install(stage: &Stage) -> anyhow::Result<()> {
    let name = &stage.name;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    stage.apply(namespace).await?;
    let pod = |pod: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": name},
            "spec": {"containers": [{"name": "c", "image": "registry.test/check:1"}]}})
    };
    stage.apply(pod("user")).await?;
    let action = json!({"key": "user", "verb": "delete", "apiVersion": "v1", "kind": "Pod",
        "namespace": name, "name": "user"});
    let line = json!({"does": "hold", "reason": "Held", "message": "m", "save": {"times": 1},
        "want": {"mine": pod("mine")}, "actions": [action]});
    script(stage, &[("pre", line)]).await;
    let image = push_plugin(plane().await?, "scripted-hook").await?;
    let plugin = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": "around-crash"}, "spec": {"image": image, "grants": grants()}});
    stage.apply(plugin).await?;
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("templates"))?;
    std::fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: held\nversion: 0.1.0\n")?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: first\n  annotations: {pintle.dev/pre: around-crash}\n";
    std::fs::write(folder.path().join("templates/0000-first.yaml"), template)?;
    stage.install_chart(folder.path()).await?;
    stage
        .apply(json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": name, "labels": {"test": name}},
            "spec": {"namespace": name, "chart": {"name": "held", "version": "0.1.0",
                "repository": {"name": "chart", "url": format!("cm://{name}/chart")}}}
        }))
        .await
}

/// Ends the operator right after its n-th write, and tells so.
fn end_after(stage: &Stage, proxy: &FaultProxy, wanted: u64) -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let Some(trigger) = stage.trigger() else { return ended };
    let tell = Arc::clone(&ended);
    proxy.after_write(move |count, _| {
        let (trigger, tell) = (trigger.clone(), Arc::clone(&tell));
        async move {
            if count == wanted && !tell.load(Ordering::SeqCst) {
                // The request ends with its client: what ends the client must not end with it.
                let ending = tokio::spawn(async move {
                    trigger.pull().await;
                    tell.store(true, Ordering::SeqCst);
                });
                drop(ending.await);
            }
        }
    });
    ended
}

async fn is_held(stage: &Stage) -> anyhow::Result<bool> {
    let owner = stage.read("SpecialResource", &stage.name).await?;
    let has_pod = stage.find("Pod", "mine").await?.is_some();
    let user = stage.find("Pod", "user").await?;
    let is_deleted = user.is_none_or(|user| !user["metadata"]["deletionTimestamp"].is_null());
    Ok(owner["status"].to_string().contains("\"Held\"") && has_pod && is_deleted)
}

async fn run(name: &str, write: Option<u64>) -> anyhow::Result<End> {
    let mut stage = Stage::without_operator(name).await?;
    grant_rights(&stage).await;
    let (proxy, reach) = stage.proxy().await?;
    let mark = stage.mark_now().await?;
    stage.start_operator(reach.clone());
    let ended = match write {
        Some(write) => end_after(&stage, &proxy, write),
        None => Arc::default(),
    };
    let mut was_disturbed = false;
    let mut course = async |stage: &mut Stage| -> anyhow::Result<()> {
        install(stage).await?;
        go_through(stage, &ended, &mut was_disturbed, &reach, is_held).await?;
        script(stage, &[]).await;
        let is_ready = async |stage: &Stage| {
            let owner = stage.read("SpecialResource", &stage.name).await?;
            Ok(owner["status"]["state"] == "Ready: " && stage.find("ConfigMap", "first").await?.is_some())
        };
        go_through(stage, &ended, &mut was_disturbed, &reach, is_ready).await?;
        tokio::time::sleep(AFTERMATH).await;
        let is_tidy = async |stage: &Stage| {
            let mine = stage.find("Pod", "mine").await?;
            Ok(mine.is_none_or(|mine| !mine["metadata"]["deletionTimestamp"].is_null()))
        };
        go_through(stage, &ended, &mut was_disturbed, &reach, is_tidy).await
    };
    course(&mut stage).await.with_context(|| format!("{name}, ended after {write:?}"))?;
    let requests = stage.requests_since(mark).await?;
    let twice: Vec<_> = creations(&requests).into_iter().filter(|(_, count)| *count != 1).collect();
    anyhow::ensure!(twice.is_empty(), "{name}: made more than once: {twice:?}\n{}", told(&requests));
    let mut effects = BTreeMap::new();
    for request in requests.iter().filter(|request| request.resource == "pods" && request.is_write()) {
        if request.code < 300 {
            let what = format!("{} {}", request.verb, object_of(request)).replace(name, "NAME");
            *effects.entry(what).or_default() += 1;
        }
    }
    let writes = proxy.writes().len();
    drop(stage.stop_operator().await);
    stage.release_owner().await?;
    Ok(End { effects, writes, was_disturbed })
}

/// Waits until something holds; the operator is started again once it was ended.
async fn go_through(
    stage: &mut Stage,
    ended: &AtomicBool,
    was_disturbed: &mut bool,
    reach: &pintle_operator::Reach,
    holds: impl AsyncFn(&Stage) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    loop {
        let is_ended = || !*was_disturbed && ended.load(Ordering::SeqCst);
        let is_over = async |stage: &Stage| Ok(is_ended() || holds(stage).await?);
        stage.eventually("the step is done", is_over).await?;
        if !is_ended() {
            return Ok(());
        }
        *was_disturbed = true;
        stage.kill_operator().await;
        stage.start_operator(reach.clone());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_operator_that_ends_after_any_write_repeats_nothing_that_a_hook_wanted() {
    let calm = run("hook-calm", None).await.unwrap();
    let count = u64::try_from(calm.writes).unwrap();
    assert!(count > 8, "{count} writes");
    let wanted: Vec<Value> = calm.effects.iter().map(|effect| json!(effect)).collect();
    let runs = stream::iter(1..=count).map(async |write| {
        let end = run(&format!("hook-{write:02}"), Some(write)).await?;
        let effects: Vec<Value> = end.effects.iter().map(|effect| json!(effect)).collect();
        anyhow::ensure!(effects == wanted, "ended after write {write}: {effects:?}, not {wanted:?}");
        anyhow::Ok(end.was_disturbed)
    });
    let disturbed: Vec<bool> = runs.buffer_unordered(AT_ONCE).try_collect().await.unwrap();
    let disturbed = disturbed.into_iter().filter(|was| *was).count();
    eprintln!("{count} writes, {disturbed} runs in which the operator was ended");
    assert!(disturbed + 3 >= calm.writes, "{disturbed} of {count}");
}

//! One operator's turn: a control plane of its own, and the same phases for all.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
    runtime::watcher::{self, Event, watcher},
};
use pintle::scenario;
use pintle_dev::{ControlPlane, Options, binaries, cluster::User, nodes};
use serde_json::json;

use crate::{
    Plan,
    contenders::Who,
    machine::{self, Memory},
    meter::{Meter, Point, Span},
    process::Process,
    workload::{self, NAMESPACE},
};

/// How long an operator may look around before it is given work.
const WARM_UP: Duration = Duration::from_secs(10);
/// Requests of ours at once: what a client of people would do as one command.
const CREATORS: usize = 8;
/// Deployments that are deleted at once.
const DELETED: usize = 5;

/// What one operator needed in one turn. Times in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub who: Who,
    /// The machine's load before the turn.
    pub load: f64,
    pub empty: Phase,
    pub install: Install,
    pub idle: Phase,
    pub restart: Phase,
    /// When each deleted object was back after the request to delete it; absent: not in the time it was given.
    pub repairs: Vec<Option<f64>>,
}

/// One stretch of a turn, and what the operator held at its end.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub span: Span,
    pub memory: Memory,
    /// When the operator's work ended, where that is what ends the phase; absent when it did not in time.
    pub quiet: Option<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Install {
    /// When each release was ready after the first owner was made, in ascending order.
    pub ready: Vec<f64>,
    pub until_ready: Phase,
    pub until_quiet: Phase,
}

/// A control plane and an operator on it.
struct Turn<'a> {
    plan: &'a Plan,
    who: Who,
    plane: ControlPlane,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
}

/// Runs all phases for one operator.
pub(crate) async fn run(plan: &Plan, who: Who, program: &Path) -> anyhow::Result<Outcome> {
    let load = machine::load();
    let plane = start_plane(who).await?;
    let folder = tempfile::tempdir()?;
    let prepared = who.prepare(&plane, folder.path()).await?;
    let turn = Turn {
        plan,
        who,
        plane,
        program: program.to_owned(),
        arguments: prepared.arguments.clone(),
        folder: folder.path().to_owned(),
    };
    let outcome = turn.play(load).await;
    turn.plane.stop().await;
    drop(prepared);
    outcome
}

/// A fresh control plane with one node, where the operator may do everything.
async fn start_plane(who: Who) -> anyhow::Result<ControlPlane> {
    let binaries = binaries::ensure(&mut |line| eprintln!("{line}"))?;
    let group = "system:serviceaccounts".to_owned();
    let user = User { name: who.user(), groups: vec![group] };
    let options = Options {
        registry: None,
        openshift: Vec::new(),
        users: vec![user],
        definitions: who.definitions()?,
        ..Options::new(binaries)
    };
    let plane = ControlPlane::start(options).await?;
    let client = plane.client()?;
    nodes::create(&client, &nodes::NodeSpec::worker("worker-0")).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    scenario::apply(&client, namespace).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bench"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who.user()}],
    });
    scenario::apply(&client, binding).await?;
    Ok(plane)
}

// === impl Turn ===

impl Turn<'_> {
    async fn play(&self, load: f64) -> anyhow::Result<Outcome> {
        let mut process = self.start()?;
        let meter = self.meter(&process);
        let empty = over(&meter, WARM_UP).await?;
        process.check()?;
        let install = self.install(&meter).await.with_context(|| process.last_words())?;
        let idle = over(&meter, self.plan.idle).await?;
        process.check()?;
        process.stop().await?;

        let mut process = self.start()?;
        let meter = self.meter(&process);
        let restart = until_quiet(&meter, &meter.point()?, self.plan.patience()).await?;
        let repairs = self.repair().await?;
        process.check()?;
        process.stop().await?;
        Ok(Outcome { who: self.who, load, empty, install, idle, restart, repairs })
    }

    fn start(&self) -> anyhow::Result<Process> {
        let kubeconfig = self.plane.kubeconfig_of(&self.who.user())?;
        Process::start(&self.program, &self.arguments, &kubeconfig, &self.folder.join("operator.log"))
    }

    fn meter(&self, process: &Process) -> Meter<'_> {
        Meter { plane: &self.plane, user: self.who.user(), pid: process.pid() }
    }

    /// Creates all owners, and waits until all are ready, and until the operator rests.
    async fn install(&self, meter: &Meter<'_>) -> anyhow::Result<Install> {
        let owners = self.who.owners(self.plane.client()?);
        let mut changes = Box::pin(watcher(owners.clone(), watcher::Config::default()));
        while !matches!(changes.try_next().await?.context("the watch ended")?, Event::InitDone) {}
        let (before, mut ready) = (meter.point()?, BTreeMap::new());
        let watch = async {
            while ready.len() < self.plan.count {
                let change = changes.try_next().await?.context("the watch ended")?;
                if let Event::Apply(owner) | Event::InitApply(owner) = change
                    && self.who.is_ready(&owner)
                {
                    ready.entry(owner.metadata.name).or_insert_with(|| before.at.elapsed().as_secs_f64());
                }
            }
            anyhow::Ok(())
        };
        let both = futures::future::try_join(self.create(&owners), watch);
        match tokio::time::timeout(self.plan.patience(), both).await {
            Ok(done) => drop(done?),
            Err(_) => {
                bail!("{} of {} were ready after {:?}", ready.len(), self.plan.count, self.plan.patience())
            }
        }
        let mut ready: Vec<f64> = ready.into_values().collect();
        ready.sort_by(f64::total_cmp);
        let until_ready = Phase { span: meter.since(&before)?, memory: meter.memory()?, quiet: None };
        Ok(Install {
            ready,
            until_ready,
            until_quiet: until_quiet(meter, &before, self.plan.patience()).await?,
        })
    }

    async fn create(&self, owners: &Api<kube::api::DynamicObject>) -> anyhow::Result<()> {
        let create = |number| async move {
            owners.create(&PostParams::default(), &self.who.owner(number)?).await?;
            anyhow::Ok(())
        };
        let all = stream::iter(0..self.plan.count).map(create);
        all.buffer_unordered(CREATORS).try_collect::<Vec<()>>().await.map(drop)
    }

    /// Deletes some Deployments at once; gives when each was there again.
    async fn repair(&self) -> anyhow::Result<Vec<Option<f64>>> {
        let deployments: Api<Deployment> = Api::namespaced(self.plane.client()?, NAMESPACE);
        let mut changes = Box::pin(watcher(deployments.clone(), watcher::Config::default()));
        let old = before_changes(&mut changes).await?;
        let (all, count) = (self.plan.count, DELETED.min(self.plan.count));
        let names: Vec<String> = (0..count).map(|number| workload::name(number * all / count)).collect();
        let deleted = Instant::now();
        let how = DeleteParams::default();
        futures::future::try_join_all(names.iter().map(|name| deployments.delete(name, &how))).await?;
        let mut back = BTreeMap::new();
        let watch = async {
            while back.len() < names.len() {
                let change = changes.try_next().await?.context("the watch ended")?;
                let Event::Apply(Deployment { metadata, .. }) = change else { continue };
                let name = metadata.name.unwrap_or_default();
                if names.contains(&name) && old.get(&name) != Some(&metadata.uid) {
                    back.entry(name).or_insert_with(|| deleted.elapsed().as_secs_f64());
                }
            }
            anyhow::Ok(())
        };
        // What is not back in time is told as such.
        tokio::time::timeout(self.who.repair_patience(), watch).await.unwrap_or(Ok(()))?;
        Ok(names.iter().map(|name| back.get(name).copied()).collect())
    }
}

/// What happens in so much time.
async fn over(meter: &Meter<'_>, time: Duration) -> anyhow::Result<Phase> {
    let before = meter.point()?;
    tokio::time::sleep(time).await;
    Ok(Phase { span: meter.since(&before)?, memory: meter.memory()?, quiet: None })
}

/// What happens until the operator rests.
async fn until_quiet(meter: &Meter<'_>, before: &Point, patience: Duration) -> anyhow::Result<Phase> {
    let quiet = meter.quiet(patience).await?;
    let quiet = quiet.map(|at| at.duration_since(before.at).as_secs_f64());
    Ok(Phase { span: meter.since(before)?, memory: meter.memory()?, quiet })
}

/// Who is there when a watch begins: unique identifiers by name.
async fn before_changes(
    changes: &mut (impl Stream<Item = watcher::Result<Event<Deployment>>> + Unpin),
) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let mut found = BTreeMap::new();
    loop {
        match changes.try_next().await?.context("the watch ended")? {
            Event::InitApply(Deployment { metadata, .. }) => {
                found.insert(metadata.name.unwrap_or_default(), metadata.uid);
            }
            Event::InitDone => return Ok(found),
            _ => {}
        }
    }
}

//! What a span of time cost: processor time of every process, and requests of the operator.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use pintle_dev::{ControlPlane, audit::Mark};

use crate::{
    machine::{self, Busy, Memory},
    traffic::Traffic,
};

/// How often is looked whether the operator works.
const LOOK: Duration = Duration::from_millis(500);
/// An operator that has asked for nothing for so long, and hardly run, has ended its work.
const SILENCE: Duration = Duration::from_secs(5);
/// Share of one processor below which an operator does not work: two ticks of the kernel's clock in one look.
const AT_REST: f64 = 0.05;

/// Measures one operator on one control plane.
pub(crate) struct Meter<'a> {
    pub plane: &'a ControlPlane,
    pub user: String,
    /// The operator's process.
    pub pid: u32,
}

/// One moment: what all had used until then.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub at: Instant,
    mark: Mark,
    /// By name: the operator, the programs of the control plane, and this program.
    cpu: BTreeMap<String, f64>,
    busy: Busy,
}

/// What lay between two moments. Times in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub seconds: f64,
    pub operator: f64,
    pub apiserver: f64,
    pub etcd: f64,
    pub manager: f64,
    pub harness: f64,
    /// Used by what does not belong to the run, as far as `/proc` tells: short-lived programs are not told apart.
    pub foreign: f64,
    /// Used by whoever lets others go first; nothing of the run does.
    pub foreign_nice: f64,
    pub traffic: Traffic,
}

// === impl Meter ===

impl Meter<'_> {
    pub(crate) fn point(&self) -> anyhow::Result<Point> {
        let mut cpu = BTreeMap::from([
            ("operator".to_owned(), machine::cpu_of(self.pid)?),
            ("harness".to_owned(), machine::cpu_of(std::process::id())?),
        ]);
        for (name, pid) in self.plane.processes() {
            cpu.insert(name, machine::cpu_of(pid.cast_unsigned())?);
        }
        Ok(Point { at: Instant::now(), mark: self.plane.audit().mark()?, cpu, busy: machine::busy()? })
    }

    pub(crate) fn since(&self, before: &Point) -> anyhow::Result<Span> {
        let now = self.point()?;
        let of =
            |name: &str| now.cpu.get(name).zip(before.cpu.get(name)).map_or(0.0, |(now, then)| now - then);
        let ours: f64 = now.cpu.keys().map(|name| of(name)).sum();
        Ok(Span {
            seconds: now.at.duration_since(before.at).as_secs_f64(),
            operator: of("operator"),
            apiserver: of("kube-apiserver"),
            etcd: of("etcd"),
            manager: of("kube-controller-manager"),
            harness: of("harness"),
            foreign: (now.busy.all - before.busy.all - ours).max(0.0),
            foreign_nice: now.busy.nice - before.busy.nice,
            traffic: self.traffic(before.mark)?,
        })
    }

    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        machine::memory_of(self.pid)
    }

    fn traffic(&self, mark: Mark) -> anyhow::Result<Traffic> {
        Ok(Traffic::of(&self.plane.audit().requests_since(&self.user, mark)?))
    }

    /// Waits until the operator rests; gives when its work ended, nothing when it still worked after `patience`.
    pub(crate) async fn quiet(&self, patience: Duration) -> anyhow::Result<Option<Instant>> {
        let begun = Instant::now();
        let mut active = begun;
        let (mut mark, mut cpu) = (self.plane.audit().mark()?, machine::cpu_of(self.pid)?);
        while active.elapsed() < SILENCE {
            if begun.elapsed() > patience {
                return Ok(None);
            }
            let looked = Instant::now();
            tokio::time::sleep(LOOK).await;
            let (now, used) = (self.plane.audit().mark()?, machine::cpu_of(self.pid)?);
            let share = (used - cpu) / looked.elapsed().as_secs_f64();
            if share > AT_REST || !self.traffic(mark)?.is_silent() {
                active = Instant::now();
            }
            (mark, cpu) = (now, used);
        }
        Ok(Some(active))
    }
}

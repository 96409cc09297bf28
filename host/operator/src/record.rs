//! The release as Helm keeps it, so that `helm list`, `history`, `get` and `rollback` work.

pub(crate) mod outside;
mod shelf;
mod text;

use std::{cmp::Ordering, sync::Arc};

use pintle_api::{Answer, Facts, Object, Timestamp, Verdict};
use pintle_chart::release::{Dropped, Info, Record, Status, StoredChart, secret_name};
use pintle_cluster::ApiError;
use pintle_plan::{Memory, Operation};

pub(crate) use shelf::{helm_secrets, release_of};
pub(crate) use text::{hooks, objects, rendered};

use crate::{
    charts::Loaded,
    context::{Context, Key},
    front::{Front, FrontKind},
    render::Objects,
};

/// Revisions that are kept when nothing else is asked for; Helm's default.
pub(crate) const HISTORY: u32 = 10;

/// A revision that is being recorded.
pub(crate) struct Revision<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) key: &'a Key,
    pub(crate) front: &'a Front,
    pub(crate) chart: &'a Loaded,
    pub(crate) memory: &'a Memory,
    pub(crate) objects: &'a Objects,
}

// === impl Revision ===

impl Revision<'_> {
    /// Records a new revision before its first object is written.
    pub(crate) async fn begin(&self) {
        let (ctx, memory) = (self.ctx, self.memory);
        let mark = format!("{} begun", memory.revision);
        if memory.revision == 0 || ctx.ledger.with(self.key, |entry| entry.recorded == mark) {
            return;
        }
        let stored = shelf::secrets(ctx, self.key, self.front).await;
        if self.current(&stored).is_none() {
            let record = self.record(&stored, self.pending_status());
            if !self.write(&record, false).await {
                return;
            }
        }
        ctx.ledger.with(self.key, |entry| entry.recorded = mark);
    }

    /// Records what became of the revision, once its last gate has decided. False when that could not be written: it is
    /// to be tried again.
    pub(crate) async fn conclude(&self, verdict: &Verdict) -> bool {
        let (ctx, memory) = (self.ctx, self.memory);
        let status = match verdict {
            Verdict::Ready => Status::Deployed,
            Verdict::Fatal(_) => Status::Failed,
            Verdict::Pending(_) | Verdict::Transient(_) => return true,
        };
        let mark = format!("{} {}", memory.revision, status.as_str());
        if memory.revision == 0 || ctx.ledger.with(self.key, |entry| entry.recorded == mark) {
            return true;
        }
        let stored = shelf::secrets(ctx, self.key, self.front).await;
        if !self.conclude_current(&stored, status, verdict).await {
            return false;
        }
        if status == Status::Deployed {
            self.supersede().await;
        }
        shelf::trim(ctx, self.front, memory.revision).await;
        ctx.ledger.with(self.key, |entry| entry.recorded = mark);
        true
    }

    async fn conclude_current(&self, stored: &[Arc<Object>], status: Status, verdict: &Verdict) -> bool {
        let current = self.current(stored);
        let is_update = current.is_some();
        let whole = match current {
            Some(record) if record.manifest.contains(shelf::ELSEWHERE) => None,
            other => other,
        };
        let mut record = whole.unwrap_or_else(|| self.record(stored, self.pending_status()));
        if record.info.status == status && is_update {
            return true;
        }
        record.info.status = status;
        record.info.description = self.description(status, verdict);
        text::note_runs(&mut record, self.memory);
        self.write(&record, is_update).await
    }

    /// What was deployed before is superseded, whoever recorded it.
    async fn supersede(&self) {
        for entry in shelf::entries(self.ctx, self.front) {
            if entry.version >= self.memory.revision || entry.status != Status::Deployed.as_str() {
                continue;
            }
            let Some(mut record) = shelf::read(self.ctx, self.key, self.front, entry.version).await else {
                continue;
            };
            record.info.status = Status::Superseded;
            self.write(&record, true).await;
        }
    }

    /// The record of the revision in use, where it can be read.
    fn current(&self, stored: &[Arc<Object>]) -> Option<Record> {
        let name = secret_name(&self.front.release.name, self.memory.revision);
        let secret = stored.iter().find(|secret| secret.name() == name)?;
        let is_own = secret.annotation(pintle_api::names::OWNED_BY).is_some();
        Record::from_secret(secret).ok().filter(|_| is_own)
    }

    fn pending_status(&self) -> Status {
        match self.memory.operation() {
            Operation::Install => Status::PendingInstall,
            Operation::Upgrade => Status::PendingUpgrade,
            Operation::Rollback => Status::PendingRollback,
        }
    }

    fn record(&self, stored: &[Arc<Object>], status: Status) -> Record {
        let (front, memory) = (self.front, self.memory);
        let now = memory.time.unwrap_or(Timestamp::UNIX_EPOCH);
        let first = stored.iter().filter_map(|secret| Record::from_secret(secret).ok()?.info.first_deployed);
        let back_to = memory.remedy.as_ref().and_then(pintle_plan::remedy::Remedy::back_to);
        let chart = self.objects.chart.clone();
        Record {
            name: front.release.name.clone(),
            namespace: front.release.namespace.clone(),
            version: memory.revision,
            info: Info {
                first_deployed: Some(first.min().unwrap_or(now)),
                last_deployed: Some(Timestamp::now()),
                description: self.description(status, &Verdict::Ready),
                status,
                rollback_revision: back_to.unwrap_or_default(),
                notes: self.objects.notes.clone(),
                ..Info::default()
            },
            chart: chart.unwrap_or_else(|| StoredChart::from(&*self.chart.chart)),
            config: config(front),
            manifest: text::manifest(&self.objects.states),
            hooks: self.objects.hooks.iter().map(text::stored_hook).collect(),
            apply_method: "csa".to_owned(),
            ..Record::default()
        }
    }

    /// The sentence that `helm history` shows.
    fn description(&self, status: Status, verdict: &Verdict) -> String {
        let wishes = &self.front.wishes;
        let operation = self.memory.operation();
        let asked = match operation {
            Operation::Install => wishes.install_description.clone(),
            Operation::Upgrade => wishes.upgrade_description.clone(),
            Operation::Rollback => None,
        };
        let back_to = self.memory.remedy.as_ref().and_then(pintle_plan::remedy::Remedy::back_to);
        let done = match (operation, back_to) {
            (Operation::Install, _) => "Install complete".to_owned(),
            (_, Some(to)) => format!("Rollback to {to}"),
            (Operation::Upgrade | Operation::Rollback, None) => "Upgrade complete".to_owned(),
        };
        match status {
            Status::Deployed => asked.unwrap_or(done),
            Status::Failed => {
                let why = verdict.blockers().first().map(|blocker| blocker.message.clone());
                format!("failed: {}", why.unwrap_or_else(|| "not told".to_owned()))
            }
            _ => "Applied in states by Pintle".to_owned(),
        }
    }

    /// False when it could not be written.
    async fn write(&self, record: &Record, is_update: bool) -> bool {
        let Ok(dropped) = shelf::write(self.ctx, self.front, record, is_update).await else { return false };
        if record.version == self.memory.revision {
            let is_split = matches!(dropped, Some(Dropped::Whole(_)));
            self.ctx.ledger.with(self.key, |entry| entry.is_split = is_split);
        }
        true
    }
}

/// Values of the user as `helm get values` shows them.
fn config(front: &Front) -> pintle_chart::Values {
    let spec = front.user_values();
    match &front.kind {
        FrontKind::SpecialResource(_) => spec,
        FrontKind::Watch(watch) => {
            let own = spec.get("spec").and_then(serde_json::Value::as_object).cloned().unwrap_or_default();
            let from: Vec<_> = front.values_from.iter().map(|source| source.values.clone()).collect();
            let merged = pintle_chart::values::for_watch(&from, &own, &[], &watch.override_values);
            merged.unwrap_or(own)
        }
    }
}

/// Deletes the records and the memory of a release that is gone.
pub(crate) async fn forget(ctx: &Context, key: &Key, front: &Front) -> Result<(), ApiError> {
    shelf::forget(ctx, key, front).await
}

/// The record of a revision, whole; nothing when it cannot be read.
pub(crate) async fn read(ctx: &Context, key: &Key, front: &Front, revision: u32) -> Option<Record> {
    shelf::read(ctx, key, front, revision).await
}

/// The last revision that was deployed before this one.
pub(crate) fn deployed_before(ctx: &Context, front: &Front, revision: u32) -> Option<u32> {
    let was_deployed = ["deployed", "superseded"];
    let entries = shelf::entries(ctx, front).into_iter();
    let fitting = entries.filter(|entry| entry.version < revision);
    fitting.filter(|entry| was_deployed.contains(&entry.status.as_str())).map(|entry| entry.version).max()
}

/// The record of the newest revision that can be read.
pub(crate) async fn newest(ctx: &Context, key: &Key, front: &Front) -> Option<Record> {
    let mut versions: Vec<_> = shelf::entries(ctx, front).into_iter().map(|entry| entry.version).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    for version in versions {
        if let Some(record) = shelf::read(ctx, key, front, version).await {
            return Some(record);
        }
    }
    None
}

/// Looks whether the record of the revision in use is still as it was written; what was read wakes the
/// release. One that somebody damaged or deleted is written anew.
pub(crate) async fn check(ctx: &Context, key: &Key, front: &Front, memory: &Memory) -> pintle_api::Record {
    if memory.revision == 0 || ctx.ledger.with(key, |entry| entry.recorded.is_empty()) {
        return pintle_api::Record::default();
    }
    let target = shelf::secret_of(front, memory.revision);
    let (answer, reads) = ctx.know(key, |facts: &dyn Facts| facts.get(&target)).await;
    let is_good = match &answer {
        Answer::Found(secret) => match Record::from_secret(secret) {
            Ok(record) => record.version.cmp(&memory.revision) == Ordering::Equal,
            Err(_) => false,
        },
        Answer::Missing => false,
        Answer::KindUnknown | Answer::NotYet | Answer::Denied(_) => true,
    };
    if !is_good {
        tracing::warn!(secret = %target, "the record of the release was damaged or deleted; it is written anew");
        ctx.ledger.with(key, |entry| entry.recorded.clear());
    }
    reads
}

//! Plugins that are called around states, or reconcile: one question, its answer as a plan takes it.

use std::{sync::Arc, time::Duration};

use pintle_api::{Blocker, Facts as _, Object, ObjectRef, Read, Record, Verdict};
use pintle_plan::{
    Ask, CallKey, Deed, Dress, Held, Kept, Moment, Role, SaveChange, Site, Told, ToldOutcome, Wanted,
    dress_own, fnv1a,
};
use pintle_plugin::{
    Admission, CallFailure, CallResult, Desired, Export, HookOutcome, Keyed, Operation, Outcome, Ownership,
    Phase, Plugin, Report, Save, Stepped, StepClock,
};

use super::call::{Caller, PAUSE, ROUNDS};

/// What a plugin said, whichever of its functions was called.
struct Said {
    outcome: ToldOutcome,
    want: Vec<Keyed>,
    watch: Vec<Read>,
    recheck: Option<Duration>,
    report: Report,
}

/// What came of a question: the answer, what was read for it, and what the plugin wants told.
pub(crate) struct Asked {
    pub(crate) told: Told,
    pub(crate) record: Record,
    pub(crate) report: Report,
}

// === impl Caller ===

impl Caller<'_> {
    /// Asks a plugin. Whatever happens is an answer, and everything that was read is in the record.
    pub(crate) async fn ask_around(&self, ask: &Ask) -> Asked {
        let site = &ask.key.site;
        let key = self.key_of(ask);
        self.ctx.ledger.note_caller(&site.plugin, self.key);
        let plugin = match self.loaded(&site.plugin, &self.owner.reference()) {
            Ok(plugin) => plugin,
            Err(verdict) => return absent(verdict),
        };
        if let Admission::Wait { until, .. } = self.admit(&site.plugin, &self.key.to_string()) {
            let (verdict, recheck) = self.paused(&key, until);
            return Asked::waiting(verdict, Some(recheck));
        }
        let result = self.run_around(&plugin, ask, &key).await;
        self.conclude_around(&plugin, ask, &key, result).await
    }

    /// Names the question where failures and attempts are counted.
    fn key_of(&self, ask: &Ask) -> CallKey {
        let Site { plugin, args, state, pool, .. } = &ask.key.site;
        CallKey {
            plugin: plugin.clone(),
            target: self.owner.reference(),
            state: format!("{state} {}", ask.key.moment.word()),
            pool: pool.clone(),
            args: args.clone(),
        }
    }

    /// Calls until the plugin finds everything it reads.
    async fn run_around(&self, plugin: &Plugin, ask: &Ask, key: &CallKey) -> CallResult<Said> {
        let applied: Vec<Keyed> = ask.applied.iter().map(keyed).collect();
        let mut rounds = 0;
        loop {
            let call = self.input_around(ask, key);
            let result = match (ask.key.site.role, ask.key.is_removal) {
                (Role::Hook, _) => {
                    let phase = phase_of(ask.key.moment);
                    plugin.on_phase(call, phase, &ask.rendered, &applied).await.map(Said::from)
                }
                (Role::Reconciler, false) => plugin.reconcile(call, &applied).await.map(Said::from),
                (Role::Reconciler, true) => plugin.finalize(call, &applied).await.map(Said::from),
            };
            rounds += 1;
            match &result.outcome {
                Outcome::NeedsFacts(reads) if rounds < ROUNDS => {
                    self.ctx.caches.fetch(reads, &self.key.holder()).await;
                }
                _ => return result,
            }
        }
    }

    fn input_around(&self, ask: &Ask, key: &CallKey) -> pintle_plugin::Call {
        let elapsed = Duration::from_secs(u64::try_from(ask.elapsed_seconds).unwrap_or_default());
        let clock =
            StepClock { now: self.now, elapsed, attempt: self.ctx.ledger.attempts(self.key, key) + 1 };
        let operation = match (ask.key.is_removal, ask.key.is_steady) {
            (true, _) => Operation::Delete,
            (false, true) => Operation::Steady,
            (false, false) => self.operation,
        };
        pintle_plugin::Call {
            facts: Arc::clone(&self.ctx.caches) as Arc<dyn pintle_api::Facts>,
            operation,
            release: self.release.clone(),
            state: ask.key.site.state_number(),
            pool: ask.key.site.pool.clone(),
            args: key.arguments(),
            owner: Arc::clone(&self.owner),
            host_fields: Arc::from(vec!["status".to_owned()]),
            values: Arc::clone(&self.values),
            saved: ask.saved.clone().map(Arc::new),
            own: Arc::clone(&self.own),
            clock,
        }
    }

    async fn conclude_around(
        &self,
        plugin: &Plugin,
        ask: &Ask,
        key: &CallKey,
        result: CallResult<Said>,
    ) -> Asked {
        let attempts = self.count(key, &result);
        let again = super::call::pause_after(attempts);
        let CallResult { outcome, mut record, inputs, .. } = result;
        let said = match outcome {
            Outcome::Answered(said) => said,
            Outcome::NeedsFacts(reads) => {
                let message = format!(
                    "Plugin {} asks for more and more: {} reads are still unknown",
                    key.plugin,
                    reads.len()
                );
                let blocker = Blocker::new("FactsUnknown", message).on(self.owner.reference());
                return Asked { record, ..Asked::waiting(Verdict::pending(blocker), Some(again)) };
            }
            Outcome::Failed(failure) => return self.failed(failure, key, record, again),
        };
        if self.ctx.ledger.is_restless(self.key, key, inputs, mark_of(&said), self.now) {
            let message = format!(
                "Plugin {} changes what it wants again and again although nothing it is told does; it is \
                 not followed until it rests",
                key.plugin
            );
            let blocker = Blocker::new("Degraded", message).on(self.owner.reference());
            return Asked { record, ..Asked::waiting(Verdict::transient(blocker), Some(PAUSE)) };
        }
        record.extend(self.look_at(&said.watch).await);
        if said.outcome == ToldOutcome::Go {
            // Logs are followed while somebody waits for them.
            record = record.without_texts();
        }
        let mut report = said.report;
        let deeds = std::mem::take(&mut report.actions).into_iter().map(deed).collect();
        let save = save_of(&report.save, plugin, ask);
        let told = Told {
            outcome: said.outcome,
            want: Some(said.want.iter().map(|keyed| self.wanted(keyed)).collect()),
            deeds,
            save,
            recheck: said.recheck,
            is_absent: false,
        };
        Asked { told, record, report }
    }

    /// A plugin that fails may still tell, keep and have something done.
    fn failed(&self, failure: CallFailure, key: &CallKey, record: Record, again: Duration) -> Asked {
        let verdict = failure.verdict(&key.plugin, &self.owner.reference());
        let recheck = matches!(verdict, Verdict::Transient(_)).then_some(again);
        let asked = Asked::waiting(verdict, recheck);
        match failure {
            CallFailure::Guest { report, .. } => {
                let mut report = *report;
                let deeds = std::mem::take(&mut report.actions).into_iter().map(deed).collect();
                Asked { told: Told { deeds, ..asked.told }, record, report }
            }
            _ => Asked { record, ..asked },
        }
    }

    /// What the plugin wants watched besides what it read.
    async fn look_at(&self, watch: &[Read]) -> Record {
        if watch.is_empty() {
            return Record::default();
        }
        let look = |facts: &dyn pintle_api::Facts| {
            for read in watch {
                match read {
                    Read::Get(target) => drop(facts.get(target)),
                    Read::List(query) => drop(facts.list(query)),
                    Read::Tail(_) | Read::Resolve(_) => {}
                }
            }
        };
        self.ctx.know(self.key, look).await.1
    }

    /// An object with the marks of its release; a part has none, since its object belongs to others.
    fn wanted(&self, keyed: &Keyed) -> Wanted {
        let is_part = keyed.ownership == Ownership::Part;
        let mut object = Object::clone(&keyed.object);
        let is_namespaced = self.ctx.is_namespaced(&object.gvk()).unwrap_or(true);
        if is_part {
            if is_namespaced && object.namespace().is_none() {
                let namespace = self.release.namespace.as_str().into();
                object.map_mut(&["metadata"]).insert("namespace".to_owned(), namespace);
            }
        } else {
            let owner: ObjectRef = self.owner.reference();
            let dress = Dress {
                release: &self.release.name,
                namespace: &self.release.namespace,
                owner: &owner,
                owner_uid: self.owner.uid().unwrap_or_default(),
                flavor: &pintle_plan::Flavor::Watch,
                state: "",
                pool: None,
            };
            object = dress_own(&dress, object, is_namespaced);
        }
        Wanted { key: keyed.key.clone(), is_part, object }
    }
}

// === impl Asked ===

impl Asked {
    fn waiting(verdict: Verdict, recheck: Option<Duration>) -> Self {
        let told = Told {
            outcome: ToldOutcome::Wait(verdict),
            want: None,
            deeds: Vec::new(),
            save: SaveChange::Keep,
            recheck,
            is_absent: false,
        };
        Self { told, record: Record::default(), report: Report::default() }
    }
}

/// The Plugin is not there, or not ready.
fn absent(verdict: Verdict) -> Asked {
    let mut asked = Asked::waiting(verdict, None);
    asked.told.is_absent = true;
    // On the way out a deadline may pass without an event.
    asked.told.recheck = Some(super::call::LONGEST);
    asked
}

/// What a plugin keeps, with its version; equal values are no change.
fn save_of(save: &Save, plugin: &Plugin, ask: &Ask) -> SaveChange {
    match save.change(ask.saved.as_ref()) {
        None | Some(Save::Keep) => SaveChange::Keep,
        Some(Save::Clear) => SaveChange::Clear,
        Some(Save::Set(value)) => {
            SaveChange::Set(Kept { version: plugin.manifest().version.clone(), value })
        }
    }
}

fn deed(action: pintle_plugin::Action) -> Deed {
    let pintle_plugin::Action { key, verb, target, arguments, identity: _ } = action;
    Deed { key, verb, target, arguments }
}

fn keyed(held: &Held) -> Keyed {
    Keyed {
        key: held.key.clone(),
        ownership: if held.is_part { Ownership::Part } else { Ownership::Whole },
        object: Arc::clone(&held.object),
        identity: Default::default(),
    }
}

fn phase_of(moment: Moment) -> Phase {
    match moment {
        Moment::Pre => Phase::Pre,
        Moment::Waiting => Phase::Waiting,
        Moment::Post => Phase::Post,
    }
}

/// Mark of the set that a plugin wants.
fn mark_of(said: &Said) -> u64 {
    let marks =
        said.want.iter().map(|keyed| format!("{}|{}", keyed.key, pintle_plan::rendered_mark(&keyed.object)));
    fnv1a(marks.collect::<Vec<_>>().join("|").as_bytes())
}

impl From<Stepped> for Said {
    fn from(Stepped { outcome, want, report }: Stepped) -> Self {
        match outcome {
            HookOutcome::Go => {
                Self { outcome: ToldOutcome::Go, want, watch: Vec::new(), recheck: None, report }
            }
            HookOutcome::LeaveOut(why) => {
                Self { outcome: ToldOutcome::LeaveOut(why), want, watch: Vec::new(), recheck: None, report }
            }
            HookOutcome::Hold(hold) => Self {
                outcome: ToldOutcome::Wait(Verdict::Pending(hold.blockers)),
                want,
                watch: hold.watch,
                recheck: hold.recheck,
                report,
            },
        }
    }
}

impl From<Desired> for Said {
    fn from(desired: Desired) -> Self {
        let Desired { verdict, watch, recheck, progress: _, objects, report } = desired;
        let outcome = if verdict.is_ready() { ToldOutcome::Go } else { ToldOutcome::Wait(verdict) };
        Self { outcome, want: objects, watch, recheck, report }
    }
}

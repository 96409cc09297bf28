//! Plugins that are called around states, or reconcile: one question, its answer as a plan takes it.

use std::{sync::Arc, time::Duration};

use pintle_api::{Blocker, Object, Read, Record, Verdict};
use pintle_plan::{
    Ask, CallKey, Deed, Dress, Flavor, Held, Moment, Role, Site, Told, ToldOutcome, Wanted, dress_own, fnv1a,
};
use pintle_plugin::{
    Call, CallResult, Desired, Export, HookOutcome, Keyed, Ownership, Phase, Plugin, Report, Stepped,
    transcript::Ask,
};
use serde_json::Value;

use super::{
    Named,
    call::{About, Caller, LOADING},
    question::{Answered, Function, NoAnswer, Question, Reply},
};

/// How often a plugin that is not there is asked for on the way out: its time may be up without an event.
const AGAIN: Duration = Duration::from_secs(30);

/// What shall happen around a state?
struct OnPhase {
    phase: Phase,
    rendered: Vec<Arc<Object>>,
    applied: Vec<Keyed>,
}

/// What shall be there?
struct Reconcile(Vec<Keyed>);

/// What shall still be there?
struct Finalize(Vec<Keyed>);

/// What came of a question, in the words of a plan, and what is to be heard of it.
pub(crate) struct Heard {
    pub(crate) told: Told,
    pub(crate) question: Question,
    /// What was read and what the plugin wants told.
    pub(crate) reply: Reply<Reported>,
}

/// What a plugin wants told, whichever of its functions was called.
#[derive(Clone)]
pub(crate) struct Reported(Report);

/// What a plugin decided, whichever of its functions was called.
struct Decided<'a> {
    outcome: ToldOutcome,
    want: &'a [Keyed],
    report: &'a Report,
    recheck: Option<Duration>,
}

// === impl Caller ===

impl Caller<'_> {
    /// Asks a plugin that is called around a state, or reconciles. Whatever happens is an answer.
    pub(crate) async fn ask_around(&self, ask: &Ask) -> Heard {
        let applied = ask.applied.iter().map(keyed).collect();
        match (ask.key.site.role, ask.key.is_removal) {
            (Role::Hook, _) => {
                let phase = phase_of(ask.key.moment);
                self.ask_as(ask, &OnPhase { phase, rendered: ask.rendered.clone(), applied }).await
            }
            (Role::Reconciler, false) => self.ask_as(ask, &Reconcile(applied)).await,
            (Role::Reconciler, true) => self.ask_as(ask, &Finalize(applied)).await,
        }
    }

    async fn ask_as<F>(&self, ask: &Ask, function: &F) -> Heard
    where
        F: Function,
        F::Answer: Decides,
    {
        let question = self.question_of(ask, F::EXPORT);
        let key = &ask.key;
        let text = format!(
            "{:?}|{}|{}|{}|{}",
            key.moment,
            key.is_removal,
            key.is_steady,
            key.applied,
            marks_of(&ask.rendered)
        );
        let about = About { mark: fnv1a(text.as_bytes()), elapsed_seconds: ask.elapsed_seconds };
        let config = serde_json::from_str(&key.site.config).ok();
        let named = Named { name: key.site.plugin.clone(), config };
        let Reply { answer, reads } = self.ask(&named, &question, about, function).await;
        let (told, answer) = match answer {
            Ok(answer) => {
                let decided = answer.decided();
                (self.told(&decided), Ok(Reported(decided.report.clone())))
            }
            Err(no_answer) => (self.untold(&key.site, &no_answer), Err(no_answer)),
        };
        let told = self.unless_restless(&question, told, &reads);
        Heard { told, question, reply: Reply { answer, reads } }
    }

    /// The same for all moments: what is kept at one is there at the next.
    fn question_of(&self, ask: &Ask, function: Export) -> Question {
        let Site { plugin, args, state, pool, .. } = ask.key.site.clone();
        let key = CallKey { plugin, target: self.owner.reference(), state, pool, args };
        Question { function, key }
    }

    fn told(&self, decided: &Decided<'_>) -> Told {
        Told {
            outcome: decided.outcome.clone(),
            want: Some(decided.want.iter().map(|keyed| self.wanted(keyed)).collect()),
            deeds: decided.report.actions.iter().map(deed).collect(),
            recheck: decided.recheck,
            is_absent: false,
        }
    }

    /// A plugin that gives no answer holds, keeps what it owns, and may still have something done.
    fn untold(&self, site: &Site, no_answer: &NoAnswer) -> Told {
        let is_loading = no_answer.verdict.blockers().iter().any(|blocker| blocker.reason == LOADING);
        let loaded = self.ctx.plugins.find(&site.plugin);
        let is_absent = !is_loading && loaded.is_none_or(|loaded| loaded.plugin.is_err());
        let deeds = no_answer.report.iter().flat_map(|report| &report.actions).map(deed).collect();
        let recheck = no_answer.recheck.or_else(|| is_absent.then_some(AGAIN));
        let outcome = ToldOutcome::Wait(no_answer.verdict.clone());
        Told { outcome, want: None, deeds, recheck, is_absent }
    }

    /// A plugin whose set changes again and again although nothing it is told does is not followed.
    fn unless_restless(&self, question: &Question, told: Told, reads: &Record) -> Told {
        let Some(want) = &told.want else { return told };
        let marks = want
            .iter()
            .map(|wanted| format!("{}|{}", wanted.key, pintle_plan::rendered_mark(&wanted.object)));
        let mark = fnv1a(marks.collect::<Vec<_>>().join("|").as_bytes());
        if !self.ctx.ledger.is_restless(self.key, question, (reads, mark), self.now) {
            return told;
        }
        let message = format!(
            "Plugin {} changes what it wants again and again although nothing it is told does; it is not \
             followed until it rests",
            question.key.plugin
        );
        let verdict = Verdict::transient(Blocker::new("Degraded", message).on(self.owner.reference()));
        Told { outcome: ToldOutcome::Wait(verdict), want: None, recheck: Some(AGAIN), ..told }
    }

    /// An object with the marks of its release; a part has none, since its object belongs to others.
    fn wanted(&self, keyed: &Keyed) -> Wanted {
        let is_part = keyed.ownership == Ownership::Part;
        let mut object = Object::clone(&keyed.object);
        let is_namespaced = self.ctx.is_namespaced(&object.gvk()).unwrap_or(true);
        if is_part && is_namespaced && object.namespace().is_none() {
            let namespace = self.release.namespace.as_str().into();
            object.map_mut(&["metadata"]).insert("namespace".to_owned(), namespace);
        } else if !is_part {
            let owner = self.owner.reference();
            let dress = Dress {
                release: &self.release.name,
                namespace: &self.release.namespace,
                owner: &owner,
                owner_uid: self.owner.uid().unwrap_or_default(),
                flavor: &Flavor::Watch,
                state: "",
                pool: None,
            };
            object = dress_own(&dress, object, is_namespaced);
        }
        Wanted { key: keyed.key.clone(), is_part, object }
    }
}

/// An answer from which a plan can be made.
trait Decides: Answered {
    fn decided(&self) -> Decided<'_>;
}

impl Function for OnPhase {
    const EXPORT: Export = Export::Hooks;
    type Answer = Stepped;

    fn recorded(&self) -> Option<Ask> {
        let (rendered, applied) = (self.rendered.clone(), self.applied.clone());
        Some(Ask::OnPhase { phase: self.phase, rendered, applied })
    }

    async fn call(&self, plugin: &Plugin, call: Call) -> CallResult<Stepped> {
        plugin.on_phase(call, self.phase, &self.rendered, &self.applied).await
    }
}

impl Function for Reconcile {
    const EXPORT: Export = Export::Reconciler;
    type Answer = Desired;

    fn recorded(&self) -> Option<Ask> {
        Some(Ask::Reconcile { applied: self.0.clone() })
    }

    async fn call(&self, plugin: &Plugin, call: Call) -> CallResult<Desired> {
        plugin.reconcile(call, &self.0).await
    }
}

impl Function for Finalize {
    const EXPORT: Export = Export::Reconciler;
    type Answer = Desired;

    fn recorded(&self) -> Option<Ask> {
        Some(Ask::Finalize { applied: self.0.clone() })
    }

    async fn call(&self, plugin: &Plugin, call: Call) -> CallResult<Desired> {
        plugin.finalize(call, &self.0).await
    }
}

impl Answered for Reported {
    fn report(&self) -> &Report {
        &self.0
    }
}

impl Answered for Stepped {
    fn report(&self) -> &Report {
        &self.report
    }

    fn watch(&self) -> &[Read] {
        match &self.outcome {
            HookOutcome::Hold(hold) => &hold.watch,
            HookOutcome::Go | HookOutcome::LeaveOut(_) => &[],
        }
    }

    fn recheck(&self) -> Option<Duration> {
        match &self.outcome {
            HookOutcome::Hold(hold) => hold.recheck,
            HookOutcome::Go | HookOutcome::LeaveOut(_) => None,
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(self.outcome, HookOutcome::Hold(_))
    }
}

impl Decides for Stepped {
    fn decided(&self) -> Decided<'_> {
        let outcome = match &self.outcome {
            HookOutcome::Go => ToldOutcome::Go,
            HookOutcome::LeaveOut(why) => ToldOutcome::LeaveOut(why.clone()),
            HookOutcome::Hold(hold) => ToldOutcome::Wait(Verdict::Pending(hold.blockers.clone())),
        };
        Decided { outcome, want: &self.want, report: &self.report, recheck: self.recheck() }
    }
}

impl Answered for Desired {
    fn report(&self) -> &Report {
        &self.report
    }

    fn watch(&self) -> &[Read] {
        &self.watch
    }

    fn recheck(&self) -> Option<Duration> {
        self.recheck
    }

    fn is_settled(&self) -> bool {
        self.verdict.is_ready()
    }
}

impl Decides for Desired {
    fn decided(&self) -> Decided<'_> {
        let outcome = match &self.verdict {
            Verdict::Ready => ToldOutcome::Go,
            other => ToldOutcome::Wait(other.clone()),
        };
        Decided { outcome, want: &self.objects, report: &self.report, recheck: self.recheck }
    }
}

fn deed(action: &pintle_plugin::Action) -> Deed {
    let pintle_plugin::Action { key, verb, target, arguments, identity: _ } = action.clone();
    Deed { key, verb, target, arguments }
}

fn keyed(held: &Held) -> Keyed {
    Keyed {
        key: held.key.clone(),
        ownership: if held.is_part { Ownership::Part } else { Ownership::Whole },
        object: Arc::clone(&held.object),
        identity: pintle_api::plugin::Identity::default(),
    }
}

fn phase_of(moment: Moment) -> Phase {
    match moment {
        Moment::Pre => Phase::Pre,
        Moment::Waiting => Phase::Waiting,
        Moment::Post => Phase::Post,
    }
}

/// Mark of what was rendered, or of live objects without what changes with each write.
fn marks_of(objects: &[Arc<Object>]) -> u64 {
    let marks = objects.iter().map(|object| match object.resource_version() {
        Some(_) => pintle_cluster::object_fingerprint(object).to_string(),
        None => pintle_plan::rendered_mark(object),
    });
    fnv1a(marks.collect::<Vec<_>>().join("|").as_bytes())
}

/// The config that a Watch gives, as a site holds it.
pub(crate) fn config_text(config: &serde_json::Map<String, Value>) -> String {
    if config.is_empty() { String::new() } else { Value::Object(config.clone()).to_string() }
}

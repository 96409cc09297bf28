//! One site at one moment: asked, its answer written down, and what was written down carried out.

use std::{sync::Arc, time::Duration};

use pintle_api::{Object, Verdict};

use super::{
    Around, Ask, AskKey, Done, Moment, Role, Site, SiteMemory, Tell, Told, ToldOutcome, Wanted,
    carry::Carried,
    objects::{is_kept, mark_of},
};
use crate::{Input, Step};

/// What came of a site at a moment.
#[derive(Debug, PartialEq)]
pub(crate) enum Course {
    /// It goes on.
    Go,
    /// The state is left out, for this reason.
    LeftOut,
    /// It waits; without a blocker while steps are taken.
    Wait(Verdict),
}

/// Goes through the sites of a release.
pub(crate) struct Visitor<'a, 'm> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) around: &'m mut Around,
    pub(crate) steps: &'m mut Vec<Step>,
    pub(crate) recheck: &'m mut Option<Duration>,
    /// The revision that was asked for.
    pub(crate) revision: u32,
    pub(crate) is_removal: bool,
    /// Nothing new was asked of a reconciler.
    pub(crate) is_steady: bool,
}

impl Visitor<'_, '_> {
    /// Brings a site as far as it goes at this moment. `rendered` is looked at only when it must be asked.
    pub(crate) fn visit(
        &mut self,
        site: &Site,
        moment: Moment,
        rendered: impl FnOnce() -> Vec<Arc<Object>>,
    ) -> Course {
        let carried = self.carry_out(site);
        if carried.is_busy {
            return Course::Wait(carried.into_verdict());
        }
        if let Some(done) = self.around.done(self.revision, self.is_removal, site, moment)
            && site.role == Role::Hook
        {
            return match (carried.is_done(), &done.left_out) {
                (true, None) => Course::Go,
                (true, Some(_)) => Course::LeftOut,
                (false, _) => Course::Wait(carried.into_verdict()),
            };
        }
        match self.told(site, moment, rendered) {
            Some(told) => self.adopt(site, moment, &told),
            None => Course::Wait(carried.into_verdict().and(Verdict::Pending(Vec::new()))),
        }
    }

    /// The answer of this pass; without one the question is the next step.
    fn told(
        &mut self,
        site: &Site,
        moment: Moment,
        rendered: impl FnOnce() -> Vec<Arc<Object>>,
    ) -> Option<Told> {
        let memory = self.around.site(site);
        let applied = self.held(memory)?;
        let key = AskKey {
            site: site.clone(),
            moment,
            is_removal: self.is_removal,
            is_steady: self.is_steady,
            applied: mark_of(&applied),
        };
        let known = self.input.answers.told.get(&key).or_else(|| self.gone_on(&key));
        if let Some(told) = known {
            return Some(told.clone());
        }
        let before = self.input.before.iter().find(|before| before.name == site.state);
        let since = before.and_then(|before| before.since);
        let elapsed_seconds = since.map_or(0, |since| self.input.now.duration_since(since).as_secs());
        self.steps.push(Step::Ask(Box::new(Ask { key, rendered: rendered(), applied, elapsed_seconds })));
        None
    }

    /// Whoever let go of what is waited for is asked again with the next event, and not since its own objects
    /// went with its answer.
    fn gone_on(&self, key: &AskKey) -> Option<&Told> {
        if key.site.role != Role::Hook || key.moment != Moment::Waiting {
            return None;
        }
        let same = self.input.answers.told.iter().filter(|(other, _)| {
            (&other.site, other.moment, other.is_removal) == (&key.site, key.moment, key.is_removal)
        });
        same.map(|(_, told)| told).find(|told| told.outcome == ToldOutcome::Go)
    }

    /// Writes an answer down, then carries out what follows from it. What is known already changes nothing,
    /// so the same answer may be adopted again.
    fn adopt(&mut self, site: &Site, moment: Moment, told: &Told) -> Course {
        if let Some(time) = told.recheck {
            self.wake_within(time);
        }
        let mut memory = self.around.take(site);
        let hindrance = self.note(&mut memory, told);
        let given_up = self.is_given_up(&mut memory, told);
        if given_up {
            memory.owned.iter_mut().for_each(super::Owned::leave);
        }
        self.around.put(memory);
        let is_over = hindrance.is_none() && self.conclude(site, moment, told, given_up);
        let mut carried = self.carry_out(site);
        if let Some(hindrance) = hindrance {
            carried.is_busy |= hindrance.is_busy;
            carried.add(hindrance.verdict);
        }
        match &told.outcome {
            ToldOutcome::LeaveOut(_) if is_over && carried.is_done() => Course::LeftOut,
            ToldOutcome::Go if carried.is_done() => Course::Go,
            ToldOutcome::Wait(_) if is_over && carried.is_done() => Course::Go,
            ToldOutcome::Wait(verdict) => Course::Wait(verdict.clone().and(carried.into_verdict())),
            ToldOutcome::Go | ToldOutcome::LeaveOut(_) => Course::Wait(carried.into_verdict()),
        }
    }

    /// Notes what the plugin wants and wants done; gives what kept a deed from being noted.
    fn note(&self, memory: &mut SiteMemory, told: &Told) -> Option<Carried> {
        if let Some(want) = &told.want {
            let lasts = |wanted: &&Wanted| {
                memory.site.role == Role::Reconciler
                    || matches!(told.outcome, ToldOutcome::Wait(_))
                    || (is_kept(&wanted.object) && !wanted.is_part)
            };
            let want: Vec<&Wanted> = want.iter().filter(lasts).collect();
            self.write_down(memory, &want);
        }
        let mut hindrance = None;
        for deed in &told.deeds {
            if let Some(carried) = self.begin_deed(memory, deed) {
                hindrance = Some(carried);
            }
        }
        hindrance
    }

    /// Records that the moment is over. What is waited for is called again at each event, and so never over.
    fn conclude(&mut self, site: &Site, moment: Moment, told: &Told, given_up: bool) -> bool {
        let left_out = match &told.outcome {
            ToldOutcome::Go => None,
            ToldOutcome::LeaveOut(why) => Some(why.clone()),
            ToldOutcome::Wait(_) if given_up => None,
            ToldOutcome::Wait(_) => return false,
        };
        let (revision, is_removal) = (self.revision, self.is_removal);
        if moment == Moment::Waiting || self.around.done(revision, is_removal, site, moment).is_some() {
            return true;
        }
        if let Some(why) = &left_out {
            let message = format!("{}: Plugin {} leaves it out: {why}", site.state, site.plugin);
            self.tell("StateLeftOut", message, false);
        }
        if given_up {
            let message = format!(
                "Plugin {} is not there, so what it does {} the deletion is left out",
                site.plugin,
                moment.word()
            );
            self.tell("PluginSkipped", message, true);
        }
        self.around.done.push(Done { revision, is_removal, site: site.clone(), moment, left_out });
        true
    }

    fn tell(&mut self, reason: &'static str, message: String, is_warning: bool) {
        self.steps.push(Step::Tell(Tell { reason, message, is_warning }));
    }

    /// On the way out a plugin that is not there is waited for only as long as its policy says.
    fn is_given_up(&self, memory: &mut SiteMemory, told: &Told) -> bool {
        if !self.is_removal || !told.is_absent {
            memory.absent_since = None;
            return false;
        }
        let since = *memory.absent_since.get_or_insert(self.input.now);
        let declared = self.around.declared.iter().find(|declared| declared.site == memory.site);
        let waited = self.input.now.duration_since(since);
        match declared.and_then(|declared| declared.missing) {
            Some(super::MissingPolicy::Orphan) => true,
            Some(super::MissingPolicy::Block) => false,
            None => Duration::try_from(waited).is_ok_and(|waited| waited >= super::PATIENCE),
        }
    }

    pub(super) fn wake_within(&mut self, time: Duration) {
        *self.recheck = Some(self.recheck.map_or(time, |earlier| earlier.min(time)));
    }

    /// Lets go of everything a site owns, whatever its plugin says.
    pub(crate) fn dissolve(&mut self, site: &Site) -> Carried {
        let mut memory = self.around.take(site);
        memory.owned.iter_mut().for_each(super::Owned::leave);
        memory.deeds.retain(|deed| deed.is_done);
        self.around.put(memory);
        self.carry_out(site)
    }

    /// Sites that the release names no more: what they own goes, then they are forgotten.
    pub(crate) fn dissolve_all_but(&mut self, is_named: impl Fn(&Site) -> bool) -> Verdict {
        let sites: Vec<Site> = self.around.sites.iter().map(|memory| memory.site.clone()).collect();
        let mut verdict = Verdict::Ready;
        for site in sites.iter().filter(|site| !is_named(site)) {
            let carried = self.dissolve(site);
            if carried.is_done() {
                drop(self.around.take(site));
            }
            verdict = verdict.and(carried.into_verdict());
        }
        verdict
    }
}

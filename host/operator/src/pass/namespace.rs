//! The namespace that was made for a release, when the release is gone.

use std::{sync::Arc, time::Duration};

use pintle_api::{Facts, Object, ObjectRef, status::Phase};
use pintle_cluster::{Cause, Delete, NoteKind};
use pintle_plan::{Fate, Plan, StateView, counts_in_namespace, fate_of_namespace, is_made_for};

use super::pause;
use crate::{
    context::{Context, Key},
    front::Front,
    plugins::said::Said,
    report::{self, Outcome},
};

/// Foreign objects whose end wakes the owner.
const WATCHED: usize = 10;

/// What to do with the namespace before the owner may go.
pub(super) enum End {
    /// Nothing: it is not the release's.
    None,
    /// It goes.
    Delete(Arc<Object>),
    /// It stays, and why.
    Stay(String),
    /// The owner waits, for so long or for an event.
    Later(Option<Duration>),
}

/// Looks into the namespace of a release that is gone, where it was made for the release.
pub(super) async fn look(ctx: &Context, key: &Key, front: &Front, plan: &Plan) -> End {
    let release = &front.release;
    let target = ObjectRef::new("v1", "Namespace", &release.namespace);
    let (live, _) = ctx.know(key, |facts| facts.get(&target)).await;
    let Some(live) = live.found().filter(|live| is_made_for(live, release)) else { return End::None };
    let survey = ctx.cluster.survey(&release.namespace, counts_in_namespace).await;
    match fate_of_namespace(release, &survey.objects, survey.unread.as_deref()) {
        Fate::Delete => End::Delete(live),
        Fate::Stay(why) => End::Stay(why),
        Fate::Wait(blocker, foreign) => {
            watch(ctx, key, front, &foreign).await;
            let mut view = StateView::new("namespace", Phase::Pending);
            view.blockers.push(*blocker);
            let verdict = pintle_api::Verdict::Pending(view.blockers.clone());
            let plan = Plan { states: vec![view], verdict, is_gone: false, ..plan.clone() };
            let tries = ctx.ledger.count_try(key, true);
            let said = &Said::default();
            let outcome = Outcome { plan: &plan, chart: None, revision: 0, tries: 0, is_removal: true, said };
            let told = report::run(ctx, key, front, &outcome).await;
            End::Later(told.into_iter().chain([pause(tries)]).min())
        }
    }
}

/// Wakes the owner when one of these goes; where that cannot be seen, it is asked again.
async fn watch(ctx: &Context, key: &Key, front: &Front, foreign: &[ObjectRef]) {
    let look = |facts: &dyn Facts| {
        drop(facts.get(&front.release.owner));
        foreign.iter().take(WATCHED).for_each(|object| drop(facts.get(object)));
    };
    let ((), reads) = ctx.know(key, look).await;
    ctx.watches.register(&key.holder(), &reads);
}

/// Deletes the namespace, or says why it stays; false when that is to be tried again.
pub(super) async fn end(ctx: &Context, front: &Front, end: End) -> bool {
    let why = match end {
        End::None | End::Later(_) => return true,
        End::Stay(why) => why,
        End::Delete(namespace) => {
            let how = Delete { uid: namespace.uid().map(str::to_owned), ..Delete::default() };
            match ctx.writer.delete(&namespace.reference(), &how).await {
                Ok(_) => {
                    tracing::info!(owner = %front.release.owner, namespace = namespace.name(), "the namespace goes");
                    return true;
                }
                Err(err) if matches!(err.cause(), Cause::Stale(_)) => return true,
                Err(err) if matches!(err.cause(), Cause::Forbidden { .. }) => format!(
                    "namespace {} was made for this release and stays: {}",
                    namespace.name(),
                    crate::error_text::one_line(err.cause())
                ),
                Err(err) => {
                    tracing::warn!(owner = %front.release.owner, label = err.label(), "could not delete the namespace");
                    return false;
                }
            }
        }
    };
    report::note(ctx, &front.owner, NoteKind::Normal, "NamespaceLeft", &why).await;
    true
}

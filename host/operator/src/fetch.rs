//! Fetch: the chart an owner names, compiled.

use std::sync::Arc;

use pintle_api::{Record, Recorder};
use pintle_source::{Outcome, Request};

use crate::{
    charts::Loaded,
    context::{Context, Key},
    error_text::one_line,
    front::Front,
};

/// Rounds in which a source may find reads nobody had looked up.
const ROUNDS: usize = 16;

/// Why there is no chart.
pub(crate) struct Problem {
    /// CamelCase word of SRO's contract.
    pub(crate) reason: &'static str,
    /// The sentence with place and fix.
    pub(crate) message: String,
    /// Time alone may mend it.
    pub(crate) may_pass: bool,
    /// What was read: a change of it may mend it.
    pub(crate) reads: Record,
}

/// The chart, and what was read for it.
pub(crate) async fn run(ctx: &Context, key: &Key, front: &Front) -> Result<(Arc<Loaded>, Record), Problem> {
    let request = Request {
        name: front.chart.name.clone(),
        version: front.chart.version.clone(),
        url: front.chart.repository.url.clone(),
        digest: front.chart.digest.clone(),
    };
    let mut rounds = 0;
    loop {
        let recorder = Recorder::new(&*ctx.caches);
        let _ = pintle_api::Facts::get(&recorder, &front.release.owner);
        let fetched = ctx.sources.fetch(&request, &recorder).await;
        let reads = recorder.into_record();
        let needs = reads.needs();
        rounds += 1;
        if !needs.is_empty() && rounds <= ROUNDS {
            ctx.caches.fetch(&needs, &key.holder()).await;
            continue;
        }
        return match fetched {
            Ok(Outcome::Found(found)) => Ok((ctx.charts.load(&found.chart), reads)),
            Ok(Outcome::NotYet) => {
                Err(problem("the chart's repository cannot be read yet".to_owned(), true, reads))
            }
            Err(err) => Err(problem(one_line(&err), err.is_transient(), reads)),
        };
    }
}

fn problem(message: String, may_pass: bool, reads: Record) -> Problem {
    Problem { reason: "ChartFailure", message, may_pass, reads }
}

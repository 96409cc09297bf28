//! Charts that were fetched, compiled once by digest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_chart::{
    Chart, Compiled,
    state::{StateFile, states},
};
use pintle_plan::RuntimeFacts;

/// Charts kept at most; the one least recently asked for goes first.
const KEPT: usize = 64;

/// A chart that is ready to be rendered.
pub(crate) struct Loaded {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) chart: Arc<Chart>,
    /// Its states in order.
    pub(crate) states: Vec<StateFile>,
    /// Facts of the cluster that its templates mention.
    pub(crate) wanted: RuntimeFacts,
}

/// Charts by digest.
#[derive(Default)]
pub(crate) struct Charts {
    kept: Mutex<HashMap<String, (u64, Arc<Loaded>)>>,
}

// === impl Charts ===

impl Charts {
    /// What is known of a chart before it is rendered; from the cache when its digest was seen before.
    pub(crate) fn load(&self, compiled: &Arc<Compiled>) -> Arc<Loaded> {
        let chart = compiled.chart();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = kept.values().map(|(turn, _)| *turn).max().unwrap_or_default() + 1;
        if let Some((last, loaded)) = kept.get_mut(&chart.digest) {
            *last = turn;
            return Arc::clone(loaded);
        }
        let texts: Vec<_> = chart.templates.iter().map(|file| file.text().into_owned()).collect();
        let loaded = Arc::new(Loaded {
            compiled: Arc::clone(compiled),
            states: states(chart),
            wanted: RuntimeFacts::mentioned_in(texts.iter().map(String::as_str)),
            chart: Arc::clone(chart),
        });
        kept.insert(chart.digest.clone(), (turn, Arc::clone(&loaded)));
        if kept.len() > KEPT
            && let Some(oldest) =
                kept.iter().min_by_key(|(_, (turn, _))| *turn).map(|(digest, _)| digest.clone())
        {
            kept.remove(&oldest);
        }
        loaded
    }
}

//! Charts that were fetched, compiled once by digest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_chart::{
    Chart, Compiled, RenderError,
    state::{StateFile, states},
};
use pintle_plan::RuntimeFacts;

/// Charts kept at most; the one least recently asked for goes first.
const KEPT: usize = 64;

/// A chart that is ready to be rendered.
pub(crate) struct Loaded {
    pub(crate) compiled: Compiled,
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
    /// The chart, compiled; from the cache when its digest was seen before.
    ///
    /// # Errors
    /// When it cannot be installed at all: a library, missing dependencies, unknown annotations.
    pub(crate) fn load(&self, chart: &Arc<Chart>) -> Result<Arc<Loaded>, RenderError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = kept.values().map(|(turn, _)| *turn).max().unwrap_or_default() + 1;
        if let Some((last, loaded)) = kept.get_mut(&chart.digest) {
            *last = turn;
            return Ok(Arc::clone(loaded));
        }
        let texts: Vec<_> = chart.templates.iter().map(|file| file.text().into_owned()).collect();
        let loaded = Arc::new(Loaded {
            compiled: Compiled::new(Arc::clone(chart))?,
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
        Ok(loaded)
    }
}

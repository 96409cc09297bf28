//! The last calls of each plugin, kept for whoever wants to look at one or make it again elsewhere.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use pintle_plugin::transcript::{Kept, Transcript};

/// Calls that are kept of one plugin, each for another question. What they hold is shared with the caches
/// until an object there changes, so that many kept calls would keep many old objects.
const MOST: usize = 16;

/// The last calls, by the names of the plugins.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<String, VecDeque<(String, Kept)>>>);

impl Calls {
    /// Keeps a call in place of an earlier one that asked the same.
    pub(crate) fn keep(&self, kept: Kept) {
        let (name, key) = (kept.plugin().name().to_owned(), kept.key());
        let mut all = self.lock();
        let calls = all.entry(name).or_default();
        calls.retain(|(known, _)| *known != key);
        if calls.len() >= MOST {
            calls.pop_front();
        }
        calls.push_back((key, kept));
    }

    /// The calls of a plugin without values of Secrets, the last one last.
    pub(crate) fn of(&self, plugin: &str) -> Vec<Transcript> {
        let kept: Vec<Kept> =
            self.lock().get(plugin).into_iter().flatten().map(|(_, kept)| kept.clone()).collect();
        kept.iter().map(Kept::transcript).collect()
    }

    /// Forgets the calls of a plugin that is gone.
    pub(super) fn forget(&self, plugin: &str) {
        self.lock().remove(plugin);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, VecDeque<(String, Kept)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

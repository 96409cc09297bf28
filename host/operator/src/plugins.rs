//! Plugins: pulled, loaded, told how they are, and called.

mod call;
mod controller;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pintle_plugin::{Breakers, Engine, Plugin};
use pintle_source::artifact::Registries;

pub(crate) use call::{Caller, LOADING};
pub(crate) use controller::{Shelf, reconcile};

/// The plugins of this process.
pub(crate) struct Plugins {
    pub(crate) engine: Engine,
    pub(crate) registries: Registries,
    loaded: Mutex<HashMap<String, Loaded>>,
    pub(crate) breakers: Mutex<Breakers>,
}

/// What became of a Plugin object.
#[derive(Clone)]
pub(crate) struct Loaded {
    /// Generation of the object it was made from.
    pub(crate) generation: i64,
    /// The plugin, or why it is not there.
    pub(crate) plugin: Result<Plugin, Unready>,
}

/// Why a plugin cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unready {
    /// CamelCase word.
    pub(crate) reason: String,
    /// A sentence with the fix.
    pub(crate) message: String,
    /// Time alone may mend it.
    pub(crate) may_pass: bool,
}

// === impl Plugins ===

impl Plugins {
    pub(crate) fn new(engine: Engine, registries: Registries) -> Self {
        let (loaded, breakers) = (Mutex::new(HashMap::new()), Mutex::new(Breakers::default()));
        Self { engine, registries, loaded, breakers }
    }

    /// What became of a Plugin; nothing while no object of that name was seen.
    pub(crate) fn find(&self, name: &str) -> Option<Loaded> {
        self.lock().get(name).cloned()
    }

    fn keep(&self, name: &str, loaded: Loaded) {
        self.lock().insert(name.to_owned(), loaded);
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner).forget_plugin(name);
    }

    fn forget(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

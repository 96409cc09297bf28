//! Which functions a component has, found once before any of its code runs.

use wasmtime::{
    Store,
    component::{Component, Instance, InstancePre},
};

use super::{LoadError, PACKAGE};
use crate::{
    Engine,
    bindings::exports::pintle::plugin::{
        hooks, plugin_info, post_renderer, readiness, reconciler, value_mapper,
    },
    limits,
    state::State,
    text::clean,
};

/// A function that a plugin may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Export {
    /// Custom resource and facts to chart values.
    ValueMapper,
    /// Changes what was rendered.
    PostRenderer,
    /// Custom readiness.
    Readiness,
    /// Around a state or the release.
    Hooks,
    /// A whole reconciler.
    Reconciler,
}

/// Where the functions of a component are.
#[derive(Clone)]
pub(crate) struct Exports {
    plugin_info: plugin_info::GuestIndices,
    value_mapper: Option<value_mapper::GuestIndices>,
    post_renderer: Option<post_renderer::GuestIndices>,
    readiness: Option<readiness::GuestIndices>,
    hooks: Option<hooks::GuestIndices>,
    reconciler: Option<reconciler::GuestIndices>,
}

// === impl Export ===

impl Export {
    /// Its name in the interface and in the status of a Plugin.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ValueMapper => "value-mapper",
            Self::PostRenderer => "post-renderer",
            Self::Readiness => "readiness",
            Self::Hooks => "hooks",
            Self::Reconciler => "reconciler",
        }
    }
}

// === impl Exports ===

impl Exports {
    /// Looks each interface up by name and version.
    pub(super) fn find(
        engine: &Engine,
        component: &Component,
        guest: &InstancePre<State>,
    ) -> Result<Self, LoadError> {
        let found = names(component.component_type().exports(engine.wasm()));
        let look = Look { component, guest };
        let plugin_info = look.up("plugin-info", plugin_info::GuestIndices::new)?;
        let exports = Self {
            value_mapper: look.up("value-mapper", value_mapper::GuestIndices::new)?,
            post_renderer: look.up("post-renderer", post_renderer::GuestIndices::new)?,
            readiness: look.up("readiness", readiness::GuestIndices::new)?,
            hooks: look.up("hooks", hooks::GuestIndices::new)?,
            reconciler: look.up("reconciler", reconciler::GuestIndices::new)?,
            plugin_info: match plugin_info {
                Some(plugin_info) => plugin_info,
                None if found.iter().any(|name| name.starts_with(PACKAGE)) => {
                    return Err(LoadError::NoPluginInfo);
                }
                None => return Err(LoadError::NoExports { found }),
            },
        };
        if exports.offered().is_empty() {
            return Err(LoadError::NoExports { found });
        }
        Ok(exports)
    }

    /// Functions that are there.
    pub(crate) fn offered(&self) -> Vec<Export> {
        let all = [
            (Export::ValueMapper, self.value_mapper.is_some()),
            (Export::PostRenderer, self.post_renderer.is_some()),
            (Export::Readiness, self.readiness.is_some()),
            (Export::Hooks, self.hooks.is_some()),
            (Export::Reconciler, self.reconciler.is_some()),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(export, _)| export).collect()
    }

    pub(crate) fn value_mapper(&self) -> Option<&value_mapper::GuestIndices> {
        self.value_mapper.as_ref()
    }

    pub(crate) fn post_renderer(&self) -> Option<&post_renderer::GuestIndices> {
        self.post_renderer.as_ref()
    }

    pub(crate) fn hooks(&self) -> Option<&hooks::GuestIndices> {
        self.hooks.as_ref()
    }

    pub(crate) fn reconciler(&self) -> Option<&reconciler::GuestIndices> {
        self.reconciler.as_ref()
    }

    pub(crate) fn readiness(&self) -> Option<&readiness::GuestIndices> {
        self.readiness.as_ref()
    }

    pub(crate) fn plugin_info(&self) -> &plugin_info::GuestIndices {
        &self.plugin_info
    }

    /// Compares the types of every function with ours, which needs an instance.
    pub(super) fn try_all(&self, store: &mut Store<State>, instance: &Instance) -> Result<(), LoadError> {
        macro_rules! try_each {
            ($($field:ident: $name:literal),*) => {$(
                if let Some(indices) = &self.$field {
                    let tried = indices.load(&mut *store, instance);
                    tried.map_err(|source| LoadError::InterfaceMismatch { interface: $name, source })?;
                }
            )*};
        }
        try_each!(
            value_mapper: "value-mapper",
            post_renderer: "post-renderer",
            readiness: "readiness",
            hooks: "hooks",
            reconciler: "reconciler"
        );
        Ok(())
    }
}

struct Look<'a> {
    component: &'a Component,
    guest: &'a InstancePre<State>,
}

impl Look<'_> {
    /// The interface if the component exports it; an error when it does, with other functions.
    fn up<T>(
        &self,
        interface: &'static str,
        find: impl Fn(&InstancePre<State>) -> wasmtime::Result<T>,
    ) -> Result<Option<T>, LoadError> {
        let name = format!("{PACKAGE}{interface}@{}", super::VERSION);
        if self.component.get_export_index(None, name.as_str()).is_none() {
            return Ok(None);
        }
        find(self.guest).map(Some).map_err(|source| LoadError::InterfaceMismatch { interface, source })
    }
}

/// Names of imports or exports, cleaned for messages.
pub(super) fn names<'a, T>(items: impl Iterator<Item = (&'a str, T)>) -> Vec<String> {
    items.map(|(name, _)| clean(name, limits::NAME)).collect()
}

/// `kube-read` of `pintle:plugin/kube-read@0.1.0`; a name of another package is not shortened.
pub(super) fn short(name: &str) -> &str {
    match name.strip_prefix(PACKAGE) {
        Some(rest) => rest.split_once('@').map_or(rest, |(interface, _)| interface),
        None => name,
    }
}

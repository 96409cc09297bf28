//! What all plugins share: who they are, their config, and how a type becomes a component.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::{
    Context, Failure, Manifest,
    bindings::{exports::pintle::plugin::plugin_info, pintle::plugin::types},
    host,
};

/// Who a plugin is. What it does is in the traits beside: [`Readiness`](crate::Readiness),
/// [`ValueMapper`](crate::ValueMapper), [`PostRenderer`](crate::PostRenderer),
/// [`Hooks`](crate::Hooks), [`Reconciler`](crate::Reconciler). One type may have several.
pub trait Plugin {
    /// `spec.config` of the Plugin object; [`config!`](crate::config!) makes one with its schema,
    /// [`NoConfig`](crate::config::NoConfig) is none.
    type Config: DeserializeOwned;

    /// Who it is, and what it must be granted.
    fn describe() -> Manifest;

    /// What a type cannot say about a config. It is asked when the Plugin is installed.
    ///
    /// # Errors
    /// When the config cannot be used.
    fn validate(_config: &Self::Config) -> Result<(), Failure> {
        Ok(())
    }
}

/// What every call is told.
#[derive(Clone, Debug)]
pub struct Call<C> {
    /// Release, state and pool it is for.
    pub context: Context,
    /// The config, parsed.
    pub config: C,
}

/// JSON from the host, read into a type of the plugin's own: only the fields that the type has are
/// looked at. Types of `k8s-openapi` fit too, and cost some hundred KB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json {
    what: &'static str,
    text: String,
}

// === impl Call ===

impl<C: DeserializeOwned> Call<C> {
    /// With the config that the host has for this plugin.
    pub(crate) fn begin(context: Context) -> Result<Self, Failure> {
        Ok(Self { context, config: parse_config(&host::config())? })
    }
}

impl<C> Call<C> {
    /// Arguments of the annotation.
    ///
    /// # Errors
    /// When they do not have the shape of `T`.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        parse("the arguments in the annotation", &self.context.args)
    }
}

// === impl Json ===

impl Json {
    /// The text of something, and what it is called in a message about its shape.
    pub(crate) fn new(what: &'static str, text: String) -> Self {
        Self { what, text }
    }

    /// The fields of `T`.
    ///
    /// # Errors
    /// When it does not have the shape of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        parse(self.what, &self.text)
    }

    /// As the host has written it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Parses JSON, and says in whose words it is wrong.
pub(crate) fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Failure> {
    serde_json::from_str(json)
        .map_err(|error| Failure::until_changed(format!("{what} is not as expected: {error}")))
}

/// Parses a config; its code stands in a component once, for `validate-config` and all calls.
#[inline(never)]
fn parse_config<C: DeserializeOwned>(json: &str) -> Result<C, Failure> {
    parse("spec.config", json)
}

/// Makes the exports of a component out of a plugin.
pub struct Adapter<P>(PhantomData<P>);

impl<P: Plugin> plugin_info::Guest for Adapter<P> {
    fn describe() -> String {
        begin();
        P::describe().to_json()
    }

    fn validate_config(config: String, _args: String) -> Result<(), types::Failure> {
        begin();
        Ok(validate::<P>(&config)?)
    }
}

/// Accepts a config, natively as inside a component.
pub(crate) fn validate<P: Plugin>(config: &str) -> Result<(), Failure> {
    P::validate(&parse_config(config)?)
}

/// The first thing of every export: from here on a panic has a voice.
pub(crate) fn begin() {
    #[cfg(target_arch = "wasm32")]
    crate::log::on_panic();
}

/// Makes a component's exports out of a type that is a [`Plugin`], and names what it offers. Write it
/// once, beside the type:
///
/// ```text
/// export_plugin!(HasKeys: Readiness);
/// export_plugin!(Driver: ValueMapper, Readiness, Hooks);
/// ```
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty: $($interface:ident),+ $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Guest = $crate::Adapter<$plugin>;
            $crate::bindings::export_plugin_info!(Guest with_types_in $crate::bindings);
            $($crate::export_interface!($interface Guest);)+
        };
        // Natively there is nothing to export, only to check that there could be.
        #[cfg(not(target_arch = "wasm32"))]
        $(const _: () = {
            const fn offers<P: $crate::$interface>() {}
            offers::<$plugin>()
        };)+
    };
}

/// The exports of one interface; a part of [`export_plugin!`](crate::export_plugin).
#[doc(hidden)]
#[macro_export]
macro_rules! export_interface {
    (ValueMapper $guest:ident) => {
        $crate::bindings::mapper::export_value_mapper!($guest with_types_in $crate::bindings::mapper);
    };
    (PostRenderer $guest:ident) => {
        $crate::bindings::renderer::export_post_renderer!($guest with_types_in $crate::bindings::renderer);
    };
    (Readiness $guest:ident) => {
        $crate::bindings::readiness::export_readiness!($guest with_types_in $crate::bindings::readiness);
    };
    (Hooks $guest:ident) => {
        $crate::bindings::hooks::export_hooks!($guest with_types_in $crate::bindings::hooks);
    };
    (Reconciler $guest:ident) => {
        $crate::bindings::reconciler::export_reconciler!($guest with_types_in $crate::bindings::reconciler);
    };
}

//! Plugins that say whether an object is ready.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::{
    Answer, Context, Failure, Manifest,
    bindings::{
        exports::pintle::plugin::{plugin_info, readiness},
        pintle::plugin::types,
    },
    host,
};

/// A plugin that says whether the object with the annotation is ready.
pub trait Readiness {
    /// `spec.config` of the Plugin object. Derive `Default` and write `#[serde(default,
    /// deny_unknown_fields)]`, so that an empty config works and a typing error is found.
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

    /// Is the target ready? The same inputs and reads must have the same answer.
    ///
    /// # Errors
    /// When it cannot say; the failure says when to ask again.
    fn check(check: &Check<Self::Config>) -> Result<Answer, Failure>;
}

/// One question.
#[derive(Clone, Debug)]
pub struct Check<C> {
    /// Release, state and pool it is for.
    pub context: Context,
    /// The config, parsed.
    pub config: C,
    target: String,
}

impl<C> Check<C> {
    /// The live object that carries the annotation, as the fields of `T`.
    ///
    /// # Errors
    /// When it does not have the shape of `T`.
    pub fn target<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        parse("the target", &self.target)
    }

    /// Arguments of the annotation.
    ///
    /// # Errors
    /// When they do not have the shape of `T`.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        parse("the arguments in the annotation", &self.context.args)
    }
}

/// Answers one question, natively as inside a component.
pub(crate) fn answer<P: Readiness>(context: Context, target: String) -> Result<Answer, Failure> {
    let config = parse("spec.config", &host::config())?;
    P::check(&Check { context, config, target })
}

/// Parses JSON, and says in whose words it is wrong.
pub(crate) fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Failure> {
    serde_json::from_str(json)
        .map_err(|error| Failure::until_changed(format!("{what} is not as expected: {error}")))
}

/// Makes the exports of a component out of a plugin.
pub struct Adapter<P>(PhantomData<P>);

impl<P: Readiness> plugin_info::Guest for Adapter<P> {
    fn describe() -> String {
        begin();
        P::describe().to_json()
    }

    fn validate_config(config: String, _args: String) -> Result<(), types::Failure> {
        begin();
        let config = parse("spec.config", &config)?;
        Ok(P::validate(&config)?)
    }
}

impl<P: Readiness> readiness::Guest for Adapter<P> {
    fn check(context: Context, target: String) -> Result<readiness::Answer, types::Failure> {
        begin();
        Ok(answer::<P>(context, target)?.into())
    }
}

/// Compiles for plugins alone; see [`export_readiness!`](crate::export_readiness).
pub fn is_readiness<P: Readiness>() {}

fn begin() {
    #[cfg(target_arch = "wasm32")]
    crate::log::on_panic();
}

/// Makes a component's exports out of a type that is [`Readiness`]. Write it once, beside the type.
#[macro_export]
macro_rules! export_readiness {
    ($plugin:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Guest = $crate::Adapter<$plugin>;
    $crate::bindings::export_readiness_world!(Guest with_types_in $crate::bindings);
        };
        // Natively there is nothing to export, only to check that there could be.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = $crate::is_readiness::<$plugin>;
    };
}

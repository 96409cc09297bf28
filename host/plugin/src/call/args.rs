//! Arguments in annotations: checked before the first call that carries them.

use serde_json::{Map, Value};
use wasmtime::{Store, component::Instance};

use super::{failure::CallFailure, run::Function};
use crate::{
    Plugin,
    bindings::{exports::pintle::plugin::plugin_info::GuestIndices, pintle::plugin::types::Failure},
    grants::Scope,
    input, limits,
    memo::hash_text,
    state::State,
    text,
};

/// One call of `validate-config` with arguments.
struct Validate {
    indices: GuestIndices,
    config: String,
    args: String,
}

impl Plugin {
    /// Checks arguments against the manifest's `argsSchema`, then asks the plugin. Calls do so
    /// themselves; `pintle lint` may ask before there is one. What was accepted once is not asked again.
    ///
    /// # Errors
    /// When the arguments are refused; they or the plugin must change.
    pub async fn check_args(&self, args: &Map<String, Value>) -> Result<(), CallFailure> {
        if args.is_empty() && self.manifest().args_schema.is_none() {
            return Ok(());
        }
        let json = input::canonical(&Value::Object(args.clone()));
        let hash = hash_text(&json);
        if self.accepted_args().has(&hash) {
            return Ok(());
        }
        if let Some(schema) = &self.manifest().args_schema {
            let found = self.engine().violations(schema, &Value::Object(args.clone()));
            if let Some(first) = found.first() {
                return Err(refused(first));
            }
        }
        if !args.is_empty() {
            let indices = self.exports().plugin_info().clone();
            self.run_bare(Validate { indices, config: self.config().to_owned(), args: json }).await?;
        }
        self.accepted_args().add(hash);
        Ok(())
    }
}

impl Function for Validate {
    type Raw = Result<(), Failure>;
    type Answer = ();

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        guest.call_validate_config(store, &self.config, &self.args).await
    }

    fn accept(self, raw: Self::Raw, _: &Scope) -> Result<(), CallFailure> {
        raw.map_err(|failure| refused(&failure.message))
    }
}

fn refused(why: &str) -> CallFailure {
    CallFailure::Args(text::clean(why, limits::MESSAGE))
}

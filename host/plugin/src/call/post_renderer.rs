//! `post-renderer`: changes what was rendered, before it is applied.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pintle_api::{Object, ObjectRef, plugin::Identity};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use wasmtime::{Store, component::Instance};

use super::{
    Call, CallResult, Report,
    answer::{Checking, Rules, at_most, invalid},
    failure::CallFailure,
    run::{Arguments, Asked, Function, context},
};
use crate::{
    Export, Plugin,
    ability::inputs,
    bindings::{
        exports::pintle::plugin::post_renderer::{self as guest, Edits, GuestIndices},
        pintle::plugin::types::{Context, Failure},
    },
    grants::Scope,
    input, limits,
    seal::Seal,
    state::State,
};

/// One rendered object, before it is applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    /// Names the object for edits; no two have the same.
    pub key: String,
    /// Number of its state.
    pub state: String,
    /// Key of its pool; empty for all.
    pub pool: String,
    /// The file it was rendered from.
    pub source: String,
    /// The object.
    pub object: Arc<Object>,
}

/// What a post-renderer answers.
#[derive(Clone, Debug, PartialEq)]
pub struct PostRendered {
    /// Changes, in the order in which the guest made them; all of them granted.
    pub edits: Vec<Edit>,
    /// What the plugin wants told and kept.
    pub report: Report,
}

/// One change of what was rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// The object of this key becomes another.
    Replace {
        /// Key of a rendered object.
        key: String,
        /// What it becomes.
        object: Object,
    },
    /// The object of this key is left out.
    Drop {
        /// Key of a rendered object.
        key: String,
    },
    /// An object is added to a state.
    Add {
        /// Key of the new object, which no rendered one has.
        key: String,
        /// Number of the state.
        state: String,
        /// The object.
        object: Object,
        /// Whose rights it is applied with.
        identity: Identity,
    },
}

/// One call of `post-render`.
struct PostRender {
    indices: GuestIndices,
    context: Context,
    objects: Vec<guest::Rendered>,
    before: Vec<Rendered>,
    seal: Seal,
    owner: ObjectRef,
}

impl Plugin {
    /// Asks for changes of what was rendered. Values of Secrets are not shown unless a grant names the
    /// Secret; they are back in the answer.
    ///
    /// # Cancellation
    /// Dropping the future ends the call; nothing was written.
    pub async fn post_render(&self, call: Call, objects: Vec<Rendered>) -> CallResult<PostRendered> {
        let Some(indices) = self.exports().post_renderer() else {
            return CallResult::refused(CallFailure::NotExported("post-renderer"));
        };
        let mut seal = Seal::default();
        let scope = self.scope(&call);
        let shown = objects.iter().map(|rendered| {
            let json = input::sealed(&rendered.object, &mut seal, &scope);
            let Rendered { key, state, pool, source, .. } = rendered.clone();
            guest::Rendered { key, state, pool, source, object: json }
        });
        let shown: Vec<_> = shown.collect();
        let size = shown.iter().map(|rendered| rendered.object.len()).sum();
        if let Err(too_large) = inputs::within(size) {
            return CallResult::refused(too_large);
        }
        let (indices, context, owner) = (indices.clone(), context(&call), call.owner.reference());
        let render = PostRender { indices, context, objects: shown, before: objects, seal, owner };
        self.ask(render, call).await
    }
}

impl Asked for PostRender {
    const EXPORT: Export = Export::PostRenderer;

    fn arguments(&self, hash: &mut Arguments) {
        for guest::Rendered { key, state, pool, source, object } in &self.objects {
            for part in [key, state, pool, source, object] {
                hash.update(part.len().to_le_bytes());
                hash.update(part);
            }
        }
        self.seal.hash_into(hash);
    }

    fn weight(rendered: &PostRendered) -> usize {
        let edits = rendered.edits.iter().map(|edit| match edit {
            Edit::Replace { object, .. } | Edit::Add { object, .. } => input::weight_of_map(object.json()),
            Edit::Drop { key } => key.len(),
        });
        edits.sum::<usize>() + input::weight_of(&[], &[], &rendered.report)
    }

    fn showed_clear_text(&self) -> bool {
        self.seal.showed_clear_text()
    }
}

impl Function for PostRender {
    type Raw = Result<Edits, Failure>;
    type Answer = PostRendered;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        guest.call_post_render(store, &self.context, &self.objects).await
    }

    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<PostRendered, CallFailure> {
        let rules = Rules { scope, target: self.owner };
        let Edits { edits, report } = raw.map_err(|failure| rules.failure(failure))?;
        at_most(edits.len(), limits::EDITS, "edits")?;
        let bytes = edits.iter().filter_map(|edit| edit.object.as_ref()).map(String::len).sum();
        at_most(bytes, limits::OUTPUT, "bytes of objects")?;
        let before: BTreeMap<&str, &Rendered> =
            self.before.iter().map(|rendered| (&*rendered.key, rendered)).collect();
        let mut seen = BTreeSet::new();
        if let Some(twice) = edits.iter().find(|edit| !seen.insert(&edit.key)) {
            return Err(invalid(format!("{} is edited twice", crate::text::clean(&twice.key, limits::NAME))));
        }
        let edits = edits.into_iter().map(|edit| checked(&rules, edit, &before, &self.seal));
        Ok(PostRendered { edits: edits.collect::<Checking<_>>()?, report: rules.report(report)? })
    }
}

fn checked(
    rules: &Rules<'_>,
    edit: guest::Edit,
    before: &BTreeMap<&str, &Rendered>,
    seal: &Seal,
) -> Checking<Edit> {
    let guest::Edit { key, state, object } = edit;
    let shown = crate::text::clean(&key, limits::NAME);
    match (before.get(key.as_str()), object) {
        (Some(rendered), Some(after)) => {
            if !state.is_empty() && state != rendered.state {
                return Err(invalid(format!(
                    "{shown} is in state {}, which an edit cannot change",
                    rendered.state
                )));
            }
            let (object, _) = rules.edited(Some(&rendered.object), &after, (&shown, seal))?;
            Ok(Edit::Replace { key, object })
        }
        (Some(_), None) => Ok(Edit::Drop { key }),
        (None, Some(after)) => {
            let is_key = !key.is_empty() && shown == key;
            let is_state =
                state.len() <= limits::POOL_KEY && state.chars().all(|letter| letter.is_ascii_digit());
            if !is_key || !is_state {
                return Err(invalid(format!("the new object {shown:?} has an odd key or no state's number")));
            }
            let (object, identity) = rules.edited(None, &after, (&shown, seal))?;
            Ok(Edit::Add { key, state, object, identity })
        }
        (None, None) => Err(invalid(format!("{shown:?} is dropped, and nothing of that key was rendered"))),
    }
}

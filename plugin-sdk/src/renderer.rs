//! Plugins that change what a chart was rendered to, before it is applied.

use serde_json::Value;

use crate::{
    Call, Context, Failure, Json, Plugin,
    bindings::{
        pintle::plugin::types::{self, Report},
        renderer,
    },
    plugin::{Adapter, begin},
    report::{self, tells},
};

/// A plugin that changes rendered objects.
///
/// ```
#[doc = include_str!("../examples/labels.rs")]
/// # example();
/// ```
pub trait PostRenderer: Plugin {
    /// What shall be changed; an object that no edit names stays as it is.
    ///
    /// # Errors
    /// When the objects cannot be used as they are; the failure says when to ask again.
    fn post_render(call: &Call<Self::Config>, objects: &[Rendered]) -> Result<Edits, Failure>;
}

/// One object as the chart was rendered to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The same over all renderings.
    pub key: String,
    /// The state it belongs to.
    pub state: String,
    /// The pool it was rendered for; empty for all.
    pub pool: String,
    /// The template's file.
    pub source: String,
    /// The object.
    pub object: Json,
}

/// Changes to rendered objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Edits {
    edits: Vec<renderer::Edit>,
    report: Report,
}

// === impl Edits ===

impl Default for Edits {
    fn default() -> Self {
        Self::none()
    }
}

impl Edits {
    /// Everything stays as it is.
    #[must_use]
    pub fn none() -> Self {
        Self { edits: Vec::new(), report: report::nothing() }
    }

    /// Puts another object in the place of a rendered one.
    #[must_use]
    pub fn replace(self, rendered: &Rendered, object: &Value) -> Self {
        self.edit(&rendered.key, &rendered.state, Some(object))
    }

    /// Leaves a rendered object out.
    #[must_use]
    pub fn leave_out(self, rendered: &Rendered) -> Self {
        self.edit(&rendered.key, &rendered.state, None)
    }

    /// Adds an object to a state, under a key that no rendered object has.
    #[must_use]
    pub fn add(self, key: &str, state: &str, object: &Value) -> Self {
        self.edit(key, state, Some(object))
    }

    /// Key of each edit, with the object that stands there from now on; none where it is left out.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.edits.iter().map(|edit| (edit.key.as_str(), edit.object.as_deref()))
    }

    fn edit(mut self, key: &str, state: &str, object: Option<&Value>) -> Self {
        let (key, state) = (key.to_owned(), state.to_owned());
        self.edits.push(renderer::Edit { key, state, object: object.map(Value::to_string) });
        self
    }
}

tells!(Edits);

/// Makes the edits, natively as inside a component.
pub(crate) fn render<P: PostRenderer>(
    context: Context,
    objects: Vec<renderer::Rendered>,
) -> Result<Edits, Failure> {
    let shown = |rendered| {
        let renderer::Rendered { key, state, pool, source, object } = rendered;
        Rendered { key, state, pool, source, object: Json::new("a rendered object", object) }
    };
    let objects: Vec<Rendered> = objects.into_iter().map(shown).collect();
    P::post_render(&Call::begin(context)?, &objects)
}

impl<P: PostRenderer> renderer::Guest for Adapter<P> {
    fn post_render(
        context: Context,
        objects: Vec<renderer::Rendered>,
    ) -> Result<renderer::Edits, types::Failure> {
        begin();
        let Edits { edits, report } = render::<P>(context, objects)?;
        Ok(renderer::Edits { edits, report })
    }
}

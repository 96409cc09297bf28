//! What was last rendered, kept from one pass to the next.

use std::sync::Arc;

use super::Objects;

/// What was rendered, and from what.
pub(crate) struct Rendition {
    /// Mark of what went into it.
    mark: String,
    notes: String,
    form: Form,
}

enum Form {
    /// As it is worked with.
    Live(Arc<Objects>),
    /// As JSON, which is a tenth of the weight.
    Resting(Box<[u8]>),
}

// === impl Rendition ===

impl Rendition {
    pub(crate) fn new(mark: String, objects: &Arc<Objects>) -> Self {
        Self { mark, notes: objects.notes.clone(), form: Form::Live(Arc::clone(objects)) }
    }

    /// What `NOTES.txt` says.
    pub(crate) fn notes(&self) -> &str {
        &self.notes
    }

    /// What was rendered, where just this went into it.
    pub(crate) fn of(&self, mark: &str) -> Option<Arc<Objects>> {
        if self.mark != mark {
            return None;
        }
        match &self.form {
            Form::Live(objects) => Some(Arc::clone(objects)),
            Form::Resting(text) => serde_json::from_slice(text).ok().map(Arc::new),
        }
    }

    /// Takes little room until it is asked for: of a thousand releases nearly all are at rest.
    pub(crate) fn rest(&mut self) {
        if let Form::Live(objects) = &self.form
            && let Ok(text) = serde_json::to_vec(&**objects)
        {
            self.form = Form::Resting(text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::Object;
    use pintle_chart::manifest::HookEvent;
    use pintle_plan::{Hook, PoolInput, RenderFault, Rendered, StateInput};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_rested_is_what_was_rendered() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                            "data": {"float": 1.0, "large": u64::MAX, "text": "\u{1F980}\n"}});
        let rendered = Rendered { object: Object::new(object).unwrap(), source: "templates/a.yaml".into() };
        let fault = RenderFault { reason: "R".into(), message: "m".into() };
        let pool = |objects| PoolInput { pool: "p".into(), nodes: vec!["n".into()], objects };
        let pools = vec![pool(Ok(vec![rendered.clone()])), pool(Err(fault))];
        let hook =
            Hook { rendered, events: vec![HookEvent::PreInstall], weight: -1, delete_policies: Vec::new() };
        let objects = Arc::new(Objects {
            states: vec![StateInput { name: "0000-a".into(), label: "0000".into(), pools }],
            hooks: vec![hook],
            notes: "Enjoy".into(),
            chart: None,
        });
        let mut rendition = Rendition::new("mark".into(), &objects);
        rendition.rest();
        assert!(matches!(rendition.form, Form::Resting(_)));
        assert_eq!(rendition.of("mark").unwrap(), objects);
        assert_eq!((rendition.of("other"), rendition.notes()), (None, "Enjoy"));
    }
}

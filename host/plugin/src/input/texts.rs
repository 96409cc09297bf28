//! Targets as text, made once for as long as the object stays as it is.
//!
//! A target is asked about again when something else changed: pods, nodes, time. An object that is read from a
//! watch is one allocation until it changes, so that is what its text is kept by.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use pintle_api::Object;
use sha2::{Digest as _, Sha256};

use crate::{limits, memo::Hash};

/// An object as a guest is given it.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) json: Arc<String>,
    pub(crate) digest: Hash,
}

/// The texts of all plugins of an engine.
#[derive(Default)]
pub(crate) struct Texts(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    bytes: usize,
    /// By where the object is, and what of it is shown.
    texts: HashMap<(usize, Hash), (Weak<Object>, Text)>,
}

// === impl Text ===

impl Text {
    pub(crate) fn new(json: String) -> Self {
        Self { digest: Sha256::digest(json.as_bytes()).into(), json: json.into() }
    }
}

// === impl Texts ===

impl Texts {
    /// The text of this very object, if it was kept under a mark for what is shown of it.
    pub(crate) fn find(&self, object: &Arc<Object>, mark: &Hash) -> Option<Text> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, text) = kept.texts.get(&key(object, mark))?;
        // Its place is nobody else's while we know of it.
        (known.strong_count() > 0).then(|| text.clone())
    }

    /// Keeps a text. When there are too many, those of objects that are gone go, and then all.
    pub(crate) fn keep(&self, object: &Arc<Object>, mark: &Hash, text: &Text) {
        let size = text.json.len();
        if size > limits::TEXTS / 8 {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.texts.remove(&key(object, mark));
        kept.bytes -= before.map_or(0, |(_, before)| before.json.len());
        if kept.bytes + size > limits::TEXTS {
            kept.forget_gone();
        }
        if kept.bytes + size > limits::TEXTS {
            *kept = Kept::default();
        }
        kept.texts.insert(key(object, mark), (Arc::downgrade(object), text.clone()));
        kept.bytes += size;
    }
}

fn key(object: &Arc<Object>, mark: &Hash) -> (usize, Hash) {
    (Arc::as_ptr(object).addr(), *mark)
}

// === impl Kept ===

impl Kept {
    fn forget_gone(&mut self) {
        self.texts.retain(|_, (object, _)| object.strong_count() > 0);
        self.bytes = self.texts.values().map(|(_, text)| text.json.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Arc<Object> {
        Arc::new(Object::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})).unwrap())
    }

    #[test]
    fn a_text_is_of_one_object_as_it_is_and_of_one_view_of_it() {
        let (texts, one) = (Texts::default(), object("one"));
        let same = object("one");
        assert!(texts.find(&one, &[1; 32]).is_none());
        texts.keep(&one, &[1; 32], &Text::new("text".to_owned()));
        assert_eq!(*texts.find(&Arc::clone(&one), &[1; 32]).unwrap().json, "text");
        assert!(texts.find(&one, &[2; 32]).is_none(), "another plugin sees other fields");
        assert!(texts.find(&same, &[1; 32]).is_none(), "an equal object is another one");
    }

    #[test]
    fn the_whole_stays_within_its_bound_and_what_is_gone_goes_first() {
        let (texts, size) = (Texts::default(), limits::TEXTS / 8);
        let mut objects: Vec<_> = (0..8).map(|number| object(&number.to_string())).collect();
        for object in &objects {
            texts.keep(object, &[0; 32], &Text::new("x".repeat(size)));
        }
        texts.keep(&objects[0], &[0; 32], &Text::new("y".repeat(size)));
        texts.keep(&objects[1], &[0; 32], &Text::new("z".repeat(size + 1)));
        let bytes = || texts.0.lock().unwrap().bytes;
        assert_eq!(
            bytes(),
            limits::TEXTS,
            "the same once more takes no room, and what is too large is not kept"
        );
        drop(objects.pop());
        let another = object("another");
        texts.keep(&another, &[0; 32], &Text::new("x".repeat(size)));
        assert_eq!(bytes(), limits::TEXTS);
        assert_eq!(*texts.find(&objects[0], &[0; 32]).unwrap().json, "y".repeat(size), "nothing else went");
        let one_more = object("one more");
        texts.keep(&one_more, &[0; 32], &Text::new("x".repeat(size)));
        assert!(texts.find(&one_more, &[0; 32]).is_some() && texts.find(&another, &[0; 32]).is_none());
        assert_eq!(bytes(), size);
    }
}

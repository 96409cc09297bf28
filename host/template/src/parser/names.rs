//! Words that were read before: most occur often in a chart, and share what was made of them.

use std::sync::Arc;

use crate::ast::{Fields, Number};
use crate::lexer::Tokens;
use crate::value::Value;

/// What was made of names, chains of fields, texts and numbers.
pub(crate) struct Names {
    /// Where the tokens of the last source were.
    tokens: Tokens,
    names: Known<Arc<str>>,
    chains: Known<Fields>,
    texts: Known<Value>,
    numbers: Known<Arc<Number>>,
}

/// What was made of words; of two that meet at one place the later stays.
struct Known<T> {
    kept: Vec<Option<T>>,
    /// A power of two.
    places: usize,
}

impl Names {
    /// For sources of so many bytes together.
    pub(crate) fn of(bytes: usize) -> Self {
        // Public charts have an action for each 160 bytes, and a few hundred words.
        let places = (bytes / 128).clamp(16, 2048).next_power_of_two();
        Self {
            tokens: Tokens::default(),
            names: Known::new(places),
            chains: Known::new(places),
            texts: Known::new(places),
            numbers: Known::new(16),
        }
    }

    /// A list for the tokens of a source.
    pub(super) fn take_tokens(&mut self) -> Tokens {
        std::mem::take(&mut self.tokens)
    }

    /// Keeps the list for the next source.
    pub(super) fn keep_tokens(&mut self, tokens: Tokens) {
        self.tokens = tokens;
    }

    /// A name.
    pub(super) fn name(&mut self, text: &str) -> Arc<str> {
        self.names.get(text, |name| **name == *text, || Arc::from(text))
    }

    /// The fields of a chain `.a.b`.
    pub(super) fn chain(&mut self, text: &str) -> Fields {
        let parts = || text.split('.').skip(1);
        let names = &mut self.names;
        let name = |part| names.get(part, |name| **name == *part, || Arc::from(part));
        self.chains.get(text, |chain| is_chain(chain, text), || parts().map(name).collect())
    }

    /// A text between quotes without anything that needs a second look.
    pub(super) fn text(&mut self, text: &str) -> Value {
        self.texts.get(text, |value| value.as_str() == Some(text), || Value::from(text))
    }

    /// A number.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn number<E>(
        &mut self,
        text: &str,
        parse: impl FnOnce() -> Result<Number, E>,
    ) -> Result<Arc<Number>, E> {
        let is_same = |number: &Arc<Number>| *number.text == *text;
        match self.numbers.find(text, is_same) {
            Some(known) => Ok(known),
            None => {
                let number = Arc::new(parse()?);
                Ok(self.numbers.get(text, is_same, || number))
            }
        }
    }
}

/// Whether these are the names of a chain.
fn is_chain<'t>(names: &[Arc<str>], text: &'t str) -> bool {
    let after = |rest: Option<&'t str>, name: &Arc<str>| rest?.strip_prefix('.')?.strip_prefix(&**name);
    names.iter().fold(Some(text), after) == Some("")
}

impl<T: Clone> Known<T> {
    fn new(places: usize) -> Self {
        Self { kept: Vec::new(), places }
    }

    fn place(&self, text: &str) -> usize {
        let mix = |hash: usize, byte: &u8| hash.wrapping_mul(0x0100_0193) ^ usize::from(*byte);
        let hash = text.as_bytes().iter().fold(text.len(), mix);
        (hash ^ (hash >> 15)) & (self.places - 1)
    }

    fn find(&self, text: &str, is_same: impl Fn(&T) -> bool) -> Option<T> {
        self.kept.get(self.place(text))?.as_ref().filter(|known| is_same(known)).cloned()
    }

    fn get(&mut self, text: &str, is_same: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> T {
        if self.kept.is_empty() {
            self.kept.resize(self.places, None);
        }
        let place = self.place(text);
        match self.kept.get_mut(place) {
            Some(Some(known)) if is_same(known) => known.clone(),
            Some(free) => free.insert(make()).clone(),
            None => make(),
        }
    }
}

//! Templates that functions run: `include` and `tpl`.

use std::sync::Arc;

use super::{Ctx, FnError};
use crate::ast::Template;
use crate::error::Error;
use crate::exec::Frame;
use crate::program::{Dialect, ROOT, Set, without_no_value};
use crate::quote::quote;
use crate::value::Value;

impl Ctx<'_> {
    /// The text of a template, executed with its own dot and variables.
    ///
    /// # Errors
    /// When there is no such template, when it fails, or when it includes itself too often.
    pub fn include(&mut self, name: &str, data: Value) -> Result<Value, FnError> {
        let Some(template) = self.templates.get(name) else {
            return Err(no_template(name));
        };
        self.enter(&template)?;
        let mut out = Vec::new();
        let result = self.execute(&template, data, &mut out);
        self.leave(&template);
        result.map_err(|error| FnError::template(error, None))?;
        self.text(out)
    }

    /// The text of a template given as text. It sees all templates, and what it defines itself.
    ///
    /// # Errors
    /// When the text is no template or fails.
    pub fn tpl(&mut self, text: &str, data: Value) -> Result<Value, FnError> {
        if !text.contains("{{") {
            return self.text(without_no_value(text.to_owned()));
        }
        self.charge(text.len() as u64 / 16)?;
        let parsed = self.parse_text(text).map_err(|error| {
            let quoted = quote(text.as_bytes());
            FnError::new(format!("cannot parse template {quoted}: {}", error.go_text()))
        })?;
        let overlay = Arc::new(parsed.over(&self.templates));
        let outer = std::mem::replace(&mut self.templates, overlay);
        let result = self.tpl_text(data);
        self.templates = outer;
        let out = result.map_err(|error| {
            let quoted = quote(text.as_bytes());
            let note = format!("error during tpl function execution for {quoted}");
            FnError::template(error, Some(note))
        })?;
        let text = self.text(out)?;
        match (self.dialect, text.as_str()) {
            (Dialect::Helm, Some(text)) => Ok(Value::from(without_no_value(text.to_owned()))),
            _ => Ok(text),
        }
    }

    fn tpl_text(&mut self, data: Value) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        if let Some(template) = self.templates.get(ROOT) {
            self.execute(&template, data, &mut out)?;
        }
        Ok(out)
    }

    fn parse_text(&self, text: &str) -> Result<Arc<Set>, Error> {
        let functions = self.dialect.functions();
        match self.cache {
            Some(cache) => cache.parse(text, functions),
            None => Set::parse_text(text, functions).map(Arc::new),
        }
    }

    fn execute(&mut self, template: &Arc<Template>, dot: Value, out: &mut Vec<u8>) -> Result<(), Error> {
        crate::stack::grown(|| Frame::execute(self, template, dot, out))
    }

    fn enter(&mut self, template: &Template) -> Result<(), FnError> {
        let limit = self.run.limits.include_depth;
        let count = self.included.entry(Arc::clone(&template.name)).or_default();
        if *count > limit {
            return Err(FnError::new(format!(
                "rendering template has a nested reference name: {}: unable to execute template \
                 (limit include depth {limit})",
                template.name
            )));
        }
        *count += 1;
        Ok(())
    }

    fn leave(&mut self, template: &Template) {
        if let Some(count) = self.included.get_mut(&template.name) {
            *count -= 1;
        }
    }
}

fn no_template(name: &str) -> FnError {
    let name = quote(name.as_bytes());
    FnError::no_template(format!("template: no template {name} associated with template \"{ROOT}\""))
}

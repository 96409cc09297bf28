//! Templates that functions run: `include` and `tpl`.

use std::sync::Arc;

use super::{Ctx, FnError};
use crate::ast::Template;
use crate::error::Error;
use crate::exec::Frame;
use crate::program::{Dialect, ROOT, Set, without_no_value};
use crate::quote::quote;
use crate::value::Value;

/// Bytes of a text that is kept for the next include; most includes write less.
const SPARE_TEXT: usize = 64 << 10;

impl Ctx<'_> {
    /// The text of a template, executed with its own dot and variables.
    ///
    /// # Errors
    /// When there is no such template, when it fails, or when it includes itself too often.
    pub fn include(&mut self, name: &str, data: Value) -> Result<Value, FnError> {
        let Some(template) = self.templates.get(name) else {
            return self.include_file(name, &data);
        };
        self.enter(&template.name)?;
        let mut out = self.spare_texts.pop().unwrap_or_default();
        let active = self.jinja.enter_go();
        let result = self.execute(&template, data, &mut out);
        self.jinja.leave_go(active);
        self.leave();
        result.map_err(|error| FnError::template(error, None))?;
        self.check_len(out.len())?;
        let text = match str::from_utf8(&out) {
            Ok(text) => Value::from(text),
            Err(_) => Value::from_bytes(out.clone()),
        };
        if out.capacity() <= SPARE_TEXT {
            out.clear();
            self.spare_texts.push(out);
        }
        Ok(text)
    }

    /// The text of a Jinja file, by a path from the file that runs or from the top chart.
    fn include_file(&mut self, name: &str, data: &Value) -> Result<Value, FnError> {
        let file = match self.jinja.current() {
            Some((engine, parent)) => engine.resolve(name, &parent).map(|file| (engine, file)),
            None => self
                .jinja
                .engine()
                .filter(|engine| engine.contains(name))
                .map(|engine| (engine, Arc::from(name))),
        };
        let Some((engine, file)) = file else {
            return Err(no_template(name));
        };
        self.enter(&file)?;
        self.descend()?;
        let mut out = Vec::new();
        let result = engine.render(self, &file, data, &mut out);
        self.depth -= 1;
        self.leave();
        result.map_err(|error| FnError::template(error, None))?;
        self.text(out)
    }

    /// The text of a template given as text. It sees all templates, and what it defines itself.
    ///
    /// # Errors
    /// When the text is no template or fails.
    pub fn tpl(&mut self, text: &str, data: Value) -> Result<Value, FnError> {
        let bytes = text.as_bytes();
        let opens = |at: usize| matches!(bytes.get(at + 1), Some(b'{' | b'%' | b'#'));
        if !memchr::memchr_iter(b'{', bytes).any(opens) {
            return self.text(without_no_value(text.to_owned()));
        }
        self.charge(text.len() as u64 / 16)?;
        if let Some((engine, parent)) = self.jinja.current() {
            self.descend()?;
            let result = engine.render_text(self, text, &parent, &data);
            self.depth -= 1;
            return self.text(result.map_err(|error| FnError::template(error, None))?);
        }
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

    /// One template deeper.
    fn descend(&mut self) -> Result<(), FnError> {
        let limit = self.run.limits.template_depth;
        if self.depth >= limit {
            return Err(FnError::limit("template depth", limit));
        }
        self.depth += 1;
        Ok(())
    }

    fn enter(&mut self, name: &Arc<str>) -> Result<(), FnError> {
        let limit = self.run.limits.include_depth;
        let count = self.included.iter().filter(|included| *included == name).count();
        if count > limit {
            return Err(FnError::new(format!(
                "rendering template has a nested reference name: {name}: unable to execute template \
                 (limit include depth {limit})"
            )));
        }
        self.included.push(Arc::clone(name));
        Ok(())
    }

    fn leave(&mut self) {
        self.included.pop();
    }
}

fn no_template(name: &str) -> FnError {
    let name = quote(name.as_bytes());
    FnError::no_template(format!("template: no template {name} associated with template \"{ROOT}\""))
}

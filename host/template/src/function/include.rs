//! Templates that functions run: `include` and `tpl`.

use std::sync::Arc;

use super::{Ctx, FnError};
use crate::ast::Template;
use crate::error::Error;
use crate::exec::Frame;
use crate::program::{Dialect, ROOT, Set, drop_no_value};
use crate::quote::quote;
use crate::value::Value;

impl Ctx<'_> {
    /// Appends the text of a template, executed with its own dot and variables.
    ///
    /// # Errors
    /// When there is no such template, when it fails, or when it includes itself too often.
    pub fn include(&mut self, name: &str, data: Value, out: &mut Vec<u8>) -> Result<(), FnError> {
        let Some(template) = self.templates.get(name) else {
            return self.include_file(name, &data, out);
        };
        self.enter(&template.name)?;
        let active = self.jinja.enter_go();
        let result = self.execute(&template, data, out);
        self.jinja.leave_go(active);
        self.leave();
        result.map_err(|error| FnError::template(error, None))
    }

    /// The text of a Jinja file, by a path from the file that runs or from the top chart.
    fn include_file(&mut self, name: &str, data: &Value, out: &mut Vec<u8>) -> Result<(), FnError> {
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
        let result = engine.render(self, &file, data, out);
        self.depth -= 1;
        self.leave();
        result.map_err(|error| FnError::template(error, None))
    }

    /// Appends the text of a template given as text. It sees all templates, and what it defines itself.
    ///
    /// # Errors
    /// When the text is no template or fails.
    pub fn tpl(&mut self, text: &str, data: Value, out: &mut Vec<u8>) -> Result<(), FnError> {
        let bytes = text.as_bytes();
        let from = out.len();
        let opens = |at: usize| matches!(bytes.get(at + 1), Some(b'{' | b'%' | b'#'));
        if !memchr::memchr_iter(b'{', bytes).any(opens) {
            out.extend_from_slice(bytes);
            drop_no_value(out, from);
            return Ok(());
        }
        self.charge(text.len() as u64 / 16)?;
        if let Some((engine, parent)) = self.jinja.current() {
            self.descend()?;
            let result = engine.render_text(self, text, &parent, &data);
            self.depth -= 1;
            out.extend_from_slice(&result.map_err(|error| FnError::template(error, None))?);
            return Ok(());
        }
        let parsed = self.parse_text(text).map_err(|error| {
            let quoted = quote(text.as_bytes());
            FnError::new(format!("cannot parse template {quoted}: {}", error.go_text()))
        })?;
        self.tpl_parsed(&parsed, data, out).map_err(|error| {
            let quoted = quote(text.as_bytes());
            let note = format!("error during tpl function execution for {quoted}");
            FnError::template(error, Some(note))
        })?;
        // Bytes that are no text keep what they have, as a value of bytes does.
        let is_text =
            self.dialect == Dialect::Helm && str::from_utf8(out.get(from..).unwrap_or_default()).is_ok();
        if is_text {
            drop_no_value(out, from);
        }
        Ok(())
    }

    fn tpl_parsed(&mut self, parsed: &Set, data: Value, out: &mut Vec<u8>) -> Result<(), Error> {
        // A text that defines nothing sees what there is; only one that asks for its own name needs more.
        if let Some(template) = parsed.alone().filter(|template| !template.source.text.contains(ROOT)) {
            return self.execute(template, data, out);
        }
        let overlay = Arc::new(parsed.over(&self.templates));
        let outer = std::mem::replace(&mut self.templates, overlay);
        let result = match self.templates.get(ROOT) {
            Some(template) => self.execute(&template, data, out),
            None => Ok(()),
        };
        self.templates = outer;
        result
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

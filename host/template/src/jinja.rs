//! The Jinja dialect: minijinja under the same values, functions and limits as Go templates.
//!
//! A file is parsed once, and what minijinja runs is not its text but a text of the same meaning
//! printed from its syntax tree (see [`print_source`]): every operator, literal and built-in filter
//! goes through a function of ours, so that what a template makes is counted, and no value is nested
//! deeper than the stack allows.

mod arguments;
mod host;
mod library;
mod mistake;
mod operators;
mod output;
mod paths;
mod print_source;

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Environment;

use crate::error::Error;
use crate::function::{Ctx, FnError};
use crate::program::Source;
use crate::value::Value;

pub(crate) use host::{call_method, field_of};

/// What one include may take of minijinja's limit of recursion: 10 for itself, and one for each block
/// and loop around it.
const INCLUDE_COST: usize = 16;

/// The Jinja templates of a chart.
#[derive(Debug)]
pub(crate) struct Jinja {
    env: Environment<'static>,
    files: BTreeMap<Arc<str>, File>,
}

/// A template file with its printed form.
#[derive(Debug)]
struct File {
    source: Arc<Source>,
    printed: print_source::Printed,
}

/// What a context knows of the Jinja template that is running.
#[derive(Debug, Default)]
pub(crate) struct Running<'r> {
    /// The templates of the program.
    engine: Option<&'r Jinja>,
    /// Whether a Jinja template is running: `tpl` then reads Jinja.
    active: bool,
    /// Its data, which `include` and `tpl` use when they are given none.
    data: Value,
    /// The file that runs, which paths of `include` start from.
    file: Arc<str>,
    /// The function that failed, and why: minijinja's errors carry only text.
    failed: Option<(Arc<str>, FnError)>,
    /// Instructions of the running template that are paid for.
    paid: u64,
}

// === impl Jinja ===

impl Jinja {
    /// Parses files, whose names are paths from the top chart.
    ///
    /// # Errors
    /// The first mistake, also filters and tests that nobody knows.
    pub(crate) fn parse(sources: &[Source]) -> Result<Self, Error> {
        let mut env = library::environment();
        let mut files = BTreeMap::new();
        for source in sources {
            let file = File::parse(Arc::new(source.clone()))?;
            files.insert(Arc::clone(&source.name), file);
        }
        let names = files.keys().cloned().collect();
        env.set_path_join_callback(move |name, parent| paths::join(&names, name, parent));
        for (name, file) in &files {
            env.add_template_owned(name.to_string(), file.printed.text.clone())
                .map_err(|err| mistake::in_file(&err, &file.source))?;
        }
        Ok(Self { env, files })
    }

    /// Whether there is a file of that name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The file that `name` means in another file.
    pub(crate) fn resolve(&self, name: &str, parent: &str) -> Option<Arc<str>> {
        let names = |path: &str| self.files.get_key_value(path).map(|(name, _)| Arc::clone(name));
        paths::candidates(name, parent).iter().find_map(|path| names(path))
    }

    /// Appends the text of a file to `out`; the entries of `data` are its variables.
    ///
    /// # Errors
    /// When the template fails or a limit is met; `out` then has what was written before.
    pub(crate) fn render(
        &self,
        ctx: &mut Ctx<'_>,
        name: &Arc<str>,
        data: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Some(file) = self.files.get(name) else {
            return Err(mistake::no_template(self, name));
        };
        self.run(ctx, file, name, data, out)
    }

    /// The text of a template given as text; its includes start from the folder of `parent`.
    ///
    /// # Errors
    /// When the text is no template or fails.
    pub(crate) fn render_text(
        &self,
        ctx: &mut Ctx<'_>,
        text: &str,
        parent: &str,
        data: &Value,
    ) -> Result<Vec<u8>, Error> {
        let folder = parent.rsplit_once('/').map_or("", |(folder, _)| folder);
        let name: Arc<str> = Arc::from(format!("{folder}/(tpl)"));
        let source = Arc::new(Source { name: Arc::clone(&name), text: Arc::from(text) });
        let file = File::parse(source)?;
        let mut out = Vec::new();
        self.run(ctx, &file, &name, data, &mut out)?;
        Ok(out)
    }

    fn run(
        &self,
        ctx: &mut Ctx<'_>,
        file: &File,
        name: &Arc<str>,
        data: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let data = arguments::golden(data).map_err(|failure| mistake::at_start(file, failure))?;
        let outer = ctx.jinja.enter(data.clone(), name);
        let env = self.limited(ctx);
        let mut sink = output::Sink::new(out, ctx.limits().output);
        let result = host::scope(ctx, || {
            let template = env.template_from_named_str(name, &file.printed.text)?;
            let captured = crate::stack::grown(|| template.render_captured_to(data, &mut sink))?;
            Ok(captured.state().fuel_levels().map_or(0, |(used, _)| used))
        });
        let inner = std::mem::replace(&mut ctx.jinja, outer);
        match result {
            Ok(used) => {
                let rest = used.saturating_sub(inner.paid);
                ctx.charge(rest).map_err(|failure| mistake::at_start(file, failure))
            }
            Err(err) => {
                let limits = *ctx.limits();
                Err(mistake::Context { engine: self, file, data: &inner.data, limits, full: sink.is_full() }
                    .error(&err, inner.failed))
            }
        }
    }

    /// The environment under the limits of a run.
    fn limited(&self, ctx: &Ctx<'_>) -> Environment<'static> {
        let limits = ctx.limits();
        let mut env = self.env.clone();
        // What is left of the steps: the templates around this one have paid for theirs.
        env.set_fuel(Some(ctx.steps.min(i64::MAX as u64)));
        let depth = limits.template_depth.saturating_sub(ctx.depth).min(limits.include_depth + 1);
        env.set_recursion_limit(depth.saturating_mul(INCLUDE_COST));
        env
    }
}

// === impl File ===

impl File {
    fn parse(source: Arc<Source>) -> Result<Self, Error> {
        let printed = print_source::print(&source)?;
        Ok(Self { source, printed })
    }
}

// === impl Running ===

impl<'r> Running<'r> {
    /// No template runs yet.
    pub(crate) fn new(engine: Option<&'r Jinja>) -> Self {
        Self { engine, ..Self::default() }
    }

    /// The templates of the program.
    pub(crate) fn engine(&self) -> Option<&'r Jinja> {
        self.engine
    }

    /// Replaces the running template; the result is put back when it has ended.
    fn enter(&mut self, data: Value, file: &Arc<str>) -> Self {
        let engine = self.engine;
        let inner = Self { engine, active: true, data, file: Arc::clone(file), failed: None, paid: 0 };
        std::mem::replace(self, inner)
    }

    /// Says that a Go template runs now, until the result is given to [`Running::leave_go`].
    pub(crate) fn enter_go(&mut self) -> bool {
        std::mem::replace(&mut self.active, false)
    }

    /// Ends what [`Running::enter_go`] began.
    pub(crate) fn leave_go(&mut self, active: bool) {
        self.active = active;
    }

    /// The templates and the running file, where a Jinja template is running.
    pub(crate) fn current(&self) -> Option<(&'r Jinja, Arc<str>)> {
        self.engine.filter(|_| self.active).map(|engine| (engine, Arc::clone(&self.file)))
    }

    /// The instructions that were run since this was last asked.
    fn unpaid(&mut self, used: u64) -> u64 {
        let unpaid = used.saturating_sub(self.paid);
        self.paid = used;
        unpaid
    }
}

//! How functions that minijinja calls reach the context of the render.
//!
//! minijinja's callbacks are `'static`, a context borrows from its run: for the time of a render it is
//! in a variable of the thread, lent to one callback at a time.

use std::sync::Arc;

use minijinja::{Error as JinjaError, ErrorKind, State};
use scoped_tls_hkt::{ReborrowMut, scoped_thread_local};

use super::arguments;
use crate::function::{Ctx, FnError};
use crate::value::{GoObject, Value};

scoped_thread_local!(static mut HOST: for<'a> Slot<'a>);

/// The context of the innermost Jinja template on this thread.
struct Slot<'a>(&'a mut (dyn Host + 'a));

impl<'a, 'b> ReborrowMut<'b> for Slot<'a> {
    type Result = Slot<'b>;

    fn reborrow_mut(&'b mut self) -> Slot<'b> {
        Slot(self.0)
    }
}

trait Host {
    fn lend(&mut self, work: &mut dyn FnMut(&mut Ctx<'_>));
}

impl Host for Ctx<'_> {
    fn lend(&mut self, work: &mut dyn FnMut(&mut Ctx<'_>)) {
        work(self);
    }
}

/// Runs a render whose functions use this context.
pub(super) fn scope<T>(ctx: &mut Ctx<'_>, render: impl FnOnce() -> T) -> T {
    HOST.set(Slot(ctx), render)
}

/// What the work gives with the context; `None` where no template runs, or its context is lent already.
fn with<T>(work: impl FnOnce(&mut Ctx<'_>) -> T) -> Option<T> {
    if !HOST.is_set() {
        return None;
    }
    let mut work = Some(work);
    let mut result = None;
    HOST.with(|slot| {
        slot.0.lend(&mut |ctx| {
            if let Some(work) = work.take() {
                result = Some(work(ctx));
            }
        });
    });
    result
}

/// Runs a function of ours: pays for what ran before, and for the result.
pub(super) fn call(
    state: &State<'_, '_>,
    name: &str,
    work: impl FnOnce(&mut Ctx<'_>) -> Result<Value, FnError>,
) -> Result<Value, JinjaError> {
    let used = state.fuel_levels().map_or(0, |(used, _)| used);
    let result = with(|ctx| {
        let unpaid = ctx.jinja.unpaid(used);
        let result = crate::stack::grown(|| {
            ctx.charge(unpaid + 1)?;
            let value = work(ctx)?;
            arguments::counted(ctx, value)
        });
        result.map_err(|failure| {
            let text = failure.text();
            ctx.jinja.failed.get_or_insert_with(|| (Arc::from(name), failure));
            JinjaError::new(ErrorKind::InvalidOperation, text)
        })
    });
    result.unwrap_or_else(|| Err(JinjaError::new(ErrorKind::InvalidOperation, "no template is running")))
}

/// The result of a Go method that a Jinja template calls.
pub(crate) fn call_method(
    object: &dyn GoObject,
    state: &State<'_, '_>,
    name: &str,
    args: &[Value],
) -> Result<Value, JinjaError> {
    let Some(signature) = object.method(name) else {
        return Err(JinjaError::from(ErrorKind::UnknownMethod));
    };
    call(state, name, |ctx| {
        let args = arguments::fitted(name, signature, args)?;
        object.call(name, ctx, &args)
    })
}

/// The field of a Go value, or what its method without arguments gives, as Go templates write both.
pub(crate) fn field_of(object: &dyn GoObject, name: &str) -> Option<Value> {
    if let Some(value) = object.field(name) {
        return Some(value);
    }
    object.method(name).filter(|signature| signature.fixed.is_empty() && signature.rest.is_none())?;
    with(|ctx| object.call(name, ctx, &[]).ok()).flatten()
}

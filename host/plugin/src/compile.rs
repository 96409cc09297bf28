//! From bytes to a component: the one place where the compiler runs.

use std::sync::Arc;

use tokio::sync::oneshot;
use wasmtime::component::Component;

use crate::{Engine, limits};

/// Why a component could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It is larger than any component may be.
    #[error("the component is {0} bytes, at most {max} are loaded", max = limits::COMPONENT)]
    TooLarge(usize),
    /// It is a core module: nothing describes its types.
    #[error(
        "this is a WebAssembly core module, a plugin is a component (build with the linker wasm-component-ld, \
         or convert it with `wasm-tools component new`)"
    )]
    CoreModule,
    /// It is no WebAssembly at all.
    #[error("this is not a WebAssembly component: it does not begin with its magic number")]
    NotWasm,
    /// It is broken, or uses what this host leaves off.
    #[error("the component cannot be compiled")]
    Invalid(#[source] wasmtime::Error),
    /// It was made to keep a compiler busy.
    #[error("the component was not compiled within {limit:?}", limit = limits::COMPILE_TIME)]
    TimedOut,
    /// The host stops, or there is no thread to be had.
    #[error("the compiler was stopped")]
    Stopped,
}

/// Compiles on a thread of its own, one component at a time, so that neither callers nor running
/// plugins wait behind the compiler.
///
/// # Errors
/// When it is no component, broken, or takes too long; none of these is mended by a retry.
pub(crate) async fn compile(engine: &Engine, bytes: Arc<[u8]>) -> Result<Component, CompileError> {
    check_header(&bytes)?;
    let turn = engine.compiles().acquire().await.map_err(|_| CompileError::Stopped)?;
    let (done, compiled) = oneshot::channel();
    let wasm = engine.wasm().clone();
    let thread = std::thread::Builder::new().name("plugin-compile".into());
    let work = move || {
        // Nobody waits any more when the time is over; the thread then ends by itself.
        drop(done.send(Component::new(&wasm, &bytes)));
    };
    thread.spawn(work).map_err(|_| CompileError::Stopped)?;
    let limited = async move { tokio::time::timeout(limits::COMPILE_TIME, compiled).await };
    let compiled = engine.lanes().run(limited).await.map_err(|_| CompileError::Stopped)?;
    drop(turn);
    match compiled {
        Ok(Ok(Ok(component))) => Ok(component),
        Ok(Ok(Err(error))) => Err(CompileError::Invalid(error)),
        Ok(Err(_)) => Err(CompileError::Stopped),
        Err(_) => Err(CompileError::TimedOut),
    }
}

/// Says what the bytes are by their first eight: magic number, then version and layer.
fn check_header(bytes: &[u8]) -> Result<(), CompileError> {
    if bytes.len() > limits::COMPONENT {
        return Err(CompileError::TooLarge(bytes.len()));
    }
    match bytes.first_chunk::<8>() {
        Some(b"\0asm\x0d\0\x01\0") => Ok(()),
        Some(b"\0asm\x01\0\0\0") => Err(CompileError::CoreModule),
        _ => Err(CompileError::NotWasm),
    }
}

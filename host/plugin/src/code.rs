//! From a component to code that runs: from the cache where it is there and untouched, else from the
//! compiler, which runs in a process of its own.

mod cache;
mod child;
mod hasher;
#[cfg(target_os = "linux")]
mod nameless;
mod trusted;

use std::{sync::Arc, thread};

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use wasmtime::component::Component;

use crate::{Engine, limits, memo::Hash};
pub(crate) use cache::Cache;
use cache::Found;
pub use cache::{CacheKey, CacheOptions, ShortKey};
pub use child::{ChildError, Compiler, compile_in_child};
pub(crate) use hasher::compatibility;
use trusted::TrustedCode;

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
    /// The compiler's process says so.
    #[error("the component cannot be compiled: {0}")]
    Refused(String),
    /// The compiler's process ended otherwise: it ran out of memory or time of its own.
    #[error(
        "the compiler ended without a result ({0}): the component needs more memory or time than it gets"
    )]
    Died(String),
    /// The compiler's process could not be started or talked to.
    #[error("the compiler could not be run")]
    Child(#[source] std::io::Error),
    /// It was made to keep a compiler busy.
    #[error("the component was not compiled within {limit:?}", limit = limits::COMPILE_TIME)]
    TimedOut,
    /// The host stops, or there is no thread to be had.
    #[error("the compiler was stopped")]
    Stopped,
}

/// Where the machine code of a plugin came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another plugin in this process has the same component.
    Shared,
    /// It was in the cache.
    Cached,
    /// It was compiled, since it was not in the cache, or there is none.
    Compiled,
    /// It was compiled, since what was in the cache had been changed.
    CompiledAgain,
}

/// A component that can be instantiated.
pub(crate) struct Code {
    /// SHA-256 of the component.
    pub(crate) digest: Hash,
    pub(crate) component: Component,
}

/// A component that is ready, and what is known of it.
pub(crate) struct Loaded {
    pub(crate) code: Arc<Code>,
    pub(crate) origin: Origin,
    /// What it said on a first call, where that was kept.
    pub(crate) said: Option<String>,
}

/// Gets a component ready. Components that are at work already are shared; nothing runs on the
/// caller's thread, and the compiler runs for one component at a time. `name` is what its first call is
/// kept under.
///
/// # Errors
/// When it is no component, broken, or takes too long; none of these is mended by a retry.
pub(crate) async fn load(
    engine: &Engine,
    bytes: Arc<[u8]>,
    name: impl Fn(&Hash) -> Hash + Send + 'static,
) -> Result<Loaded, CompileError> {
    check_header(&bytes)?;
    let looked = {
        let (theirs, bytes) = (engine.clone(), Arc::clone(&bytes));
        let looked = engine.lanes().compute(move || look(&theirs, &bytes, name)).await;
        looked.map_err(|_| CompileError::Stopped)?
    };
    let (digest, origin) = match looked {
        Looked::Found(loaded) => return Ok(loaded),
        Looked::Absent(digest, origin) => (digest, origin),
    };
    let turn = engine.compiles().acquire().await.map_err(|_| CompileError::Stopped)?;
    // The same component may have been compiled while this one waited for its turn.
    if let Some(code) = engine.shared(&digest) {
        return Ok(Loaded { code, origin: Origin::Shared, said: None });
    }
    let compiling = {
        let engine = engine.clone();
        on_a_thread("plugin-compile", move || compile(&engine, digest, &bytes))
    };
    let limit = match engine.compiler() {
        Compiler::InProcess => limits::COMPILE_TIME_IN_PROCESS,
        Compiler::Child { .. } => limits::COMPILE_TIME,
    };
    let limited = async move { tokio::time::timeout(limit + limits::COMPILE_GRACE, compiling).await };
    let compiled = engine.lanes().run(Box::pin(limited), false).await.map_err(|_| CompileError::Stopped)?;
    drop(turn);
    let code = compiled.map_err(|_| CompileError::TimedOut)???;
    Ok(Loaded { code, origin, said: None })
}

enum Looked {
    Found(Loaded),
    Absent(Hash, Origin),
}

fn look(engine: &Engine, bytes: &[u8], name: impl Fn(&Hash) -> Hash) -> Looked {
    let digest: Hash = Sha256::digest(bytes).into();
    let found = |code, origin| {
        let said = engine.cache().and_then(|cache| cache.said(&name(&digest)));
        Looked::Found(Loaded { code, origin, said })
    };
    if let Some(code) = engine.shared(&digest) {
        return found(code, Origin::Shared);
    }
    let Some(cache) = engine.cache() else { return Looked::Absent(digest, Origin::Compiled) };
    let loaded = match cache.read(&digest) {
        Found::Missing => return Looked::Absent(digest, Origin::Compiled),
        Found::Changed => return Looked::Absent(digest, Origin::CompiledAgain),
        Found::Code(code) => {
            let loaded = code.load(engine.wasm(), Some(cache.folder()));
            Cache::give_back(code);
            loaded
        }
    };
    match loaded {
        Ok(component) => found(engine.share(Code { digest, component }), Origin::Cached),
        // Ours, but not for this engine: the key of an entry holds what decides that.
        Err(error) => {
            tracing::warn!(target: "plugin", error = %error, "compiled code in the cache does not load");
            Looked::Absent(digest, Origin::CompiledAgain)
        }
    }
}

fn compile(engine: &Engine, digest: Hash, bytes: &[u8]) -> Result<Arc<Code>, CompileError> {
    let code = match engine.compiler() {
        Compiler::InProcess => TrustedCode::of_compiler(
            engine.wasm().precompile_component(bytes).map_err(CompileError::Invalid)?,
        ),
        Compiler::Child { program, args } => {
            child::compile(program, args, engine.profile(), (bytes, limits::COMPILE_TIME))?
        }
    };
    if let Some(cache) = engine.cache() {
        cache.write(&digest, &code);
    }
    let folder = engine.cache().map(Cache::folder);
    let component = code.load(engine.wasm(), folder).map_err(CompileError::Invalid)?;
    Ok(engine.share(Code { digest, component }))
}

/// Keeps what a component said on its first call, on a thread that nobody waits for.
pub(crate) fn keep_said(engine: &Engine, name: Hash, text: String) {
    if engine.cache().is_none() {
        return;
    }
    let engine = engine.clone();
    let work = move || {
        if let Some(cache) = engine.cache() {
            cache.keep_said(&name, &text);
        }
    };
    // Without a thread it is asked again at the next start.
    drop(thread::Builder::new().name("plugin-keep".to_owned()).spawn(work));
}

async fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CompileError> {
    let (done, result) = oneshot::channel();
    // Nobody waits any more when the receiver is gone; the thread then ends by itself.
    let work = move || drop(done.send(work()));
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(|_| CompileError::Stopped)?;
    result.await.map_err(|_| CompileError::Stopped)
}

/// Says what the bytes are by their first eight: magic number, then version and layer.
pub(crate) fn check_header(bytes: &[u8]) -> Result<(), CompileError> {
    if bytes.len() > limits::COMPONENT {
        return Err(CompileError::TooLarge(bytes.len()));
    }
    match bytes.first_chunk::<8>() {
        Some(b"\0asm\x0d\0\x01\0") => Ok(()),
        Some(b"\0asm\x01\0\0\0") => Err(CompileError::CoreModule),
        _ => Err(CompileError::NotWasm),
    }
}

//! The compiler in a process of its own: what a component does to it ends with that process.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{CompileError, TrustedCode};
use crate::{Profile, engine, limits, text::clean};

/// Who compiles components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// This process. A component that was made for it can take its memory: only for components of
    /// one's own, on one's own machine.
    #[default]
    InProcess,
    /// A process for each component, which reads it from standard input, writes code to standard output,
    /// and has nothing else: see [`compile_in_child`].
    Child {
        /// The program.
        program: PathBuf,
        /// Its first arguments; `--profile` and a profile follow.
        args: Vec<OsString>,
    },
}

/// Why the compiler's process gives no code.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The process cannot be limited.
    #[error("could not limit this process")]
    Limit(#[source] io::Error),
    /// Standard input or output failed.
    #[error("could not read the component or write its code")]
    Pipe(#[source] io::Error),
    /// There is no engine to compile for.
    #[error("could not set up the compiler")]
    Engine(#[source] wasmtime::Error),
    /// The component is broken, or uses what this host leaves off.
    #[error("the component cannot be compiled")]
    Invalid(#[source] wasmtime::Error),
    /// It is no component.
    #[error(transparent)]
    NotAComponent(#[from] CompileError),
}

/// Compiles one component for engines of a profile, within [`limits::COMPILE_MEMORY`]. It is the whole
/// work of the process that [`Compiler::Child`] names, and limits that process for good.
///
/// # Errors
/// When the component cannot be compiled, or input or output fails.
pub fn compile_in_child(
    profile: Profile,
    component: impl Read,
    mut code: impl Write,
) -> Result<(), ChildError> {
    limit_this_process().map_err(ChildError::Limit)?;
    let mut bytes = Vec::new();
    component.take(limits::COMPONENT as u64 + 1).read_to_end(&mut bytes).map_err(ChildError::Pipe)?;
    super::check_header(&bytes)?;
    let engine = engine::compiling(profile).map_err(ChildError::Engine)?;
    let compiled = engine.precompile_component(&bytes).map_err(ChildError::Invalid)?;
    code.write_all(&compiled).and_then(|()| code.flush()).map_err(ChildError::Pipe)
}

fn limit_this_process() -> io::Result<()> {
    let seconds = 2 * limits::COMPILE_TIME.as_secs();
    for (resource, most) in
        [(Resource::As, limits::COMPILE_MEMORY as u64), (Resource::Cpu, seconds), (Resource::Core, 0)]
    {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Runs the compiler's process to its end, or ends it when its time is over. Blocks.
pub(super) fn compile(
    program: &PathBuf,
    args: &[OsString],
    profile: Profile,
    (component, limit): (&[u8], Duration),
) -> Result<TrustedCode, CompileError> {
    let mut command = Command::new(program);
    command.args(args).args(["--profile", &profile.to_string()]);
    // Its threads each take address space, so there are as many as it has use for.
    command.env_clear().env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "2");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Ended(command.spawn().map_err(CompileError::Child)?);
    let pipes = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(CompileError::Child(io::ErrorKind::BrokenPipe.into()));
    };
    let began = Instant::now();
    let (code, said) = talk(stdin, stdout, stderr, component)?;
    let left = || limit.saturating_sub(began.elapsed());
    let code = code.recv_timeout(left()).map_err(|_| CompileError::TimedOut)?;
    let said = said.recv_timeout(left()).map_err(|_| CompileError::TimedOut)?;
    // Both pipes are closed, so it is ending.
    let status = child.0.wait().map_err(CompileError::Child)?;
    match code {
        Ok(code) if status.success() => Ok(TrustedCode::of_compiler(code)),
        Err(error) if status.success() => Err(CompileError::Child(error)),
        _ if status.code() == Some(1) && !said.is_empty() => Err(CompileError::Refused(said)),
        _ => Err(CompileError::Died(status.to_string())),
    }
}

/// Ends the process when nobody waits for it any more.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

type Code = Receiver<io::Result<Vec<u8>>>;

/// Feeds the process and listens to it, each on a thread: it may end at any time, with any pipe full.
fn talk(
    mut stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    component: &[u8],
) -> Result<(Code, Receiver<String>), CompileError> {
    let (component, spawn) = (component.to_vec(), |work| spawned(work));
    // A process that ends early closes its input; what it said tells why.
    spawn(Box::new(move || drop(stdin.write_all(&component))))?;
    let (has_code, code) = mpsc::channel();
    spawn(Box::new(move || {
        let mut bytes = Vec::new();
        let most = limits::COMPILED as u64;
        let read = stdout.take(most).read_to_end(&mut bytes).map(|_| bytes);
        drop(has_code.send(read));
    }))?;
    let (has_said, said) = mpsc::channel();
    spawn(Box::new(move || {
        let mut bytes = Vec::new();
        drop(stderr.take(4 * limits::MESSAGE as u64).read_to_end(&mut bytes));
        let said = String::from_utf8_lossy(&bytes);
        drop(has_said.send(clean(said.trim().trim_start_matches("error: "), limits::MESSAGE)));
    }))?;
    Ok((code, said))
}

fn spawned(work: Box<dyn FnOnce() + Send>) -> Result<(), CompileError> {
    let thread = thread::Builder::new().name("plugin-compile-io".into());
    thread.spawn(work).map(drop).map_err(CompileError::Child)
}

#[cfg(all(test, unix))]
mod tests;

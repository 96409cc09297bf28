#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::fs;

use super::*;

/// Runs a shell script in place of the compiler.
fn run(script: &str, limit: Duration) -> Result<TrustedCode, CompileError> {
    let args = ["-c", script].map(OsString::from);
    compile(&PathBuf::from("/bin/sh"), &args, Profile::Pooling, (&[0; 200_000], limit))
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn what_the_compiler_writes_is_the_code() {
    let code = run("cat", LONG).unwrap();
    assert_eq!(code.bytes(), [0; 200_000]);
    let code = run("printf %s \"$0 $1\"", LONG).unwrap();
    assert_eq!(code.bytes(), b"--profile pooling");
}

#[test]
fn what_the_compiler_says_is_the_reason() {
    let refused = run("echo 'error: unknown section' >&2; exit 1", LONG);
    assert!(matches!(refused, Err(CompileError::Refused(why)) if why == "unknown section"));
    let silent = run("exit 1", LONG);
    assert!(matches!(silent, Err(CompileError::Died(how)) if how.contains("exit status: 1")));
    let died = run("kill -SEGV $$", LONG);
    assert!(matches!(died, Err(CompileError::Died(how)) if how.contains("signal")));
    let half = run("cat; exit 3", LONG);
    assert!(matches!(half, Err(CompileError::Died(_))), "code of a compiler that failed is no code");
}

#[test]
fn a_compiler_that_never_ends_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", file.display());
    let began = Instant::now();
    assert!(matches!(run(&script, Duration::from_millis(500)), Err(CompileError::TimedOut)));
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    let pid = fs::read_to_string(&file).unwrap();
    let process = PathBuf::from("/proc").join(pid.trim());
    assert!(!PathBuf::from("/proc/self").exists() || !process.exists(), "it still runs");
}

#[test]
fn the_compiler_has_nothing_of_our_environment() {
    assert!(std::env::var_os("PATH").is_some() && std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let Err(CompileError::Refused(said)) = run("echo \"($HOME$CARGO_MANIFEST_DIR$USER)\" >&2; exit 1", LONG)
    else {
        panic!("it says something")
    };
    assert_eq!(said, "()");
}

#[test]
fn a_compiler_that_is_not_there_is_an_error_and_no_panic() {
    let nothing = compile(&PathBuf::from("/no/such/program"), &[], Profile::Pooling, (b"x", LONG));
    assert!(matches!(nothing, Err(CompileError::Child(_))));
}

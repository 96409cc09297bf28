//! Compiled code: made by a process of its own, kept on disk, and never loaded after anybody touched it.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use pintle_api::Record;
use pintle_plugin::{
    Artifact, CacheKey, CacheOptions, Compiler, Engine, LoadError, Options, Origin, Plugin, compile_in_child,
};
use serde_json::json;

use crate::{
    encode,
    setting::{call, chain, line, spec, target},
};

pub(crate) fn options(folder: &Path) -> Options {
    let key = CacheKey::new(b"0123456789abcdef0123456789abcdef").unwrap();
    Options { cache: Some(CacheOptions { folder: folder.to_owned(), key }), ..Options::default() }
}

async fn load(engine: &Engine, name: &str) -> Result<Plugin, LoadError> {
    load_bytes(engine, name, encode::guest(name)).await
}

async fn load_bytes(engine: &Engine, name: &str, bytes: Vec<u8>) -> Result<Plugin, LoadError> {
    let artifact = Artifact { name: name.into(), digest: "sha256:0".into(), bytes: bytes.into() };
    Plugin::load(engine, artifact, &spec(&json!({}))).await
}

async fn is_ready(plugin: &Plugin) {
    assert_eq!(line(&plugin.check(call(Record::default()), target()).await), "Ready");
}

/// Entries with machine code.
fn entries(folder: &Path) -> Vec<PathBuf> {
    ending(folder, "code2")
}

fn ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// Entries with what was said on a first call, once there are so many.
async fn said(folder: &Path, count: usize) -> Vec<PathBuf> {
    for _ in 0..500 {
        let said = ending(folder, "said");
        if said.len() >= count {
            return said;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{count} first calls are kept, not {}", ending(folder, "said").len());
}

/// This test's own program as the compiler: its standard output is of the test runner, so the code goes
/// through another descriptor.
fn child_of_this_program() -> Compiler {
    let script = "exec 3>&1 >/dev/null; PINTLE_TEST_COMPILES=$2 exec \"$0\" --exact --test-threads 1 \
                  compiler::this_program_compiles_when_it_is_asked_to";
    let program = std::env::current_exe().unwrap();
    Compiler::Child { program: "/bin/sh".into(), args: vec!["-c".into(), script.into(), program.into()] }
}

#[test]
fn this_program_compiles_when_it_is_asked_to() {
    let Ok(profile) = std::env::var("PINTLE_TEST_COMPILES") else { return };
    let code = fs::File::options().write(true).open("/proc/self/fd/3").unwrap();
    if let Err(error) = compile_in_child(profile.parse().unwrap(), io::stdin(), code) {
        io::stderr().write_all(chain(&error).as_bytes()).unwrap();
        std::process::exit(1);
    }
}

#[tokio::test]
async fn a_process_of_its_own_compiles_what_then_runs_here() {
    if !Path::new("/proc/self/fd").exists() {
        println!("skipped: the code goes through /proc/self/fd, which is not there");
        return;
    }
    let engine = Engine::new(&Options { compiler: child_of_this_program(), ..Options::default() }).unwrap();
    let plugin = load(&engine, "ready").await.unwrap();
    assert_eq!(plugin.origin(), Origin::Compiled);
    is_ready(&plugin).await;
    let mut broken = encode::guest("panic");
    let end = broken.len() - 40;
    broken[end..].fill(0xff);
    let refused = load_bytes(&engine, "broken", broken).await.unwrap_err();
    assert_eq!(refused.reason(), "NotCompiled");
    assert!(chain(&refused).contains("the component cannot be compiled"), "{}", chain(&refused));
    is_ready(&plugin).await;
}

#[tokio::test]
async fn a_compiler_without_memory_ends_alone() {
    let script = "ulimit -v 20000; exec \"$0\" --list";
    let program = std::env::current_exe().unwrap();
    let args = vec!["-c".into(), script.into(), program.into()];
    let compiler = Compiler::Child { program: "/bin/sh".into(), args };
    let engine = Engine::new(&Options { compiler, ..Options::default() }).unwrap();
    let refused = load(&engine, "ready").await.unwrap_err();
    assert_eq!(refused.reason(), "NotCompiled", "{}", chain(&refused));
}

#[tokio::test]
async fn code_is_compiled_once_then_cached_and_shared_while_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(&options(folder.path())).unwrap();
    let first = load(&engine, "ready").await.unwrap();
    let second = load(&engine, "ready").await.unwrap();
    assert_eq!((first.origin(), second.origin()), (Origin::Compiled, Origin::Shared));
    drop((first, second));
    let again = load(&engine, "ready").await.unwrap();
    assert_eq!(again.origin(), Origin::Cached, "nobody had it any more");
    drop(engine);
    let restarted = Engine::new(&options(folder.path())).unwrap();
    let cached = load(&restarted, "ready").await.unwrap();
    assert_eq!(cached.origin(), Origin::Cached);
    is_ready(&cached).await;
    assert_eq!(entries(folder.path()).len(), 1);
}

#[tokio::test]
async fn a_changed_byte_means_that_it_is_compiled_again_and_kept_again() {
    let folder = tempfile::tempdir().unwrap();
    flip_each(folder.path(), 16 * 1024).await;
    let plugin = load(&Engine::new(&options(folder.path())).unwrap(), "ready").await.unwrap();
    assert_eq!(plugin.origin(), Origin::Cached);
}

/// Flips a bit in each block of the one entry, and loads: it must never be what is run.
pub(crate) async fn flip_each(folder: &Path, block: usize) {
    drop(load(&Engine::new(&options(folder)).unwrap(), "ready").await.unwrap());
    let path = entries(folder).remove(0);
    let whole = fs::read(&path).unwrap();
    let engine = Engine::new(&options(folder)).unwrap();
    for at in (0..whole.len()).step_by(block).chain([whole.len() - 1]) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::remove_file(&path).unwrap();
        fs::write(&path, &changed).unwrap();
        let plugin = load(&engine, "ready").await.unwrap();
        assert_eq!(plugin.origin(), Origin::CompiledAgain, "byte {at}");
        is_ready(&plugin).await;
        drop(plugin);
        assert_eq!(fs::read(&path).unwrap().len(), whole.len(), "the entry is whole again");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn code_lies_in_a_file_without_a_name_where_the_disk_has_such() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(&options(folder.path())).unwrap();
    let code_in_files = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let ours = folder.path().to_str().unwrap();
        maps.lines().filter(|line| line.contains(ours) && line.contains(" r-xp ")).count()
    };
    let plugin = load(&engine, "ready").await.unwrap();
    let is_ext4 = rustix::fs::statfs(folder.path()).unwrap().f_type == 0xef53;
    assert!(code_in_files() == 1 || !is_ext4, "{} mappings", code_in_files());
    is_ready(&plugin).await;
    drop(plugin);
    assert_eq!(code_in_files(), 0);
}

/// Writes over every file of the cache where it lies, while a plugin from it is at work: a file that was checked and is
/// then mapped would be run as it is afterwards.
pub(crate) async fn overwrite_beneath(folder: &Path) {
    drop(load(&Engine::new(&options(folder)).unwrap(), "ready").await.unwrap());
    let plugin = load(&Engine::new(&options(folder)).unwrap(), "ready").await.unwrap();
    assert_eq!(plugin.origin(), Origin::Cached);
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&entry, mode).unwrap();
        let size = fs::metadata(&entry).unwrap().len() as usize;
        let mut file = fs::OpenOptions::new().write(true).open(&entry).unwrap();
        // An illegal instruction of x86, all over.
        file.write_all(&[0x0f, 0x0b].repeat(size.div_ceil(2))).unwrap();
    }
    is_ready(&plugin).await;
}

#[tokio::test]
async fn a_first_call_is_not_made_again_while_nothing_it_depends_on_changed() {
    let folder = tempfile::tempdir().unwrap();
    let with = |config: &str| spec(&json!({"config": {"name": config}}));
    let load = async |config: &str| {
        let engine = Engine::new(&options(folder.path())).unwrap();
        let bytes = encode::guest("ready").into();
        let artifact = Artifact { name: "p".into(), digest: "sha256:0".into(), bytes };
        Plugin::load(&engine, artifact, &with(config)).await.unwrap()
    };
    let first = load("one").await;
    let one = said(folder.path(), 1).await;
    let again = load("one").await;
    assert_eq!((again.origin(), again.manifest()), (Origin::Cached, first.manifest()));
    assert_eq!(said(folder.path(), 1).await, one);
    is_ready(&again).await;
    drop(load("two").await);
    assert_eq!(said(folder.path(), 2).await.len(), 2, "another config is another call");
    // What somebody wrote there is not believed.
    let forged = fs::read(&one[0]).unwrap();
    let forged = String::from_utf8_lossy(&forged).replace("0.1.0", "9.9.9").into_bytes();
    fs::remove_file(&one[0]).unwrap();
    fs::write(&one[0], forged).unwrap();
    assert_eq!(load("one").await.manifest(), first.manifest());
}

#[tokio::test]
async fn a_disk_that_is_full_or_cannot_be_written_costs_time_and_nothing_else() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for folder in ["/proc/no-folder-can-be-made-here".into(), file.path().join("below")] {
        let engine = Engine::new(&options(&folder)).unwrap();
        let plugin = load(&engine, "ready").await.unwrap();
        assert_eq!(plugin.origin(), Origin::Compiled);
        is_ready(&plugin).await;
    }
}

#[tokio::test]
async fn code_for_another_kind_of_engine_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    drop(load(&Engine::new(&options(folder.path())).unwrap(), "ready").await.unwrap());
    let allocation = pintle_plugin::Allocation::OnDemand;
    let other = Engine::new(&Options { allocation, ..options(folder.path()) }).unwrap();
    let plugin = load(&other, "ready").await.unwrap();
    assert_eq!(plugin.origin(), Origin::Compiled);
    is_ready(&plugin).await;
    assert_eq!(entries(folder.path()).len(), 2);
}

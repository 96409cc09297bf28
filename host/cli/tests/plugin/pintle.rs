//! The program, and guests built once for all tests.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use pintle_dev::guest::{self, Target};
use serde_json::Value;

/// How a call of the program ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Calls `pintle plugin` in a folder.
pub(crate) fn pintle_in<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Ended {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pintle"));
    let output = program.arg("plugin").args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Ended {
    /// Standard output of a call that went well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// The document of a call with `-o json` that went well.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// What was said on standard error, of a call that failed.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{}{}", self.out, self.err);
        self.err
    }
}

/// The source tree.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap())
}

/// Components of this project by name: the plugins, and the SDK's example of each interface.
pub(crate) fn guests() -> &'static [(&'static str, PathBuf)] {
    static GUESTS: OnceLock<Vec<(&str, PathBuf)>> = OnceLock::new();
    GUESTS.get_or_init(|| {
        let own = |package| Target { package, example: None };
        let example = |name| Target { package: "pintle-plugin-sdk", example: Some(name) };
        let targets: Vec<Target<'_>> =
            PLUGINS.into_iter().map(own).chain(EXAMPLES.into_iter().map(example)).collect();
        let tell = &mut |line: &str| eprintln!("{line}");
        let toolchain = guest::toolchain(root(), tell).unwrap();
        let built = guest::build_all(&toolchain, root(), &targets, tell).unwrap();
        PLUGINS.into_iter().chain(EXAMPLES).zip(built).collect()
    })
}

/// The component of one.
pub(crate) fn guest_named(name: &str) -> &'static str {
    let (_, path) = guests().iter().find(|(known, _)| *known == name).unwrap();
    path.to_str().unwrap()
}

/// The plugins of this project.
pub(crate) const PLUGINS: [&str; 17] = [
    "accelerator-values",
    "build-on-pull-failure",
    "cluster-proxy",
    "daemonset-rollout",
    "deploy-labels",
    "device-plugin-registered",
    "driver-loaded",
    "kmm-module-loaded",
    "memcached-backup",
    "node-pools",
    "node-recovery",
    "node-validator",
    "ordered-teardown",
    "os-image-tag",
    "peer-ready",
    "upgrade-veto",
    "wait-for",
];
/// The SDK's examples.
pub(crate) const EXAMPLES: [&str; 5] = ["has_keys", "replicas", "labels", "backup_first", "greeter"];

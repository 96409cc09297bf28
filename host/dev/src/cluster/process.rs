//! Programs that end with the process that started them, however it ends.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

/// Reads its standard input until nobody can write to it any more, then ends its whole process group and
/// removes the folder that is its argument. A killed parent cannot do either; the kernel closes its pipes.
const KEEPER: &str = r#"
trap '' TERM INT HUP
while read -r _; do :; done
kill -TERM 0
sleep 0.3
[ -z "$1" ] || rm -rf -- "$1"
kill -KILL 0
"#;

/// Time a program gets to end by itself before it is killed. The API server waits for its watches, which nobody needs.
const GRACE: Duration = Duration::from_millis(1_500);

/// How often an ending program is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A process group that all programs of one control plane join.
#[derive(Debug)]
pub(crate) enum Group {
    /// Ends with this process: the keeper, leader of the group, holds the other end of a pipe.
    Tied(Child),
    /// Outlives this process. The first program leads the group.
    Detached(Option<i32>),
}

impl Group {
    /// A group that is ended by the kernel's closing of our pipe; `scratch` is removed then.
    pub(crate) fn tied(scratch: Option<&Path>) -> io::Result<Self> {
        let mut keeper = Command::new("sh");
        keeper.arg("-c").arg(KEEPER).arg("keeper");
        if let Some(folder) = scratch {
            keeper.arg(folder);
        }
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self::Tied(keeper.spawn()?))
    }

    pub(crate) const fn detached() -> Self {
        Self::Detached(None)
    }

    fn id_to_join(&self) -> i32 {
        match self {
            Self::Tied(keeper) => keeper.id().cast_signed(),
            Self::Detached(leader) => leader.unwrap_or(0),
        }
    }

    /// Starts a program in the group, with everything it prints in `log`.
    ///
    /// # Errors
    /// The log cannot be made or the program cannot be started.
    pub(crate) fn spawn(
        &mut self,
        name: &'static str,
        log: PathBuf,
        command: &mut Command,
    ) -> io::Result<Daemon> {
        let output = File::options().create(true).append(true).open(&log)?;
        let errors = output.try_clone()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(self.id_to_join())
            .spawn()?;
        let process = Process::of_child(child.id().cast_signed())?;
        if let Self::Detached(leader @ None) = self {
            *leader = Some(process.pid);
        }
        Ok(Daemon { name: name.to_owned(), log, process, child: Some(child) })
    }

    /// Lets go of a tied group: what is left of it is killed and its folder removed.
    pub(crate) fn close(self) {
        if let Self::Tied(mut keeper) = self {
            drop(keeper.stdin.take());
            // The keeper kills itself last, so its end is the end of all.
            drop(keeper.wait());
        }
    }
}

/// One process for as long as it lives: a pid alone may be given to another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pid: i32,
    /// Clock ticks after boot, field 22 of `/proc/PID/stat`.
    started: u64,
}

impl Process {
    /// A child that has not been waited for, which is there even when it has ended.
    fn of_child(pid: i32) -> io::Result<Self> {
        let (started, _) = stat(pid).ok_or_else(|| io::Error::other("no /proc to look at processes"))?;
        Ok(Self { pid, started })
    }

    pub(crate) const fn pid(self) -> i32 {
        self.pid
    }

    /// Whether it still runs; a zombie does not.
    pub(crate) fn is_running(self) -> bool {
        stat(self.pid) == Some((self.started, true))
    }

    fn signal(self, signal: Signal) {
        if !self.is_running() {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.pid) {
            // It may have ended since; then there is nothing left to do.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// The start time of a process, and whether it is more than a zombie.
fn stat(pid: i32) -> Option<(u64, bool)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    Some((fields.nth(18)?.parse().ok()?, alive))
}

/// A running program of the control plane.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Daemon {
    name: String,
    log: PathBuf,
    process: Process,
    /// Absent when another process started it.
    #[serde(skip)]
    child: Option<Child>,
}

impl Daemon {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn process(&self) -> Process {
        self.process
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// How the program ended, when it did.
    pub(crate) fn ended(&mut self) -> Option<End> {
        match &mut self.child {
            Some(child) => child.try_wait().ok().flatten().map(End::Status),
            None => (!self.process.is_running()).then_some(End::Unseen),
        }
    }

    /// The last lines it printed.
    pub(crate) fn tail(&self) -> String {
        const LINES: usize = 15;
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its parent, this process, was told.
    Status(ExitStatus),
    /// Another process was its parent.
    Unseen,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Unseen => write!(f, "exit status unknown"),
        }
    }
}

/// Asks all to end, waits, and kills those that do not.
pub(crate) async fn end(daemons: &mut [Daemon]) {
    for daemon in daemons.iter() {
        daemon.process.signal(Signal::TERM);
    }
    let deadline = Instant::now() + GRACE;
    while daemons.iter_mut().any(|daemon| daemon.ended().is_none()) {
        if Instant::now() > deadline {
            daemons.iter().for_each(|daemon| daemon.process.signal(Signal::KILL));
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    for child in daemons.iter_mut().filter_map(|daemon| daemon.child.as_mut()) {
        drop(child.wait());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn sleeper(group: &mut Group, folder: &Path) -> Daemon {
        group.spawn("sleeper", folder.join("log"), Command::new("sleep").arg("600")).unwrap()
    }

    #[tokio::test]
    async fn an_asked_program_ends_and_is_reaped() {
        let folder = tempfile::tempdir().unwrap();
        let mut group = Group::tied(None).unwrap();
        let mut daemons = [sleeper(&mut group, folder.path()), sleeper(&mut group, folder.path())];
        assert!(daemons.iter_mut().all(|daemon| daemon.ended().is_none()));
        end(&mut daemons).await;
        assert!(daemons.iter().all(|daemon| !daemon.process.is_running()));
        group.close();
    }

    #[test]
    fn closing_a_tied_group_ends_its_programs_and_removes_its_folder() {
        let outer = tempfile::tempdir().unwrap();
        let scratch = outer.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        let mut group = Group::tied(Some(&scratch)).unwrap();
        let stubborn = "trap '' TERM; while :; do sleep 1; done";
        let mut daemon =
            group.spawn("stubborn", scratch.join("log"), Command::new("sh").arg("-c").arg(stubborn)).unwrap();
        assert!(daemon.process.is_running());
        group.close();
        daemon.child.take().unwrap().wait().unwrap();
        assert!(!daemon.process.is_running() && !scratch.exists());
    }

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut group = Group::tied(None).unwrap();
        let mut daemon =
            group.spawn("counter", folder.path().join("log"), Command::new("seq").arg("100")).unwrap();
        daemon.child.as_mut().unwrap().wait().unwrap();
        assert!(daemon.tail().starts_with("86\n") && daemon.tail().ends_with("\n100"));
        assert_eq!(daemon.ended(), Some(End::Status(ExitStatus::default())));
        group.close();
    }
}

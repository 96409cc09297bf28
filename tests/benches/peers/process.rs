//! An operator as a process, which ends with what holds it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal};

/// How long an operator may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

// === impl Process ===

impl Process {
    /// Starts a program whose output goes to `log`.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        kubeconfig: &Path,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let errors = output.try_clone()?;
        let mut command = Command::new(program);
        // The second as our Deployment sets it; programs in Go have no such pools.
        command.args(arguments).env("KUBECONFIG", kubeconfig).env("MALLOC_ARENA_MAX", "1");
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = child.with_context(|| format!("could not start {}", program.display()))?;
        Ok(Self { child, log: log.to_owned() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Nothing while it runs.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the operator ended ({status}); {}", self.last_words()),
        }
    }

    /// The last lines it printed.
    pub(crate) fn last_words(&self) -> String {
        const LINES: usize = 12;
        let text = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        format!("it said at last:\n{}", last.join("\n"))
    }

    /// Asks it to end, and ends it when it takes too long.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = Pid::from_raw(self.pid().cast_signed()).context("a process has no number")?;
        rustix::process::kill_process(pid, Signal::TERM)?;
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() && asked.elapsed() < GRACE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already can neither be ended nor leave anything.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

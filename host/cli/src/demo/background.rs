//! The demo that is left running: a control plane without a parent, and a process with operator and
//! simulators beside it.

use std::{
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};
use kube::{Client, Config, config::KubeConfigOptions, config::Kubeconfig};
use pintle_dev::{ControlPlane, Options as PlaneOptions, cluster::State};
use pintle_operator::{Options, Reach};
use tokio::signal::unix::{SignalKind, signal};

use super::screen::Screen;
use crate::{
    Ending, logging, printed,
    scenario::{self, ACCOUNT, SYSTEM},
};

/// Name of the operator's log in the data folder.
const LOG: &str = "operator.log";

/// A control plane that outlives this process.
pub(super) struct Left {
    folder: PathBuf,
    kubeconfig: PathBuf,
    pub(super) registry: String,
}

// === impl Left ===

impl Left {
    /// Starts the control plane and writes down where it is.
    pub(super) async fn start(options: PlaneOptions) -> anyhow::Result<Self> {
        let plane = ControlPlane::start(options).await?;
        plane.save(&State::default_path()?).context("could not write down where the control plane is")?;
        Ok(Self {
            folder: plane.data_dir().to_owned(),
            kubeconfig: plane.kubeconfig(),
            registry: plane.registry().context("the control plane has no registry")?,
        })
    }

    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).context("could not read the kubeconfig")?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Client::try_from(config).context("could not make a client")
    }

    /// Starts this program again as operator and simulators; its log is in the data folder.
    pub(super) fn start_operator(&self) -> anyhow::Result<()> {
        let log =
            std::fs::File::create(self.folder.join(LOG)).context("could not make the operator's log")?;
        let program = std::env::current_exe().context("could not find this program")?;
        let child = Command::new(program)
            .args(["demo", "--serve"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("could not start the operator")?;
        std::fs::write(pid_file(&self.folder), child.id().to_string())
            .context("could not write down the operator's pid")
    }

    /// Where the operator serves its metrics.
    pub(super) fn metrics(&self) -> anyhow::Result<Option<SocketAddr>> {
        let text = std::fs::read_to_string(self.folder.join("metrics-address")).unwrap_or_default();
        Ok(text.trim().parse().ok())
    }

    /// How to look at it and how to stop it.
    pub(super) fn tell(&self, screen: &Screen) {
        screen.say("\nThe cluster is still running. To look at it:");
        screen.say(&format!("  export KUBECONFIG={}", self.kubeconfig.display()));
        screen.say("  kubectl get specialresources,pods -A");
        screen.say("  kubectl describe sr simple-kmod");
        let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
        screen.say(&format!("  {program} why sr/simple-kmod"));
        screen.say(&format!("  tail -f {}", self.folder.join(LOG).display()));
        screen.say("To stop it:");
        screen.say(&format!("  {program} demo --stop"));
    }
}

/// The folder of the demo that is left running.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let folder = pintle_dev::cache::root().context("there is no cache folder")?.join("demo");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("could not remove what an earlier demo left")?;
    }
    std::fs::create_dir_all(&folder).context("could not make the demo's folder")?;
    Ok(folder)
}

/// One demo at a time is left running.
pub(super) fn refuse_second() -> anyhow::Result<()> {
    match State::load(&State::default_path()?)? {
        Some(state) if state.is_running() => {
            bail!("a demo is running already; stop it with `pintle demo --stop`")
        }
        _ => Ok(()),
    }
}

/// Operator and simulators for the control plane that is left running, until SIGTERM.
pub(super) async fn serve() -> anyhow::Result<Ending> {
    logging::start(logging::Format::Text, None)?;
    let state = State::load(&State::default_path()?)?.context("no demo is running")?;
    let mut plane = state.attach().context("the demo's folder is gone")?;
    plane.simulate()?;
    plane.simulators().map(scenario::teach_driver).context("nothing simulates the nodes")?;
    let options = operator_options(&plane).await?;
    if let Some(address) = options.metrics {
        std::fs::write(plane.data_dir().join("metrics-address"), address.to_string())?;
    }
    let mut term = signal(SignalKind::terminate())?;
    pintle_operator::run(options, async move {
        term.recv().await;
    })
    .await
    .context("the operator stopped")?;
    Ok(Ending::Done)
}

/// Ends operator, simulators and control plane.
pub(super) async fn stop() -> anyhow::Result<Ending> {
    let path = State::default_path()?;
    let Some(state) = State::load(&path)? else {
        printed::print("no demo is running\n")?;
        return Ok(Ending::Done);
    };
    let folder = state.data_dir().to_owned();
    if let Ok(pid) = std::fs::read_to_string(pid_file(&folder)) {
        let _ = Command::new("kill").arg(pid.trim()).status();
    }
    state.attach().context("the demo's folder is gone")?.stop().await;
    std::fs::remove_file(&path).context("could not forget the demo")?;
    printed::print("the demo is stopped\n")?;
    Ok(Ending::Done)
}

/// The operator as `deploy/` would run it: its own account, its own rights.
pub(super) async fn operator_options(plane: &ControlPlane) -> anyhow::Result<Options> {
    let config =
        plane.service_account(SYSTEM, ACCOUNT).await.context("could not get a token for the operator")?;
    let metrics = free_address()?;
    Ok(Options {
        metrics: Some(metrics),
        election: Some("pintle".to_owned()),
        compiler: crate::operator::compiler(),
        ..Options::new(Reach::Given(Box::new(config)), SYSTEM)
    })
}

fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("could not find a free port")?;
    listener.local_addr().context("could not find a free port")
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("operator.pid")
}

//! `pintle demo`: the whole product on this machine.

mod background;
mod follow;
mod screen;
mod summary;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::ValueEnum;
use kube::Client;
use pintle_dev::{
    ControlPlane, Options as PlaneOptions, binaries, cluster::RegistryStorage, guest, nodes, registry,
    stages::Timings,
};

use self::{screen::Screen, summary::Summary};
use crate::{Ending, printed, scenario};

/// Worker nodes of the demo.
const NODES: [&str; 3] = ["worker-0", "worker-1", "worker-2"];
/// The plugin of the example.
const PLUGIN: &str = "driver-loaded";

/// Arguments of `pintle demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tears everything down at the end: exits 0 when the example became ready, 3 when it did not in time.
    #[arg(long)]
    once: bool,
    /// `json` prints one document at the end instead of lines on the way.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    /// How long the example may take, in seconds.
    #[arg(long, default_value_t = 180)]
    timeout: u64,
    /// Stops what an earlier demo left running.
    #[arg(long, conflicts_with_all = ["once"])]
    stop: bool,
    /// Runs operator and simulators for a control plane that is left running.
    #[arg(long, hide = true)]
    serve: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Seconds of each part, in order.
type Phases = Vec<(&'static str, f64)>;

pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { once, output, timeout, stop, serve } = args;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if serve {
        return runtime.block_on(background::serve());
    }
    if stop {
        return runtime.block_on(background::stop());
    }
    let screen = Screen::new(output == Output::Json);
    let timeout = Duration::from_secs(timeout);
    let (summary, ending) = if once {
        runtime.block_on(run_once(&screen, timeout))?
    } else {
        runtime.block_on(run_and_leave(&screen, timeout))?
    };
    if output == Output::Json {
        printed::print(&format!("{}\n", serde_json::to_string_pretty(&summary)?))?;
    }
    Ok(ending)
}

/// What is built before anything can run.
struct Parts {
    binaries: binaries::Binaries,
    component: PathBuf,
}

fn build(screen: &Screen, phases: &mut Phases) -> anyhow::Result<Parts> {
    let binaries = timed(phases, "programs", || {
        screen.step("control plane: etcd, kube-apiserver, controllers, scheduler, nodes, registry");
        binaries::ensure(&mut |line| screen.detail(line))
            .context("could not build the control plane's programs")
    })?;
    let component = timed(phases, "plugin", || {
        screen.step("plugin: driver-loaded, as a WebAssembly component");
        guest::build(scenario::source_tree(), PLUGIN, &mut |line| screen.detail(line))
            .context("could not build the plugin")
    })?;
    Ok(Parts { binaries, component })
}

async fn run_once(screen: &Screen, timeout: Duration) -> anyhow::Result<(Summary, Ending)> {
    let mut phases = Phases::new();
    let parts = build(screen, &mut phases)?;
    let started = Instant::now();
    screen.step("starting the control plane");
    let plane = ControlPlane::start(plane_options(parts.binaries.clone(), None)).await?;
    phases.push(("control plane", started.elapsed().as_secs_f64()));
    plane.simulators().map(scenario::teach_driver).context("nothing simulates the nodes")?;
    let client = plane.client()?;
    let registry = plane.registry().context("the control plane has no registry")?;
    let started = Instant::now();
    let image = prepare(screen, &client, &registry, &parts).await?;
    let options = background::operator_options(&plane).await?;
    let metrics = options.metrics;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let operator = tokio::spawn(pintle_operator::run(options, async move {
        let _ = stopped.await;
    }));
    install(&client, &image).await?;
    phases.push(("install", started.elapsed().as_secs_f64()));
    let (ready, seconds) = follow::until_ready(&client, screen, timeout).await?;
    phases.push(("ready", seconds));
    let summary = Summary::collect(&client, metrics, phases, ready).await?;
    summary.draw(screen);
    let _ = stop.send(());
    let ended = operator.await.context("the operator's task failed")?;
    plane.stop().await;
    ended.context("the operator stopped by itself")?;
    Ok((summary, if ready { Ending::Done } else { Ending::NotReadyInTime }))
}

async fn run_and_leave(screen: &Screen, timeout: Duration) -> anyhow::Result<(Summary, Ending)> {
    let mut phases = Phases::new();
    background::refuse_second()?;
    let parts = build(screen, &mut phases)?;
    let started = Instant::now();
    screen.step("starting the control plane");
    let left =
        background::Left::start(plane_options(parts.binaries.clone(), Some(background::folder()?))).await?;
    phases.push(("control plane", started.elapsed().as_secs_f64()));
    let started = Instant::now();
    let client = left.client().await?;
    let image = prepare(screen, &client, &left.registry, &parts).await?;
    left.start_operator()?;
    install(&client, &image).await?;
    phases.push(("install", started.elapsed().as_secs_f64()));
    let (ready, seconds) = follow::until_ready(&client, screen, timeout).await?;
    phases.push(("ready", seconds));
    let summary = Summary::collect(&client, left.metrics()?, phases, ready).await?;
    summary.draw(screen);
    left.tell(screen);
    Ok((summary, if ready { Ending::Done } else { Ending::NotReadyInTime }))
}

fn plane_options(binaries: binaries::Binaries, folder: Option<PathBuf>) -> PlaneOptions {
    let detach = folder.is_some();
    let registry = folder
        .as_ref()
        .map_or(RegistryStorage::Memory, |folder| RegistryStorage::Folder(folder.join("registry")));
    PlaneOptions {
        timings: Timings::watchable(),
        data_dir: folder,
        detach,
        registry: Some(registry),
        ..PlaneOptions::new(binaries)
    }
}

/// Nodes, the operator's objects, the plugin in the registry; gives the image by digest.
async fn prepare(screen: &Screen, client: &Client, registry: &str, parts: &Parts) -> anyhow::Result<String> {
    for name in NODES {
        nodes::create(client, &nodes::NodeSpec::worker(name))
            .await
            .with_context(|| format!("could not make node {name}"))?;
    }
    screen.step("installing the operator: definitions, account, rights");
    scenario::install_operator(client).await?;
    screen.step("pushing the plugin to the registry");
    let bytes = std::fs::read(&parts.component).context("could not read the built plugin")?;
    let name = format!("{registry}/pintle/{PLUGIN}");
    let artifact = registry::Artifact { component: bytes, ..registry::Artifact::default() };
    let digest =
        registry::push(&format!("{name}:0.1.0"), &artifact).await.context("could not push the plugin")?;
    Ok(format!("oci://{name}@{digest}"))
}

/// The example: plugin, chart, SpecialResource.
async fn install(client: &Client, image: &str) -> anyhow::Result<()> {
    scenario::install_plugin(client, image).await?;
    let folder = scenario::chart_folder("simple-kmod");
    scenario::install_chart(client, &folder, "simple-kmod", "simple-kmod-chart").await?;
    scenario::apply(client, scenario::special_resource()?).await
}

fn timed<T>(
    phases: &mut Phases,
    name: &'static str,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let started = Instant::now();
    let done = work()?;
    phases.push((name, started.elapsed().as_secs_f64()));
    Ok(done)
}

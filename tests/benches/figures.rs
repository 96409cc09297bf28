//! Figures of the example: seconds and megabytes, as one table. Times are told, not judged: tests hold the counts.
//!
//! The operator is a process of its own, by way of this program: `figures operator …` is `pintle operator …`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use pintle::scenario;
use pintle_dev::{
    ControlPlane, Options,
    audit::{Mark, Stage as Progress},
    binaries, nodes, registry,
};
use pintle_tests::stage::{component, condition};
use serde_json::{Value, json};

const USER: &str = "system:serviceaccount:pintle-system:pintle";
/// Silence after convergence, in seconds; design.md asks for five minutes.
const SILENCE: u64 = 300;

/// The operator as people run it: a process, with a kubeconfig of its account.
struct Operator(Child);

impl Operator {
    /// `lease` is one nobody held: who follows a crash waits for the lease of who crashed.
    fn start(kubeconfig: &Path, plain: &str, lease: &str) -> Self {
        let args =
            ["operator", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect"];
        let election = format!("--leader-election-id={lease}");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(args)
            .arg(election)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--plain-http-registry", plain, "--log-level=error"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Peak of its resident memory so far, in MiB.
    fn peak(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1024.0
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn main() -> ExitCode {
    if matches!(std::env::args().nth(1).as_deref(), Some("operator" | "compile")) {
        return pintle::main();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

async fn measure() {
    let silence =
        std::env::var("PINTLE_QUIET_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SILENCE);
    let started = Instant::now();
    let plane = start_plane().await;
    tell("control plane ready, as it was built before", started.elapsed().as_secs_f64(), "s", "6");
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = prepare(&plane, folder.path()).await;
    let registry = plane.registry().unwrap();

    let operator = Operator::start(&kubeconfig, &registry, "idle");
    tokio::time::sleep(Duration::from_secs(10)).await;
    tell("operator without a custom resource, peak memory", operator.peak(), "MiB", "20");
    drop(operator);

    install_plugin(&plane).await;
    let operator = Operator::start(&kubeconfig, &registry, "busy");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mark = plane.audit().settled().await.unwrap();
    let seconds = make_ready(&plane).await;
    tell("example Ready after its SpecialResource", seconds, "s", "5 + build and back-off");
    tell("of that scripted: build and back-off of pulls", scripted(&plane), "s", "");
    tell("state 0000 ready to first write of state 1000", between_states(&plane, mark).await, "ms", "250");
    tell("operator with the example Ready, peak memory", operator.peak(), "MiB", "40");
    tell_silence(&plane, silence).await;
    tell("the same after the silence", operator.peak(), "MiB", "40");
    drop(operator);
    plane.stop().await;
}

/// One row: what, how much, and the budget.
fn tell(what: &str, value: f64, unit: &str, budget: &str) {
    println!("{what:<52} {value:>9.2} {unit:<4} budget {}", if budget.is_empty() { "-" } else { budget });
}

async fn start_plane() -> ControlPlane {
    let binaries = binaries::ensure(&mut |line| eprintln!("{line}")).unwrap();
    let definitions = pintle_api::crd::all().into_iter().filter_map(|crd| serde_json::to_value(crd).ok());
    ControlPlane::start(Options { definitions: definitions.collect(), ..Options::new(binaries) })
        .await
        .unwrap()
}

/// Nodes, and the operator's own objects; gives the kubeconfig of its account.
async fn prepare(plane: &ControlPlane, folder: &Path) -> PathBuf {
    plane.simulators().map(scenario::teach_driver).unwrap();
    let client = plane.client().unwrap();
    for name in ["worker-0", "worker-1", "worker-2"] {
        nodes::create(&client, &nodes::NodeSpec::worker(name)).await.unwrap();
    }
    scenario::install_operator(&client).await.unwrap();
    let path = folder.join("kubeconfig");
    plane.write_service_account_kubeconfig(scenario::SYSTEM, scenario::ACCOUNT, &path).await.unwrap();
    path
}

async fn install_plugin(plane: &ControlPlane) {
    let bytes = tokio::task::spawn_blocking(|| component("driver-loaded")).await.unwrap().unwrap();
    let registry = plane.registry().unwrap();
    let artifact = registry::Artifact { component: bytes, ..Default::default() };
    let digest = registry::push(&format!("{registry}/test/driver-loaded:1"), &artifact).await.unwrap();
    let image = format!("oci://{registry}/test/driver-loaded@{digest}");
    scenario::install_plugin(&plane.client().unwrap(), &image).await.unwrap();
}

/// Seconds from the creation of the example's SpecialResource until it is Ready.
async fn make_ready(plane: &ControlPlane) -> f64 {
    use futures::StreamExt as _;
    let client = plane.client().unwrap();
    let folder = scenario::chart_folder("simple-kmod");
    scenario::install_chart(&client, &folder, "simple-kmod", "simple-kmod-chart").await.unwrap();
    let started = Instant::now();
    scenario::apply(&client, scenario::special_resource().unwrap()).await.unwrap();
    let api: kube::Api<pintle_api::SpecialResource> = kube::Api::all(client);
    let mut changes = Box::pin(kube::runtime::watcher::watch_object(api, "simple-kmod"));
    while let Some(change) = changes.next().await {
        if let Ok(Some(owner)) = change
            && condition(&owner, "Ready").as_deref() == Some("True")
        {
            break;
        }
    }
    started.elapsed().as_secs_f64()
}

fn scripted(plane: &ControlPlane) -> f64 {
    (plane.timings().build + plane.timings().pull_backoff + plane.timings().pod_ready * 2).as_secs_f64()
}

/// Milliseconds from the last write of the first state to the first of the next.
async fn between_states(plane: &ControlPlane, mark: Mark) -> f64 {
    plane.audit().settled().await.unwrap();
    let requests = plane.audit().requests_since(USER, mark).unwrap();
    let at = |resource: &str| {
        let found = requests.iter().find(|request| request.is_write() && request.resource == resource);
        found.expect("both states were written").time
    };
    at("serviceaccounts").duration_since(at("imagestreams")).as_millis() as f64
}

/// Counts what a converged release costs.
async fn tell_silence(plane: &ControlPlane, seconds: u64) {
    tokio::time::sleep(Duration::from_secs(6)).await;
    let mark = plane.audit().settled().await.unwrap();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let mut requests = plane.audit().requests_since(USER, mark).unwrap();
    requests.retain(|request| request.verb != "watch" || request.stage == Progress::Started);
    let (lease, rest): (Vec<_>, Vec<_>) =
        requests.into_iter().partition(|request| request.resource == "leases");
    let (watches, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|request| request.verb == "watch");
    let count = |list: &[_]| list.len() as f64;
    println!("{}", json!({"silence": seconds, "lease": lease.len(), "watches begun": watches.len()}));
    tell("requests in the silence but watches and lease", count(&rest), "", "0");
    let told: Vec<Value> =
        rest.iter().map(|request| json!([request.verb, request.uri, request.code])).collect();
    assert!(rest.is_empty(), "{told:#?}");
}

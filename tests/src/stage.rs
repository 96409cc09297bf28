//! One test's share of the control plane: an operator of its own that looks after owners with the
//! test's label, and a namespace of its own.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::OnceLock,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow};
use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    runtime::watcher::watch_object,
};
use pintle::scenario;
use pintle_api::SpecialResource;
use pintle_dev::{
    ControlPlane, Options as PlaneOptions, binaries, faults::FaultProxy, guest, nodes, registry,
};
use pintle_operator::{Options, Reach};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, task::JoinHandle};

use crate::Account;

/// Label that gives an owner to the operator of one test.
const LABEL: &str = "test";
/// How long a condition may take; tests are woken by events and end much sooner.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One test's share of the control plane.
pub struct Stage {
    /// Name of the test: of its namespace, its SpecialResource and its label.
    pub name: String,
    /// An administrator.
    pub client: Client,
    /// The operator's user name, for the audit log.
    pub user: String,
    account: Account,
    operator: Option<Operator>,
}

/// An operator that runs in this process.
struct Operator {
    stop: tokio::sync::oneshot::Sender<()>,
    task: JoinHandle<Result<(), pintle_operator::Error>>,
}

/// Ends an operator that runs in this process.
#[derive(Clone, Debug)]
pub struct Trigger(tokio::task::AbortHandle);

// === impl Trigger ===

impl Trigger {
    /// Ends the operator; it does nothing more when this returns.
    pub async fn pull(&self) {
        self.0.abort();
        while !self.0.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Its own tasks were aborted with it, and end when they are next looked at.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The control plane of this process, with three workers and the operator's objects.
pub async fn plane() -> anyhow::Result<&'static ControlPlane> {
    static PREPARED: OnceCell<()> = OnceCell::const_new();
    let plane = tokio::task::spawn_blocking(|| ControlPlane::shared(plane_options)).await?;
    PREPARED.get_or_try_init(|| prepare(plane)).await?;
    Ok(plane)
}

fn plane_options() -> PlaneOptions {
    let found = binaries::ensure(&mut |line| eprintln!("{line}"));
    let binaries = found.unwrap_or_else(|err| {
        eprintln!("the control plane's programs cannot be had: {err}");
        std::process::exit(1)
    });
    let definitions = pintle_api::crd::all().into_iter().filter_map(|crd| serde_json::to_value(crd).ok());
    PlaneOptions { definitions: definitions.collect(), ..PlaneOptions::new(binaries) }
}

async fn prepare(plane: &ControlPlane) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // A test binary that logs already keeps its own way.
    drop(tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init());
    plane.simulators().map(scenario::teach_driver).context("nothing simulates the nodes")?;
    let client = plane.client()?;
    for name in ["worker-0", "worker-1", "worker-2"] {
        nodes::create(&client, &nodes::NodeSpec::worker(name)).await?;
    }
    scenario::install_operator(&client).await?;
    let image = push_plugin(plane, "driver-loaded").await?;
    scenario::install_plugin(&client, &image).await
}

/// Builds a plugin of ours once a process; gives its component's bytes.
///
/// # Errors
/// When it cannot be built.
pub fn component(package: &str) -> anyhow::Result<Vec<u8>> {
    static BUILT: OnceLock<std::sync::Mutex<BTreeMap<String, Vec<u8>>>> = OnceLock::new();
    let mut built =
        BUILT.get_or_init(Default::default).lock().map_err(|_| anyhow!("an earlier build failed"))?;
    if let Some(bytes) = built.get(package) {
        return Ok(bytes.clone());
    }
    let path = guest::build(scenario::source_tree(), package, &mut |line| eprintln!("{line}"))
        .map_err(|err| anyhow!("could not build {package}: {err}"))?;
    let bytes = std::fs::read(path)?;
    built.insert(package.to_owned(), bytes.clone());
    Ok(bytes)
}

/// Builds and pushes a plugin of ours; gives its image by digest.
///
/// # Errors
/// When it cannot be built, or the registry refuses it.
pub async fn push_plugin(plane: &ControlPlane, package: &str) -> anyhow::Result<String> {
    let name = package.to_owned();
    let bytes = tokio::task::spawn_blocking(move || component(&name)).await??;
    push(plane, package, bytes).await
}

/// Pushes a component; gives its image by digest.
///
/// # Errors
/// When the registry refuses it.
pub async fn push(plane: &ControlPlane, name: &str, component: Vec<u8>) -> anyhow::Result<String> {
    let registry = plane.registry().context("the control plane has no registry")?;
    let artifact = registry::Artifact { component, ..Default::default() };
    let digest = registry::push(&format!("{registry}/test/{name}:1"), &artifact).await?;
    Ok(format!("oci://{registry}/test/{name}@{digest}"))
}

impl Stage {
    /// A namespace and an operator for one test. `name` is a DNS label of its own.
    ///
    /// # Errors
    /// When the control plane cannot be had.
    pub async fn new(name: &str) -> anyhow::Result<Self> {
        let mut stage = Self::without_operator(name).await?;
        stage.start();
        Ok(stage)
    }

    /// A share without an operator yet.
    ///
    /// # Errors
    /// When the control plane cannot be had.
    pub async fn without_operator(name: &str) -> anyhow::Result<Self> {
        let plane = plane().await?;
        let account = Account::like_the_operators(plane, name).await?;
        Self::with_account(name, account).await
    }

    /// A share without an operator yet, whose operator will have an account of the test's choice.
    ///
    /// # Errors
    /// When the control plane cannot be had.
    pub async fn with_account(name: &str, account: Account) -> anyhow::Result<Self> {
        let client = plane().await?.client()?;
        Ok(Self { name: name.to_owned(), client, user: account.user(), account, operator: None })
    }

    /// How the test's operator reaches the API server when nothing stands between.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach::Given(Box::new(self.account.config.clone()))
    }

    /// A proxy between the test's operator and the API server, and how the operator reaches it.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn proxy(&self) -> anyhow::Result<(FaultProxy, Reach)> {
        let proxy = FaultProxy::start(plane().await?).await?;
        let config = proxy.config(&self.account.config)?;
        Ok((proxy, Reach::Given(Box::new(config))))
    }

    /// The operator of this test, with defaults that a test may change.
    #[must_use]
    pub fn options(&self, reach: Reach) -> Options {
        Options { selector: format!("{LABEL}={}", self.name), ..Options::new(reach, scenario::SYSTEM) }
    }

    /// Starts the operator of this test with nothing between it and the API server.
    pub fn start(&mut self) {
        self.start_operator(self.reach());
    }

    /// Starts the operator of this test.
    pub fn start_operator(&mut self, reach: Reach) {
        let options = self.options(reach);
        self.start_operator_with(options);
    }

    /// Starts the operator of this test with options of its own.
    pub fn start_operator_with(&mut self, options: Options) {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(pintle_operator::run(options, async move {
            let _ = stopped.await;
        }));
        self.operator = Some(Operator { stop, task });
    }

    /// Stops the operator as SIGTERM would, and waits for its end.
    ///
    /// # Errors
    /// When it had ended by itself.
    pub async fn stop_operator(&mut self) -> anyhow::Result<()> {
        let Some(Operator { stop, task }) = self.operator.take() else { return Ok(()) };
        let _ = stop.send(());
        task.await?.context("the operator had ended by itself")
    }

    /// Ends the operator between two instructions, as a crash would.
    pub async fn kill_operator(&mut self) {
        if let Some(Operator { task, .. }) = self.operator.take() {
            task.abort();
            let _ = task.await;
        }
    }

    /// What ends the operator from elsewhere, between two instructions.
    #[must_use]
    pub fn trigger(&self) -> Option<Trigger> {
        self.operator.as_ref().map(|operator| Trigger(operator.task.abort_handle()))
    }

    /// The example's chart in the test's namespace, and a SpecialResource of the test's name for it.
    ///
    /// # Errors
    /// When the API server refuses an object.
    pub async fn install_example(&self) -> anyhow::Result<()> {
        self.install_chart(&scenario::chart_folder("simple-kmod")).await?;
        self.apply(self.example()?).await
    }

    /// A chart's folder as ConfigMap `chart` in the test's namespace.
    ///
    /// # Errors
    /// When the folder is no chart.
    pub async fn install_chart(&self, folder: &Path) -> anyhow::Result<()> {
        scenario::install_chart(&self.client, folder, &self.name, "chart").await
    }

    /// The example's SpecialResource with the names and the label of this test.
    ///
    /// # Errors
    /// When the file in `deploy/example` cannot be read.
    pub fn example(&self) -> anyhow::Result<Value> {
        let mut owner = scenario::special_resource()?;
        owner["metadata"] = json!({"name": self.name, "labels": {LABEL: self.name}});
        owner["spec"]["namespace"] = json!(self.name);
        owner["spec"]["chart"]["repository"]["url"] = json!(format!("cm://{}/chart", self.name));
        Ok(owner)
    }

    /// Applies any object as an administrator.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn apply(&self, object: Value) -> anyhow::Result<()> {
        scenario::apply(&self.client, object).await
    }

    /// Waits until the SpecialResource is as `wanted` says.
    ///
    /// # Errors
    /// After [`PATIENCE`], with the last status.
    pub async fn wait_until(
        &self,
        what: &str,
        wanted: impl Fn(&SpecialResource) -> bool,
    ) -> anyhow::Result<SpecialResource> {
        self.wait_until_within(PATIENCE, what, wanted).await
    }

    /// Waits until the SpecialResource is as `wanted` says, for so long.
    ///
    /// # Errors
    /// When the time is over, with the last status.
    pub async fn wait_until_within(
        &self,
        patience: Duration,
        what: &str,
        wanted: impl Fn(&SpecialResource) -> bool,
    ) -> anyhow::Result<SpecialResource> {
        let api: Api<SpecialResource> = Api::all(self.client.clone());
        let mut changes = Box::pin(watch_object(api, &self.name));
        let (started, mut last) = (Instant::now(), None);
        let waited = tokio::time::timeout(patience, async {
            while let Some(change) = changes.next().await {
                let Ok(Some(owner)) = change else { continue };
                if wanted(&owner) {
                    return Some(owner);
                }
                last = Some(owner);
            }
            None
        });
        match waited.await {
            Ok(Some(owner)) => Ok(owner),
            _ => {
                let status = last.and_then(|owner| owner.status);
                let status = serde_json::to_string_pretty(&status).unwrap_or_default();
                Err(anyhow!("{}: not {what} after {:?}; its status: {status}", self.name, started.elapsed()))
            }
        }
    }

    /// Waits until the SpecialResource is Ready.
    ///
    /// # Errors
    /// After [`PATIENCE`], with the last status.
    pub async fn wait_until_ready(&self) -> anyhow::Result<SpecialResource> {
        self.wait_until("Ready", |owner| condition(owner, "Ready").as_deref() == Some("True")).await
    }

    /// Takes the finalizers of the SpecialResource away and deletes it: no operator is there to do it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn release_owner(&self) -> anyhow::Result<()> {
        self.edit("SpecialResource", &self.name, json!({"metadata": {"finalizers": null}})).await?;
        self.delete("SpecialResource", &self.name).await
    }

    /// An object in the test's namespace, or of cluster scope.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn get(
        &self,
        api_version: &str,
        kind: &str,
        plural: &str,
        name: &str,
    ) -> anyhow::Result<DynamicObject> {
        self.api(api_version, kind, plural)
            .get(name)
            .await
            .with_context(|| format!("could not read {kind} {name}"))
    }

    /// Access to a namespaced kind in the test's namespace.
    #[must_use]
    pub fn api(&self, api_version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Api::namespaced_with(self.client.clone(), &self.name, &resource)
    }
}

/// Status of one condition of a SpecialResource.
#[must_use]
pub fn condition(owner: &SpecialResource, kind: &str) -> Option<String> {
    let conditions = &owner.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.kind == kind).map(|condition| condition.status.clone())
}

/// The operator's own account, with the rights of `deploy/`.
///
/// # Errors
/// When the API server gives no token.
pub async fn account(plane: &ControlPlane) -> anyhow::Result<kube::Config> {
    Ok(plane.service_account(scenario::SYSTEM, scenario::ACCOUNT).await?)
}

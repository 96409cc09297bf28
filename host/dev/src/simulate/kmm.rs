//! The Kernel Module Management operator: a Module is loaded on the nodes it selects, and says how many have it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use regex::Regex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Name of its definition.
const NAME: &str = "modules.kmm.sigs.x-k8s.io";
/// Finalizer of that operator: a Module goes once no node has it loaded.
const FINALIZER: &str = "kmm.node.kubernetes.io/module-finalizer";
/// Prefix of the labels of a loaded Module: `<namespace>.<name>.ready`, `<namespace>.<name>.version.ready`.
const LOADED: &str = "kmm.node.kubernetes.io/";

/// How one Module gets onto one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    /// From the moment the node is eligible to the moment the module is loaded. Nothing means never.
    pub after: Option<Duration>,
    /// What its device plugin tells the kubelet once it is loaded: resource and count.
    pub devices: Option<(String, u32)>,
}

/// A Module that is about to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The node; empty when it is asked whether the Module is known at all.
    pub node: String,
    /// `spec.moduleLoader.container.version`, empty without one.
    pub version: String,
}

type Rule = Box<dyn Fn(&ModuleFacts) -> Option<Loading> + Send + Sync>;

/// The Kernel Module Management operator of a simulated cluster. It runs while this exists.
pub struct Kmm {
    rules: Arc<Rules>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Rules {
    rules: Mutex<Vec<Rule>>,
}

struct Controller {
    client: Client,
    rules: Arc<Rules>,
    modules: HashMap<String, DynamicObject>,
    nodes: BTreeMap<String, Node>,
    /// Modules on their way onto nodes, by uid and node.
    loading: HashMap<(String, String), JoinHandle<()>>,
    /// What has been asked of nodes and is not seen yet.
    settled: HashSet<(String, String, String)>,
}

/// Something that changed.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Change {
    Module(Event<DynamicObject>),
    Node(Event<Node>),
}

// === impl Kmm ===

impl Kmm {
    /// Starts the simulator on a cluster that serves its kind; see [`install`].
    pub(super) fn start(client: Client) -> Self {
        let rules = Arc::new(Rules::default());
        let controller = Controller {
            client,
            rules: rules.clone(),
            modules: HashMap::new(),
            nodes: BTreeMap::new(),
            loading: HashMap::new(),
            settled: HashSet::new(),
        };
        Self { rules, task: tokio::spawn(controller.run()) }
    }

    /// Says how Modules are loaded from now on. The newest rule that answers wins; a Module that no rule knows is
    /// left alone.
    pub fn rule(&self, rule: impl Fn(&ModuleFacts) -> Option<Loading> + Send + Sync + 'static) {
        self.rules.lock().push(Box::new(rule));
    }
}

impl fmt::Debug for Kmm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kmm").field("rules", &self.rules.lock().len()).finish_non_exhaustive()
    }
}

impl Drop for Kmm {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How Modules are asked for.
#[must_use]
pub fn resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("kmm.sigs.x-k8s.io", "v1beta1", "Module"),
        "modules",
    )
}

/// Serves the kind: a definition that keeps every field.
///
/// # Errors
/// The API server refuses it.
pub(super) async fn install(client: &Client) -> Result<(), kube::Error> {
    let (definition, kinds) = (definition(), Api::<CustomResourceDefinition>::all(client.clone()));
    let how = PatchParams::apply("pintle-dev").force();
    kinds.patch(NAME, &how, &Patch::Apply(&definition)).await?;
    let established = await_condition(kinds, NAME, is_crd_established()).await;
    established.map(drop).map_err(|error| kube::Error::Service(error.into()))
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "kmm.sigs.x-k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "modules", "singular": "module", "kind": "Module", "listKind": "ModuleList"},
            "versions": [{
                "name": "v1beta1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

// === impl Rules ===

impl Rules {
    fn loading(&self, facts: &ModuleFacts) -> Option<Loading> {
        self.lock().iter().rev().find_map(|rule| rule(facts))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Controller ===

impl Drop for Controller {
    fn drop(&mut self) {
        self.loading.values().for_each(JoinHandle::abort);
    }
}

impl Controller {
    /// Never returns.
    async fn run(mut self) {
        let modules = Api::<DynamicObject>::all_with(self.client.clone(), &resource());
        let nodes = Api::<Node>::all(self.client.clone());
        let events = futures::stream::select(
            watcher(modules, watcher::Config::default()).map(|event| event.map(Change::Module)),
            watcher(nodes, watcher::Config::default()).map(|event| event.map(Change::Node)),
        );
        pin_mut!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(change) => {
                    self.note(change);
                    self.settle().await;
                }
                // The watcher itself waits and tries again.
                Err(error) => {
                    tracing::debug!(%error, "a watch of the simulated module operator broke");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::Module(event) => self.note_module(event),
            Change::Node(event) => match event {
                Event::Apply(node) | Event::InitApply(node) => {
                    self.nodes.insert(node.name_any(), node);
                }
                Event::Delete(node) => {
                    self.nodes.remove(&node.name_any());
                }
                Event::Init | Event::InitDone => {}
            },
        }
    }

    fn note_module(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Apply(module) | Event::InitApply(module) => {
                self.modules.insert(module.uid().unwrap_or_default(), module);
            }
            Event::Delete(module) => {
                let uid = module.uid().unwrap_or_default();
                self.modules.remove(&uid);
                self.settled.retain(|(of, ..)| *of != uid);
            }
            Event::Init | Event::InitDone => {}
        }
    }

    async fn settle(&mut self) {
        for module in self.modules.values().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.settle_one(&module).await {
                tracing::debug!(%error, name = module.name_any(), "a simulated Module was not taken");
            }
        }
    }

    async fn settle_one(&mut self, module: &DynamicObject) -> Result<(), kube::Error> {
        if self.rules.loading(&facts_of(module, "")).is_none() {
            return Ok(());
        }
        let is_going = module.metadata.deletion_timestamp.is_some();
        let modules: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &module.namespace().unwrap_or_default(), &resource());
        if !is_going && module.finalizers().is_empty() {
            let patch = json!({"metadata": {"finalizers": [FINALIZER]}});
            return modules
                .patch(&module.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await
                .map(drop);
        }
        let (mut matching, mut desired, mut available) = (0, 0, 0);
        for node in self.nodes.values().cloned().collect::<Vec<_>>() {
            let selected = is_selected(module, &node);
            let wanted = !is_going && selected && has_mapping(module, &node);
            let is_loaded = node.labels().contains_key(&label_of(module, "ready"));
            matching += u32::from(selected);
            desired += u32::from(wanted);
            available += u32::from(wanted && is_loaded);
            match (wanted, is_current(module, &node), is_loaded) {
                (true, false, _) => self.load(module, &node),
                (false, _, true) => self.unload(module, &node).await?,
                _ => {}
            }
        }
        if is_going && !self.nodes.values().any(|node| node.labels().contains_key(&label_of(module, "ready")))
        {
            let patch = json!({"metadata": {"finalizers": null}});
            return modules
                .patch(&module.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await
                .map(drop);
        }
        let counts = json!({
            "nodesMatchingSelectorNumber": matching, "desiredNumber": desired, "availableNumber": available,
        });
        if module.data.pointer("/status/moduleLoader") == Some(&counts) || is_going {
            return Ok(());
        }
        let status = json!({"status": {"moduleLoader": counts}});
        modules
            .patch_status(&module.name_any(), &PatchParams::default(), &Patch::Merge(status))
            .await
            .map(drop)
    }

    /// Loads a Module onto a node in the time that its rule says.
    fn load(&mut self, module: &DynamicObject, node: &Node) {
        let key = (module.uid().unwrap_or_default(), node.name_any());
        let done = (key.0.clone(), key.1.clone(), version_of(module));
        if self.settled.contains(&done) {
            return;
        }
        let Some(loading) = self.rules.loading(&facts_of(module, &key.1)) else { return };
        let Some(after) = loading.after else { return };
        self.settled.insert(done);
        let patch = json!({"metadata": {"labels": labels(module)}});
        let (nodes, name) = (Api::<Node>::all(self.client.clone()), node.name_any());
        let task = tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let told = async {
                if let Some((resource, count)) = loading.devices {
                    let count = json!({resource: count.to_string()});
                    let status = json!({"status": {"capacity": count, "allocatable": count}});
                    nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
                }
                nodes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await
            };
            if let Err(error) = told.await {
                tracing::debug!(%error, name, "a simulated module was not loaded");
            }
        });
        if let Some(before) = self.loading.insert(key, task) {
            before.abort();
        }
    }

    async fn unload(&mut self, module: &DynamicObject, node: &Node) -> Result<(), kube::Error> {
        let key = (module.uid().unwrap_or_default(), node.name_any());
        self.settled.retain(|(uid, name, _)| (uid, name) != (&key.0, &key.1));
        if let Some(task) = self.loading.remove(&key) {
            task.abort();
        }
        let labels = json!({label_of(module, "ready"): null, label_of(module, "version.ready"): null});
        let patch = json!({"metadata": {"labels": labels}});
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }
}

fn facts_of(module: &DynamicObject, node: &str) -> ModuleFacts {
    ModuleFacts {
        namespace: module.namespace().unwrap_or_default(),
        name: module.name_any(),
        node: node.to_owned(),
        version: version_of(module),
    }
}

fn label_of(module: &DynamicObject, end: &str) -> String {
    format!("{LOADED}{}.{}.{end}", module.namespace().unwrap_or_default(), module.name_any())
}

/// Labels of a node that has the Module loaded.
fn labels(module: &DynamicObject) -> Value {
    let mut labels = json!({label_of(module, "ready"): ""});
    let version = version_of(module);
    if !version.is_empty() {
        labels[label_of(module, "version.ready")] = json!(version);
    }
    labels
}

fn version_of(module: &DynamicObject) -> String {
    let version = module.data.pointer("/spec/moduleLoader/container/version").and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

/// The node has the Module in its present version.
fn is_current(module: &DynamicObject, node: &Node) -> bool {
    let wanted = labels(module);
    let wanted = wanted.as_object().into_iter().flatten();
    wanted.into_iter().all(|(key, value)| node.labels().get(key).map(String::as_str) == value.as_str())
}

fn is_selected(module: &DynamicObject, node: &Node) -> bool {
    let selector = module.data.pointer("/spec/selector").and_then(Value::as_object);
    selector
        .into_iter()
        .flatten()
        .all(|(key, value)| node.labels().get(key).map(String::as_str) == value.as_str())
}

fn has_mapping(module: &DynamicObject, node: &Node) -> bool {
    let kernel =
        node.status.as_ref().and_then(|status| status.node_info.as_ref()).map(|info| &*info.kernel_version);
    let kernel = kernel.unwrap_or_default();
    let mappings =
        module.data.pointer("/spec/moduleLoader/container/kernelMappings").and_then(Value::as_array);
    mappings.into_iter().flatten().any(|mapping| {
        let text = |field: &str| mapping.get(field).and_then(Value::as_str);
        text("literal") == Some(kernel)
            || text("regexp")
                .and_then(|text| Regex::new(text).ok())
                .is_some_and(|regex| regex.is_match(kernel))
    })
}

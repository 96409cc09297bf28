//! What the tests share: one control plane, connections to it, namespaces of their own, and waiting.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::{Answer, Facts as _, Object, ObjectRef, Query, Read, Recorder};
use pintle_cluster::{
    Apply, Cluster, ConnectOptions, Expect, Holder, Interest, Leadership, Reach, WatchSet, Writer,
};
use pintle_dev::{ControlPlane, Options, binaries, cluster::User};
use serde_json::{Value, json};

/// Longer than anything takes on a machine that compiles beside the tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Who the operator is in these tests; its right to everything is not what is tested.
pub(crate) const OPERATOR: &str = "operator";
/// Somebody without rights.
pub(crate) const NOBODY: &str = "nobody";

fn options() -> Options {
    let binaries = binaries::ensure(&mut |line| eprintln!("{line}")).unwrap();
    let users = [User::admin(OPERATOR), User::admin("somebody"), User::plain(NOBODY)];
    Options { registry: None, openshift: Vec::new(), users: users.into(), ..Options::new(binaries) }
}

/// The control plane of this process.
pub(crate) fn plane() -> &'static ControlPlane {
    ControlPlane::shared(options)
}

/// A connection of a user, as the operator has one.
pub(crate) async fn connect_as(user: &str) -> Arc<Cluster> {
    connect_to(plane().config(user).unwrap()).await
}

pub(crate) async fn connect_to(config: kube::Config) -> Arc<Cluster> {
    let reach = Reach::Given(Box::new(config));
    let linger = Duration::from_millis(200);
    Cluster::connect(ConnectOptions { reach, linger, ..ConnectOptions::default() }).await.unwrap()
}

/// One test's world: the operator's connection, somebody else's writer, a namespace.
pub(crate) struct World {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) writer: Writer,
    /// Another user, whose writes the caches of [`World::cluster`] do not see but by events.
    pub(crate) other: Writer,
    pub(crate) namespace: String,
}

impl World {
    pub(crate) async fn new(namespace: &str) -> Self {
        let cluster = connect_as(OPERATOR).await;
        let writer = cluster.writer(Leadership::always());
        let other = connect_as("somebody").await.writer(Leadership::always());
        let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        other.create(&object(manifest)).await.unwrap();
        Self { cluster, writer, other, namespace: namespace.to_owned() }
    }

    /// A ConfigMap of this namespace.
    pub(crate) fn map(&self, name: &str, data: Value) -> Object {
        let metadata = json!({"name": name, "namespace": self.namespace});
        object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    }

    /// The same, marked as a release's.
    pub(crate) fn owned_map(&self, name: &str, owner: &str, data: Value) -> Object {
        let mut map = self.map(name, data);
        map.set_label("pintle.dev/owner", owner);
        map
    }

    pub(crate) fn reference(&self, name: &str) -> ObjectRef {
        ObjectRef::new("v1", "ConfigMap", name).within(&self.namespace)
    }

    pub(crate) fn maps(&self) -> Interest {
        Interest::all(pintle_api::Gvk::new("v1", "ConfigMap")).within(&self.namespace)
    }

    /// An apply by somebody else, with another manager.
    pub(crate) async fn edit(&self, object: &Object) -> Object {
        let how = Apply { force: true, expect: Expect::Any, manager: Some("somebody".to_owned()) };
        (*self.other.apply(object, &how).await.unwrap().object).clone()
    }

    /// Reads as a step of the operator does, until nothing is missing, and registers what was read.
    pub(crate) async fn pass(&self, set: &WatchSet, who: &Holder, reads: &[Read]) -> Vec<bool> {
        pass(&self.cluster, set, who, reads).await
    }
}

/// One pass of the operator: read, fetch, read again; then the record is the watch set. Says for each read
/// whether something was found.
pub(crate) async fn pass(cluster: &Cluster, set: &WatchSet, who: &Holder, reads: &[Read]) -> Vec<bool> {
    for _ in 0..16 {
        let recorder = Recorder::new(&*cluster.caches);
        let found = reads.iter().map(|read| match read {
            Read::Get(target) => recorder.get(target).found().is_some(),
            Read::List(query) => recorder.list(query).found().is_some(),
            Read::Tail(log) => recorder.tail(log).found().is_some(),
            Read::Resolve(image) => recorder.resolve(image).found().is_some(),
        });
        let found = found.collect();
        let record = recorder.into_record();
        let needs = record.needs();
        if needs.is_empty() {
            set.register(who, &record);
            return found;
        }
        cluster.caches.fetch(&needs, who).await;
    }
    panic!("the reads are never answered");
}

pub(crate) fn object(json: Value) -> Object {
    Object::new(json).unwrap()
}

pub(crate) fn release(name: &str) -> Holder {
    Holder::Release(name.to_owned())
}

/// Objects of one owner.
pub(crate) fn owned_by(owner: &str) -> Query {
    let label_selector = Some(format!("pintle.dev/owner={owner}"));
    Query { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), namespace: None, label_selector }
}

/// Asks until the answer is `Some`, and fails with `what` when it never is.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The answer within the time that is given to everything.
pub(crate) async fn soon<T>(what: &str, answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| panic!("{what}: not within 30 s"))
}

/// One key of a ConfigMap as the caches have it.
pub(crate) fn data(cluster: &Cluster, target: &ObjectRef, key: &str) -> Option<String> {
    match cluster.caches.get(target) {
        Answer::Found(object) => object.str_at(&format!("/data/{key}")).map(str::to_owned),
        _ => None,
    }
}

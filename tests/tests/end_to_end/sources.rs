//! Charts behind servers: what the operator asks of them, and that Watches use them too.

use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use pintle_api::SpecialResource;
use pintle_source::{index, pack};
use pintle_tests::{
    Stage,
    stage::{self, PATIENCE},
};
use serde_json::{Value, json};

use crate::bad_input::{
    chart::Chart,
    server::{Asked, Reply, Server},
};

async fn serve_steps() -> Server {
    let repository = Chart::steps().repository();
    Server::start(move |asked: &Asked, _| match asked.target.as_str() {
        "/charts/index.yaml" => Reply::ok(repository.index.clone()),
        "/charts/steps-0.1.0.tgz" => Reply::ok(repository.archives[0].1.clone()),
        _ => Reply::status(404),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_that_only_look_again_ask_the_repository_nothing() {
    let mut stage = Stage::new("repository-asked-once").await.unwrap();
    let server = serve_steps().await;
    let owner = |more: Value| {
        let mut owner = json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": stage.name, "labels": {"test": stage.name}},
            "spec": {"namespace": stage.name, "chart": {"name": "steps", "version": ">=0.1",
                "repository": {"name": "tests", "url": server.url("/charts")}}}
        });
        owner["spec"]["set"] = more;
        owner
    };
    stage.apply(owner(json!({}))).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    let api: Api<SpecialResource> = Api::all(stage.client.clone());
    for pass in 0..5 {
        let again = json!({"spec": {"set": {"text": format!("pass {pass}")}}});
        api.patch(&stage.name, &PatchParams::default(), &Patch::Merge(&again)).await.unwrap();
        let generation = api.get(&stage.name).await.unwrap().metadata.generation;
        let seen = |owner: &SpecialResource| {
            owner.status.as_ref().and_then(|status| status.observed_generation) == generation
                && stage::condition(owner, "Ready").as_deref() == Some("True")
        };
        stage.wait_until("Ready again", seen).await.unwrap();
    }
    assert_eq!((server.count("/charts/index.yaml"), server.count("/charts/steps-0.1.0.tgz")), (1, 1));
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_takes_its_chart_from_a_repository() {
    let mut stage = Stage::new("watch-repository").await.unwrap();
    let folder = pintle::scenario::chart_folder("memcached");
    let packed = pack(read_folder(&folder)).unwrap();
    let text = index(std::slice::from_ref(&packed), None).unwrap();
    let file = format!("/{}", packed.file_name);
    let server = Server::start(move |asked: &Asked, _| match asked.target.as_str() {
        "/index.yaml" => Reply::ok(text.clone()),
        target if target == file => Reply::ok(packed.bytes.clone()),
        _ => Reply::status(404),
    })
    .await;
    let kind = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "caches.sources.example"},
        "spec": {"group": "sources.example", "scope": "Namespaced",
            "names": {"plural": "caches", "singular": "cache", "kind": "Cache"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}
    });
    stage.apply(kind).await.unwrap();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-sources", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [
            {"apiGroups": ["sources.example"], "resources": ["caches"], "verbs": ["get", "list", "watch", "patch"]},
            {"apiGroups": ["sources.example"], "resources": ["caches/status"], "verbs": ["patch"]},
            {"apiGroups": ["sources.example"], "resources": ["caches/finalizers"], "verbs": ["update"]}
        ]
    });
    stage.apply(role).await.unwrap();
    let watch = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Watch",
        "metadata": {"name": stage.name, "labels": {"test": stage.name}},
        "spec": {"group": "sources.example", "version": "v1", "kind": "Cache",
            "chart": {"name": "memcached", "repository": {"url": server.url("")}},
            "selector": {"matchLabels": {"test": stage.name}}}
    });
    stage.apply(watch).await.unwrap();
    stage
        .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.name}}))
        .await
        .unwrap();
    let crd: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(stage.client.clone());
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(crd, "caches.sources.example", established).await.unwrap();
    let sample = json!({"apiVersion": "sources.example/v1", "kind": "Cache",
        "metadata": {"name": "sample", "namespace": stage.name, "labels": {"test": stage.name}},
        "spec": {"replicaCount": 1}});
    stage.apply(sample).await.unwrap();
    let gvk = GroupVersionKind::gvk("sources.example", "v1", "Cache");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "caches");
    let api: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), &stage.name, &resource);
    let made = stage.api("apps/v1", "Deployment", "deployments");
    let is_there = |found: Option<&DynamicObject>| found.is_some();
    let waited = kube::runtime::wait::await_condition(made, "sample-memcached", is_there);
    if tokio::time::timeout(PATIENCE, waited).await.is_err() {
        panic!("not made: {:#}", serde_json::to_value(api.get("sample").await.unwrap()).unwrap());
    }
    assert_eq!(server.count("/index.yaml"), 1);
    stage.stop_operator().await.unwrap();
}

fn read_folder(folder: &std::path::Path) -> Vec<pintle_chart::File> {
    fn collect(folder: &std::path::Path, inside: &str, files: &mut Vec<pintle_chart::File>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{inside}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => collect(&entry.path(), &format!("{path}/"), files),
                false => files.push(pintle_chart::File::new(path, &std::fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut files = Vec::new();
    collect(folder, "", &mut files);
    files
}

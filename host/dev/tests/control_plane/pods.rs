//! Images that are missing, logs, Jobs, crashes.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, LogParams, PostParams};
use kube::{Client, ResourceExt};
use pintle_dev::cluster::INTERNAL_REGISTRY;
use pintle_dev::nodes::{self, NodeSpec};
use pintle_dev::simulate::{Line, Simulators};
use serde_json::json;

use crate::support::{daemon_set, eventually, is_ready, namespace, plane, pods};

fn simulators() -> &'static Simulators {
    plane().simulators().unwrap()
}

async fn workers(client: &Client, label: &str, count: usize) {
    for number in 0..count {
        let spec = NodeSpec::worker(format!("{label}-{number}")).with_label(label, "");
        nodes::create(client, &spec).await.unwrap();
    }
}

fn waiting_reason(pod: &Pod) -> Option<&str> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    status.state.as_ref()?.waiting.as_ref()?.reason.as_deref()
}

async fn all_wait_for(client: &Client, namespace: &str, count: usize, reason: &str) -> Vec<Pod> {
    eventually(reason, async || {
        let found = pods(client, namespace, "app=driver").await;
        (found.len() == count && found.iter().all(|pod| waiting_reason(pod) == Some(reason))).then_some(found)
    })
    .await
}

#[tokio::test]
async fn a_pod_whose_image_is_missing_backs_off_until_the_image_is_pushed() {
    let client = namespace("images").await;
    workers(&client, "images", 2).await;
    let image = format!("{INTERNAL_REGISTRY}images/driver:v1");
    let sets = Api::<DaemonSet>::namespaced(client.clone(), "images");
    let set = serde_json::from_value(daemon_set("driver", &image, "images")).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();

    let held = all_wait_for(&client, "images", 2, "ImagePullBackOff").await;
    assert!(held.iter().all(|pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Pending")));
    // One that is made anew meets the same.
    let api = Api::<Pod>::namespaced(client.clone(), "images");
    api.delete(&held[0].name_any(), &DeleteParams::default()).await.unwrap();
    eventually("the pod is replaced", async || {
        let names: Vec<_> = pods(&client, "images", "app=driver").await.iter().map(Pod::name_any).collect();
        (names.len() == 2 && !names.contains(&held[0].name_any())).then_some(())
    })
    .await;
    all_wait_for(&client, "images", 2, "ImagePullBackOff").await;

    simulators().images().add(&*image).unwrap();
    eventually("both pods run", async || {
        let found = pods(&client, "images", "app=driver").await;
        (found.iter().filter(|pod| is_ready(pod)).count() == 2).then_some(found)
    })
    .await
    .iter()
    .for_each(|pod| assert_eq!(waiting_reason(pod), None));
}

#[tokio::test]
async fn the_log_of_each_node_says_what_the_test_wants_and_may_lag() {
    let client = namespace("logs").await;
    workers(&client, "logs", 2).await;
    simulators().logs().rule(|container| {
        (container.namespace == "logs").then(|| match container.node.as_str() {
            "logs-0" => Line::driver(nodes::KERNEL, &["simple-kmod", "simple-procfs-kmod"]),
            _ => vec![
                Line::now("+ modprobe -v -a simple-kmod"),
                Line::after(Duration::from_millis(300), "late"),
            ],
        })
    });
    let sets = Api::<DaemonSet>::namespaced(client.clone(), "logs");
    let set = serde_json::from_value(daemon_set("driver", "registry.example/driver:1", "logs")).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();
    let found = eventually("two pods run", async || {
        let found = pods(&client, "logs", "app=driver").await;
        (found.iter().filter(|pod| is_ready(pod)).count() == 2).then_some(found)
    })
    .await;
    let on = |node: &str| {
        let here = |pod: &&Pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node);
        found.iter().find(here).unwrap().name_any()
    };
    let api = Api::<Pod>::namespaced(client.clone(), "logs");
    let log = async |name: &str, what: &str| {
        eventually(what, async || {
            let text = api.logs(name, &LogParams::default()).await.ok()?;
            text.contains(what).then_some(text)
        })
        .await
    };
    let loaded = log(&on("logs-0"), "+ sleep infinity").await;
    assert!(loaded.starts_with("+ modprobe -v -a simple-kmod simple-procfs-kmod\ninsmod "), "{loaded}");
    assert!(log(&on("logs-1"), "late").await.starts_with("+ modprobe"));
    simulators().logs().append("logs", &on("logs-1"), "driver", "one more").unwrap();
    log(&on("logs-1"), "one more").await;
    assert!(simulators().logs().append("logs", "nobody", "driver", "x").is_err());
}

#[tokio::test]
async fn a_pod_nobody_wrote_a_log_for_has_an_empty_one() {
    let client = namespace("silent").await;
    workers(&client, "silent", 1).await;
    let api = Api::<Pod>::namespaced(client.clone(), "silent");
    let pod = json!({
        "metadata": {"name": "silent"},
        "spec": {"nodeName": "silent-0", "containers": [{"name": "main", "image": "registry.example/a:1"}]},
    });
    eventually("the pod is taken", async || {
        api.create(&PostParams::default(), &serde_json::from_value(pod.clone()).unwrap()).await.ok()
    })
    .await;
    eventually("the pod runs", async || is_ready(&api.get("silent").await.unwrap()).then_some(())).await;
    assert_eq!(api.logs("silent", &LogParams::default()).await.unwrap(), "");
}

#[tokio::test]
async fn a_job_completes_and_one_that_is_told_to_fails() {
    let client = namespace("jobs").await;
    workers(&client, "jobs", 1).await;
    let jobs = Api::<Job>::namespaced(client.clone(), "jobs");
    let job = |name: &str, annotations: serde_json::Value| {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": annotations}, "spec": {
                "restartPolicy": "Never", "nodeSelector": {"jobs": ""},
                "containers": [{"name": "main", "image": "registry.example/job:1"}],
            }}},
        }))
        .unwrap()
    };
    jobs.create(&PostParams::default(), &job("good", json!({}))).await.unwrap();
    jobs.create(&PostParams::default(), &job("bad", json!({"sim.pintle.dev/exit-code": "3"}))).await.unwrap();
    let ended = async |name: &str, condition: &str| {
        eventually(condition, async || {
            let conditions = jobs.get(name).await.unwrap().status?.conditions?;
            conditions.iter().any(|one| one.type_ == condition && one.status == "True").then_some(())
        })
        .await;
    };
    ended("good", "Complete").await;
    ended("bad", "Failed").await;
    let failed = pods(&client, "jobs", "job-name=bad").await;
    let status = failed[0].status.as_ref().unwrap().container_statuses.as_ref().unwrap();
    assert_eq!(status[0].state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code, 3);
}

#[tokio::test]
async fn a_pod_that_says_so_crashes_and_another_one_starts_late() {
    let client = namespace("crash").await;
    workers(&client, "crash", 1).await;
    let api = Api::<Pod>::namespaced(client.clone(), "crash");
    let pod = |name: &str, annotation: &str, value: &str| {
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {annotation: value}},
            "spec": {"nodeSelector": {"crash": ""}, "containers": [{"name": "main", "image": "registry.example/a:1"}]},
        }))
        .unwrap()
    };
    eventually("pods are taken", async || {
        api.create(&PostParams::default(), &pod("crashes", "sim.pintle.dev/crash", "30ms")).await.ok()
    })
    .await;
    api.create(&PostParams::default(), &pod("late", "sim.pintle.dev/ready-after", "1h")).await.unwrap();
    let crashed = eventually("CrashLoopBackOff", async || {
        let pod = api.get("crashes").await.unwrap();
        (waiting_reason(&pod) == Some("CrashLoopBackOff")).then_some(pod)
    })
    .await;
    assert!(!is_ready(&crashed));
    assert_eq!(api.get("late").await.unwrap().status.unwrap().phase.as_deref(), Some("Pending"));
}

#[tokio::test]
async fn two_hundred_pods_start_in_seconds() {
    let client = namespace("crowd").await;
    workers(&client, "crowd", 2).await;
    let sets = Api::<Deployment>::namespaced(client.clone(), "crowd");
    let set = json!({
        "metadata": {"name": "crowd"},
        "spec": {
            "replicas": 200,
            "selector": {"matchLabels": {"app": "crowd"}},
            "template": {"metadata": {"labels": {"app": "crowd"}}, "spec": {
                "nodeSelector": {"crowd": ""},
                "containers": [{"name": "main", "image": "registry.example/a:1"}],
            }},
        },
    });
    let begun = Instant::now();
    sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    eventually("all are available", async || {
        (sets.get("crowd").await.unwrap().status?.available_replicas == Some(200)).then_some(())
    })
    .await;
    println!("200 pods available after {:?}", begun.elapsed());
    // Clients of the simulated kubelets that were throttled as usual (5 requests a second) would take 40 s.
    assert!(begun.elapsed() < Duration::from_secs(20));
}

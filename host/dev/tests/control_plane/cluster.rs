//! Start, nodes and pods, users, end.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use pintle_dev::cluster::{Error, State};
use pintle_dev::nodes::{self, NodeSpec};
use pintle_dev::{ControlPlane, Options};
use serde_json::json;

use crate::support::{daemon_set, eventually, is_ready, namespace, options, plane, pods};

#[tokio::test]
async fn a_control_plane_is_ready_in_seconds_and_ends_cleanly() {
    let plane = ControlPlane::start(options()).await.unwrap();
    let phases = plane.phases();
    println!("etcd {:?}, API server {:?}, all {:?}", phases.etcd, phases.apiserver, phases.all);
    assert!(phases.etcd < phases.apiserver && phases.apiserver < phases.all);
    assert!(phases.all < Duration::from_secs(30), "{phases:?}");
    let version = plane.client().unwrap().apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));

    let (folder, processes) = (plane.data_dir().to_path_buf(), plane.processes());
    assert_eq!(processes.len(), 6);
    assert!(processes.iter().all(|(_, pid)| runs(*pid)));
    let begun = Instant::now();
    plane.stop().await;
    println!("stopped in {:?}", begun.elapsed());
    assert!(processes.iter().all(|(_, pid)| !runs(*pid)));
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_daemon_set_runs_on_three_simulated_nodes() {
    let client = namespace("daemons").await;
    for name in ["daemons-0", "daemons-1", "daemons-2"] {
        nodes::create(&client, &NodeSpec::worker(name).with_label("daemons", "")).await.unwrap();
    }
    let sets = Api::<DaemonSet>::namespaced(client.clone(), "daemons");
    let set = serde_json::from_value(daemon_set("agent", "registry.example/agent:1", "daemons")).unwrap();
    let begun = Instant::now();
    sets.create(&PostParams::default(), &set).await.unwrap();
    let ready = eventually("three pods run", async || {
        let ready: Vec<_> =
            pods(&client, "daemons", "app=agent").await.into_iter().filter(is_ready).collect();
        (ready.len() == 3).then_some(ready)
    })
    .await;
    println!("three pods ready after {:?}", begun.elapsed());
    assert!(ready.iter().all(|pod| pod.status.as_ref().unwrap().pod_ip.is_some()));
    eventually("the DaemonSet counts them", async || {
        let status = sets.get("agent").await.unwrap().status?;
        (status.number_ready == 3 && status.number_available == Some(3)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_reports_its_kernel_and_another_one_after_a_reboot() {
    let client = plane().client().unwrap();
    let all = Api::<Node>::all(client.clone());
    nodes::create(&client, &NodeSpec::worker("reboots")).await.unwrap();
    let reported = async |kernel: &str| {
        let node = all.get("reboots").await.unwrap();
        let status = node.status?;
        let ready = status.conditions?.iter().any(|one| one.type_ == "Ready" && one.status == "True");
        let label = node.metadata.labels?.get("feature.node.kubernetes.io/kernel-version.full")?.clone();
        (ready && status.node_info?.kernel_version == kernel && label == kernel).then_some(())
    };
    eventually("the node is ready", async || reported(nodes::KERNEL).await).await;
    nodes::reboot(&client, "reboots", "5.14.0-70.el9.x86_64").await.unwrap();
    eventually("the node has the new kernel", async || reported("5.14.0-70.el9.x86_64").await).await;
}

#[tokio::test]
async fn a_service_account_has_only_its_own_rights_and_its_requests_are_counted() {
    let client = namespace("accounts").await;
    eventually("the default account exists", async || plane().token_for("accounts", "default").await.ok())
        .await;
    let config = plane().service_account("accounts", "default").await.unwrap();
    let account = Client::try_from(config).unwrap();
    let mark = plane().audit().settled().await.unwrap();
    for _ in 0..3 {
        let secrets = Api::<Secret>::namespaced(account.clone(), "accounts");
        let refused = secrets.list(&ListParams::default()).await.unwrap_err();
        assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    }
    drop(client);
    plane().audit().settled().await.unwrap();
    let counts = plane().audit().counts("system:serviceaccount:accounts:default", mark).unwrap();
    assert_eq!((counts.total, counts.writes), (3, 0));
    assert_eq!(counts.by_key["list secrets"], 3);
    let requests = plane().audit().requests_since("system:serviceaccount:accounts:default", mark).unwrap();
    assert!(requests.iter().all(|request| request.code == 403 && request.namespace == "accounts"));
}

#[tokio::test]
async fn a_detached_control_plane_is_found_again_stopped_and_keeps_its_objects() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.json");
    let detached = || Options {
        detach: true,
        data_dir: Some(folder.path().join("data")),
        openshift: Vec::new(),
        ..options()
    };
    let plane = ControlPlane::start(detached()).await.unwrap();
    plane.save(&file).unwrap();
    let pids: Vec<i32> = plane.processes().iter().map(|(_, pid)| *pid).collect();
    drop(plane);
    assert!(pids.iter().all(|pid| runs(*pid)), "it outlives its owner");

    let found = State::load(&file).unwrap().unwrap();
    assert!(found.is_running() && found.programs().len() == 6);
    let mut plane = found.attach().unwrap();
    plane.simulate().unwrap();
    assert!(plane.simulators().unwrap().builds().is_none(), "plain Kubernetes has no builds");
    let groups = plane.client().unwrap().list_api_groups().await.unwrap().groups;
    assert!(groups.iter().all(|group| !group.name.ends_with("openshift.io")));
    let spaces = Api::<Namespace>::all(plane.client().unwrap());
    let kept = serde_json::from_value(json!({"metadata": {"name": "kept"}})).unwrap();
    spaces.create(&PostParams::default(), &kept).await.unwrap();
    plane.stop().await;
    assert!(pids.iter().all(|pid| !runs(*pid)));
    assert!(!State::load(&file).unwrap().unwrap().is_running());

    let again = ControlPlane::start(detached()).await.unwrap();
    let spaces = Api::<Namespace>::all(again.client().unwrap());
    assert!(spaces.get_opt("kept").await.unwrap().is_some(), "the data folder was used again");
    again.stop().await;
}

#[tokio::test]
async fn what_cannot_be_detached_or_started_says_why() {
    let nowhere = Options { detach: true, ..options() };
    let error = ControlPlane::start(nowhere).await.unwrap_err();
    assert!(matches!(error, Error::DetachedWithoutFolder), "{error}");
    assert!(plane().save(std::path::Path::new("/nonexistent/state.json")).is_err());
    assert!(State::load(std::path::Path::new("/nonexistent/state.json")).unwrap().is_none());

    let file = tempfile::NamedTempFile::new().unwrap();
    let broken = Options { data_dir: Some(file.path().to_path_buf()), ..options() };
    let error = ControlPlane::start(broken).await.unwrap_err();
    assert_eq!(error.to_string(), "could not make the data folder");
}

#[tokio::test]
async fn a_program_that_ends_early_is_named_with_the_end_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // etcd refuses a data folder that is a file.
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("etcd"), "").unwrap();
    let options = Options { data_dir: Some(data), ..options() };
    let error = ControlPlane::start(options).await.unwrap_err();
    let Error::Ended { name, tail, .. } = &error else { panic!("{error}") };
    assert_eq!(name, "etcd");
    assert!(tail.contains("etcd"), "{tail}");
    assert!(error.to_string().contains("etcd.log"), "{error}");
}

/// This test starts its own binary as the parent that is killed; the variable makes the copy that parent.
#[test]
fn a_control_plane_ends_with_a_killed_parent() {
    const PARENT: &str = "PINTLE_TEST_PARENT";
    if std::env::var_os(PARENT).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let plane = runtime.block_on(ControlPlane::start(options())).unwrap();
        let pids: Vec<String> = plane.processes().iter().map(|(_, pid)| pid.to_string()).collect();
        println!("\nstarted {} {}", plane.data_dir().display(), pids.join(" "));
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cluster::a_control_plane_ends_with_a_killed_parent", "--nocapture"])
        .env(PARENT, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(parent.stdout.take().unwrap());
    let line = std::io::BufRead::lines(output)
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("started ").map(str::to_owned))
        .unwrap();
    let (folder, pids) = line.split_once(' ').unwrap();
    let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() == 6 && pids.iter().all(|pid| runs(*pid)));
    // `kill` of the standard library is SIGKILL: no destructor of the parent runs.
    parent.kill().unwrap();
    parent.wait().unwrap();
    let begun = Instant::now();
    while pids.iter().any(|pid| runs(*pid)) || std::path::Path::new(folder).exists() {
        assert!(begun.elapsed() < Duration::from_secs(10), "something survived its parent");
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("all gone {:?} after the parent", begun.elapsed());
}

/// Whether a process exists and is no zombie.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

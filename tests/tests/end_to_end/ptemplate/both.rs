//! Both realisations side by side: what happens around Ptemplates, each test after its number in our list.

use std::{collections::BTreeSet, net::SocketAddr};

use pintle_dev::audit::Request;
use pintle_tests::stage;

use super::*;

/// The chart with plugins, and the plugin alone.
const WAYS: [&str; 2] = ["chart", "plugin"];

/// The Watch of one way, for the owners that its label names, with this in its spec.
async fn watch_way(stage: &Stage, way: &str, more: &Value) {
    let mut watch = file(if way == "chart" { "watch.yaml" } else { "watch-reconciler.yaml" });
    watch["metadata"] = json!({"name": format!("{}-{way}", stage.name), "labels": {"test": stage.name}});
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name, "way": way}});
    if way == "chart" {
        watch["spec"]["chart"]["repository"]["url"] = json!(format!("cm://{}/chart", stage.name));
    }
    for (field, value) in more.as_object().into_iter().flatten() {
        watch["spec"][field] = value.clone();
    }
    stage.apply(watch).await.unwrap();
}

fn name_of(way: &str) -> String {
    format!("pt-{way}")
}

fn owner_of(stage: &Stage, way: &str) -> Value {
    let mut owner = owner(stage);
    owner["metadata"]["name"] = json!(name_of(way));
    owner["metadata"]["labels"]["way"] = json!(way);
    owner
}

/// One Ptemplate of each way.
async fn apply_both(stage: &Stage) {
    for way in WAYS {
        stage.apply(owner_of(stage, way)).await.unwrap();
    }
}

async fn owner_in(stage: &Stage, namespace: &str, way: &str) -> Value {
    let found = stage.of_kind_in("Ptemplate", namespace).get_opt(&name_of(way)).await.unwrap();
    serde_json::to_value(found).unwrap()
}

/// Waits until the Ptemplates of both ways name as many pods.
async fn both_have(stage: &Stage, namespace: &str, count: usize) {
    for way in WAYS {
        let told = async |stage: &Stage| {
            let owner = owner_in(stage, namespace, way).await;
            Ok(owner["status"]["consumers"].as_array().is_some_and(|names| names.len() == count))
        };
        stage.eventually(&format!("{way}: {count} consumers are told"), told).await.unwrap();
    }
}

/// Writes of what a Ptemplate is and becomes.
fn of_ptemplates(writes: Vec<Request>) -> Vec<Request> {
    let kinds = ["modules", "daemonsets", "ptemplates"];
    writes.into_iter().filter(|write| kinds.contains(&write.resource.as_str())).collect()
}

/// Starts an operator that tells its figures; gives the address.
fn start_measured(stage: &mut Stage) -> SocketAddr {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut options = stage.options(stage.reach());
    options.metrics = Some(address);
    stage.start_operator_with(options);
    address
}

/// How often the plugins that begin with this name were called.
async fn calls(address: SocketAddr, plugin: &str) -> u64 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let text = client.get(format!("http://{address}/metrics")).send().await.unwrap().text().await.unwrap();
    let wanted = format!("pintle_plugin_calls_total{{plugin=\"{plugin}");
    let counts = text.lines().filter(|line| line.starts_with(&wanted));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// How often something is tried whose calls are counted: other tests change nodes meanwhile, which are looked at.
const TRIES: usize = 20;

/// Nobody is asked and nothing is written while this is done. Of many, this many may be asked for what others do.
async fn concerns_nobody(
    (stage, address): (&Stage, SocketAddr),
    what: &str,
    others: u64,
    work: impl AsyncFn(),
) {
    let mark = stage.mark().await.unwrap();
    let mut more = 0;
    for _ in 0..TRIES {
        let asked = calls(address, "").await;
        work().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        more = calls(address, "").await - asked;
        if more <= others {
            break;
        }
    }
    assert!(more <= others, "{what}: {more} times a plugin is asked");
    let writes = of_ptemplates(stage.writes_since(mark).await.unwrap());
    assert!(writes.is_empty(), "{what}: {}", told(&writes));
}

fn daemon_set(stage: &Stage, label: &str) -> Value {
    let pod = json!({"metadata": {"labels": {"app": "other"}}, "spec": {"nodeSelector": {"nobody": "has-this"},
        "containers": [{"name": "c", "image": "registry.test/other:1"}]}});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "other", "namespace": stage.name, "labels": {"changed": label}},
        "spec": {"selector": {"matchLabels": {"app": "other"}}, "template": pod}})
}

/// A pod with the label that the consumers of a Ptemplate have, that belongs to somebody else.
async fn look_alike(stage: &Stage, way: &str) -> Value {
    let map = stage.read("ConfigMap", "chart").await.unwrap();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("aa-{way}"), "namespace": stage.name, "labels": {"app": name_of(way)},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "chart", "controller": true,
                "uid": map["metadata"]["uid"]}]},
        "spec": {"nodeSelector": {"nobody": "has-this"},
            "containers": [{"name": "c", "image": "registry.test/other:1"}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_t11_t12_pods_in_another_order_and_what_others_do_beside_change_nothing() {
    let mut stage = Stage::without_operator("pt-beside").await.unwrap();
    let address = start_measured(&mut stage);
    prepare(&stage).await;
    for way in WAYS {
        watch_way(&stage, way, &json!({})).await;
    }
    apply_both(&stage).await;
    both_have(&stage, &stage.name, NODES.len()).await;
    t12_namespaces_and_pods_of_others_are_not_counted(&stage).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    t10_the_order_of_pods_is_nobodys_concern(&stage).await;
    t11_other_daemon_sets_ask_no_plugin(&stage, address).await;
    stage.stop_operator().await.unwrap();
}

/// Two of one name in two namespaces, and pods that only look like consumers.
async fn t12_namespaces_and_pods_of_others_are_not_counted(stage: &Stage) {
    let other = format!("{}-too", stage.name);
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})).await.unwrap();
    for way in WAYS {
        let mut owner = owner_of(stage, way);
        owner["metadata"]["namespace"] = json!(other);
        stage.apply(owner).await.unwrap();
        stage.apply(look_alike(stage, way).await).await.unwrap();
    }
    both_have(stage, &other, NODES.len()).await;
    both_have(stage, &stage.name, NODES.len()).await;
    for namespace in [&stage.name, &other] {
        let pods = stage.of_kind_in("Pod", namespace).list_metadata(&Default::default()).await.unwrap();
        let pods: BTreeSet<String> = pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
        for way in WAYS {
            let told = owner_in(stage, namespace, way).await["status"]["consumers"].clone();
            let told: Vec<String> = serde_json::from_value(told).unwrap();
            assert!(told.iter().all(|name| pods.contains(name) && name.starts_with("pt-")), "{told:?}");
        }
    }
}

/// Each pod is changed, the last first: whoever keeps them by age has them in another order then.
async fn t10_the_order_of_pods_is_nobodys_concern(stage: &Stage) {
    let mut names = stage.names("Pod").await.unwrap();
    names.reverse();
    let mark = stage.mark().await.unwrap();
    for name in names {
        stage.edit("Pod", &name, json!({"metadata": {"labels": {"touched": "yes"}}})).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    let writes = of_ptemplates(stage.writes_since(mark).await.unwrap());
    assert!(writes.is_empty(), "{}", told(&writes));
}

async fn t11_other_daemon_sets_ask_no_plugin(stage: &Stage, address: SocketAddr) {
    let work = async || {
        for label in ["once", "twice"] {
            stage.apply(daemon_set(stage, label)).await.unwrap();
        }
        stage.delete("DaemonSet", "other").await.unwrap();
    };
    concerns_nobody((stage, address), "another DaemonSet", 0, work).await;
    // One's own does: it is restored, and its plugin is asked.
    let asked = calls(address, "ptemplate").await;
    stage.delete("Pod", &stage.names("Pod").await.unwrap().remove(1)).await.unwrap();
    let is_asked = async |_: &Stage| Ok(calls(address, "ptemplate").await > asked);
    stage.eventually("a plugin is asked when a consumer goes", is_asked).await.unwrap();
}

/// The kind as an older version of its definition had it, in a group of its own: nothing of the status that the
/// plugin tells has a place in it.
fn stale_definition() -> Value {
    let text = file("crd.yaml").to_string().replace("pt.example.com", "stale.pt.example.com");
    let mut definition: Value = serde_json::from_str(&text).unwrap();
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
        *status = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
    }
    definition
}

fn role(name: &str, groups: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]
    })
}

/// Owners whose selector no node has: nothing is loaded, and the consumer is there at once.
fn idle(stage: &Stage, way: &str) -> Value {
    let mut owner = owner_of(stage, way);
    owner["spec"]["selector"] = json!({"nobody": "has-this"});
    owner
}

#[tokio::test(flavor = "multi_thread")]
async fn t16_a_definition_without_a_place_for_the_status_is_told_by_its_watch() {
    let mut stage = Stage::new("pt-stale").await.unwrap();
    prepare(&stage).await;
    stage.apply(role("test-ptemplate-stale", &json!(["stale.pt.example.com"]))).await.unwrap();
    stage.apply(stale_definition()).await.unwrap();
    for way in WAYS {
        watch_way(&stage, way, &json!({"group": "stale.pt.example.com"})).await;
    }
    let stale = stage.api("stale.pt.example.com/v1alpha1", "Ptemplate", "ptemplates");
    for way in WAYS {
        let mut owner = idle(&stage, way);
        owner["apiVersion"] = json!("stale.pt.example.com/v1alpha1");
        let applied = async |stage: &Stage| Ok(stage.apply(owner.clone()).await.is_ok());
        stage.eventually("the kind is served", applied).await.unwrap();
        let is_told = async |stage: &Stage| {
            let watch = stage.read("Watch", &format!("{}-{way}", stage.name)).await?;
            let conditions = watch["status"]["conditions"].as_array().cloned().unwrap_or_default();
            Ok(conditions.iter().any(|one| {
                one["type"] == "StatusSchemaIncomplete"
                    && one["status"] == "True"
                    && one["message"].as_str().is_some_and(|message| message.contains("status.consumers"))
            }))
        };
        stage.eventually(&format!("{way}: the Watch names status.consumers"), is_told).await.unwrap();
        let is_made =
            async |stage: &Stage| Ok(stage.find("DaemonSet", &format!("pt-{way}-consumer")).await?.is_some());
        stage.eventually(&format!("{way}: all else is done"), is_made).await.unwrap();
        assert!(stale.get(&name_of(way)).await.unwrap().data["status"]["consumers"].is_null());
    }
    stage.stop_operator().await.unwrap();
}

/// The example's chart with each text changed, as ConfigMap `chart`.
async fn install_changed(stage: &Stage, change: impl Fn(String) -> String) {
    let (from, to) = (scenario::chart_folder("ptemplate"), tempfile::tempdir().unwrap());
    std::fs::create_dir(to.path().join("templates")).unwrap();
    for path in ["Chart.yaml", "values.yaml", "templates/1000-module.yaml", "templates/2000-consumer.yaml"] {
        let text = std::fs::read_to_string(from.join(path)).unwrap();
        std::fs::write(to.path().join(path), change(text)).unwrap();
    }
    stage.install_chart(to.path()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn t17_a_module_whose_kind_is_not_there_yet_is_told_and_made_when_it_comes() {
    let mut stage = Stage::new("pt-late").await.unwrap();
    let group = "late.kmm.example.com";
    prepare(&stage).await;
    stage.apply(role("test-ptemplate-late", &json!([group]))).await.unwrap();
    install_changed(&stage, |text| text.replace("kmm.sigs.x-k8s.io", group)).await;
    watch_way(&stage, "chart", &json!({})).await;
    stage.apply(idle(&stage, "chart")).await.unwrap();
    let mut last = Value::Null;
    let is_told = async |stage: &Stage| {
        let watch = stage.read("Watch", "pt-late-chart").await?;
        let owner = owner_in(stage, &stage.name, "chart").await;
        last = json!([watch["status"], owner["status"]]);
        // The schema of the kind has no place for conditions and states; the event is the one that tells.
        let events = stage.list("Event").await?;
        Ok(events.iter().any(|event| {
            let note = event["note"].as_str().unwrap_or_default();
            note.contains(group) && note.contains("the cluster does not serve")
        }))
    };
    if let Err(err) = stage.eventually("the missing kind is told", is_told).await {
        panic!("{err:#}: {last:#}\n{:#?}", stage.list("Event").await.unwrap());
    }
    assert!(stage.find("DaemonSet", "pt-chart-consumer").await.unwrap().is_none(), "the next state waits");

    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    stage
        .apply(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("modules.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": "Module", "listKind": "ModuleList", "plural": "modules", "singular": "module"},
                "versions": [{"name": "v1beta1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": any}}]}
        }))
        .await
        .unwrap();
    let is_made = async |stage: &Stage| Ok(stage.find("DaemonSet", "pt-chart-consumer").await?.is_some());
    stage.eventually("the consumer comes after the Module", is_made).await.unwrap();
    let modules = stage.api(&format!("{group}/v1beta1"), "Module", "modules");
    assert!(modules.get_opt("pt-chart").await.unwrap().is_some());
    stage.stop_operator().await.unwrap();
}

/// The same component with another digest: a custom section more.
fn with_section(mut component: Vec<u8>, text: &str) -> Vec<u8> {
    let name = b"note";
    let size = u8::try_from(1 + name.len() + text.len()).unwrap();
    assert!(size < 128, "one byte of LEB128");
    component.extend([0, size, u8::try_from(name.len()).unwrap()]);
    component.extend(name);
    component.extend(text.as_bytes());
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn t19_another_version_of_the_plugin_changes_no_object_that_shall_stay_the_same() {
    let mut stage = Stage::new("pt-versions").await.unwrap();
    prepare(&stage).await;
    install_changed(&stage, |text| text.replace("value-mapper: ptemplate", "value-mapper: pt-versions"))
        .await;
    let plane = plane().await.unwrap();
    let component = tokio::task::spawn_blocking(|| stage::component("ptemplate")).await.unwrap().unwrap();
    let mut images = Vec::new();
    for version in ["1", "2", "3"] {
        let bytes = with_section(component.clone(), version);
        images.push(stage::push(plane, &format!("pt-versions-{version}"), bytes).await.unwrap());
    }
    let mut plugin = documents("plugins.yaml").remove(0);
    plugin["metadata"]["name"] = json!("pt-versions");
    let use_image = async |image: &str| {
        let mut plugin = plugin.clone();
        plugin["spec"]["image"] = json!(image);
        stage.apply(plugin).await.unwrap();
        let digest = image.split_once('@').unwrap().1;
        let is_used = async |stage: &Stage| {
            Ok(stage.read("Plugin", "pt-versions").await?["status"]["digest"] == digest)
        };
        stage.eventually("the version is loaded", is_used).await.unwrap();
    };
    use_image(&images[0]).await;
    watch_way(&stage, "chart", &json!({})).await;
    watch_way(&stage, "plugin", &json!({"reconciler": {"plugin": "pt-versions"}})).await;
    let mark = stage.mark().await.unwrap();
    apply_both(&stage).await;
    for way in WAYS {
        let is_made = async |stage: &Stage| Ok(stage.find("Module", &name_of(way)).await?.is_some());
        stage.eventually("the Module is there", is_made).await.unwrap();
    }
    // While the modules are being loaded.
    use_image(&images[1]).await;
    both_have(&stage, &stage.name, NODES.len()).await;
    let writes = of_ptemplates(stage.writes_since(mark).await.unwrap());
    let objects: Vec<_> = writes.iter().filter(|write| write.resource != "ptemplates").collect();
    assert!(objects.len() == 4 && objects.iter().all(|write| write.code == 201), "{}", told(&writes));

    // And when all is done.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mark = stage.mark().await.unwrap();
    use_image(&images[2]).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let writes = of_ptemplates(stage.writes_since(mark).await.unwrap());
    assert!(writes.is_empty(), "{}", told(&writes));
    for way in WAYS {
        stage.edit("Ptemplate", &name_of(way), json!({"spec": {"maxdev": 9}})).await.unwrap();
        let parameters = "/spec/moduleLoader/container/modprobe/parameters/0";
        becomes(&stage, "Module", &name_of(way), parameters, json!("max_dev=9")).await;
    }
    stage.stop_operator().await.unwrap();
    stage.delete("Plugin", "pt-versions").await.unwrap();
}

/// Ptemplates of each way that are there at once; our list says 250, which takes minutes on a small machine.
const MANY: usize = 20;
/// Time from the change of one of them to that of its Module, on a machine that does other things too.
const SOON: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn t20_many_ptemplates_cost_few_calls_and_nothing_at_rest() {
    let mut stage = Stage::without_operator("pt-many").await.unwrap();
    let address = start_measured(&mut stage);
    prepare(&stage).await;
    for way in WAYS {
        watch_way(&stage, way, &json!({})).await;
    }
    let many: usize =
        std::env::var("PINTLE_PTEMPLATES").ok().and_then(|text| text.parse().ok()).unwrap_or(MANY);
    let mark = stage.mark().await.unwrap();
    for number in 0..many {
        for way in WAYS {
            let mut owner = idle(&stage, way);
            owner["metadata"]["name"] = json!(format!("pt-{way}-{number}"));
            stage.apply(owner).await.unwrap();
        }
    }
    let are_told = async |stage: &Stage| {
        let owners = stage.list("Ptemplate").await?;
        Ok(owners.iter().filter(|owner| owner["status"]["consumers"].is_array()).count() == 2 * many
            && stage.names("DaemonSet").await?.len() == 2 * many)
    };
    stage.eventually("all of them are done", are_told).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writes = of_ptemplates(stage.writes_since(mark).await.unwrap());
    let made = writes.iter().filter(|write| write.code == 201).count();
    let asked = calls(address, "ptemplate").await;
    eprintln!("{} writes and {asked} calls of plugins for {} Ptemplates", writes.len(), 2 * many);
    assert_eq!(made, 4 * many, "a Module and a DaemonSet each");
    assert!(asked <= 20 * many as u64, "{asked} calls for {} Ptemplates", 2 * many);

    concerns_nobody((&stage, address), "rest", many as u64 / 10, async || ()).await;
    for way in WAYS {
        let (name, changed) = (format!("pt-{way}-0"), std::time::Instant::now());
        stage.edit("Ptemplate", &name, json!({"spec": {"maxdev": 9}})).await.unwrap();
        let parameters = "/spec/moduleLoader/container/modprobe/parameters/0";
        becomes(&stage, "Module", &name, parameters, json!("max_dev=9")).await;
        assert!(changed.elapsed() < SOON, "{way}: {:?}", changed.elapsed());
    }
    stage.stop_operator().await.unwrap();
}

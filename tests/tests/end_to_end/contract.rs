//! What users and scripts of SRO rely on, object by object.

use std::{collections::BTreeMap, path::PathBuf};

use kube::api::{DynamicObject, PostParams};
use pintle_dev::nodes::KERNEL;
use pintle_tests::{Stage, stage::condition};
use serde_json::{Value, json};

/// Suffix of everything that is made once per kernel: the kernel and system version of the documentation.
const SUFFIX: &str = "12813789169ac0ee";
/// Labels, annotations and selectors that SRO's users look for.
const OWNED: &str = "specialresource.openshift.io/owned";
const HASH: &str = "specialresource.openshift.io/hash";
const KERNEL_LABEL: &str = "feature.node.kubernetes.io/kernel-version.full";

#[tokio::test(flavor = "multi_thread")]
async fn the_example_ends_as_the_documentation_says() {
    let mut stage = Stage::new("simple-kmod").await.unwrap();
    stage.install_example().await.unwrap();
    stage.wait_until_ready().await.unwrap();
    check_objects(&stage).await;
    check_build(&stage).await;
    check_workload(&stage).await;
    check_account(&stage).await;
    check_cluster(&stage).await;
    check_owner(&stage).await;
    stage.stop_operator().await.unwrap();
}

/// There is what the table names, and no more.
async fn check_objects(stage: &Stage) {
    let name = &stage.name;
    let container = format!("{name}-driver-container");
    let expected = [
        ("ImageStream", container.clone()),
        ("BuildConfig", format!("{name}-driver-build-{SUFFIX}")),
        ("DaemonSet", format!("{container}-{SUFFIX}")),
        ("Role", container.clone()),
        ("RoleBinding", container.clone()),
    ];
    for (kind, wanted) in &expected {
        assert_eq!(stage.names(kind).await.unwrap(), std::slice::from_ref(wanted), "{kind}");
        check_marks(stage, &stage.read(kind, wanted).await.unwrap()).await;
    }
    check_marks(stage, &stage.read("ServiceAccount", &container).await.unwrap()).await;
    let build = format!("{name}-driver-build-{SUFFIX}-1");
    assert_eq!(stage.names("Build").await.unwrap(), std::slice::from_ref(&build));
    assert!(stage.find("Pod", &format!("{build}-build")).await.unwrap().is_some());
}

/// Owner, labels and annotations that every object carries.
async fn check_marks(stage: &Stage, object: &Value) {
    let owner = stage.read("SpecialResource", &stage.name).await.unwrap();
    let reference = json!([{
        "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource", "name": stage.name,
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true
    }]);
    let metadata = &object["metadata"];
    assert_eq!(metadata["ownerReferences"], reference, "{object}");
    assert_eq!(metadata["labels"][OWNED], "true");
    assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "Helm");
    let annotations = &metadata["annotations"];
    assert_eq!(annotations["meta.helm.sh/release-name"], stage.name.as_str());
    assert_eq!(annotations["meta.helm.sh/release-namespace"], stage.name.as_str());
    assert!(annotations[HASH].as_str().is_some_and(|hash| hash.parse::<u64>().is_ok()), "{annotations}");
}

async fn check_build(stage: &Stage) {
    let name = &stage.name;
    let build = stage.read("BuildConfig", &format!("{name}-driver-build-{SUFFIX}")).await.unwrap();
    assert_eq!(build["metadata"]["labels"]["app"], format!("{name}-driver-build"), "not rewritten here");
    let selector = json!({"node-role.kubernetes.io/worker": "", (KERNEL_LABEL): KERNEL});
    assert_eq!(build["spec"]["nodeSelector"], selector);
    let arguments = json!([
        {"name": "IMAGE", "value": null}, {"name": "KMODVER", "value": "SRO"}, {"name": "KVER", "value": KERNEL}
    ]);
    let found = build["spec"]["strategy"]["dockerStrategy"]["buildArgs"].clone();
    assert_eq!(without_empty(found), without_empty(arguments));
    let tag = json!({"kind": "ImageStreamTag", "name": format!("{name}-driver-container:v{KERNEL}")});
    assert_eq!(build["spec"]["output"]["to"], tag);
    let stream = stage.read("ImageStream", &format!("{name}-driver-container")).await.unwrap();
    assert_eq!(stream["metadata"]["labels"]["app"], format!("{name}-driver-container"));
}

/// An argument without a value may be stored with an empty value, with null or without the field.
fn without_empty(mut list: Value) -> Value {
    for entry in list.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.retain(|_, value| !value.is_null() && value != "");
    }
    list
}

async fn check_workload(stage: &Stage) {
    let name = format!("{}-driver-container", stage.name);
    let full = format!("{name}-{SUFFIX}");
    let set = stage.read("DaemonSet", &full).await.unwrap();
    assert_eq!(set["metadata"]["labels"]["app"], full.as_str());
    assert_eq!(set["spec"]["selector"]["matchLabels"], json!({"app": full}));
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], json!({"app": full, (OWNED): "true"}));
    assert_eq!(set["spec"]["updateStrategy"]["type"], "OnDelete");
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"node-role.kubernetes.io/worker": "", (KERNEL_LABEL): KERNEL}));
    assert_eq!(pod["serviceAccountName"], name.as_str());
    let image = format!("image-registry.openshift-image-registry.svc:5000/{}/{name}:v{KERNEL}", stage.name);
    assert_eq!(pod["containers"][0]["image"], image);
    let status = &set["status"];
    assert_eq!((&status["numberAvailable"], &status["desiredNumberScheduled"]), (&json!(3), &json!(3)));
    let mut nodes: Vec<_> = stage.list("Pod").await.unwrap();
    nodes.retain(|pod| pod["metadata"]["labels"]["app"] == full.as_str());
    let nodes: Vec<_> = nodes.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert_eq!(std::collections::BTreeSet::from_iter(nodes).len(), 3, "one pod a node");
}

async fn check_account(stage: &Stage) {
    let name = format!("{}-driver-container", stage.name);
    let role = stage.read("Role", &name).await.unwrap();
    let rule = json!({
        "apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"],
        "resourceNames": ["privileged"], "verbs": ["use"]
    });
    assert_eq!(role["rules"], json!([rule]));
    let binding = stage.read("RoleBinding", &name).await.unwrap();
    assert_eq!(binding["roleRef"]["name"], name.as_str());
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": stage.name});
    assert_eq!(binding["subjects"], json!([subject]));
}

async fn check_cluster(stage: &Stage) {
    let namespace = stage.read("Namespace", &stage.name).await.unwrap();
    assert_eq!(namespace["metadata"]["labels"][OWNED], "true");
    assert_eq!(namespace["metadata"]["ownerReferences"], Value::Null);
    for node in ["worker-0", "worker-1", "worker-2"] {
        let labels = stage.read("Node", node).await.unwrap()["metadata"]["labels"].clone();
        for state in ["0000", "1000"] {
            let key = format!("specialresource.openshift.io/state-{}-{state}", stage.name);
            assert_eq!(labels[key.as_str()], "Ready", "{key} on {node}");
        }
    }
}

async fn check_owner(stage: &Stage) {
    let owner = stage.read("SpecialResource", &stage.name).await.unwrap();
    assert_eq!(owner["metadata"]["finalizers"], json!(["sro.openshift.io/finalizer"]));
    let status = &owner["status"];
    assert_eq!(status["state"], "Ready: ", "the text that scripts compare with");
    let told = |kind: &str| {
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        [text("status"), text("reason"), text("message")]
    };
    assert_eq!(told("Ready"), ["True", "Success", ""]);
    assert_eq!(told("Progressing"), ["False", "SpecialResourceIsReady", ""]);
    assert_eq!(told("Errored"), ["False", "SpecialResourceIsReady", ""]);
    assert_eq!(status["conditions"].as_array().unwrap().len(), 3);
    assert_eq!(status["observedGeneration"], owner["metadata"]["generation"]);
    let states: Vec<_> = status["states"]
        .as_array()
        .unwrap()
        .iter()
        .map(|state| {
            json!([state["name"], state["phase"], state["ready"], state["objects"], state["blockers"]])
        })
        .collect();
    let expected = [
        json!(["0000-buildconfig", "Ready", 2, 2, null]),
        json!(["1000-driver-container", "Ready", 4, 4, null]),
    ];
    assert_eq!(states, expected);
    assert_eq!(columns(stage).await, ["simple-kmod", "True", "False", "False"]);
}

/// What `kubectl get sr` prints, but for the columns that are ours alone.
async fn columns(stage: &Stage) -> Vec<String> {
    let path = format!("/apis/sro.openshift.io/v1beta1/specialresources/{}", stage.name);
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = http::Request::get(path).header("Accept", accept).body(Vec::new()).unwrap();
    let table: Value = stage.client.request(request).await.unwrap();
    let names: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].clone()).collect();
    assert_eq!(names, ["Name", "Ready", "Progressing", "Errored", "State", "Blocked", "Age"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    cells.iter().take(4).map(|cell| cell.as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_as_sro_shipped_it_becomes_ready() {
    let Some(recipes) = shared("conformance/sro-recipes") else { return };
    let mut stage = Stage::new("sro-recipe").await.unwrap();
    let text = std::fs::read_to_string(recipes.join("simple-kmod-0.0.1/simple-kmod.yaml")).unwrap();
    let mut owner: Value = serde_yaml::from_str(&text).unwrap();
    owner["metadata"] = stage.example().unwrap()["metadata"].clone();
    owner["spec"]["namespace"] = json!(stage.name);
    owner["spec"]["chart"]["repository"]["url"] = json!(format!("file://{}", recipes.display()));
    stage.apply(owner).await.unwrap();
    let ready = stage.wait_until_ready().await.unwrap();
    assert_eq!(condition(&ready, "Errored").as_deref(), Some("False"));
    check_objects(&stage).await;
    check_account(&stage).await;
    check_cluster(&stage).await;
    let build = stage.read("BuildConfig", &format!("sro-recipe-driver-build-{SUFFIX}")).await.unwrap();
    let dockerfile = build["spec"]["source"]["dockerfile"].as_str().unwrap();
    let clone = "RUN git clone -b master https://github.com/openshift-psap/simple-kmod.git";
    assert!(dockerfile.contains(clone), "{dockerfile}");
    assert!(dockerfile.contains(&format!("KVER={KERNEL}\n")), "{dockerfile}");
    let set = stage.read("DaemonSet", &format!("sro-recipe-driver-container-{SUFFIX}")).await.unwrap();
    let selector = &set["spec"]["template"]["spec"]["nodeSelector"];
    assert_eq!(selector[KERNEL_LABEL], KERNEL, "the empty value of the recipe is filled in");
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn values_may_come_without_the_kind_that_sro_asked_for() {
    let mut stage = Stage::new("bare-values").await.unwrap();
    stage.install_chart(&pintle::scenario::chart_folder("simple-kmod")).await.unwrap();
    let mut owner = stage.example().unwrap();
    for field in ["kind", "apiVersion"] {
        owner["spec"]["set"].as_object_mut().unwrap().remove(field).unwrap();
    }
    stage.apply(owner).await.unwrap();
    stage.wait_until_ready().await.unwrap();
    check_build(&stage).await;
    stage.stop_operator().await.unwrap();
}

/// A folder that is shared between checkouts; tests that need it say so where it is not.
fn shared(path: &str) -> Option<PathBuf> {
    let beside = pintle::scenario::source_tree().ancestors().map(|folder| folder.join("shared"));
    let named = std::env::var_os("PINTLE_SHARED").map(PathBuf::from);
    let found = named.into_iter().chain(beside).map(|root| root.join(path)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: {path} is in no folder called shared; name one in PINTLE_SHARED");
    }
    found
}

// === definitions ===

/// Differences on purpose, by path: where ours asks for more than SRO's.
const STRICTER: [(&str, &str); 1] = [("", "spec")];

#[tokio::test(flavor = "multi_thread")]
async fn what_sros_definitions_accept_ours_accept() {
    let Some(folder) = shared("conformance/crds") else { return };
    for plural in ["specialresources", "specialresourcemodules", "preflightvalidations"] {
        let text = std::fs::read_to_string(folder.join(format!("sro.openshift.io_{plural}.yaml"))).unwrap();
        let theirs: Value = serde_yaml::from_str(&text).unwrap();
        let ours = pintle_api::crd::all().into_iter().map(|crd| serde_json::to_value(crd).unwrap());
        let ours = ours.into_iter().find(|crd| crd["spec"]["names"]["plural"] == plural).unwrap();
        for field in ["group", "scope"] {
            assert_eq!(ours["spec"][field], theirs["spec"][field], "{plural}");
        }
        for field in ["kind", "singular", "shortNames"] {
            let (our, their) = (&ours["spec"]["names"][field], &theirs["spec"]["names"][field]);
            assert!(their.is_null() || our == their, "{plural} {field}: {our} {their}");
        }
        let version = |crd: &Value| crd["spec"]["versions"][0].clone();
        let (ours, theirs) = (version(&ours), version(&theirs));
        assert_eq!(ours["name"], theirs["name"]);
        assert!(ours["subresources"]["status"].is_object(), "{plural}");
        let columns = |version: &Value| {
            let list = version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default();
            list.into_iter().map(|column| (column["name"].to_string(), column)).collect::<BTreeMap<_, _>>()
        };
        let our_columns = columns(&ours);
        for (name, column) in columns(&theirs) {
            assert_eq!(our_columns.get(&name), Some(&column), "{plural}");
        }
        let mut faults = Vec::new();
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        compare("", &schema(&theirs), &schema(&ours), &mut faults);
        assert!(faults.is_empty(), "{plural}: {faults:#?}");
    }
}

/// Every value that `theirs` takes, `ours` takes, and fills in the same.
fn compare(at: &str, theirs: &Value, ours: &Value, faults: &mut Vec<String>) {
    if ours["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if !theirs["type"].is_null() && theirs["type"] != ours["type"] {
        faults.push(format!("{at}: type {} and {}", theirs["type"], ours["type"]));
    }
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        faults.push(format!("{at}: unknown fields are kept there and dropped here"));
    }
    if theirs["default"] != ours["default"] {
        faults.push(format!("{at}: default {} and {}", theirs["default"], ours["default"]));
    }
    for field in ["pattern", "format", "minimum", "minLength", "maxLength"] {
        let (our, their) = (&ours[field], &theirs[field]);
        // Ours takes the empty text besides.
        let is_wider = field == "pattern"
            && our.as_str().map(|our| our.replace(")?$", ")$")).as_deref() == their.as_str();
        if !(our.is_null() || our == their || is_wider) {
            faults.push(format!("{at}: {field} {their} and {our}"));
        }
    }
    let words = |schema: &Value| schema["enum"].as_array().cloned();
    if let Some(our) = words(ours)
        && words(theirs).is_none_or(|their| their.iter().any(|word| !our.contains(word)))
    {
        faults.push(format!("{at}: one of {our:?} is asked for"));
    }
    let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    for field in required(ours).iter().filter(|field| !required(theirs).contains(field)) {
        if !STRICTER.contains(&(at, field.as_str().unwrap_or_default())) {
            faults.push(format!("{at}: {field} is required"));
        }
    }
    for (field, theirs) in theirs["properties"].as_object().into_iter().flatten() {
        match ours["properties"].get(field) {
            Some(ours) => compare(&format!("{at}.{field}"), theirs, ours, faults),
            None if matches!(field.as_str(), "apiVersion" | "kind" | "metadata") && at.is_empty() => {}
            None => faults.push(format!("{at}.{field} is not known")),
        }
    }
    for field in ["items", "additionalProperties"] {
        if theirs[field].is_object() {
            compare(&format!("{at}[]"), &theirs[field], &ours[field], faults);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_values_with_and_without_a_kind() {
    let stage = Stage::without_operator("set-forms").await.unwrap();
    let set = |set: Value| {
        let mut owner = stage.example().unwrap();
        owner["spec"]["set"] = set;
        owner["spec"]["dependencies"] = json!([{}, {"set": {"a": 1}}]);
        owner
    };
    let forms = [
        json!({"kind": "Values", "apiVersion": "sro.openshift.io/v1beta1", "a": {"b": [1, true, null]}}),
        json!({"a": {"b": [1, true, "x"]}}),
        json!({}),
    ];
    for form in forms {
        let object: DynamicObject = serde_json::from_value(set(form.clone())).unwrap();
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let made = stage.of_kind("SpecialResource").create(&params, &object).await.unwrap();
        assert_eq!(made.data["spec"]["set"], form, "kept as it was written");
        let repository = &made.data["spec"]["chart"]["repository"];
        assert_eq!(repository["insecure_skip_tls_verify"], json!(false), "SRO's only default");
    }
}

//! The rights of `deploy/` are the smallest: without any one of them the example stops, and its status names
//! what is missing.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use pintle_api::SpecialResource;
use pintle_tests::{
    Account, Stage,
    stage::{condition, plane},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// Runs that go on at once.
const AT_ONCE: usize = 4;
/// How long an example that says nothing is waited for; with all rights it takes a few seconds.
const SILENCE: Duration = Duration::from_secs(30);

/// Rights that the example does not need, and who does.
const UNAFFECTED: [(&str, &str); 10] = [
    (
        "specialresources/finalizers",
        "asked for by an admission plugin that OpenShift has and this API server has not",
    ),
    ("specialresourcemodules", "of a kind the example does not use"),
    ("preflightvalidations", "of a kind the example does not use"),
    ("pluginpolicies", "of a kind the example does not use"),
    ("watches", "of a kind the example does not use"),
    ("watches/status", "of a kind the example does not use"),
    ("plugins/status", "a Plugin is told how it is; releases do not read that"),
    ("events", "events tell and change nothing"),
    ("customresourcedefinitions", "new kinds are seen at once with it, and at the next look without"),
    ("apiservices", "new kinds are seen at once with it, and at the next look without"),
];
/// Rights without which the SpecialResource cannot be told anything: the operator's log says it.
const UNTOLD: [&str; 2] = ["specialresources", "specialresources/status"];

/// One resource of one rule of the operator's roles.
#[derive(Clone, Debug)]
struct Right {
    group: String,
    resource: String,
    verbs: Vec<String>,
}

/// The rules of the ClusterRoles that the example runs with.
fn rules() -> Vec<Value> {
    let texts = [
        include_str!("../../../deploy/base/rbac.yaml"),
        include_str!("../../../deploy/base/rbac-simple-kmod.yaml"),
    ];
    let documents = texts.iter().flat_map(|text| serde_yaml::Deserializer::from_str(text));
    let documents = documents.map(|document| Value::deserialize(document).unwrap());
    let roles = documents.filter(|document| document["kind"] == "ClusterRole");
    roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
}

/// Each resource of each rule by itself.
fn rights() -> Vec<Right> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let each = rules().into_iter().flat_map(|rule| {
        let (groups, verbs) = (texts(&rule["apiGroups"]), texts(&rule["verbs"]));
        let right = move |resource| Right { group: groups[0].clone(), resource, verbs: verbs.clone() };
        texts(&rule["resources"]).into_iter().map(right).collect::<Vec<_>>()
    });
    each.collect()
}

/// All rules but for one resource of one group.
fn rules_without(right: &Right) -> Vec<Value> {
    let mut rules = rules();
    for rule in &mut rules {
        if rule["apiGroups"][0] == right.group.as_str() {
            rule["resources"].as_array_mut().unwrap().retain(|resource| *resource != right.resource.as_str());
        }
    }
    rules.retain(|rule| !rule["resources"].as_array().unwrap().is_empty());
    rules
}

/// The example with all rights but one; what is wrong with its end, if anything.
async fn check(at: usize, right: &Right) -> Result<(), String> {
    let name = format!("right-{at:02}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules_without(right)
    });
    let plane = plane().await.unwrap();
    pintle::scenario::apply(&plane.client().unwrap(), role).await.unwrap();
    let account = Account::with_roles(plane, &name, &name, "pintle-leader").await.unwrap();
    let mut stage = Stage::with_account(&name, account).await.unwrap();
    stage.start();
    stage.install_example().await.unwrap();
    let told = |owner: &SpecialResource| {
        let text = serde_json::to_string(&owner.status).unwrap();
        text.contains("may not") && names(&text, right)
    };
    let is_ready = |owner: &SpecialResource| condition(owner, "Ready").as_deref() == Some("True");
    let ended =
        stage.wait_until_within(SILENCE, "told or ready", |owner| is_ready(owner) || told(owner)).await;
    let outcome = match &ended {
        Ok(owner) if is_ready(owner) => "ready",
        Ok(_) => "told",
        Err(_) => "silent",
    };
    drop(stage.stop_operator().await);
    stage.release_owner().await.unwrap();
    let wanted = if UNAFFECTED.iter().any(|(resource, _)| *resource == right.resource) {
        "ready"
    } else if UNTOLD.contains(&right.resource.as_str()) {
        "silent"
    } else {
        "told"
    };
    if outcome == wanted {
        return Ok(());
    }
    let status =
        ended.map_or_else(|err| err.to_string(), |owner| serde_json::to_string(&owner.status).unwrap());
    Err(format!("without {right:?} it is {outcome}, not {wanted}: {status}"))
}

/// Whether a text names the resource and one of the verbs.
fn names(text: &str, right: &Right) -> bool {
    let has =
        |word: &str| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '/')).any(|part| part == word);
    has(&right.resource) && right.verbs.iter().any(|verb| has(verb))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_any_one_right_the_example_stops_and_says_which() {
    let rights = rights();
    assert!(rights.len() > 20, "{rights:#?}");
    for (resource, _) in UNAFFECTED {
        assert!(rights.iter().any(|right| right.resource == resource), "{resource} is in no rule any more");
    }
    let runs = stream::iter(rights.iter().enumerate()).map(|(at, right)| check(at, right));
    let wrong: Vec<String> = runs.buffer_unordered(AT_ONCE).filter_map(async |end| end.err()).collect().await;
    assert!(wrong.is_empty(), "{} of {} rights:\n{}", wrong.len(), rights.len(), wrong.join("\n\n"));
}

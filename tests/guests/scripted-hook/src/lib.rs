//! A hook that does what a ConfigMap of the release's namespace says: tests change its mind by an edit.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Action, Around, Blocker, Call, Failure, Hooks, Manifest, ObjectAccess, ObjectRef, Pending, Phase, Plugin,
    ReadAccess, Step,
    config::config,
    export_plugin, inputs,
    kube::{self, Query, ReadError},
};
use serde::Deserialize;
use serde_json::{Value, json};

config! {
    /// Arguments in the annotation.
    pub struct Args {
        /// Name of the ConfigMap.
        script: String = "script".to_owned(),
    }
}

/// What the ConfigMap says of one phase, under the phase, or under the operation and the phase.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    /// `go`, `hold`, `leave-out`, `fail`, `validated` (hold until its own pods have succeeded), `remediate`.
    does: String,
    reason: String,
    message: String,
    want: BTreeMap<String, Value>,
    parts: BTreeMap<String, Value>,
    actions: Vec<Deed>,
    save: Option<Value>,
    /// For `remediate`: how often one node is recovered at most.
    most: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deed {
    key: String,
    verb: String,
    api_version: String,
    kind: String,
    #[serde(default)]
    namespace: Option<String>,
    name: String,
}

#[derive(Deserialize)]
struct Map {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Pod {
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
}

/// The plugin.
pub struct ScriptedHook;

impl Plugin for ScriptedHook {
    type Config = pintle_plugin_sdk::config::NoConfig;

    fn describe() -> Manifest {
        Manifest::new("scripted-hook", env!("CARGO_PKG_VERSION"))
            .args::<Args>()
            .reads(ReadAccess::to("", "ConfigMap").in_release())
            .reads(ReadAccess::to("", "Node").fields(&["metadata.name", "metadata.labels"]))
            .makes(ObjectAccess::to("", "Pod").in_release())
            .reasons(["Held", "Validating", "ValidationFailed", "RecoveryDenied"])
    }
}

impl Hooks for ScriptedHook {
    fn on_phase(call: &Call<Self::Config>, around: &Around) -> Result<Step, Failure> {
        let line = line(call, around.phase)?;
        let pending = || Pending::new(vec![Blocker::new(&line.reason, &line.message)]);
        let step = match line.does.as_str() {
            "" | "go" => Step::go(),
            "hold" => Step::hold(pending()),
            "leave-out" => Step::leave_out(&line.message),
            "fail" => {
                return Err(Failure::for_good(&line.message).about(Blocker::new(&line.reason, &line.message)));
            }
            "validated" => validated(&line, around)?,
            "remediate" => return remediate(call, &line),
            other => return Err(Failure::until_changed(format!("the script says {other:?}"))),
        };
        Ok(dressed(step, &line))
    }
}

export_plugin!(ScriptedHook: Hooks);

fn line(call: &Call<pintle_plugin_sdk::config::NoConfig>, phase: Phase) -> Result<Line, Failure> {
    let Args { script } = call.args()?;
    let target = ObjectRef::new("v1", "ConfigMap", script).within(&call.context.release.namespace);
    let map: Map = match kube::get(&target, &["data"]) {
        Ok(map) => map,
        Err(ReadError::NotFound) => return Ok(Line::default()),
        Err(error) => return Err(error.into()),
    };
    let phase = format!("{phase:?}").to_lowercase();
    let phase = phase.rsplit("::").next().unwrap_or_default().to_owned();
    let operation = format!("{:?}", call.context.operation).to_lowercase();
    let operation = operation.rsplit("::").next().unwrap_or_default();
    let text = map.data.get(&format!("{operation}-{phase}")).or_else(|| map.data.get(&phase));
    let Some(text) = text else { return Ok(Line::default()) };
    serde_json::from_str(text).map_err(|error| Failure::until_changed(format!("the script: {error}")))
}

/// What the line wants and has done, whatever it decides.
fn dressed(step: Step, line: &Line) -> Step {
    let step = line.want.iter().fold(step, |step, (key, object)| step.want(key, object));
    let step = line.parts.iter().fold(step, |step, (key, object)| step.part(key, object));
    let step = line.actions.iter().fold(step, |step, deed| {
        let target = ObjectRef::new(&deed.api_version, &deed.kind, &deed.name);
        let target = match &deed.namespace {
            Some(namespace) => target.within(namespace),
            None => target,
        };
        step.action(Action::new(&deed.key, &deed.verb, target))
    });
    match &line.save {
        Some(value) => step.save(value),
        None => step,
    }
}

/// Holds until each of its own pods has succeeded.
fn validated(line: &Line, around: &Around) -> Result<Step, Failure> {
    let mut blockers = Vec::new();
    for key in line.want.keys() {
        let live = around.applied.iter().find(|live| live.key == *key);
        let phase = live.map(|live| live.object.read::<Pod>()).transpose()?.unwrap_or_default().status.phase;
        match phase.as_str() {
            "Succeeded" => {}
            "Failed" => blockers.push(Blocker::new("ValidationFailed", format!("{key} has failed"))),
            _ => blockers.push(Blocker::new("Validating", format!("{key} has not finished"))),
        }
    }
    Ok(if blockers.is_empty() { Step::go() } else { Step::hold(Pending::new(blockers)) })
}

/// Cordons each node of the scenario that asks for it, a bounded number of times.
fn remediate(call: &Call<pintle_plugin_sdk::config::NoConfig>, line: &Line) -> Result<Step, Failure> {
    let mut saved: BTreeMap<String, Vec<String>> = inputs::saved()?.unwrap_or_default();
    let selector = format!("scenario={},needs-recovery", call.context.release.namespace);
    let nodes = Query::all("v1", "Node").selected_by_text(&selector);
    let nodes = nodes.fields(&["metadata.name", "metadata.labels"]);
    let (mut actions, mut blockers) = (Vec::new(), Vec::new());
    for Node { metadata: Metadata { name, labels } } in kube::find(&nodes)? {
        let token = labels.get("needs-recovery").cloned().unwrap_or_default();
        let times = saved.entry(name.clone()).or_default();
        if times.contains(&token) {
            continue;
        }
        if times.len() >= line.most {
            let message = format!("{name} was recovered {} times already", times.len());
            blockers.push(Blocker::new("RecoveryDenied", message).at_node(&name));
            continue;
        }
        times.push(token.clone());
        actions.push(Action::new(format!("{name}-{token}"), "cordon", ObjectRef::new("v1", "Node", &name)));
    }
    blockers.push(Blocker::new(&line.reason, &line.message));
    let step = Step::hold(Pending::new(blockers)).save(&json!(saved));
    Ok(actions.into_iter().fold(step, Step::action))
}

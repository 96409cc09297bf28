//! `build-on-pull-failure`: when a pod of the state cannot pull its image, the image is built from the
//! BuildConfig of the same state, a bounded number of times, and then the pod is started again.

mod objects;

use pintle_plugin_sdk::{
    Action, Around, Blocker, Call, EventKind, Failure, Hooks, Live, Manifest, ObjectAccess, ObjectRef,
    Pending, Phase, Plugin, ReadAccess, Step,
    config::config,
    export_plugin, inputs,
    kube::{self, Query},
};
use serde::Deserialize;
use serde_json::{Value, json};

use objects::{Build, Pod, Rendered, Spec};

/// What is read of a pod, and must be granted.
const FIELDS: [&str; 3] = ["metadata.name", "metadata.labels", "status.containerStatuses"];
/// Keys of a BuildConfig's spec that a Build has too.
const SPEC: [&str; 9] = [
    "source",
    "strategy",
    "output",
    "resources",
    "postCommit",
    "nodeSelector",
    "serviceAccount",
    "revision",
    "completionDeadlineSeconds",
];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// The BuildConfig in the state; without a name, the only one.
        build_config: Option<String> = None,
        /// How many builds are tried.
        attempts: u32 = 3 => {"minimum": 1},
    }
}

/// What is kept from call to call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Saved {
    /// Number of the build that was begun last.
    attempt: u32,
    /// Pods that were started again: until they are gone they still say that they cannot pull.
    restarted: Vec<String>,
}

/// The plugin.
pub struct BuildOnPullFailure;

impl Plugin for BuildOnPullFailure {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("build-on-pull-failure", env!("CARGO_PKG_VERSION"))
            .description("Builds a driver image when its pods cannot pull it, a bounded number of times")
            .config::<Config>()
            .reads(ReadAccess::to("", "Pod").in_release().fields(&FIELDS))
            .makes(ObjectAccess::to("build.openshift.io", "Build").in_release())
            .does(["delete"], ObjectAccess::to("", "Pod").in_release())
            .reasons(["ImageIsBuilt", "BuildFailed", "NoBuildConfig"])
    }
}

impl Hooks for BuildOnPullFailure {
    fn on_phase(call: &Call<Config>, around: &Around) -> Result<Step, Failure> {
        if around.phase != Phase::Waiting {
            return Ok(Step::go());
        }
        let Saved { attempt, restarted } = inputs::saved()?.unwrap_or_default();
        let build =
            Live::find(&around.applied, "build").map(|live| live.object.read::<Build>()).transpose()?;
        let mut stuck = stuck(call, around)?;
        stuck.retain(|(pod, _)| !restarted.contains(pod));
        match build.as_ref().map(|build| build.status.phase.as_str()) {
            Some("Complete") => Ok(restart(call, &stuck, attempt)),
            Some("Failed" | "Error" | "Cancelled") if attempt >= call.config.attempts => {
                let why = build.map(|build| build.status.message).unwrap_or_default();
                let message = format!("build {attempt} of {} has failed: {why}", call.config.attempts);
                Err(Failure::for_good(message.clone()).about(Blocker::new("BuildFailed", message)))
            }
            Some("Failed" | "Error" | "Cancelled") => want(call, around, attempt + 1),
            Some(_) => want(call, around, attempt),
            None if stuck.is_empty() => Ok(Step::go()),
            None if attempt >= call.config.attempts => {
                let image = stuck.first().map_or("an image", |(_, image)| image);
                let message = format!("{image} cannot be pulled after {attempt} builds");
                Err(Failure::for_good(message.clone()).about(Blocker::new("BuildFailed", message)))
            }
            None => want(call, around, attempt + 1),
        }
    }
}

export_plugin!(BuildOnPullFailure: Hooks);

/// Pods of this state's workloads that cannot pull, with the image.
fn stuck(call: &Call<Config>, around: &Around) -> Result<Vec<(String, String)>, Failure> {
    let mut stuck = Vec::new();
    for rendered in &around.rendered {
        let Ok(Rendered { spec: Spec { selector: Some(selector), .. }, .. }) = rendered.read() else {
            continue;
        };
        let pods = Query::all("v1", "Pod").within(&call.context.release.namespace).selected_by(&selector);
        for pod in kube::find::<Pod>(&pods.fields(&FIELDS))? {
            let waits = pod.status.container_statuses.into_iter().find(|container| {
                let reason = container.state.waiting.as_ref().map(|waiting| waiting.reason.as_str());
                matches!(reason, Some("ImagePullBackOff" | "ErrImagePull"))
            });
            stuck.extend(waits.map(|container| (pod.metadata.name, container.image)));
        }
    }
    Ok(stuck)
}

/// Holds with a Build made from the BuildConfig, which the number in its name makes once per attempt.
fn want(call: &Call<Config>, around: &Around, attempt: u32) -> Result<Step, Failure> {
    let is_it = |rendered: &Rendered| {
        let wanted = call.config.build_config.as_ref().is_none_or(|name| *name == rendered.metadata.name);
        rendered.kind == "BuildConfig" && rendered.spec.strategy.is_some() && wanted
    };
    let config = around.rendered.iter().find(|object| object.read().is_ok_and(|rendered| is_it(&rendered)));
    let Some(config) = config else {
        let message = "no BuildConfig in this state makes the image that cannot be pulled";
        return Err(Failure::until_changed(message).about(Blocker::new("NoBuildConfig", message)));
    };
    let config: Value = config.read()?;
    let namespace = &call.context.release.namespace;
    let of = config["metadata"]["name"].as_str().unwrap_or_default();
    let name = format!("{of}-pintle-{}-{attempt}", call.context.release.revision);
    let spec = SPEC.iter().filter_map(|key| Some(((*key).to_owned(), config["spec"].get(*key)?.clone())));
    let spec: serde_json::Map<String, Value> = spec.collect();
    let build = json!({"apiVersion": "build.openshift.io/v1", "kind": "Build", "spec": spec,
        "metadata": {"name": name, "namespace": namespace, "labels": {"buildconfig": of}}});
    let object = ObjectRef::new("build.openshift.io/v1", "Build", &name).within(namespace);
    let message = format!("the image is built, attempt {attempt} of {}", call.config.attempts);
    let step = Step::hold(Pending::new(vec![Blocker::new("ImageIsBuilt", message).on(object)]));
    Ok(step.want("build", &build).save(&json!({"attempt": attempt})))
}

/// The image is there: pods that back off would wait minutes until they look again.
fn restart(call: &Call<Config>, stuck: &[(String, String)], attempt: u32) -> Step {
    let namespace = &call.context.release.namespace;
    let pods: Vec<&String> = stuck.iter().map(|(pod, _)| pod).collect();
    let step = Step::go()
        .event(EventKind::Normal, "ImageBuilt", format!("built in attempt {attempt}"))
        .save(&json!({"attempt": attempt, "restarted": pods}));
    stuck.iter().fold(step, |step, (pod, _)| {
        let key = format!("restart-{pod}-{attempt}");
        step.action(Action::new(key, "delete", ObjectRef::new("v1", "Pod", pod).within(namespace)))
    })
}

#[cfg(test)]
mod tests;

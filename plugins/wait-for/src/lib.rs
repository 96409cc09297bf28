//! `wait-for`: an object is ready once another object has a condition. The same plugin is in
//! `plugins/guests` in other languages, and a test holds that all of them answer the same.

use pintle_plugin_sdk::{
    Answer, Blocker, Call, Failure, Json, Manifest, ObjectRef, Plugin, ReadAccess, Readiness,
    config::config,
    export_plugin,
    kube::{self, ReadError},
    log,
};
use serde::Deserialize;

/// What is read of the other object, and must be granted.
const FIELDS: [&str; 3] = ["metadata.generation", "status.observedGeneration", "status.conditions"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// The condition to wait for where the annotation names none.
        condition: String = "Ready".to_owned(),
    }
}

config! {
    /// Arguments of the annotation.
    pub struct Args {
        /// Such as apps/v1.
        api_version: String = String::new(),
        /// Such as Deployment.
        kind: String = String::new(),
        /// Name of the object.
        name: String = String::new(),
        /// Its namespace; without it that of the release, empty for kinds that have none.
        namespace: Option<String> = None,
        /// The condition to wait for.
        condition: Option<String> = None,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Seen {
    metadata: Metadata,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    generation: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    message: String,
}

/// The plugin.
pub struct WaitFor;

impl Plugin for WaitFor {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("wait-for", env!("CARGO_PKG_VERSION"))
            .description("Waits until another object has a condition")
            .config::<Config>()
            .args::<Args>()
            .reads(ReadAccess::to("apps", "Deployment").in_release().fields(&FIELDS))
            .reasons([
                "ObjectMissing",
                "KindNotInstalled",
                "StatusIsOld",
                "ConditionMissing",
                "ConditionNotMet",
            ])
            .looks_at(["metadata.name"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        if config.condition.is_empty() {
            return Err(Failure::until_changed("spec.config.condition is empty"));
        }
        Ok(())
    }
}

impl Readiness for WaitFor {
    fn check(call: &Call<Config>, _: &Json) -> Result<Answer, Failure> {
        let args: Args = call.args()?;
        let wanted = args.condition.as_deref().filter(|named| !named.is_empty());
        let wanted = wanted.unwrap_or(&call.config.condition);
        let other = args.other(&call.context.release.namespace);
        let (reason, message) = match kube::get::<Seen>(&other, &FIELDS) {
            Ok(seen) => match seen.waits_for(wanted, &place(&other)) {
                Some(waiting) => waiting,
                None => {
                    let met = format!("{wanted} of {} is met", place(&other));
                    log::debug_with(&met, &[("name".to_owned(), other.name)]);
                    return Ok(Answer::ready());
                }
            },
            Err(ReadError::NotFound) => ("ObjectMissing", format!("{} does not exist yet", place(&other))),
            Err(ReadError::KindUnknown) => (
                "KindNotInstalled",
                format!("the cluster does not serve {} of {} yet", other.kind, other.api_version),
            ),
            Err(why) => return Err(refused(&other, why)),
        };
        Ok(Answer::unless([Blocker::new(reason, message).on(other)]))
    }
}

export_plugin!(WaitFor: Readiness);

impl Args {
    fn other(&self, namespace: &str) -> ObjectRef {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        let other = ObjectRef::new(&self.api_version, &self.kind, &self.name);
        if namespace.is_empty() { other } else { other.within(namespace) }
    }
}

impl Seen {
    /// Why the condition does not hold; nothing when it does.
    fn waits_for(&self, wanted: &str, place: &str) -> Option<(&'static str, String)> {
        let generation = self.metadata.generation;
        if let Some(observed) = self.status.observed_generation.filter(|observed| *observed < generation) {
            let message = format!("the status of {place} is of generation {observed}, not {generation}");
            return Some(("StatusIsOld", message));
        }
        let Some(found) = self.status.conditions.iter().find(|condition| condition.kind == wanted) else {
            return Some(("ConditionMissing", format!("{place} has no condition {wanted} yet")));
        };
        let Condition { status, message, .. } = found;
        let colon = if message.is_empty() { "" } else { ": " };
        (status != "True")
            .then(|| ("ConditionNotMet", format!("{wanted} of {place} is {status}{colon}{message}")))
    }
}

fn place(other: &ObjectRef) -> String {
    let ObjectRef { kind, namespace, name, .. } = other;
    match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn refused(other: &ObjectRef, why: ReadError) -> Failure {
    let place = place(other);
    match why {
        ReadError::Denied(why) => Failure::until_changed(format!("{place} cannot be read: {why}")),
        ReadError::Unavailable(why) => Failure::for_now(format!("{place} cannot be read: {why}")),
        why => Failure::until_changed(format!("{place} cannot be read: {why}")),
    }
}

#[cfg(test)]
mod tests;

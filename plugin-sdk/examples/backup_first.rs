//! Before an upgrade a Job must have finished: it is wanted until it has, and what failed is told.

use pintle_plugin_sdk::{Around, Blocker, Call, Failure, Hooks, Live, Manifest, ObjectAccess, ObjectRef};
use pintle_plugin_sdk::{Operation, Pending, Phase, Plugin, Step};
use pintle_plugin_sdk::{config::config, export_plugin};
use serde::Deserialize;
use serde_json::json;

config! {
    /// `spec.config` of the Plugin object.
    pub struct Config {
        /// The image that makes the backup.
        image: String = "registry.example/backup:1".to_owned(),
    }
}

#[derive(Default, Deserialize)]
struct Job {
    #[serde(default)]
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobStatus {
    succeeded: u32,
    failed: u32,
}

struct BackupFirst;

impl Plugin for BackupFirst {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("backup-first", "0.1.0")
            .config::<Config>()
            .makes(ObjectAccess::to("batch", "Job").in_release())
            .reasons(["BackupRuns", "BackupFailed"])
    }
}

impl Hooks for BackupFirst {
    fn on_phase(call: &Call<Config>, around: &Around) -> Result<Step, Failure> {
        if around.phase != Phase::Pre || call.context.operation != Operation::Upgrade {
            return Ok(Step::go());
        }
        let release = &call.context.release;
        let name = format!("{}-backup-{}", release.name, release.revision);
        let job = ObjectRef::new("batch/v1", "Job", &name).within(&release.namespace);
        let blocker = match Live::find(&around.applied, "backup") {
            Some(live) => match live.object.read::<Job>()?.status {
                JobStatus { succeeded: 1.., .. } => return Ok(Step::go()),
                JobStatus { failed: 1.., .. } => {
                    Blocker::new("BackupFailed", "the Job has failed; see its log")
                }
                _ => Blocker::new("BackupRuns", "the backup has not finished"),
            },
            None => Blocker::new("BackupRuns", "the backup begins"),
        };
        let container = json!({"name": "backup", "image": call.config.image});
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        let object = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": release.namespace},
            "spec": {"backoffLimit": 0, "template": template}});
        Ok(Step::hold(Pending::new(vec![blocker.on(job)])).want("backup", &object))
    }
}

export_plugin!(BackupFirst: Hooks);

/// On the machine of its author a plugin is an ordinary function; `fake` stands in for the host.
#[cfg(not(target_arch = "wasm32"))]
pub fn example() {
    use pintle_plugin_sdk::{Outcome, fake::Host};

    let host = Host::new().operation(Operation::Upgrade);
    let first = host.clone().on_phase::<BackupFirst>(Phase::Pre, [], []);
    assert!(first.is_ok_and(|step| step.wanted().any(|(key, _)| key == "backup")));
    let done = json!({"status": {"succeeded": 1}});
    let last = host.on_phase::<BackupFirst>(Phase::Pre, [], [("backup", done)]);
    assert!(last.is_ok_and(|step| *step.outcome() == Outcome::Go && step.wanted().count() == 0));
}

//! How the simulated kubelets behave: the Stage files with the delays of one control plane filled in.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use serde::{Deserialize as _, Serialize as _};
use serde_yaml::Value;

const NODES: &str = include_str!("../stages/nodes.yaml");
const PODS: &str = include_str!("../stages/pods.yaml");
const LOGS: &str = include_str!("../stages/logs.yaml");

/// The condition by which the image simulator lets a pod with gated images start.
pub(crate) const IMAGES_PULLED: &str = "sim.pintle.dev/ImagesPulled";

/// How long simulated kubelets take. A pod may have its own times in the annotations `sim.pintle.dev/ready-after`,
/// `complete-after`, `crash` and `stop-after`, written as Go writes durations (`1.5s`).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Timings {
    /// From a node's creation to its being ready.
    pub node_ready: Duration,
    /// From a pod's scheduling (or its images' arrival) to its being ready.
    pub pod_ready: Duration,
    /// From the start of a Job's pod to its end.
    pub pod_complete: Duration,
    /// From a pod's deletion to its being gone.
    pub pod_delete: Duration,
    /// From the start of a build's pod to the build's end.
    pub build: Duration,
    /// From the failure of an image pull to the next try; it doubles with each.
    pub pull_backoff: Duration,
    /// The longest time between two tries.
    pub pull_backoff_max: Duration,
}

impl Default for Timings {
    /// Times for tests: everything within 100 ms, most at once.
    fn default() -> Self {
        Self {
            node_ready: Duration::ZERO,
            pod_ready: Duration::from_millis(20),
            pod_complete: Duration::from_millis(20),
            pod_delete: Duration::ZERO,
            build: Duration::from_millis(50),
            pull_backoff: Duration::from_millis(50),
            pull_backoff_max: Duration::from_secs(1),
        }
    }
}

impl Timings {
    /// Times a person can follow on a screen.
    pub const fn watchable() -> Self {
        Self {
            node_ready: Duration::from_millis(200),
            pod_ready: Duration::from_millis(1_500),
            pod_complete: Duration::from_secs(2),
            pod_delete: Duration::from_secs(1),
            build: Duration::from_secs(6),
            pull_backoff: Duration::from_secs(2),
            pull_backoff_max: Duration::from_secs(10),
        }
    }

    const fn of_stage(&self, name: &str) -> Option<Duration> {
        match name.as_bytes() {
            b"node-ready" | b"node-not-ready" => Some(self.node_ready),
            b"pod-ready" => Some(self.pod_ready),
            b"pod-complete" | b"pod-crash" => Some(self.pod_complete),
            b"pod-delete" => Some(self.pod_delete),
            _ => None,
        }
    }
}

/// Writes the configuration file of the simulated kubelets to `path`.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(path: &Path, timings: &Timings, gated: &[String], empty_log: &Path) -> io::Result<()> {
    fs::write(empty_log, "")?;
    let gated = serde_json::to_string(gated)?;
    let text = [NODES, PODS, LOGS]
        .join("\n---\n")
        .replace("@GATED@", &gated)
        .replace("@EMPTY@", &empty_log.to_string_lossy());
    fs::write(path, build_stages(&text, timings).map_err(io::Error::other)?)
}

/// The documents of `text` with the delay of each Stage.
fn build_stages(text: &str, timings: &Timings) -> Result<String, serde_yaml::Error> {
    let mut output = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let mut document = Value::deserialize(document)?;
        let delay = document["metadata"]["name"].as_str().and_then(|name| timings.of_stage(name));
        if let (Some(delay), Some(spec)) = (delay, document.get_mut("spec")) {
            let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            spec["delay"]["durationMilliseconds"] = Value::from(millis);
        }
        output.extend_from_slice(b"---\n");
        document.serialize(&mut serde_yaml::Serializer::new(&mut output))?;
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn every_stage_has_a_delay_of_the_options() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stages.yaml");
        let timings = Timings::watchable();
        write(&path, &timings, &["registry.example/".to_owned()], &folder.path().join("empty")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let documents = serde_yaml::Deserializer::from_str(&text);
        let documents: Vec<Value> = documents.map(|document| Value::deserialize(document).unwrap()).collect();
        let stages: Vec<&Value> = documents.iter().filter(|document| document["kind"] == "Stage").collect();
        assert_eq!(stages.len(), 6);
        for stage in stages {
            let name = stage["metadata"]["name"].as_str().unwrap();
            let delay = stage["spec"]["delay"]["durationMilliseconds"].as_u64().unwrap();
            assert_eq!(u128::from(delay), timings.of_stage(name).unwrap().as_millis(), "{name}");
        }
        assert!(text.contains("registry.example/") && !text.contains("@GATED@") && !text.contains("@EMPTY@"));
    }
}

//! `driver-loaded`: a DaemonSet of driver containers is ready once the log of each of its pods
//! shows that the driver is loaded on that pod's node. Every node that is not yet there is named.

mod objects;
mod pattern;

use std::collections::BTreeSet;

use objects::{DaemonSet, Pod};
use pintle_plugin_sdk::{
    Answer, Blocker, Call, Failure, Json, LogAccess, Manifest, ObjectRef, Pending, Plugin, ReadAccess,
    Readiness,
    config::config,
    export_plugin,
    kube::{self, Query, ReadError},
    logs::{self, Tail},
};

/// What is read of a pod, and must be granted.
const FIELDS: [&str; 3] = ["metadata.name", "spec.nodeName", "status"];
/// Bytes of a log line that are shown to people.
const SHOWN: usize = 160;

config! {
    /// `spec.config` of the Plugin. The default lines are what `modprobe -v` and the service
    /// kmods-via-containers of simple-kmod's driver container print.
    pub struct Config {
        /// Lines that prove that the driver is loaded; `*` stands for anything.
        loaded: Vec<String> = owned(&[
            "insmod *.ko",
            "Kernel module * already loaded",
            "Started Kmods Via Containers",
            "Finished Kmods Via Containers",
        ]) => {"minItems": 1},
        /// Lines that prove that loading failed; of both kinds the last line counts.
        failed: Vec<String> =
            owned(&["modprobe: ERROR", "insmod: ERROR", "Failed to start Kmods Via Containers"]),
        /// How many lines of each log are read, from its end.
        lines: u32 = 200 => {"minimum": 1, "maximum": 10000},
        /// The container that loads the driver, where a pod has several.
        container: Option<String> = None,
        /// Whether a DaemonSet that no node matches is ready.
        empty_is_ready: bool = true,
    }
}

/// The plugin.
pub struct DriverLoaded;

/// What a log says about its node.
#[derive(Debug, PartialEq, Eq)]
enum Log<'a> {
    Loaded,
    Failed(&'a str),
    Silent(Option<&'a str>),
}

impl Plugin for DriverLoaded {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("driver-loaded", env!("CARGO_PKG_VERSION"))
            .description("A DaemonSet of driver containers is ready once each pod's log shows that the driver is loaded")
            .config::<Config>()
            .reads(ReadAccess::to("", "Pod").in_release().fields(&FIELDS))
            .reads_logs(LogAccess::in_release())
            .reasons([
                "StatusOutdated",
                "NoNodes",
                "PodMissing",
                "PodNotScheduled",
                "PodNotRunning",
                "LogNotReadable",
                "DriverNotLoaded",
                "DriverFailed",
            ])
            .looks_at(["metadata.generation", "spec.selector", "status"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        if config.loaded.iter().all(|pattern| pattern.trim_matches('*').is_empty()) {
            return Err(Failure::until_changed(
                "loaded has no pattern, so nothing could prove that a driver is loaded",
            ));
        }
        if config.lines == 0 {
            return Err(Failure::until_changed("lines is 0, so nothing would be read"));
        }
        Ok(())
    }
}

impl Readiness for DriverLoaded {
    fn check(call: &Call<Config>, target: &Json) -> Result<Answer, Failure> {
        let set: DaemonSet = target.read()?;
        if !set.is_current() {
            let message = format!("the status is not of generation {} yet", set.metadata.generation);
            return Ok(Answer::unless([Blocker::new("StatusOutdated", message)]));
        }
        if set.status.desired_number_scheduled == 0 {
            let none = Blocker::new("NoNodes", "no node matches the DaemonSet, and emptyIsReady is false");
            return Ok(Answer::unless((!call.config.empty_is_ready).then_some(none)));
        }
        let pods = Query::all("v1", "Pod").within(&set.metadata.namespace);
        let pods: Vec<Pod> = kube::find(&pods.selected_by(&set.spec.selector).fields(&FIELDS))?;
        let mut blockers: Vec<Blocker> = missing(&set, &pods).into_iter().collect();
        for pod in &pods {
            blockers.extend(look_at(&set, pod, &call.config)?);
        }
        Ok(answer(&set, blockers))
    }
}

export_plugin!(DriverLoaded: Readiness);

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().copied().map(str::to_owned).collect()
}

/// Ready, or pending with the share of nodes that are done.
fn answer(set: &DaemonSet, blockers: Vec<Blocker>) -> Answer {
    if blockers.is_empty() {
        return Answer::ready();
    }
    let all = u64::from(set.status.desired_number_scheduled).max(1);
    let waiting = u64::try_from(blockers.len()).unwrap_or(u64::MAX).min(all);
    let percent = u8::try_from((all - waiting) * 100 / all).unwrap_or(0);
    Pending::new(blockers).progress(percent).into()
}

/// Nodes that have no pod at all, as one blocker: their names are not known here.
fn missing(set: &DaemonSet, pods: &[Pod]) -> Option<Blocker> {
    let wanted = usize::try_from(set.status.desired_number_scheduled).unwrap_or(usize::MAX);
    let mut nodes = BTreeSet::new();
    // Collecting would sort first, and the code for that is 4 KB.
    for node in pods.iter().filter_map(Pod::node) {
        nodes.insert(node);
    }
    let missing = wanted.saturating_sub(nodes.len());
    let message = format!("{missing} of {wanted} nodes have no pod yet");
    (missing > 0).then(|| Blocker::new("PodMissing", message))
}

/// What is still to come on the node of one pod; nothing when its driver is loaded.
fn look_at(set: &DaemonSet, pod: &Pod, config: &Config) -> Result<Option<Blocker>, Failure> {
    let namespace = &set.metadata.namespace;
    let about = |reason: &str, message: String| {
        let blocker = Blocker::new(reason, message)
            .on(ObjectRef::new("v1", "Pod", &pod.metadata.name).within(namespace));
        match pod.node() {
            Some(node) => blocker.at_node(node),
            None => blocker,
        }
    };
    if pod.node().is_none() {
        return Ok(Some(about("PodNotScheduled", "the pod has no node yet".to_owned())));
    }
    if let Some(why) = pod.not_running() {
        return Ok(Some(about("PodNotRunning", why)));
    }
    let tail = Tail { container: config.container.as_deref(), lines: config.lines, ..Tail::default() };
    let log = match logs::tail(namespace, &pod.metadata.name, &tail) {
        Ok(log) => log,
        // The same for every pod: a person must grant it.
        Err(denied @ ReadError::Denied(_)) => return Err(denied.into()),
        Err(error) => return Ok(Some(about("LogNotReadable", format!("the log cannot be read: {error}")))),
    };
    Ok(match read(&log, config) {
        Log::Loaded => None,
        Log::Failed(line) => Some(about("DriverFailed", format!("loading failed: {}", shown(line)))),
        Log::Silent(Some(line)) => {
            Some(about("DriverNotLoaded", format!("not loaded yet, the log ends with: {}", shown(line))))
        }
        Log::Silent(None) => Some(about("DriverNotLoaded", "not loaded yet, the log is empty".to_owned())),
    })
}

/// The last line that proves anything decides: a retry may succeed after a failure.
fn read<'a>(log: &'a str, config: &Config) -> Log<'a> {
    let is_any =
        |line: &str, patterns: &[String]| patterns.iter().any(|pattern| pattern::is_in(pattern, line));
    for line in log.lines().rev() {
        if is_any(line, &config.failed) {
            return Log::Failed(line);
        }
        if is_any(line, &config.loaded) {
            return Log::Loaded;
        }
    }
    Log::Silent(log.lines().rev().find(|line| !line.trim().is_empty()))
}

fn shown(line: &str) -> String {
    let end = line.char_indices().map(|(at, _)| at).find(|at| *at >= SHOWN);
    end.and_then(|end| line.get(..end)).map_or_else(|| line.to_owned(), |cut| format!("{cut}…"))
}

#[cfg(test)]
mod tests;

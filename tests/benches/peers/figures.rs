//! The figures of a turn, each with a name: what the tables show and the budgets judge.

use crate::contest::{Outcome, Phase};

/// A figure; absent where the turn has none.
pub(crate) type Figure = fn(&Outcome) -> Option<f64>;

/// One line of a table.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub what: &'static str,
    pub unit: &'static str,
    pub digits: usize,
    pub figure: Figure,
}

const fn row(what: &'static str, unit: &'static str, digits: usize, figure: Figure) -> Row {
    Row { what, unit, digits, figure }
}

/// A table: its title and lines.
pub(crate) type Section = (&'static str, &'static [Row]);

pub(crate) const SECTIONS: [Section; 5] = [
    ("All releases", &RELEASES),
    ("Requests a release, until quiet (watches and leases aside)", &REQUESTS),
    ("Nothing to do", &IDLE),
    ("A second process finds all releases there", &RESTART),
    ("Five Deployments are deleted at once", &REPAIR),
];

const RELEASES: [Row; 16] = [
    row("last one ready", "s", 1, |turn| turn.install.ready.last().copied()),
    row("median ready", "s", 1, median_ready),
    row("work ended", "s", 1, |turn| turn.install.until_quiet.quiet),
    row("memory with none, peak", "MiB", 1, |turn| Some(turn.empty.memory.peak)),
    row("memory with none, then", "MiB", 1, |turn| Some(turn.empty.memory.now)),
    row("memory, peak when all are ready", "MiB", 1, |turn| Some(turn.install.until_ready.memory.peak)),
    row("memory, peak when quiet", "MiB", 1, |turn| Some(turn.install.until_quiet.memory.peak)),
    row("CPU a release until ready", "ms", 1, |turn| Some(cpu_each(turn, &turn.install.until_ready))),
    row("CPU a release until quiet", "ms", 1, operator_cpu),
    row("API server's CPU a release until ready", "ms", 1, |turn| {
        Some(milliseconds_each(turn, turn.install.until_ready.span.apiserver))
    }),
    row("API server's CPU a release until quiet", "ms", 1, apiserver_cpu),
    row("etcd's CPU a release until quiet", "ms", 1, |turn| {
        Some(milliseconds_each(turn, turn.install.until_quiet.span.etcd))
    }),
    row("controllers' CPU a release until quiet", "ms", 1, |turn| {
        Some(milliseconds_each(turn, turn.install.until_quiet.span.manager))
    }),
    row("the bench's own CPU until quiet", "s", 1, |turn| Some(turn.install.until_quiet.span.harness)),
    row("foreign CPU until quiet", "s", 1, |turn| Some(turn.install.until_quiet.span.foreign)),
    row("of it niced", "s", 1, |turn| Some(turn.install.until_quiet.span.foreign_nice)),
];

const REQUESTS: [Row; 14] = [
    row("requests until ready", "", 1, |turn| {
        Some(each(turn, turn.install.until_ready.span.traffic.requests))
    }),
    row("requests", "", 1, requests),
    row("get", "", 1, |turn| verb(turn, "get")),
    row("of them for no object: which kinds there are", "", 1, |turn| {
        Some(each(turn, turn.install.until_quiet.span.traffic.discovery))
    }),
    row("list", "", 1, |turn| verb(turn, "list")),
    row("create", "", 1, |turn| verb(turn, "create")),
    row("update", "", 1, |turn| verb(turn, "update")),
    row("patch", "", 1, |turn| verb(turn, "patch")),
    row("delete", "", 1, |turn| verb(turn, "delete")),
    row("of them only tried (dry run)", "", 1, |turn| {
        Some(each(turn, turn.install.until_quiet.span.traffic.dry_runs))
    }),
    row("writes", "", 1, writes),
    row("of them events", "", 1, |turn| Some(each(turn, turn.install.until_quiet.span.traffic.events))),
    row("of them refused", "", 1, |turn| Some(each(turn, turn.install.until_quiet.span.traffic.refused))),
    row("watches begun, in all", "", 0, |turn| {
        Some(turn.install.until_quiet.span.traffic.watches_begun() as f64)
    }),
];

const IDLE: [Row; 7] = [
    row("requests", "", 0, idle_requests),
    row("watches begun", "", 0, |turn| Some(turn.idle.span.traffic.watches_begun() as f64)),
    row("writes", "", 0, |turn| Some(turn.idle.span.traffic.writes as f64)),
    row("CPU", "s", 2, |turn| Some(turn.idle.span.operator)),
    row("CPU, share of a core", "%", 2, idle_share),
    row("API server's CPU", "s", 2, |turn| Some(turn.idle.span.apiserver)),
    row("memory, then", "MiB", 1, |turn| Some(turn.idle.memory.now)),
];

const RESTART: [Row; 8] = [
    row("work ended", "s", 1, restart_quiet),
    row("requests", "", 0, |turn| Some(turn.restart.span.traffic.requests as f64)),
    row("of them lists", "", 0, |turn| Some(turn.restart.span.traffic.of_verb("list") as f64)),
    row("watches begun", "", 0, |turn| Some(turn.restart.span.traffic.watches_begun() as f64)),
    row("writes", "", 0, restart_writes),
    row("CPU", "s", 2, |turn| Some(turn.restart.span.operator)),
    row("API server's CPU", "s", 2, |turn| Some(turn.restart.span.apiserver)),
    row("memory, peak", "MiB", 1, |turn| Some(turn.restart.memory.peak)),
];

const REPAIR: [Row; 3] = [
    row("came back", "of 5", 0, |turn| Some(turn.repairs.iter().flatten().count() as f64)),
    row("the first after", "s", 2, |turn| turn.repairs.iter().flatten().copied().reduce(f64::min)),
    row("the last after", "s", 2, last_repair),
];

// === What budgets judge too ===

pub(crate) fn last_ready(turn: &Outcome) -> Option<f64> {
    turn.install.ready.last().copied()
}

pub(crate) fn empty_peak(turn: &Outcome) -> Option<f64> {
    Some(turn.empty.memory.peak)
}

pub(crate) fn peak(turn: &Outcome) -> Option<f64> {
    Some(turn.install.until_quiet.memory.peak)
}

pub(crate) fn requests(turn: &Outcome) -> Option<f64> {
    Some(each(turn, turn.install.until_quiet.span.traffic.requests))
}

pub(crate) fn writes(turn: &Outcome) -> Option<f64> {
    Some(each(turn, turn.install.until_quiet.span.traffic.writes))
}

pub(crate) fn operator_cpu(turn: &Outcome) -> Option<f64> {
    Some(cpu_each(turn, &turn.install.until_quiet))
}

pub(crate) fn apiserver_cpu(turn: &Outcome) -> Option<f64> {
    Some(milliseconds_each(turn, turn.install.until_quiet.span.apiserver))
}

pub(crate) fn idle_requests(turn: &Outcome) -> Option<f64> {
    Some(turn.idle.span.traffic.requests as f64)
}

pub(crate) fn idle_share(turn: &Outcome) -> Option<f64> {
    Some(100.0 * turn.idle.span.operator / turn.idle.span.seconds)
}

pub(crate) fn restart_quiet(turn: &Outcome) -> Option<f64> {
    turn.restart.quiet
}

pub(crate) fn restart_writes(turn: &Outcome) -> Option<f64> {
    Some(turn.restart.span.traffic.writes as f64)
}

/// When the last of the deleted was back; absent when one is not.
pub(crate) fn last_repair(turn: &Outcome) -> Option<f64> {
    turn.repairs.iter().copied().collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

fn median_ready(turn: &Outcome) -> Option<f64> {
    turn.install.ready.get(turn.install.ready.len() / 2).copied()
}

fn verb(turn: &Outcome, verb: &str) -> Option<f64> {
    Some(each(turn, turn.install.until_quiet.span.traffic.of_verb(verb)))
}

fn each(turn: &Outcome, count: usize) -> f64 {
    count as f64 / turn.install.ready.len() as f64
}

fn cpu_each(turn: &Outcome, phase: &Phase) -> f64 {
    milliseconds_each(turn, phase.span.operator)
}

fn milliseconds_each(turn: &Outcome, seconds: f64) -> f64 {
    seconds * 1000.0 / turn.install.ready.len() as f64
}

//! The tables of a run, as a document.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use crate::{
    Plan, budgets,
    contenders::Who,
    contest::Outcome,
    figures::{Row, SECTIONS},
    machine,
    modules::{HELM_CONTROLLER, HELM_OPERATOR, SOURCE_CONTROLLER},
    traffic::Traffic,
    workload::WORKERS,
};

/// Prints the tables, and writes them where that is asked for.
pub(crate) fn tell(plan: &Plan, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let document = format!("{}{}", introduction(plan, outcomes), tables(plan, outcomes));
    println!("{document}");
    if plan.write {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("PEERS.md"), document)?;
    }
    Ok(())
}

fn introduction(plan: &Plan, outcomes: &[Outcome]) -> String {
    let Plan { count, rounds, idle, .. } = plan;
    let loads: Vec<String> = outcomes.iter().map(|turn| format!("{:.1}", turn.load)).collect();
    format!(
        "# Pintle beside other operators\n\n\
         Written by `cargo xtask bench peers --write`, which builds all of them and runs them in turns: {count} \
         custom resources, rounds: {rounds}, {idle} s with nothing to do. Counts and ratios carry over to other \
         machines, times do not. Figures of several rounds stand side by side; budgets are held against their mean.\n\n\
         Machine: {machine}; load before each turn: {loads}. Foreign CPU is what the machine did meanwhile besides \
         the run: a turn with more than 0.3 of a core of it that is not niced should be run again.\n\n\
         - Each turn has a fresh etcd (without fsync) and API server (audit log on), real controllers and one \
         simulated node, all on loopback. Every operator has a token of its own with all rights, works on {WORKERS} \
         releases at once, and has no election; the rest is its default, and the environment that of our Deployment.\n\
         - The chart is `fixtures/charts/bench`: Deployment (no replicas), Service, ServiceAccount, ConfigMap. All \
         get it with the same values, unlike from release to release.\n\
         - Flux is helm-controller {flux}, with one HelmChart for all releases whose artifact was put into its status \
         (of source-controller {source} only the definitions are used, so neither its processor time nor its memory \
         is in the table), an interval of 10 minutes, and without drift detection, as by default. It and Pintle wait \
         until the Deployment is ready.\n\
         - The hybrid operator is helm-operator-plugins {hybrid}, with its period of a minute. Its \
         `watchDependentResources` does the opposite of its name; both settings are measured. It does not wait.\n\
         - Ready is what the status says. Work has ended when an operator asked for nothing and used less than 5 % of \
         a core for 5 s; `-` where it had not within {patience} s. A deleted object is waited for {ours} s \
         ({flux_waits} s Flux, {hybrid_waits} s the hybrid without watches), from the request that deletes it.\n\n",
        idle = idle.as_secs(),
        machine = machine::description(),
        loads = loads.join(", "),
        flux = HELM_CONTROLLER.version,
        source = SOURCE_CONTROLLER.version,
        hybrid = HELM_OPERATOR.version,
        patience = plan.patience().as_secs(),
        ours = Who::Ours.repair_patience().as_secs(),
        flux_waits = Who::Flux.repair_patience().as_secs(),
        hybrid_waits = Who::Hybrid.repair_patience().as_secs(),
    )
}

fn tables(plan: &Plan, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let budgets = budgets::table(outcomes);
    if !budgets.is_empty() {
        text.push_str(&format!("## Budgets\n\n{budgets}\n"));
    }
    for (title, rows) in SECTIONS {
        let _ = writeln!(text, "## {title}\n");
        head(plan, &mut text);
        for row in rows {
            line(plan, outcomes, row, &mut text);
        }
        text.push('\n');
    }
    text.push_str(&requests(plan, outcomes));
    text
}

fn head(plan: &Plan, text: &mut String) {
    let titles: Vec<&str> = plan.who.iter().map(|who| who.title()).collect();
    let _ = writeln!(text, "| | {} |\n|---|{}", titles.join(" | "), "---|".repeat(titles.len()));
}

fn line(plan: &Plan, outcomes: &[Outcome], row: &Row, text: &mut String) {
    let cell = |who: &Who| {
        let turns = outcomes.iter().filter(|turn| turn.who == *who).map(row.figure);
        let values =
            turns.map(|value| value.map_or("-".to_owned(), |value| format!("{value:.*}", row.digits)));
        values.collect::<Vec<_>>().join(" / ")
    };
    let cells: Vec<String> = plan.who.iter().map(cell).collect();
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
    let _ = writeln!(text, "| {}{unit} | {} |", row.what, cells.join(" | "));
}

/// What each asked for, by verb and resource, in the last turn.
fn requests(plan: &Plan, outcomes: &[Outcome]) -> String {
    let mut text = "## Requests by verb and resource, last round\n\n".to_owned();
    for who in &plan.who {
        let Some(turn) = outcomes.iter().rfind(|turn| turn.who == *who) else { continue };
        let phases = [
            ("all releases", &turn.install.until_quiet),
            ("nothing to do", &turn.idle),
            ("second process", &turn.restart),
        ];
        for (name, phase) in phases {
            let _ = writeln!(text, "- {}, {name}: {}.", who.title(), sorts(&phase.span.traffic));
        }
        if *who == Who::Ours {
            let of_one = &turn.install.until_quiet.span.traffic.of_one;
            let _ =
                writeln!(text, "- {}, writes of one release in order: {}.", who.title(), of_one.join(", "));
        }
    }
    text
}

/// `verb: resource count, …; verb: …`, watches last.
fn sorts(traffic: &Traffic) -> String {
    let watches = ("watch".to_owned(), traffic.watches.clone());
    let sort = |(verb, resources): (&String, &BTreeMap<String, usize>)| {
        let counts: Vec<String> = resources.iter().map(|(what, count)| format!("{what} {count}")).collect();
        format!("{verb}: {}", counts.join(", "))
    };
    let watches = Some((&watches.0, &watches.1)).filter(|(_, resources)| !resources.is_empty());
    let sorts: Vec<String> = traffic.by_verb.iter().chain(watches).map(sort).collect();
    if sorts.is_empty() { "nothing".to_owned() } else { sorts.join("; ") }
}

//! Pintle beside other operators: the same releases of the same chart, in turns, in one run on one machine.
//!
//! `cargo xtask bench peers [--count N] [--rounds N] [--idle SECONDS] [--only NAME]… [--write]` builds what it runs and
//! runs it; `--write` puts the tables into `tests/PEERS.md`. Ratios and counts of requests carry over to other
//! machines, times do not.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, bail};

#[path = "peers/budgets.rs"]
mod budgets;
#[path = "peers/contenders.rs"]
mod contenders;
#[path = "peers/contest.rs"]
mod contest;
#[path = "peers/figures.rs"]
mod figures;
#[path = "peers/machine.rs"]
mod machine;
#[path = "peers/meter.rs"]
mod meter;
#[path = "peers/modules.rs"]
mod modules;
#[path = "peers/process.rs"]
mod process;
#[path = "peers/report.rs"]
mod report;
#[path = "peers/served.rs"]
mod served;
#[path = "peers/traffic.rs"]
mod traffic;
#[path = "peers/workload.rs"]
mod workload;

use contenders::Who;

/// Names the operator's program; `cargo xtask bench peers` sets it to the one it built for release.
const PROGRAM: &str = "PINTLE_BENCH_OPERATOR";

/// What is to be measured.
#[derive(Clone, Debug)]
struct Plan {
    count: usize,
    rounds: usize,
    idle: Duration,
    who: Vec<Who>,
    write: bool,
}

// === impl Plan ===

impl Plan {
    fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let idle = Duration::from_secs(30);
        let mut plan = Self { count: 100, rounds: 1, idle, who: Vec::new(), write: false };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--count" => plan.count = value()?.parse()?,
                "--rounds" => plan.rounds = value()?.parse()?,
                "--idle" => plan.idle = Duration::from_secs(value()?.parse()?),
                "--only" => plan.who.push(find(&value()?)?),
                "--write" => plan.write = true,
                // Cargo gives it to every bench.
                "--bench" => {}
                other => bail!("`{other}` is no argument of this bench"),
            }
        }
        if plan.who.is_empty() {
            plan.who = Who::ALL.to_vec();
        }
        Ok(plan)
    }

    /// Longer than the slowest needs for this many, with other work on the machine.
    fn patience(&self) -> Duration {
        Duration::from_secs(60) + Duration::from_millis(500) * u32::try_from(self.count).unwrap_or(u32::MAX)
    }
}

fn find(key: &str) -> anyhow::Result<Who> {
    let keys = || Who::ALL.map(Who::key).join(", ");
    Who::ALL
        .into_iter()
        .find(|who| who.key() == key)
        .with_context(|| format!("`{key}` is none of {}", keys()))
}

fn main() -> ExitCode {
    let Some(ours) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        println!("peers: passed over; `cargo xtask bench peers` builds what it runs");
        return ExitCode::SUCCESS;
    };
    match Plan::parse(std::env::args().skip(1)).and_then(|plan| measure(&plan, ours)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(plan: &Plan, ours: PathBuf) -> anyhow::Result<()> {
    let programs = plan.who.iter().map(|who| Ok((*who, who.program(&ours)?)));
    let programs = programs.collect::<anyhow::Result<Vec<(Who, PathBuf)>>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut outcomes = Vec::new();
    for round in 1..=plan.rounds {
        for (who, program) in &programs {
            eprintln!("round {round}: {} of {} releases", who.title(), plan.count);
            let outcome = runtime.block_on(contest::run(plan, *who, program));
            outcomes.push(outcome.with_context(|| format!("could not measure {}", who.title()))?);
        }
    }
    report::tell(plan, &outcomes)
}

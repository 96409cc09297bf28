//! What Pintle may cost, and whether it did.

use crate::{
    contenders::Who,
    contest::Outcome,
    figures::{self, Figure},
};

/// How much is allowed.
#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    /// A share of what the best peer needs in the same run.
    OfBestPeer(f64),
}

struct Budget {
    what: &'static str,
    unit: &'static str,
    limit: Limit,
    figure: Figure,
}

const fn budget(what: &'static str, unit: &'static str, limit: Limit, figure: Figure) -> Budget {
    Budget { what, unit, limit, figure }
}

const BUDGETS: [Budget; 12] = [
    budget("memory with no custom resource, peak", "MiB", Limit::AtMost(20.0), figures::empty_peak),
    budget("time until the last is ready", "s", Limit::OfBestPeer(0.25), figures::last_ready),
    budget("requests a release", "", Limit::AtMost(11.0), figures::requests),
    budget("writes a release, events among them", "", Limit::AtMost(9.0), figures::writes),
    budget("CPU a release", "ms", Limit::AtMost(15.0), figures::operator_cpu),
    budget("the API server's CPU a release", "ms", Limit::AtMost(40.0), figures::apiserver_cpu),
    budget("memory, peak", "MiB", Limit::AtMost(100.0), figures::peak),
    budget("requests with nothing to do", "", Limit::AtMost(0.0), figures::idle_requests),
    budget("CPU with nothing to do, share of a core", "%", Limit::AtMost(0.1), figures::idle_share),
    budget("writes of a restart", "", Limit::AtMost(0.0), figures::restart_writes),
    budget("a restart's work ended", "s", Limit::AtMost(5.0), figures::restart_quiet),
    budget("the last of five deleted objects is back", "s", Limit::AtMost(0.25), figures::last_repair),
];

/// The table of budgets; nothing when Pintle was not in the run.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let head = "| budget | at most | Pintle | met | best peer | Pintle is |\n|---|---|---|---|---|---|\n";
    let lines: String = BUDGETS.iter().filter_map(|budget| budget.line(outcomes)).collect();
    if lines.is_empty() { lines } else { format!("{head}{lines}") }
}

// === impl Budget ===

impl Budget {
    fn line(&self, outcomes: &[Outcome]) -> Option<String> {
        outcomes.iter().find(|turn| turn.who == Who::Ours)?;
        let Self { what, unit, .. } = self;
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let ours = mean(outcomes, Who::Ours, self.figure);
        let best = self.best_peer(outcomes);
        let limit = match self.limit {
            Limit::AtMost(limit) => Some(limit),
            Limit::OfBestPeer(share) => best.map(|(_, value)| share * value),
        };
        let met = match (ours, limit) {
            (_, None) => "not judged: no peer in this run",
            (Some(value), Some(limit)) if value <= limit => "yes",
            _ => "**no**",
        };
        let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}{unit}"));
        let peer = best.map_or("-".to_owned(), |(who, value)| format!("{value:.2}{unit} ({})", who.title()));
        let ratio = compare(ours, best.map(|(_, value)| value));
        Some(format!("| {what} | {} | {} | {met} | {peer} | {ratio} |\n", show(limit), show(ours)))
    }

    fn best_peer(&self, outcomes: &[Outcome]) -> Option<(Who, f64)> {
        let peers = Who::ALL.into_iter().filter(|who| *who != Who::Ours);
        let known = peers.filter_map(|who| Some((who, mean(outcomes, who, self.figure)?)));
        known.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

/// In words: `5.0 times less`.
fn compare(ours: Option<f64>, best: Option<f64>) -> String {
    match ours.zip(best) {
        None => "-".to_owned(),
        Some((ours, best)) if ours == best => "equal".to_owned(),
        Some((ours, best)) if ours < best && ours > 0.0 => format!("{:.1} times less", best / ours),
        Some((ours, best)) if ours > best && best > 0.0 => format!("{:.1} times more", ours / best),
        Some((ours, best)) => (if ours < best { "none" } else { "more" }).to_owned(),
    }
}

/// Of all rounds; absent when one of them has no such figure.
fn mean(outcomes: &[Outcome], who: Who, figure: Figure) -> Option<f64> {
    let turns = outcomes.iter().filter(|turn| turn.who == who);
    let values = turns.map(figure).collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

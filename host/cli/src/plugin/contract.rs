//! `pintle plugin test`: what every plugin must keep, whatever it is about.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use pintle_api::{Blocker, Facts, Object, Record, Verdict};
use pintle_plugin::{
    CallFailure, CallResult, Checked, HookOutcome, Outcome, Plugin, Stepped,
    transcript::{Answered, Ask, told},
};
use serde_json::{Value, json};

use super::{
    Output,
    facts::{Files, Inputs},
    loaded::{self, Loaded},
    print,
    progress::Progress,
    question::Question,
    report,
};

/// Arguments of `pintle plugin test`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: loaded::Settings,
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    question: Question,
}

/// How one rule ended.
enum Ended {
    Kept,
    Broken(String),
    /// It cannot be tried with these files.
    Skipped(&'static str),
}

/// Rules, each with how it ended.
type Rules = Vec<(&'static str, Ended)>;

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { settings, inputs, question } = args;
    let inputs = inputs.for_plugin(&settings.plugin);
    let loaded = loaded::load(&settings, progress).await?;
    let ask = question.ask(&loaded.plugin, &inputs).context(
        "there is no known good state: name the ready object with --target FILE and what it needs with \
         --objects PATH, or write them to samples/",
    )?;
    let bench = Bench { files: inputs.files()?, bare: loaded.without_grants().await?, loaded, inputs, ask };
    let rules = bench.all().await?;
    let broken = rules.iter().filter(|(_, ended)| matches!(ended, Ended::Broken(_))).count();
    let (text, document) = (draw(&rules), document(&rules));
    print(output, &text, &document)?;
    if broken > 0 {
        bail!("{broken} of {} rules are broken", rules.len())
    }
    Ok(())
}

struct Bench {
    loaded: Loaded,
    bare: Plugin,
    inputs: Inputs,
    files: Files,
    ask: Ask,
}

type Result = CallResult<Answered>;

impl Bench {
    /// What holds for every function, and for readiness what makes it wait.
    async fn all(&self) -> anyhow::Result<Rules> {
        let good = self.call(&self.loaded.plugin, self.files.clone(), &self.ask).await?;
        let known_good = match &self.ask {
            Ask::Check { .. } => ("a known good state is ready", is_ready(&good)),
            _ => ("a known good state has an answer", has_answer(&good)),
        };
        let mut rules = vec![
            ("the manifest names plugin, version and reasons", self.manifest()),
            known_good,
            ("the same call has the same answer", self.repeated(&good).await?),
        ];
        if let Ask::Check { target } = &self.ask {
            rules.push(("an empty status is not ready", self.empty_status(target).await?));
            rules.push(("a status of an old generation is not ready", self.old_generation(target).await?));
        }
        rules.push(("without nodes it has an answer", self.no_nodes().await?));
        rules.push(("an empty cluster has an answer", self.empty_cluster().await?));
        rules.push(("a cache that is not filled is not ready", self.empty_cache(&good).await?));
        rules.push(("a read that is denied is not ready", self.denied(&good).await?));
        rules.push(("a blocker has a known reason and a sentence", self.blockers().await?));
        Ok(rules)
    }

    async fn call(&self, plugin: &Plugin, facts: impl Facts + 'static, ask: &Ask) -> anyhow::Result<Result> {
        Ok(plugin.answer(ask, self.inputs.call(Arc::new(facts))?).await)
    }

    /// The question about another target.
    async fn about(&self, target: Object, files: Files) -> anyhow::Result<Result> {
        self.call(&self.loaded.plugin, files, &Ask::Check { target: Arc::new(target) }).await
    }

    fn manifest(&self) -> Ended {
        let manifest = self.loaded.plugin.manifest();
        let is_word = |reason: &String| {
            reason.starts_with(|letter: char| letter.is_ascii_uppercase())
                && reason.chars().all(|letter| letter.is_ascii_alphanumeric())
        };
        match manifest.reasons.iter().find(|reason| !is_word(reason)) {
            _ if manifest.reasons.is_empty() => {
                broken("it lists no reasons, so metrics would count all as Other")
            }
            Some(odd) => broken(format!("its reason {odd:?} is no CamelCase word")),
            None => Ended::Kept,
        }
    }

    async fn repeated(&self, first: &Result) -> anyhow::Result<Ended> {
        let again = told(&self.call(&self.loaded.plugin, self.files.clone(), &self.ask).await?);
        let first = told(first);
        Ok(if again == first { Ended::Kept } else { broken(format!("first {first}, then {again}")) })
    }

    async fn empty_status(&self, target: &Object) -> anyhow::Result<Ended> {
        if target.at("/status").is_none() {
            return Ok(Ended::Skipped("the target has no status to take away"));
        }
        let mut target = target.clone();
        target.remove("status");
        // Nodes and pods would tell what the status does not: the object is new, so nothing is there yet.
        Ok(is_not_ready(&self.about(target, Files::default()).await?))
    }

    async fn old_generation(&self, target: &Object) -> anyhow::Result<Ended> {
        if target.at("/status/observedGeneration").is_none() {
            return Ok(Ended::Skipped("the target has no status.observedGeneration"));
        }
        let mut target = target.clone();
        let next = json!(target.generation() + 1);
        target.map_mut(&["metadata"]).insert("generation".to_owned(), next);
        Ok(is_not_ready(&self.about(target, self.files.clone()).await?))
    }

    async fn no_nodes(&self) -> anyhow::Result<Ended> {
        if !self.files.has_nodes() {
            return Ok(Ended::Skipped("there is no node among the objects"));
        }
        Ok(has_answer(&self.call(&self.loaded.plugin, self.files.without_nodes(), &self.ask).await?))
    }

    async fn empty_cluster(&self) -> anyhow::Result<Ended> {
        Ok(has_answer(&self.call(&self.loaded.plugin, Files::default(), &self.ask).await?))
    }

    async fn empty_cache(&self, good: &Result) -> anyhow::Result<Ended> {
        if good.record.is_empty() {
            return Ok(Ended::Skipped("it reads nothing"));
        }
        Ok(is_not_ready(&self.call(&self.loaded.plugin, Record::default(), &self.ask).await?))
    }

    async fn denied(&self, good: &Result) -> anyhow::Result<Ended> {
        if good.record.is_empty() {
            return Ok(Ended::Skipped("it reads nothing"));
        }
        Ok(is_not_ready(&self.call(&self.bare, self.files.clone(), &self.ask).await?))
    }

    async fn blockers(&self) -> anyhow::Result<Ended> {
        let mut asks = vec![self.ask.clone()];
        if let Ask::Check { target } = &self.ask {
            let mut bare = Object::clone(target);
            bare.remove("status");
            asks.push(Ask::Check { target: Arc::new(bare) });
        }
        let reasons = &self.loaded.plugin.manifest().reasons;
        let mut seen = false;
        for ask in asks {
            let result = self.call(&self.loaded.plugin, Files::default(), &ask).await?;
            for blocker in blockers_of(&result) {
                seen = true;
                if blocker.message.trim().is_empty() || !reasons.contains(&blocker.reason) {
                    return Ok(broken(format!(
                        "{:?}: reasons are {}",
                        report::line(&blocker),
                        reasons.join(", ")
                    )));
                }
            }
        }
        Ok(if seen { Ended::Kept } else { Ended::Skipped("these files lead to no blocker") })
    }
}

fn broken(why: impl Into<String>) -> Ended {
    Ended::Broken(why.into())
}

fn blockers_of(result: &Result) -> Vec<Blocker> {
    match &result.outcome {
        Outcome::Answered(Answered::Checked(checked)) => checked.verdict.blockers().to_vec(),
        Outcome::Answered(Answered::Desired(desired)) => desired.verdict.blockers().to_vec(),
        Outcome::Answered(Answered::Stepped(Stepped { outcome: HookOutcome::Hold(hold), .. })) => {
            hold.blockers.clone()
        }
        _ => Vec::new(),
    }
}

fn is_ready(result: &Result) -> Ended {
    match &result.outcome {
        Outcome::Answered(Answered::Checked(Checked { verdict: Verdict::Ready, .. })) => Ended::Kept,
        _ => broken(told(result).to_string()),
    }
}

/// Ready or not is the plugin's choice, and so is a failure of its own words; a trap or a limit is none.
fn has_answer(result: &Result) -> Ended {
    match &result.outcome {
        Outcome::Failed(failure) if !matches!(failure, CallFailure::Guest { .. }) => {
            broken(failure.to_string())
        }
        _ => Ended::Kept,
    }
}

fn is_not_ready(result: &Result) -> Ended {
    match &result.outcome {
        Outcome::Answered(Answered::Checked(Checked { verdict: Verdict::Ready, .. })) => {
            broken("it says ready")
        }
        _ => has_answer(result),
    }
}

fn draw(rules: &[(&'static str, Ended)]) -> String {
    let line = |(rule, ended): &(&str, Ended)| match ended {
        Ended::Kept => format!("kept     {rule}\n"),
        Ended::Broken(why) => format!("BROKEN   {rule}\n           {why}\n"),
        Ended::Skipped(why) => format!("skipped  {rule}: {why}\n"),
    };
    rules.iter().map(line).collect()
}

fn document(rules: &[(&'static str, Ended)]) -> Value {
    let entry = |(rule, ended): &(&str, Ended)| {
        let (word, why) = match ended {
            Ended::Kept => ("kept", None),
            Ended::Broken(why) => ("broken", Some(why.as_str())),
            Ended::Skipped(why) => ("skipped", Some(*why)),
        };
        json!({"rule": rule, "ended": word, "why": why})
    };
    json!({"rules": rules.iter().map(entry).collect::<Vec<_>>()})
}

//! `pintle plugin test`: what every readiness plugin must keep, whatever it is about.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use pintle_api::{Facts, Object, Record, Verdict};
use pintle_plugin::{CallFailure, CallResult, Checked, Outcome, Plugin};
use serde_json::{Value, json};

use super::{
    Output,
    facts::{Files, Inputs},
    loaded::{self, Loaded},
    print,
    progress::Progress,
    report,
    run::must_check,
};

/// Arguments of `pintle plugin test`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: loaded::Settings,
    #[command(flatten)]
    inputs: Inputs,
}

/// How one rule ended.
enum Ended {
    Kept,
    Broken(String),
    /// It cannot be tried with these files.
    Skipped(&'static str),
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { settings, inputs } = args;
    let loaded = loaded::load(&settings, progress).await?;
    must_check(&loaded)?;
    let target = inputs.target()?.context(
        "there is no known good state: name the ready object with --target FILE and what it needs with \
         --objects PATH, or write them to samples/",
    )?;
    let bench =
        Bench { files: inputs.files()?, bare: loaded.without_grants().await?, loaded, inputs, target };
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
    target: Arc<Object>,
}

impl Bench {
    async fn all(&self) -> anyhow::Result<Vec<(&'static str, Ended)>> {
        let good = self.check(&self.loaded.plugin, self.files.clone(), &self.target).await?;
        Ok(vec![
            ("the manifest names plugin, version and reasons", self.manifest()),
            ("a known good state is ready", is_ready(&good)),
            ("the same call has the same answer", self.repeated(&good).await?),
            ("an empty status is not ready", self.empty_status().await?),
            ("a status of an old generation is not ready", self.old_generation().await?),
            ("an empty cluster has an answer", self.empty_cluster().await?),
            ("a cache that is not filled is not ready", self.empty_cache(&good).await?),
            ("a read that is denied is not ready", self.denied(&good).await?),
            ("a blocker has a known reason and a sentence", self.blockers().await?),
        ])
    }

    async fn check(
        &self,
        plugin: &Plugin,
        facts: impl Facts + 'static,
        target: &Arc<Object>,
    ) -> anyhow::Result<CallResult<Checked>> {
        Ok(plugin.check(self.inputs.call(Arc::new(facts))?, Arc::clone(target)).await)
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

    async fn repeated(&self, first: &CallResult<Checked>) -> anyhow::Result<Ended> {
        let again = self.check(&self.loaded.plugin, self.files.clone(), &self.target).await?;
        Ok(match report::answer(&again) == report::answer(first) {
            true => Ended::Kept,
            false => broken(format!("first {}, then {}", report::answer(first), report::answer(&again))),
        })
    }

    async fn empty_status(&self) -> anyhow::Result<Ended> {
        if self.target.at("/status").is_none() {
            return Ok(Ended::Skipped("the target has no status to take away"));
        }
        let mut target = Object::clone(&self.target);
        target.remove("status");
        // Nodes and pods would tell what the status does not: the object is new, so nothing is there yet.
        let result = self.check(&self.loaded.plugin, Files::default(), &Arc::new(target)).await?;
        Ok(is_not_ready(&result))
    }

    async fn old_generation(&self) -> anyhow::Result<Ended> {
        if self.target.at("/status/observedGeneration").is_none() {
            return Ok(Ended::Skipped("the target has no status.observedGeneration"));
        }
        let mut target = Object::clone(&self.target);
        let next = json!(target.generation() + 1);
        target.map_mut(&["metadata"]).insert("generation".to_owned(), next);
        Ok(is_not_ready(&self.check(&self.loaded.plugin, self.files.clone(), &Arc::new(target)).await?))
    }

    async fn empty_cluster(&self) -> anyhow::Result<Ended> {
        let result = self.check(&self.loaded.plugin, Files::default(), &self.target).await?;
        Ok(match &result.outcome {
            // Ready or not is the plugin's choice; a trap or a limit is none.
            Outcome::Failed(failure) if !matches!(failure, CallFailure::Guest { .. }) => {
                broken(failure.to_string())
            }
            _ => Ended::Kept,
        })
    }

    async fn empty_cache(&self, good: &CallResult<Checked>) -> anyhow::Result<Ended> {
        if good.record.is_empty() {
            return Ok(Ended::Skipped("it reads nothing"));
        }
        Ok(is_not_ready(&self.check(&self.loaded.plugin, Record::default(), &self.target).await?))
    }

    async fn denied(&self, good: &CallResult<Checked>) -> anyhow::Result<Ended> {
        if good.record.is_empty() {
            return Ok(Ended::Skipped("it reads nothing"));
        }
        Ok(is_not_ready(&self.check(&self.bare, self.files.clone(), &self.target).await?))
    }

    async fn blockers(&self) -> anyhow::Result<Ended> {
        let mut bare = Object::clone(&self.target);
        bare.remove("status");
        let bare = Arc::new(bare);
        let reasons = &self.loaded.plugin.manifest().reasons;
        let mut seen = false;
        for target in [&self.target, &bare] {
            let result = self.check(&self.loaded.plugin, Files::default(), target).await?;
            let Outcome::Answered(checked) = &result.outcome else { continue };
            for blocker in checked.verdict.blockers() {
                seen = true;
                if blocker.message.trim().is_empty() || !reasons.contains(&blocker.reason) {
                    return Ok(broken(format!(
                        "{:?}: reasons are {}",
                        report::line(blocker),
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

fn is_ready(result: &CallResult<Checked>) -> Ended {
    match &result.outcome {
        Outcome::Answered(Checked { verdict: Verdict::Ready, .. }) => Ended::Kept,
        _ => broken(report::answer(result).to_string()),
    }
}

fn is_not_ready(result: &CallResult<Checked>) -> Ended {
    match &result.outcome {
        Outcome::Answered(Checked { verdict: Verdict::Ready, .. }) => broken("it says ready"),
        Outcome::Failed(failure) if !matches!(failure, CallFailure::Guest { .. }) => {
            broken(failure.to_string())
        }
        _ => Ended::Kept,
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

//! `pintle plugin bench`: how long a call takes, and what it uses.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use pintle_plugin::Outcome;
use serde_json::json;

use super::{Output, facts::Inputs, loaded, print, progress::Progress, question::Question};

/// Calls before those that count: code and memory are then in place.
const WARM_UP: u32 = 20;

/// Arguments of `pintle plugin bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: loaded::Settings,
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    question: Question,
    /// How many calls.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: u32,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { settings, inputs, question, calls } = args;
    let inputs = inputs.for_plugin(&settings.plugin);
    let loaded = loaded::load(&settings, progress).await?;
    let ask = question.ask(&loaded.plugin, &inputs)?;
    let call = inputs.call(Arc::new(inputs.files()?))?;
    progress.step(&format!("calling {calls} times"));
    let (mut times, mut memory) = (Vec::new(), 0);
    for at in 0..WARM_UP + calls {
        let result = loaded.plugin.answer(&ask, call.clone()).await;
        if let Outcome::Failed(failure) = result.outcome {
            bail!("call {at} failed: {failure}")
        }
        memory = memory.max(result.stats.memory);
        if at >= WARM_UP {
            times.push(result.stats.duration);
        }
    }
    times.sort();
    let (half, most) = (at_share(&times, 50), at_share(&times, 99));
    let text = format!(
        "{calls} calls: p50 {} us, p99 {} us, {} KiB of memory\n",
        half.as_micros(),
        most.as_micros(),
        memory / 1024
    );
    let document = json!({"calls": calls, "p50Microseconds": half.as_micros(),
        "p99Microseconds": most.as_micros(), "memoryBytes": memory});
    print(output, &text, &document)
}

fn at_share(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

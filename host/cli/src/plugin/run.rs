//! `pintle plugin run`: one call without a cluster.

use std::{path::PathBuf, sync::Arc};

use anyhow::bail;
use pintle_plugin::{Outcome, transcript::Kept};

use super::{Output, facts::Inputs, loaded, print, progress::Progress, question::Question, record, report};

/// Arguments of `pintle plugin run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: loaded::Settings,
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    question: Question,
    /// Writes the call to a file that `replay` and `diff` take.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { settings, inputs, question, record } = args;
    let inputs = inputs.for_plugin(&settings.plugin);
    let loaded = loaded::load(&settings, progress).await?;
    let ask = question.ask(&loaded.plugin, &inputs)?;
    let call = inputs.call(Arc::new(inputs.files()?))?;
    let result = loaded.plugin.answer(&ask, call.clone()).await;
    if let Some(path) = record {
        record::write_file(&path, &Kept::new(&loaded.plugin, &call, ask, &result).transcript())?;
    }
    print(output, &report::text(&result), &report::document(&result))?;
    match result.outcome {
        Outcome::Failed(_) => bail!("the call failed"),
        _ => Ok(()),
    }
}

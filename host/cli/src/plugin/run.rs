//! `pintle plugin run`: one call without a cluster.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use pintle_plugin::Export;

use super::{Output, facts::Inputs, loaded, print, progress::Progress, report};

/// Arguments of `pintle plugin run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: loaded::Settings,
    #[command(flatten)]
    inputs: Inputs,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { settings, inputs } = args;
    let loaded = loaded::load(&settings, progress).await?;
    must_check(&loaded)?;
    let target = inputs
        .target()?
        .context("there is no target: name one with --target FILE, or write samples/target.yaml")?;
    let call = inputs.call(Arc::new(inputs.files()?))?;
    let result = loaded.plugin.check(call, target).await;
    print(output, &report::text(&result), &report::document(&result))?;
    match result.outcome {
        pintle_plugin::Outcome::Failed(_) => bail!("the call failed"),
        _ => Ok(()),
    }
}

/// What is called here is readiness.
pub(super) fn must_check(loaded: &loaded::Loaded) -> anyhow::Result<()> {
    let offers = loaded.plugin.offers();
    if offers.contains(&Export::Readiness) {
        return Ok(());
    }
    let offers: Vec<&str> = offers.into_iter().map(Export::as_str).collect();
    bail!("{} offers {}; only readiness is called without a cluster", loaded.plugin.name(), offers.join(", "))
}

//! `pintle why`: what an object waits for, from its status.

mod tree;

use std::io::Write as _;

use anyhow::Context as _;
use clap::ValueEnum;
use kube::Client;

use crate::{Ending, owner::OwnerName};

/// Arguments of `pintle why`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `KIND/NAME`, as `sr/simple-kmod`.
    owner: OwnerName,
    /// Namespace of the object; default: that of the current context.
    #[arg(short, long)]
    namespace: Option<String>,
    /// `json` prints what the tree is drawn from.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { owner, namespace, output } = args;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let object = runtime.block_on(async {
        let client = Client::try_default().await.context("could not reach a cluster; is KUBECONFIG set?")?;
        owner.get(&client, namespace.as_deref()).await
    })?;
    let report = tree::Report::from_owner(&object)?;
    let mut out = std::io::stdout().lock();
    match output {
        Output::Text => write!(out, "{}", tree::draw(&report, jiff::Timestamp::now()))?,
        Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
    }
    Ok(Ending::Done)
}

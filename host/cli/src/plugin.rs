//! `pintle plugin`: the kit for those who write plugins.

mod bench;
mod build;
mod changes;
mod contract;
mod facts;
mod inspect;
mod loaded;
mod new;
mod progress;
mod question;
mod record;
mod replay;
mod report;
mod run;
mod samples;
mod section;
mod sign;
mod templates;
mod transfer;
mod verify;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};

use crate::{Ending, logging, printed};
pub(crate) use new::{Interface, Lang, project};
use progress::Progress;

/// Arguments of `pintle plugin`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// `json` prints one document for machines, and no progress.
    #[arg(short, long, value_enum, default_value = "text", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes a project that builds, with a test and samples.
    New(new::Args),
    /// Makes the component of a project, with its manifest inside.
    Build(build::Args),
    /// Says what a component is, what it must be granted, and how large it is.
    Inspect(inspect::Args),
    /// Calls a plugin once, without a cluster.
    Run(run::Args),
    /// Holds a plugin against the contract that every one must keep.
    Test(contract::Args),
    /// Writes the last calls of a plugin in a running operator to files.
    Record(record::Args),
    /// Makes a recorded call again, without a cluster.
    Replay(replay::ReplayArgs),
    /// Says which recorded calls end otherwise with another version of a plugin.
    Diff(replay::DiffArgs),
    /// Calls a plugin many times and says how long it takes.
    Bench(bench::Args),
    /// Pushes a component to a registry.
    Push(transfer::PushArgs),
    /// Pulls a component from a registry.
    Pull(transfer::PullArgs),
    /// Writes a plugin from a registry to a file that other machines load.
    Save(transfer::SaveArgs),
    /// Pushes what was saved to a registry.
    Load(transfer::LoadArgs),
    /// Signs a plugin in a registry with a key.
    Sign(sign::Args),
    /// Says who signed a plugin, of those who are named.
    Verify(verify::Args),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For machines.
    Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { command, output } = args;
    // What a plugin says and prints is for its author.
    logging::start_for_authors();
    let progress = Progress::new(output == Output::Json);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("could not start the threads of this program")?;
    let done = match command {
        Command::New(args) => new::run(&args, output),
        Command::Build(args) => runtime.block_on(build::run(args, output, &progress)),
        Command::Inspect(args) => runtime.block_on(inspect::run(args, output, &progress)),
        Command::Run(args) => runtime.block_on(run::run(args, output, &progress)),
        Command::Test(args) => runtime.block_on(contract::run(args, output, &progress)),
        Command::Record(args) => runtime.block_on(record::run(args, output, &progress)),
        Command::Replay(args) => runtime.block_on(replay::replay(args, output, &progress)),
        Command::Diff(args) => runtime.block_on(replay::diff(args, output, &progress)),
        Command::Bench(args) => runtime.block_on(bench::run(args, output, &progress)),
        Command::Push(args) => runtime.block_on(transfer::push(args, output, &progress)),
        Command::Pull(args) => runtime.block_on(transfer::pull(args, output, &progress)),
        Command::Save(args) => runtime.block_on(transfer::save(args, output, &progress)),
        Command::Load(args) => runtime.block_on(transfer::load(args, output, &progress)),
        Command::Sign(args) => runtime.block_on(sign::run(args, output, &progress)),
        Command::Verify(args) => runtime.block_on(verify::run(args, output, &progress)),
    };
    progress.finish();
    done.map(|()| Ending::Done)
}

/// Prints a result: the text for people, or the document for machines.
fn print(output: Output, text: &str, json: &serde_json::Value) -> anyhow::Result<()> {
    match output {
        Output::Text => printed::print(text),
        Output::Json => printed::print(&format!("{}\n", serde_json::to_string_pretty(json)?)),
    }
}

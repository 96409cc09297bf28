//! `pintle compile`: the compiler of the operator, in a process of its own. It is not for people.

use std::io;

use pintle_plugin::Profile;

use crate::Ending;

/// Arguments of `pintle compile`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The engine that the code is for.
    #[arg(long)]
    profile: Profile,
}

/// Reads a component from standard input and writes its code to standard output.
pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { profile } = args;
    pintle_plugin::compile_in_child(profile, io::stdin().lock(), io::stdout().lock())?;
    Ok(Ending::Done)
}

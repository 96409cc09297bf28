//! The command line of Pintle, one file per command: parse, one call, draw. What `demo` installs is in
//! [`scenario`], so that the end-to-end tests install the same.

pub mod scenario;

mod check;
mod compile;
mod crd;
mod demo;
mod import;
mod logging;
mod new;
mod operator;
mod owner;
mod plugin;
mod printed;
mod progress;
mod rbac;
mod reach;
mod template;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Charts in ordered states, gated by WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the whole product on this machine: a control plane, a registry, the operator, an example.
    Demo(demo::Args),
    /// Runs the controllers.
    Operator(operator::Args),
    /// Prints what a chart renders, as `helm template` does.
    Template(Box<template::Args>),
    /// Says what an object waits for, since when, and who can mend it.
    Why(why::Args),
    /// The kit for those who write plugins: make, build, look into, call, test, ship.
    Plugin(plugin::Args),
    /// Makes a kind for a chart: definition, Watch, rights, a sample, a plugin to begin with, and a test.
    New(new::Args),
    /// Tests such a project without a cluster: definition, sample, chart and rights.
    Check(check::Args),
    /// Prints the rights that charts, Watches and Plugins need, as a ClusterRole.
    Rbac(rbac::Args),
    /// Reads a project of an operator before, and writes objects of ours.
    Import(import::Args),
    /// Prints the CustomResourceDefinitions.
    Crd(crd::Args),
    /// Makes machine code of a component: what the operator runs for each one.
    #[command(hide = true)]
    Compile(compile::Args),
}

/// How a command ended, as exit codes tell it; 2 is a wrong call and comes from the parser.
enum Ending {
    /// 0.
    Done,
    /// 1; what failed was said already.
    Failed,
    /// 3.
    NotReadyInTime,
}

/// Parses the command line and runs its command.
#[must_use]
pub fn main() -> ExitCode {
    let Args { command } = Args::parse();
    let ended = match command {
        Command::Demo(args) => demo::run(args),
        Command::Operator(args) => operator::run(args),
        Command::Template(args) => template::run(&args),
        Command::Why(args) => why::run(args),
        Command::Plugin(args) => plugin::run(args),
        Command::New(args) => new::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Rbac(args) => rbac::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Crd(args) => crd::run(args),
        Command::Compile(args) => compile::run(args),
    };
    match ended {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Failed) => ExitCode::FAILURE,
        Ok(Ending::NotReadyInTime) => ExitCode::from(3),
        Err(err) => {
            eprintln!("error: {}", told(&err));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes on one line; a cause that the text before it quotes already is not said twice.
fn told(err: &anyhow::Error) -> String {
    err.chain().fold(String::new(), |text, cause| match cause.to_string() {
        cause if text.is_empty() => cause,
        cause if text.contains(&cause) => text,
        cause => format!("{text}: {cause}"),
    })
}

/// What `pintle template` prints for these arguments, or why it prints nothing, in the words it would use.
///
/// # Errors
/// When the arguments are wrong, or the chart does not render.
pub fn template(arguments: &[&str]) -> Result<String, String> {
    let words = ["pintle", "template"].iter().chain(arguments);
    match Args::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Template(args) => template::print(&args).map_err(|failure| failure.to_string()),
        _ => Err("no template".to_owned()),
    }
}

/// Runs `pintle new`, `pintle rbac` or `pintle import` with these arguments.
///
/// # Errors
/// When the arguments are wrong, or files cannot be read or written.
pub fn scaffold(arguments: &[&str]) -> anyhow::Result<()> {
    let words = ["pintle"].iter().chain(arguments);
    match Args::try_parse_from(words)?.command {
        Command::New(args) => new::run(&args).map(drop),
        Command::Rbac(args) => rbac::run(&args).map(drop),
        Command::Import(args) => import::run(&args).map(drop),
        _ => anyhow::bail!("that command writes no files"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn a_cause_is_not_said_twice() {
        let cause =
            anyhow::anyhow!("no such file").context("could not read a: no such file").context("failed");
        assert_eq!(told(&cause), "failed: could not read a: no such file");
    }

    #[test]
    fn every_command_tells_the_version_and_how_it_is_used() {
        for command in ["template", "new", "check", "crd", "plugin"] {
            let told = Args::try_parse_from(["pintle", command, "-V"]).map(drop).map_err(|told| told.kind());
            assert_eq!(told, Err(clap::error::ErrorKind::DisplayVersion), "{command}");
        }
        let help =
            Args::try_parse_from(["pintle", "template", "--help"]).map(drop).map_err(|told| told.to_string());
        assert!(help.is_err_and(|help| help.contains("Usage: pintle template [OPTIONS] [NAME] CHART\n")));
    }

    #[test]
    fn every_command_can_be_parsed() {
        Args::command().debug_assert();
    }
}

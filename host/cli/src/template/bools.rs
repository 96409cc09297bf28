//! Flags that are on or off as Helm takes them: `--include-crds`, and also `--include-crds=false`.

use clap::{ArgAction, ArgMatches, Command, FromArgMatches};

/// Arguments whose flags may be given a value behind `=`.
#[derive(Debug)]
pub(crate) struct Bools<T>(pub(super) T);

impl<T: clap::Args> clap::Args for Bools<T> {
    fn augment_args(command: Command) -> Command {
        with_values(T::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        with_values(T::augment_args_for_update(command))
    }
}

impl<T: FromArgMatches> FromArgMatches for Bools<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

fn with_values(command: Command) -> Command {
    command.mut_args(|arg| {
        if !matches!(arg.get_action(), ArgAction::SetTrue) {
            return arg;
        }
        arg.action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
            .value_name("BOOL")
            .value_parser(parse)
    })
}

/// The words that Go reads as a bool.
fn parse(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_takes_the_words_that_go_reads_and_says_which_where_it_is_another() {
        let read = |word: &str| {
            let flag = clap::Arg::new("on").long("on").action(ArgAction::SetTrue);
            let matches = with_values(Command::new("c").arg(flag)).try_get_matches_from(["c", word]);
            matches.map(|matches| matches.get_flag("on")).map_err(|error| error.to_string())
        };
        assert_eq!((read("--on"), read("--on=F"), read("--on=1")), (Ok(true), Ok(false), Ok(true)));
        assert!(read("--on=maybe").is_err_and(|said| said.contains("write true or false")));
    }
}

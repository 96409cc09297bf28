//! `pintle`: the operator, and the command line of those who use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle::main()
}

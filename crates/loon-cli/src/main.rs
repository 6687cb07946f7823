//! The `loon` command: reads the command line, wires the crates together and maps what comes back
//! to an exit status. Holds no logic of its own.

mod args;
mod commands;
mod failure;
mod headless;
mod paths;
mod signals;
mod wiring;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Clap prints help and version to stdout and complaints to stderr; a reader that is
            // gone is no error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

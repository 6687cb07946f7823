//! The `loon` command: reads the command line, wires the crates together and maps what comes back
//! to an exit status. Holds no logic of its own.

mod acp;
mod args;
mod commands;
mod failure;
mod headless;
mod paths;
mod safe;
mod signals;
mod wiring;
mod worker;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return told(&error),
    };
    match commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

/// Prints what clap has to say: help and version to stdout, complaints to stderr. A reader that is
/// gone is no error, nor is a closed stderr.
fn told(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && asks_for_events(std::env::args_os().skip(1)) {
        let text = error.render().to_string();
        let complaint = text.split("\n\n").next().unwrap_or_default();
        let message = complaint.strip_prefix("error: ").unwrap_or(complaint);
        // The exit status says it as well, should standard output be closed.
        let _ = headless::print_end(&Failure::usage(message.trim()));
    }
    match error.print() {
        Err(unwritten) if !error.use_stderr() && unwritten.kind() != ErrorKind::BrokenPipe => {
            Failure::other(format!("Cannot write to standard output: {unwritten}")).report()
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

/// Whether a command line that could not be read is meant for a program that reads events.
fn asks_for_events(arguments: impl Iterator<Item = OsString>) -> bool {
    let options: Vec<_> = arguments.take_while(|argument| argument != "--").collect();
    let has = |word: &str| options.iter().any(|argument| argument == word);
    has("--json") && (has("exec") || has("demo"))
}

//! `loon completions SHELL`.

use clap::CommandFactory as _;

use crate::args::Cli;
use crate::failure::Failure;

/// Prints a completion script.
pub(super) fn run(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "loon", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}

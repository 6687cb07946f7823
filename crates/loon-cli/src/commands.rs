//! The subcommands, one a file. This file only delegates.

mod acp;
mod cancel;
mod completions;
mod config;
mod demo;
mod doctor;
mod exec;
mod guidance;
mod hooks;
mod mcp;
mod models;
mod permissions;
mod replay;
mod screen;
mod sessions;
mod tools;
mod trust;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use loon_core::Dependencies;

use crate::args::{Cli, Commands};
use crate::failure::Failure;
use crate::safe::plain;
use crate::wiring::LocalModel;

/// Runs what the command line asks for. Gives the exit status.
pub(crate) fn run(cli: Cli) -> Result<u8, Failure> {
    let Some(command) = cli.command else { return screen::run(cli.screen) };
    match command {
        Commands::Exec(args) => exec::run(args),
        Commands::Acp(args) => acp::run(args),
        Commands::Demo(args) => demo::run(&args),
        Commands::Sessions(command) => sessions::run(command),
        Commands::Cancel { id, reason, after_step } => cancel::run(&id, reason, after_step),
        Commands::Replay(args) => replay::run(&args),
        Commands::Models(command) => models::run(&command),
        Commands::Hooks(command) => hooks::run(command),
        Commands::Mcp(command) => mcp::run(&command),
        Commands::Permissions(command) => permissions::run(&command),
        Commands::Guidance(args) => guidance::run(&args),
        Commands::Config(command) => config::run(&command),
        Commands::Tools(args) => tools::run(&args),
        Commands::Worker(args) => worker::run(&args),
        Commands::Doctor => doctor::run(),
        Commands::Trust(args) => trust::run(&args),
        Commands::Completions { shell } => completions::run(shell),
    }
}

pub(crate) use exec::check_model;
pub(crate) use sessions::find as find_session;

/// Without a model in the settings, takes one that a server on this machine offers.
pub(crate) async fn ensure_model(deps: &mut Dependencies) {
    if deps.options.model.value.is_some() {
        return;
    }
    if let Some(local) = LocalModel::find(&deps.models).await {
        deps.options.model.value = Some(local.name().to_owned());
        deps.models = Arc::new(local);
    }
}

/// A tokio runtime for the screen, all on the calling thread: the terminal wakes the very thread that
/// draws, so that a key shows without a second wake-up.
fn screen_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("Cannot wait for the terminal: {error}")))
}

/// A tokio runtime for commands that need one. Two workers: one for the session, one for the front
/// end.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("Cannot start threads: {error}")))
}

/// Ends a runtime: what runs in it is dropped, and every program with it. A thread that is stuck, on a
/// pipe that nobody reads for one, does not keep the process.
fn leave(runtime: tokio::runtime::Runtime) {
    runtime.shutdown_timeout(Duration::from_millis(300));
}

/// Writes text to standard output, without control characters from outside. A reader that is gone
/// ends the command quietly with status 141.
fn print(text: &str) -> Result<u8, Failure> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    match out.write_all(plain(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(0),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(141),
        Err(error) => Err(Failure::other(format!("Cannot write to standard output: {error}"))),
    }
}

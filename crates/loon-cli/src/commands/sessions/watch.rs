//! `loon sessions watch`.

use std::io::IsTerminal as _;

use loon_api::ExecutionId;

use crate::args::SessionArgs;
use crate::commands::screen;
use crate::failure::Failure;
use crate::headless;
use crate::wiring::{RunOptions, Setup};
use loon_core::{Runtime, SessionChoice};

/// Follows the session on the full screen, or as events.
pub(super) fn run(exec: ExecutionId, json: bool) -> Result<u8, Failure> {
    let args = SessionArgs { resume: Some(exec.to_string()), ..SessionArgs::default() };
    let (setup, _) = Setup::for_session(&args)?;
    let choice = SessionChoice::Watch(exec);
    if !json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return screen::open(&setup, &args, choice, None);
    }
    let runtime = crate::commands::runtime()?;
    let status = runtime.block_on(async {
        let (deps, _) = setup.dependencies(RunOptions::attended(&args));
        headless::follow(Runtime::start(deps, choice)).await
    });
    crate::commands::leave(runtime);
    status
}

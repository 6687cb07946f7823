//! Running one hook: a command with its input on standard input, or an address that it is sent to.

use std::path::Path;

use loon_api::{ErrorCode, ErrorInfo, HookAction, HookDefinition};
use loon_exec::{Captured, Cause, Finished};
use loon_kernel::{Admitted, StepOutput};
use tokio_util::sync::CancellationToken;

use super::answer::{HookAnswer, plain};
use super::{Hooks, MAX_ANSWER};
use crate::conversation::without_middle;

/// Exit status of a hook that blocks.
const BLOCKS: i32 = 2;

/// Most bytes of what a hook that failed said.
const MOST_COMPLAINT: usize = 2 * 1024;

/// Runs a hook and reads what it says.
pub(super) async fn run(
    _admitted: Admitted,
    hooks: &Hooks,
    hook: &HookDefinition,
    cwd: &Path,
    input: Vec<u8>,
    stop: CancellationToken,
) -> Result<StepOutput, ErrorInfo> {
    let answer = match &hook.action {
        HookAction::Command(line) => {
            let spawn = hooks.spawner.bash(line, cwd).unattended().input(input).separate_errors();
            let finished = spawn.keep(MAX_ANSWER, 0).cancel(stop).run().await;
            let finished = finished.map_err(|error| failed(ErrorCode::Io, error.to_string()))?;
            of_command(hook, &finished)?
        }
        HookAction::Url(url) => of_address(hook, hooks, url, input, &stop).await?,
    };
    serde_json::to_value(answer)
        .map(StepOutput::from)
        .map_err(|error| failed(ErrorCode::Internal, error.to_string()))
}

fn of_command(hook: &HookDefinition, finished: &Finished) -> Result<HookAnswer, ErrorInfo> {
    let errors = text(&finished.errors);
    let complaint = match without_middle(plain(&errors).trim(), MOST_COMPLAINT) {
        words if words.is_empty() => String::new(),
        words => format!(": {words}"),
    };
    match finished.exit.code {
        _ if finished.exit.cause != Cause::Ended => {
            Err(failed(ErrorCode::Cancelled, "it was stopped"))
        }
        Some(0) if !finished.output.is_whole() => Err(too_long()),
        Some(0) => read(hook, &text(&finished.output)),
        Some(BLOCKS) => Ok(HookAnswer::blocking(&errors)),
        Some(code) => Err(failed(ErrorCode::Conflict, format!("exit status {code}{complaint}"))),
        None => {
            let signal = finished.exit.signal.unwrap_or_default();
            Err(failed(ErrorCode::Conflict, format!("ended by signal {signal}{complaint}")))
        }
    }
}

async fn of_address(
    hook: &HookDefinition,
    hooks: &Hooks,
    url: &str,
    input: Vec<u8>,
    stop: &CancellationToken,
) -> Result<HookAnswer, ErrorInfo> {
    let posted = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(failed(ErrorCode::Cancelled, "it was stopped")),
        posted = hooks.poster.post(url, input) => posted,
    };
    let posted = posted.map_err(|why| failed(ErrorCode::Network, why))?;
    match posted.status {
        200..300 if posted.body.len() > MAX_ANSWER => Err(too_long()),
        200..300 => read(hook, &String::from_utf8_lossy(&posted.body)),
        status @ 300..400 => Err(failed(
            ErrorCode::Network,
            format!("it answered with status {status}, and redirects are not followed"),
        )),
        status => Err(failed(ErrorCode::Network, format!("it answered with status {status}"))),
    }
}

fn read(hook: &HookDefinition, output: &str) -> Result<HookAnswer, ErrorInfo> {
    HookAnswer::read(hook.event, output)
        .map_err(|error| failed(ErrorCode::Protocol, error.to_string()))
}

fn too_long() -> ErrorInfo {
    let kib = MAX_ANSWER / 1024;
    failed(ErrorCode::OutputLimit, format!("its answer is longer than {kib} KiB"))
}

fn failed(code: ErrorCode, message: impl Into<String>) -> ErrorInfo {
    ErrorInfo::new(code, message)
}

fn text(captured: &Captured) -> String {
    String::from_utf8_lossy(&captured.head).into_owned()
}

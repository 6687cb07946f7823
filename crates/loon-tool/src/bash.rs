//! `bash`: runs a shell line in the workspace root.

pub(crate) mod live;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loon_api::{ProgramRun, Subject, ToolClass};
use loon_exec::{Cause, Exit, Finished, SpawnError, Spawner};
use loon_kernel::{EffectContext, NativeTool, Progress, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::project::Kind;
use crate::runner::counts::Counter;
use crate::status::{status, tell_leftovers};
use crate::text;
use crate::workspace::Workspace;
use live::LiveOutput;

/// How long a command may take unless the call says otherwise.
const TIMEOUT: Duration = Duration::from_mins(2);
/// How long a command may take at most.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// What the gate allows beyond that, so that the command's own timeout comes first and its output
/// is kept.
const GATE_MARGIN: Duration = Duration::from_secs(5);
/// Bytes kept of the beginning and of the end of the output.
const KEEP: usize = 16 * 1024;
/// Most characters of a command in a title.
const TITLE: usize = 120;

/// Runs shell lines.
pub struct Bash {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl Bash {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    command: String,
    /// Default 120000, at most 600000.
    timeout_ms: Option<u64>,
    /// What it does, in a few words.
    description: Option<String>,
}

impl Args {
    fn timeout(&self) -> Duration {
        self.timeout_ms.map_or(TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT)
    }
}

impl NativeTool for Bash {
    type Args = Args;

    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "Run a bash command in the workspace root. Each call is a new shell: cd and variables do \
         not last. No input; background processes are ended with the command.";
    const CLASS: ToolClass = ToolClass::Executes;

    fn title(&self, args: &Args) -> String {
        let mut title = headline(&args.command);
        if let Some(description) = &args.description {
            let words: String = text::visible_line(description).chars().take(TITLE).collect();
            let _ = write!(title, " ({words})");
        }
        title
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        check_line(&args.command)?;
        Ok(vec![Subject::Command {
            line: args.command.clone(),
            cwd: self.workspace.root().to_owned(),
        }])
    }

    fn timeout(&self, args: &Args) -> Option<Duration> {
        Some(args.timeout() + GATE_MARGIN)
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let live = Arc::new(LiveOutput::default());
        let listener = Arc::clone(&live);
        let counter = Arc::new(Mutex::new(Kind::of_line(&args.command).map(Counter::new)));
        let counting = Arc::clone(&counter);
        let run = self
            .spawner
            .bash(&args.command, self.workspace.root())
            .unattended()
            .keep(KEEP, KEEP)
            .timeout(args.timeout())
            .cancel(cx.cancel.clone())
            .on_output(move |bytes| {
                if let Some(counter) = &mut *lock(&counting) {
                    counter.push(bytes);
                }
                listener.push(bytes);
            })
            .run();
        let ended = tokio::select! {
            ended = run => ended,
            never = live.forward(&cx.progress) => match never {},
        };
        // The last piece is told if there is room: the result holds it as well.
        if let Some(rest) = live.take() {
            let _ = cx.progress.try_send(Progress::Output(rest));
        }
        match ended {
            Ok(finished) => {
                let mut output = result(&finished, args.timeout());
                let counts = lock(&counter).take().map(|counter| counter.finish().1);
                output.runs.push(ProgramRun {
                    line: args.command,
                    exit_code: output.exit_code,
                    check: None,
                    counts: counts.unwrap_or_default(),
                    unclear: false,
                });
                output
            }
            Err(error) => refusal(&error),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The beginning of a command, one safe line.
pub(crate) fn headline(command: &str) -> String {
    let command = command.trim();
    let first = command.lines().next().unwrap_or_default();
    let mut headline: String = text::visible_line(first).chars().take(TITLE).collect();
    if headline.chars().count() < command.chars().count() {
        headline.push('…');
    }
    headline
}

/// The error is what the model reads about a line that no shell can run.
pub(crate) fn check_line(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("command is empty: give the shell line to run.".to_owned());
    }
    if command.contains('\0') {
        return Err(
            "command holds a NUL character, which no shell line can: write \\0 inside printf."
                .to_owned(),
        );
    }
    Ok(())
}

fn refusal(error: &SpawnError) -> ToolOutput {
    ToolOutput::error(match error {
        SpawnError::NoFolder { cwd, .. } => format!(
            "The workspace folder {} is not there any more, so no command can run in it. Ask the user to restore it.",
            text::visible_line(&cwd.to_string_lossy())
        ),
        _ => text::visible(&format!("The command was not run: {error}.")).into_owned(),
    })
}

fn result(finished: &Finished, timeout: Duration) -> ToolOutput {
    let mut text = text::output(&finished.output);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let exit = finished.exit;
    let end = end(exit, timeout);
    let _ = write!(text, "[{end}]");
    tell_leftovers(exit, "process_start keeps one running", &mut text);
    let mut output = match exit.cause {
        Cause::Ended => ToolOutput::ok(text, end),
        Cause::TimedOut | Cause::Cancelled => {
            ToolOutput { summary: end, ..ToolOutput::error(text) }
        }
    };
    output.exit_code = exit.code.filter(|_| exit.cause == Cause::Ended);
    output
}

/// How a program ended, as said to the model.
pub(crate) fn end(exit: Exit, timeout: Duration) -> String {
    match exit.cause {
        Cause::TimedOut => format!("timed out after {} s and was ended", timeout.as_secs_f64()),
        Cause::Cancelled => "cancelled and ended".to_owned(),
        Cause::Ended => status(exit),
    }
}

#[cfg(test)]
mod tests;

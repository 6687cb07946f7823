//! What `run_tests`, `run_build` and `run_lint` share: the run of a project's commands and its
//! report.

pub(crate) mod counts;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use loon_api::{ProgramRun, Subject};
use loon_exec::{Cause, Finished, SpawnError, Spawner};
use loon_kernel::{EffectContext, Progress, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::bash::end;
use crate::bash::live::LiveOutput;
use crate::project::{Kind, Plan, Purpose, Request, plan};
use crate::status::tell_leftovers;
use crate::text;
use crate::workspace::Workspace;
use counts::Counter;

/// How long a run may take unless the call says otherwise, and at most.
const TIMEOUT: Duration = Duration::from_mins(10);
const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// What the gate allows beyond that, so that the run's own timeout comes first and its output is
/// kept.
const GATE_MARGIN: Duration = Duration::from_secs(5);
/// Bytes kept of the beginning and of the end of a command's output: what failed is said last.
const HEAD: usize = 8 * 1024;
const TAIL: usize = 24 * 1024;

/// What is said if other commands would run than those that were judged.
const CHANGED: &str = "Nothing was run: the project's files changed since the call was judged, and other commands \
                       would run now. Call again.";

/// Arguments of a tool that runs what a project names for one purpose.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ProjectArgs {
    path: Option<String>,
    #[schemars(with = "Option<String>")]
    kind: Option<Kind>,
    #[serde(default)]
    options: Vec<String>,
    pub(crate) timeout_secs: Option<u64>,
}

impl ProjectArgs {
    pub(crate) fn request(&self, purpose: Purpose) -> Request {
        Request {
            purpose,
            path: self.path.clone().unwrap_or_else(|| ".".to_owned()),
            kind: self.kind,
            filter: None,
            args: self.options.clone(),
        }
    }
}

/// Runs the commands of projects.
pub(crate) struct Runner {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl Runner {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }

    fn plan(&self, request: &Request) -> Result<Plan, String> {
        plan(&self.workspace, request, &|program| self.spawner.find(program).is_some())
    }

    /// The commands as a shell would be given them.
    pub(crate) fn subjects(&self, request: &Request) -> Result<Vec<Subject>, String> {
        subjects(&self.plan(request)?)
    }

    /// What a call shows beside its name: the commands, as far as they are known.
    pub(crate) fn title(&self, request: &Request) -> String {
        let Ok(plan) = self.plan(request) else { return text::visible_line(&request.path) };
        let lines: Vec<String> =
            plan.commands.iter().filter_map(|command| line(command).ok()).collect();
        let mut title = text::visible_line(&lines.join(" && "));
        if plan.folder != self.workspace.root() {
            let _ = write!(title, " in {}", self.workspace.display(&plan.folder));
        }
        title
    }

    /// Runs all commands, also after one that failed.
    pub(crate) async fn run(
        &self,
        request: &Request,
        timeout_secs: Option<u64>,
        cx: &EffectContext,
    ) -> ToolOutput {
        let plan = match self.plan(request) {
            Ok(plan) => plan,
            Err(text) => return ToolOutput::error(text),
        };
        // What runs is what was decided on.
        if subjects(&plan).as_deref() != Ok(&*cx.subjects) {
            return ToolOutput::error(CHANGED);
        }
        let mut left = timeout(timeout_secs);
        let mut report = Report::default();
        for command in &plan.commands {
            let begun = Instant::now();
            match self.command(&plan, command, left, cx).await {
                Ok((finished, counter)) => {
                    let took = begun.elapsed();
                    let ran = Ran { command, finished: &finished, took, timeout: left };
                    left = left.saturating_sub(took);
                    report.add(&self.place(&plan.folder), &plan, &ran, counter);
                    if finished.exit.cause != Cause::Ended {
                        break;
                    }
                }
                Err(error) => {
                    report.refuse(command, &error);
                    break;
                }
            }
        }
        report.finish()
    }

    async fn command(
        &self,
        plan: &Plan,
        command: &[String],
        timeout: Duration,
        cx: &EffectContext,
    ) -> Result<(Finished, Counter), SpawnError> {
        let live = Arc::new(LiveOutput::default());
        let counter = Arc::new(Mutex::new(Counter::new(plan.kind)));
        let (listener, counting) = (Arc::clone(&live), Arc::clone(&counter));
        let (program, args) =
            command.split_first().map_or(("", command), |(first, rest)| (first, rest));
        let mut spawn = self
            .spawner
            .program(program, &plan.folder)
            .args(args)
            .unattended()
            .keep(HEAD, TAIL)
            .timeout(timeout)
            .cancel(cx.cancel.clone())
            .on_output(move |bytes| {
                counting.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
                listener.push(bytes);
            });
        for (name, value) in &plan.variables {
            spawn = spawn.env(name, value);
        }
        let ended = tokio::select! {
            ended = spawn.run() => ended,
            never = live.forward(&cx.progress) => match never {},
        };
        // The last piece is told if there is room: the result holds it as well.
        if let Some(rest) = live.take() {
            let _ = cx.progress.try_send(Progress::Output(rest));
        }
        let counter = std::mem::replace(
            &mut *counter.lock().unwrap_or_else(PoisonError::into_inner),
            Counter::new(plan.kind),
        );
        Ok((ended?, counter))
    }

    fn place(&self, folder: &Path) -> String {
        crate::nearby::place(&self.workspace, folder)
    }
}

/// How long the run may take.
fn timeout(secs: Option<u64>) -> Duration {
    secs.map_or(TIMEOUT, Duration::from_secs).clamp(Duration::from_secs(1), MAX_TIMEOUT)
}

/// How long the gate lets the call take.
pub(crate) fn gate_timeout(secs: Option<u64>) -> Duration {
    timeout(secs) + GATE_MARGIN
}

/// What the gate judges: each command, and where it runs.
fn subjects(plan: &Plan) -> Result<Vec<Subject>, String> {
    let commands = plan.commands.iter();
    commands
        .map(|command| Ok(Subject::Command { line: line(command)?, cwd: plan.folder.clone() }))
        .collect()
}

/// The command as a shell would be given it.
pub(crate) fn line(command: &[String]) -> Result<String, String> {
    shlex::try_join(command.iter().map(String::as_str))
        .map_err(|error| format!("This command cannot be written down: {error}."))
}

/// One command that ran.
struct Ran<'a> {
    command: &'a [String],
    finished: &'a Finished,
    took: Duration,
    /// What was left for it.
    timeout: Duration,
}

/// Rounded to tenths of a second.
fn tenths(time: Duration) -> Duration {
    Duration::from_secs_f64((time.as_secs_f64() * 10.0).round() / 10.0)
}

/// What the model reads, as it grows.
#[derive(Default)]
struct Report {
    text: String,
    summaries: Vec<String>,
    failed: bool,
    exit_code: Option<i32>,
    runs: Vec<ProgramRun>,
}

impl Report {
    fn add(&mut self, place: &str, plan: &Plan, ran: &Ran<'_>, counter: Counter) {
        let (words, counts) = counter.finish();
        let exit = ran.finished.exit;
        let mut summary = end(exit, tenths(ran.timeout));
        if !words.is_empty() {
            let _ = write!(summary, ", {words}");
        }
        let line = line(ran.command).unwrap_or_default();
        let _ = write!(self.text, "$ {}\n[in {place}", text::visible_line(&line));
        for (name, value) in &plan.variables {
            let _ = write!(self.text, " with {name}={value}");
        }
        let _ = writeln!(self.text, ": {summary} after {:.1} s]", ran.took.as_secs_f64());
        self.text.push_str(&text::output(&ran.finished.output));
        self.text.truncate(self.text.trim_end().len());
        tell_leftovers(exit, "it should end what it starts", &mut self.text);
        self.text.push('\n');
        self.failed |= !exit.is_success();
        let code = exit.code.filter(|_| exit.cause == Cause::Ended);
        let check = Some(plan.purpose.check());
        self.runs.push(ProgramRun { line, exit_code: code, check, counts, unclear: false });
        // The first failure is the status of the call.
        if self.exit_code.is_none_or(|code| code == 0) {
            self.exit_code = code;
        }
        self.summaries.push(summary);
    }

    fn refuse(&mut self, command: &[String], error: &SpawnError) {
        let line = line(command).unwrap_or_default();
        let _ = writeln!(
            self.text,
            "$ {}\nIt was not run: {}.",
            text::visible_line(&line),
            text::visible_line(&error.to_string())
        );
        self.failed = true;
    }

    fn finish(self) -> ToolOutput {
        let mut output = ToolOutput::ok(self.text, self.summaries.join("; "));
        output.result.is_error = self.failed;
        output.exit_code = self.exit_code;
        output.runs = self.runs;
        output
    }
}

#[cfg(test)]
mod tests;

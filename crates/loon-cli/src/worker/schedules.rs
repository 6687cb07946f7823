//! Schedules of the settings, fired by a worker process.
//!
//! An occurrence that came while no worker ran is not made up for. Two workers of one data folder fire
//! each occurrence once between them: its id says which it is, and a session of that id begins once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use loon_api::{At, Clock, ErrorCode, ErrorInfo, ExecutionId};
use loon_kernel::{Schedule, Settled, SystemClock, occurrence_id};
use tokio::sync::mpsc;

use super::{PromptInput, Prompts};
use crate::failure::Failure;
use crate::paths::Paths;
use crate::wiring::Setup;

/// Longest wait without a look at the clock: a machine that slept has another time than its timers.
const LOOK: Duration = Duration::from_mins(5);

/// A schedule of the settings.
pub(crate) struct Scheduled {
    name: String,
    schedule: Schedule,
    input: PromptInput,
    warm_lead: Option<Duration>,
}

/// How an occurrence went.
pub(crate) struct Fired {
    /// Name of the schedule.
    pub(crate) name: String,
    /// Its instant.
    pub(crate) at: At,
    /// Its session.
    pub(crate) exec: ExecutionId,
    /// How it came to rest; absent if another process had begun it.
    pub(crate) settled: Option<Settled>,
}

/// The schedules of the user's settings. Those of a project's files do not count: a worker belongs to
/// its user, not to a folder.
pub(crate) fn of_settings() -> Result<Vec<Scheduled>, Failure> {
    let paths = Paths::from_environment()?;
    std::fs::create_dir_all(&paths.config)?;
    let setup = Setup::load(Some(&paths.config), &[])?;
    let mut schedules = Vec::new();
    for (name, found) in &setup.loaded.settings.schedules {
        let wrong = |why: String| Failure::usage(format!("schedules.{name}: {why}"));
        let schedule = match (found.every, &found.cron) {
            (Some(period), None) => Schedule::Every(period),
            (None, Some(line)) => Schedule::Cron(
                line.parse().map_err(|error| wrong(format!("cron `{line}`: {error}")))?,
            ),
            _ => return Err(wrong("it needs either `every` or `cron`".to_owned())),
        };
        if schedule.next_after(SystemClock.now()).is_none() {
            let what = found
                .cron
                .as_ref()
                .map_or_else(|| "`every`".to_owned(), |line| format!("cron `{line}`"));
            return Err(wrong(format!("{what} never falls due, for there is no such day")));
        }
        if !Path::new(&found.cwd).is_absolute() {
            let why = format!("cwd `{}` is relative; a worker belongs to no folder", found.cwd);
            return Err(wrong(why).hint("Write the whole path of the folder."));
        }
        schedules.push(Scheduled {
            name: name.clone(),
            schedule,
            input: PromptInput {
                prompt: found.prompt.clone(),
                cwd: found.cwd.clone().into(),
                model: found.model.clone(),
                mode: found.mode,
                max_turns: None,
                output_schema: None,
            },
            warm_lead: found.warm_lead,
        });
    }
    if schedules.is_empty() {
        return Err(Failure::usage("The settings have no schedules.").hint(
            "Add a [schedules.NAME] section with every or cron, prompt and cwd to your own settings.",
        ));
    }
    Ok(schedules)
}

/// Fires all schedules for ever. `told` hears how each occurrence went.
pub(crate) async fn fire(
    prompts: Arc<Prompts>,
    schedules: Vec<Scheduled>,
    told: impl Fn(Fired) + Send + Sync,
) {
    let told = &told;
    let prompts = &prompts;
    let mut all: FuturesUnordered<_> = schedules
        .iter()
        .map(|scheduled| async move {
            let mut last = SystemClock.now();
            while let Some(at) = scheduled.schedule.next_after(last) {
                last = at;
                if let Some(fired) = Box::pin(scheduled.occurrence(prompts, at)).await {
                    told(fired);
                }
            }
        })
        .collect();
    while all.next().await.is_some() {}
    // None has another occurrence.
    std::future::pending::<()>().await;
}

/// Waits for an instant by the clock of this machine.
async fn until(at: At) {
    loop {
        let left = at.since(SystemClock.now());
        if left.is_zero() {
            return;
        }
        SystemClock.sleep(left.min(LOOK)).await;
    }
}

impl Scheduled {
    /// Waits for an occurrence and runs it. One whose time is over by far is let go: the occurrence
    /// before it took that long, or the machine slept.
    async fn occurrence(&self, prompts: &Prompts, at: At) -> Option<Fired> {
        let exec = occurrence_id(&self.name, at)?;
        if SystemClock.now().since(at) > LOOK {
            return None;
        }
        let mut ready = None;
        if let Some(lead) = self.warm_lead {
            let ms = at.unix_ms().saturating_sub_unsigned(u64::try_from(lead.as_millis()).ok()?);
            until(At::from_unix_ms(ms)).await;
            ready = prompts.prepare(self.input.clone(), None).await.ok();
            if let Some(ready) = &ready {
                ready.warm().await;
            }
        }
        until(at).await;
        let prepared = match ready {
            Some(ready) => Ok(ready),
            None => prompts.prepare(self.input.clone(), None).await,
        };
        // Its other end must be gone before the session begins to tell.
        let (unheard, _) = mpsc::channel(1);
        let settled = match prepared {
            Ok(prepared) => prompts.run_prepared(exec, prepared, unheard).await,
            Err(error) => Settled::Failed { error },
        };
        let (name, settled) = (self.name.clone(), Some(settled).filter(|it| !was_begun(it)));
        Some(Fired { name, at, exec, settled })
    }
}

/// Another process had begun it.
fn was_begun(settled: &Settled) -> bool {
    matches!(settled, Settled::Failed { error: ErrorInfo { code: ErrorCode::Conflict, .. } })
}

impl Fired {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let how = match &self.settled {
            None => "begun by another worker".to_owned(),
            Some(Settled::Completed { .. }) => "completed".to_owned(),
            Some(Settled::Failed { error }) => format!("failed: {}", error.message),
            Some(Settled::Cancelled { reason }) => {
                format!("cancelled: {}", reason.as_deref().unwrap_or("no reason given"))
            }
            Some(Settled::Suspended { .. }) => "waits".to_owned(),
        };
        format!("{} at {} ({}): {how}\n", self.name, self.at, self.exec)
    }
}

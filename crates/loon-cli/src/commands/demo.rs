//! `loon demo`: a scripted model drives the real runtime on a real Git repository with a failing
//! test. Everything but the model's words is what any other session does.

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loon_api::{Command, ExecutionId};
use loon_core::{Runtime, SessionChoice};
use loon_exec::Spawner;
use loon_exec::git::{Git, GitError};
use tokio_util::sync::CancellationToken;

use crate::args::{DemoArgs, ModeArg, SessionArgs};
use crate::failure::Failure;
use crate::headless::{self, Format, Task};
use crate::paths::Paths;
use crate::wiring::{DEMO_MODEL, RunOptions, Setup};

/// What the demo asks for.
const PROMPT: &str = "The tests fail. Find out why, fix it, and show me that they pass.";

/// Files of the demo's repository.
const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../../demo/README.md")),
    ("pager.sh", include_str!("../../demo/pager.sh")),
    ("test.sh", include_str!("../../demo/test.sh")),
];

/// Runs the demo, on the screen if there is a terminal.
pub(super) fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let repository = make_repository(&Paths::from_environment()?.data)?;
    let setup = Setup::load(Some(&repository), &[])?;
    let session = SessionArgs { model: Some(DEMO_MODEL.to_owned()), ..SessionArgs::default() };
    if terminal && !args.headless {
        return super::screen::open(&setup, &session, SessionChoice::New, Some(PROMPT.to_owned()));
    }
    run_headless(&setup, session, args.json)
}

/// Without a screen nobody can be asked, so the demo allows itself everything in its own folder.
fn run_headless(setup: &Setup, session: SessionArgs, json: bool) -> Result<u8, Failure> {
    let session = SessionArgs { mode: Some(ModeArg::Bypass), ..session };
    let runtime = super::runtime()?;
    let status = runtime.block_on(async {
        let options = RunOptions { unattended: true, ..RunOptions::attended(&session) };
        let (deps, follower) = setup.dependencies(options);
        let _following = follower.start(|_| {});
        let started = Runtime::start(deps, SessionChoice::New);
        let task = Task {
            opening: Some(Command::Prompt { text: PROMPT.to_owned() }),
            commands_from_stdin: false,
            format: if json { Format::Json } else { Format::Text },
            last_message: None,
        };
        headless::drive(started, task).await
    });
    crate::commands::leave(runtime);
    let status = status?;
    if !json {
        report(setup)?;
    }
    Ok(status)
}

/// Says where the demo left its session and its repository.
fn report(setup: &Setup) -> Result<(), Failure> {
    let store = Arc::new(setup.store());
    let cwd = setup.root.display().to_string();
    let newest = loon_core::sessions::newest_session(store.as_ref(), &cwd)
        .map_err(|error| Failure::from(error.info()))?;
    if let Some(exec) = newest {
        super::print(&format!(
            "\nThe model was a script; the repository, the edit and the tests were real: {cwd}\n\
             loon sessions verify {exec}   checks the session's journal\n\
             loon sessions show {exec}     prints its transcript\n\
             loon sessions resume {exec}   opens it on the screen\n"
        ))?;
    }
    Ok(())
}

/// Makes a new repository under the data folder, where the session can find it again.
fn make_repository(data: &Path) -> Result<PathBuf, Failure> {
    let folder = data.join("demo").join(ExecutionId::generate().to_string()).join("pager");
    let made = fs::create_dir_all(&folder).and_then(|()| {
        FILES.iter().try_for_each(|(name, text)| write_file(&folder.join(name), text))
    });
    made.map_err(|error| {
        Failure::other(format!("Cannot make the demo's folder {}: {error}", folder.display()))
    })?;
    super::runtime()?
        .block_on(commit_all(&folder))
        .map_err(|error| Failure::other(format!("Cannot make the demo's repository: {error}")))?;
    Ok(folder)
}

async fn commit_all(folder: &Path) -> Result<(), GitError> {
    let git = Git::new(&Spawner::new([]), folder, &CancellationToken::new());
    git.run("init", &["--quiet", "--initial-branch=main"], &[]).await?;
    git.run("config", &["user.name", "Loom demo"], &[]).await?;
    git.run("config", &["user.email", "demo@localhost"], &[]).await?;
    git.run("add", &["--all"], &[]).await?;
    git.run("commit", &["--quiet", "--message=Add the pager"], &[]).await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "files of a folder that was just made")]
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}

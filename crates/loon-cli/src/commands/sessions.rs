//! `loon sessions ...`, one subcommand a file.

mod archive;
mod delete;
mod export;
mod fork;
mod html;
mod import;
mod list;
mod prune;
mod repair;
mod search;
mod show;
mod transcript;
mod verify;
mod watch;

use loon_api::{ErrorCode, ErrorInfo, ExecutionId};
use loon_core::SessionIndex;
use loon_core::sessions::find_session;
use loon_kernel::{FileStore, JournalStore, StoreError};

use crate::args::SessionsCommand;
use crate::failure::{Failure, say_error};
use crate::paths::Paths;

/// Runs one of them.
pub(super) fn run(command: SessionsCommand) -> Result<u8, Failure> {
    let paths = Paths::from_environment()?;
    let store = FileStore::new(&paths.data);
    let index = SessionIndex::at(paths.index_file());
    match command {
        SessionsCommand::List(args) => list::run(&store, &index, &args),
        SessionsCommand::Search(args) => search::run(&store, &index, &args),
        SessionsCommand::Show { id, json } => show::run(&store, find(&store, &id)?, json),
        SessionsCommand::Resume { id, take_over } => super::screen::resume(&id, take_over),
        SessionsCommand::Watch { id, json } => watch::run(find(&store, &id)?, json),
        SessionsCommand::Fork { id, at, json } => {
            fork::run(&store, find(&store, &id)?, at.as_deref(), json)
        }
        SessionsCommand::Archive(which) => archive::run(&store, &which, true),
        SessionsCommand::Unarchive(which) => archive::run(&store, &which, false),
        SessionsCommand::Delete { which, yes } => delete::run(&store, &index, &which, yes),
        SessionsCommand::Undelete(which) => delete::undo(&store, &which),
        SessionsCommand::Prune(args) => prune::run(&store, &index, &args),
        SessionsCommand::Export(args) => export::run(&store, find(&store, &args.id)?, &args),
        SessionsCommand::Import { file, json } => import::run(&store, &file, json),
        SessionsCommand::Verify { id: Some(id), json, .. } => {
            verify::one(&store, find(&store, &id)?, json)
        }
        SessionsCommand::Verify { id: None, json, .. } => verify::all(&store, json),
        SessionsCommand::Repair { id, json } => repair::run(&store, find(&store, &id)?, json),
    }
}

/// Says so where what is printed of a session may not be what happened in it.
fn warn_if_damaged(store: &dyn JournalStore, exec: ExecutionId) {
    // What cannot be checked cannot be read either, which is told then.
    let Ok(Err(error)) = store.verify(exec).map(|verified| verified.sound(exec)) else { return };
    let mut error = error.info();
    error.message = format!("{}. What is shown may not be what happened.", error.message);
    say_error(&error);
}

/// The session that an id, or the beginning of one, names.
pub(crate) fn find(store: &dyn JournalStore, text: &str) -> Result<ExecutionId, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("The id of the session is empty.")
            .hint("`loon sessions list --all` shows the ids; the beginning of one is enough."));
    }
    the_one(find_session(store, text).map_err(|error| Failure::from(error.info()))?, text)
}

/// What was found under `text`, or why it names no session.
fn the_one(
    found: Result<ExecutionId, Vec<ExecutionId>>,
    text: &str,
) -> Result<ExecutionId, Failure> {
    let matches = match found {
        Ok(exec) => return Ok(exec),
        Err(matches) => matches,
    };
    if matches.is_empty() {
        return Err(Failure::usage(format!("There is no session {text}."))
            .hint("`loon sessions list --all` shows them."));
    }
    let mut failure = Failure::usage(format!("More than one session begins with {text}."));
    for exec in matches.iter().take(5) {
        failure = failure.hint(exec.to_string());
    }
    Err(failure)
}

/// All of the sessions that these words name, before anything is done with one of them.
fn find_all(store: &dyn JournalStore, ids: &[String]) -> Result<Vec<ExecutionId>, Failure> {
    let mut found = Vec::new();
    for id in ids {
        let exec = find(store, id)?;
        if store.stamp(exec).is_none() {
            return Err(StoreError::NotFound { exec }.info().into());
        }
        if !found.contains(&exec) {
            found.push(exec);
        }
    }
    Ok(found)
}

/// An error of the store; one that another process is behind says which.
fn failed(store: &FileStore, error: &StoreError) -> Failure {
    if let StoreError::Busy { exec, .. } = error
        && let Some(holder) = store.holder(*exec)
    {
        let message = format!("session {exec} is in use by {}", holder.words());
        let info = ErrorInfo::new(ErrorCode::Busy, message);
        return info.hint("end that process first, or `loon cancel` the session").into();
    }
    error.info().into()
}

/// One line of JSON.
fn json_line(value: &impl serde::Serialize) -> Result<String, Failure> {
    Ok(crate::safe::json(value).map_err(anyhow::Error::from)? + "\n")
}

//! `loon sessions ...`, one subcommand a file.

mod export;
mod list;
mod repair;
mod show;
mod transcript;
mod verify;

use loon_api::ExecutionId;
use loon_core::sessions::find_session;
use loon_kernel::{FileStore, JournalStore};

use crate::args::SessionsCommand;
use crate::failure::Failure;
use crate::paths::Paths;

/// Runs one of them.
pub(super) fn run(command: SessionsCommand) -> Result<u8, Failure> {
    let store = FileStore::new(Paths::from_environment()?.data);
    match command {
        SessionsCommand::List { all, json } => list::run(&store, all, json),
        SessionsCommand::Show { id } => show::run(&store, find(&store, &id)?),
        SessionsCommand::Resume { id } => super::screen::resume(&id),
        SessionsCommand::Verify { id: Some(id), .. } => verify::one(&store, find(&store, &id)?),
        SessionsCommand::Verify { id: None, .. } => verify::all(&store),
        SessionsCommand::Repair { id } => repair::run(&store, find(&store, &id)?),
        SessionsCommand::Export { id, json, output } => {
            export::run(&store, find(&store, &id)?, json, output.as_deref())
        }
    }
}

/// The session that an id, or the beginning of one, names.
pub(crate) fn find(store: &dyn JournalStore, text: &str) -> Result<ExecutionId, Failure> {
    match find_session(store, text).map_err(|error| Failure::from(error.info()))? {
        Ok(exec) => Ok(exec),
        Err(matches) if matches.is_empty() => {
            Err(Failure::usage(format!("There is no session {text}."))
                .hint("`loon sessions list --all` shows them."))
        }
        Err(matches) => {
            let mut failure = Failure::usage(format!("More than one session begins with {text}."));
            for exec in matches.iter().take(5) {
                failure = failure.hint(exec.to_string());
            }
            Err(failure)
        }
    }
}

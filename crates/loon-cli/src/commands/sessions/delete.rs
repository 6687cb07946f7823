//! `loon sessions delete` and `undelete`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use loon_api::ExecutionId;
use loon_core::SessionIndex;
use loon_core::index::Filter;
use loon_core::sessions::{begins_with, family};
use loon_kernel::FileStore;
use serde_json::json;

use super::{failed, find_all, json_line, list, the_one};
use crate::args::ManyArgs;
use crate::failure::Failure;
use crate::safe::plain;

/// Moves sessions and those of their subagents to the trash. Asks on a terminal.
pub(super) fn run(
    store: &FileStore,
    index: &SessionIndex,
    which: &ManyArgs,
    yes: bool,
) -> Result<u8, Failure> {
    let execs = find_all(store, &which.ids)?;
    if !yes {
        let filter = Filter { archived: true, children: true, empty: true, ..Filter::default() };
        let all = index.list(store, &filter).map_err(|error| Failure::from(error.info()))?;
        let lines = all.iter().filter(|session| execs.contains(&session.exec));
        let shown: String = lines.map(|session| list::line(session, true)).collect();
        if !ask(&format!("{shown}Move to the trash, with the sessions of their subagents?"))? {
            super::super::print("Nothing was deleted.\n")?;
            return Ok(1);
        }
    }
    let mut text = String::new();
    for exec in execs {
        let moved = discard(store, exec)?;
        if which.json {
            text.push_str(&json_line(&json!({"exec": exec, "deleted": moved}))?);
        } else {
            let with = match moved.len() - 1 {
                0 => String::new(),
                1 => " with that of its subagent".to_owned(),
                more => format!(" with those of its {more} subagents"),
            };
            let _ = writeln!(
                text,
                "{exec} is in the trash{with}. `loon sessions undelete {exec}` brings it back; `loon \
                 sessions prune --empty-trash` removes it for good."
            );
        }
    }
    super::super::print(&text)
}

/// Moves a session to the trash, with those of its subagents. Gives all that went.
pub(super) fn discard(store: &FileStore, exec: ExecutionId) -> Result<Vec<ExecutionId>, Failure> {
    let family = family(store, exec).map_err(|error| failed(store, &error))?;
    store.discard(exec, &family[1..]).map_err(|error| failed(store, &error))?;
    Ok(family)
}

/// Brings sessions back from the trash.
pub(super) fn undo(store: &FileStore, which: &ManyArgs) -> Result<u8, Failure> {
    let mut text = String::new();
    for id in &which.ids {
        let deleted = store.discarded().map_err(|error| failed(store, &error))?;
        let exec = the_one(begins_with(deleted, id), id)
            .map_err(|failure| failure.hint("Only sessions in the trash can be brought back."))?;
        let back = store.recover(exec).map_err(|error| failed(store, &error))?;
        if which.json {
            text.push_str(&json_line(&json!({"exec": exec, "recovered": back}))?);
        } else {
            let _ = writeln!(text, "{exec} is back.");
        }
    }
    super::super::print(&text)
}

/// Asks for a yes on the terminal. Where nobody can answer, it is an error.
pub(super) fn ask(question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("Nobody is there to ask whether to delete that.")
            .hint("Add --yes to do it without asking."));
    }
    let mut terminal = std::io::stderr().lock();
    write!(terminal, "{} [y/N] ", plain(question)).and_then(|()| terminal.flush())?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

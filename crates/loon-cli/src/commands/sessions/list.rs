//! `loon sessions list`.

use std::fmt::Write as _;

use loon_api::{Cost, SessionSummary};
use loon_core::SessionIndex;
use loon_core::index::Filter;
use loon_kernel::FileStore;

use super::json_line;
use crate::args::ListArgs;
use crate::failure::Failure;
use crate::paths::current_folder;

/// Prints the sessions of this folder, or all.
pub(super) fn run(store: &FileStore, index: &SessionIndex, args: &ListArgs) -> Result<u8, Failure> {
    let cwd = current_folder()?.display().to_string();
    let filter = Filter {
        cwd: (!args.all).then_some(cwd),
        archived: args.archived,
        children: args.children,
        empty: false,
        limit: args.limit,
    };
    let sessions = index.list(store, &filter).map_err(|error| Failure::from(error.info()))?;
    let mut text = String::new();
    for session in &sessions {
        if args.json {
            text.push_str(&json_line(session)?);
        } else {
            text.push_str(&line(session, args.all));
        }
    }
    if sessions.is_empty() && !args.json {
        text.push_str(if args.all {
            "There are no sessions yet.\n"
        } else {
            "There are no sessions of this folder. `loon sessions list --all` shows the others.\n"
        });
    }
    super::super::print(&text)
}

/// One session as a line: id, when, turns, cost, state, title, and then what is not always there.
pub(super) fn line(session: &SessionSummary, with_folder: bool) -> String {
    let updated = session.updated.to_string();
    let state = match (session.state(), session.pid) {
        ("live", Some(pid)) => format!("live {pid}"),
        (state, _) => state.to_owned(),
    };
    let mut line = format!(
        "{}  {}  {:>3} {:<5}  {:>7}  {:<10}  {}",
        session.exec,
        updated.get(..16).unwrap_or(&updated).replace('T', " "),
        session.turns,
        if session.turns == 1 { "turn" } else { "turns" },
        cost_words(&session.cost),
        state,
        if session.title.is_empty() { "untitled" } else { &session.title },
    );
    if let Some(branch) = &session.branch {
        let _ = write!(line, "  ({branch})");
    }
    if with_folder {
        let _ = write!(line, "  {}", session.cwd);
    }
    if let Some(parent) = session.parent {
        let _ = write!(line, "  child of {parent}");
    }
    if let Some(from) = session.forked_from {
        let _ = write!(line, "  fork of {from}");
    }
    line.push('\n');
    line
}

/// Money, or nothing where none is known.
fn cost_words(cost: &Cost) -> String {
    let none = if cost.unpriced > 0 { "?" } else { "-" };
    cost.words().unwrap_or_else(|| none.to_owned())
}

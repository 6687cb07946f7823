//! `loon sessions list`.

use std::fmt::Write as _;

use loon_core::sessions::list_sessions;
use loon_kernel::FileStore;

use crate::failure::Failure;
use crate::paths::current_folder;
use crate::safe;

/// Prints the sessions of this folder, or all.
pub(super) fn run(store: &FileStore, all: bool, json: bool) -> Result<u8, Failure> {
    let cwd = current_folder()?.display().to_string();
    let folder = (!all).then_some(cwd.as_str());
    let sessions =
        list_sessions(store, folder, usize::MAX).map_err(|error| Failure::from(error.info()))?;
    let mut text = String::new();
    for session in &sessions {
        if json {
            let line = safe::json(session).map_err(anyhow::Error::from)?;
            let _ = writeln!(text, "{line}");
            continue;
        }
        let updated = session.updated.to_string();
        let live = if session.live { "  in use" } else { "" };
        let folder = if all { format!("  {}", session.cwd) } else { String::new() };
        let _ = writeln!(
            text,
            "{}  {}  {:>3} {:<5}  {}{folder}{live}",
            session.exec,
            updated.get(..16).unwrap_or(&updated).replace('T', " "),
            session.turns,
            if session.turns == 1 { "turn" } else { "turns" },
            session.title,
        );
    }
    if sessions.is_empty() && !json {
        text.push_str(if all {
            "There are no sessions yet.\n"
        } else {
            "There are no sessions of this folder. `loon sessions list --all` shows the others.\n"
        });
    }
    super::super::print(&text)
}

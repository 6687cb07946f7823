//! `loon sessions search`.

use std::fmt::Write as _;

use loon_core::SessionIndex;
use loon_core::index::Search;
use loon_kernel::FileStore;

use super::json_line;
use crate::args::SearchArgs;
use crate::failure::Failure;

/// Prints the best places. Exit status 1 if there is none.
pub(super) fn run(
    store: &FileStore,
    index: &SessionIndex,
    args: &SearchArgs,
) -> Result<u8, Failure> {
    let cwd = args.cwd.as_ref().map(|folder| {
        let whole = folder.canonicalize().map_err(|error| {
            Failure::usage(format!("There is no folder {}: {error}", folder.display()))
        })?;
        Ok::<_, Failure>(whole.display().to_string())
    });
    let search = Search { query: args.query.join(" "), cwd: cwd.transpose()?, limit: args.limit };
    let hits = index.search(store, &search).map_err(|error| Failure::from(error.info()))?;
    let mut text = String::new();
    for hit in &hits {
        if args.json {
            text.push_str(&json_line(hit)?);
            continue;
        }
        let updated = hit.updated.to_string();
        let archived = if hit.archived { "  archived" } else { "" };
        let child = hit.parent.map(|parent| format!("  child of {parent}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  {}  {}  {}{archived}{child}\n    turn {}, {} ({}): {}",
            hit.exec,
            updated.get(..16).unwrap_or(&updated).replace('T', " "),
            hit.title,
            hit.cwd,
            hit.turn,
            hit.kind,
            hit.item,
            hit.snippet,
        );
    }
    if hits.is_empty() && !args.json {
        let _ = writeln!(text, "Nothing matches {}.", search.query);
    }
    super::super::print(&text)?;
    Ok(u8::from(hits.is_empty()))
}

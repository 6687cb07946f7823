//! `loon sessions archive` and `unarchive`.

use std::fmt::Write as _;

use loon_kernel::FileStore;
use serde_json::json;

use super::{failed, find_all, json_line};
use crate::args::ManyArgs;
use crate::failure::Failure;

/// Takes sessions out of lists, or puts them back.
pub(super) fn run(store: &FileStore, which: &ManyArgs, archived: bool) -> Result<u8, Failure> {
    let mut text = String::new();
    for exec in find_all(store, &which.ids)? {
        let changed = store.set_archived(exec, archived).map_err(|error| failed(store, &error))?;
        if which.json {
            let line = json!({"exec": exec, "archived": archived, "changed": changed});
            text.push_str(&json_line(&line)?);
            continue;
        }
        let words = match (archived, changed) {
            (true, true) => "is archived: lists leave it out, and nothing of it is deleted",
            (true, false) => "was archived already",
            (false, true) => "is in lists again",
            (false, false) => "was not archived",
        };
        let _ = writeln!(text, "{exec} {words}.");
    }
    super::super::print(&text)
}

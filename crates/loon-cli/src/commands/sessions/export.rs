//! `loon sessions export`.

use std::path::Path;

use loon_api::ExecutionId;
use loon_kernel::{FileStore, JournalStore as _};

use super::transcript;
use crate::failure::Failure;
use crate::safe;

/// Writes the transcript as Markdown or the records as JSON lines.
pub(super) fn run(
    store: &FileStore,
    exec: ExecutionId,
    json: bool,
    output: Option<&Path>,
) -> Result<u8, Failure> {
    let text = if json {
        records(store, exec)?
    } else {
        transcript::markdown(exec, &transcript::read(store, exec)?)
    };
    let Some(path) = output else { return super::super::print(&text) };
    #[expect(clippy::disallowed_methods, reason = "the user named this file on the command line")]
    std::fs::write(path, text)
        .map_err(|error| Failure::other(format!("Cannot write {}: {error}", path.display())))?;
    Ok(0)
}

fn records(store: &FileStore, exec: ExecutionId) -> Result<String, Failure> {
    let mut text = String::new();
    for record in store.read(exec).map_err(|error| Failure::from(error.info()))? {
        let record = record.map_err(|error| Failure::from(error.info()))?;
        text.push_str(&safe::json(&record).map_err(anyhow::Error::from)?);
        text.push('\n');
    }
    Ok(text)
}

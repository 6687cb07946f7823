//! `loon sessions export`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use loon_api::ExecutionId;
use loon_core::sessions::family;
use loon_kernel::{FileStore, JournalStore as _, StoreError};

use super::{failed, html, transcript};
use crate::args::ExportArgs;
use crate::failure::Failure;
use crate::safe;

/// Writes the session in the form that was asked for.
pub(super) fn run(store: &FileStore, exec: ExecutionId, args: &ExportArgs) -> Result<u8, Failure> {
    if store.stamp(exec).is_none() {
        return Err(StoreError::NotFound { exec }.info().into());
    }
    // An archive of a damaged session is refused below.
    if !args.archive {
        super::warn_if_damaged(store, exec);
    }
    if args.archive || args.json {
        return stream(store, exec, args);
    }
    let conversation = transcript::read(store, exec)?;
    let text = if args.html {
        html::page(exec, &conversation)
    } else {
        transcript::markdown(exec, &conversation)
    };
    let Some(path) = &args.output else { return super::super::print(&text) };
    #[expect(clippy::disallowed_methods, reason = "the user named this file on the command line")]
    std::fs::write(path, text)
        .map_err(|error| Failure::other(format!("Cannot write {}: {error}", path.display())))?;
    Ok(0)
}

/// Writes records as they are read, however many there are. A file is whole or not there.
fn stream(store: &FileStore, exec: ExecutionId, args: &ExportArgs) -> Result<u8, Failure> {
    let write = |out: &mut dyn Write| {
        if args.archive { archive(store, exec, out) } else { records(store, exec, out) }
    };
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let done = write(&mut out).and_then(|()| Ok(out.flush()?));
        return match done {
            Err(failure) if failure.is_broken_pipe() => Ok(141),
            done => done.map(|()| 0),
        };
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let new = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let cannot =
        |error: std::io::Error| Failure::other(format!("Cannot write {}: {error}", path.display()));
    let new = new.map_err(cannot)?;
    let mut out = BufWriter::new(new.as_file());
    write(&mut out)?;
    out.flush().map_err(cannot)?;
    drop(out);
    let _: File = new.persist(path).map_err(|error| cannot(error.error))?;
    Ok(0)
}

/// The session and those of its subagents, for `import`.
fn archive(store: &FileStore, exec: ExecutionId, out: &mut dyn Write) -> Result<(), Failure> {
    let members = family(store, exec).map_err(|error| failed(store, &error))?;
    store.export(&members, out).map_err(|error| failed(store, &error))
}

fn records(store: &FileStore, exec: ExecutionId, out: &mut dyn Write) -> Result<(), Failure> {
    for record in store.read(exec).map_err(|error| failed(store, &error))? {
        let record = record.map_err(|error| failed(store, &error))?;
        let line = safe::json(&record).map_err(anyhow::Error::from)?;
        out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n"))?;
    }
    Ok(())
}

//! Files that are read whole and not shown line by line.

use std::io::{self, Read as _};
use std::path::Path;

use crate::nearby;
use crate::open;
use crate::read::kind;
use crate::read::page::LOADED;
use crate::text;
use crate::workspace::Workspace;
use crate::write_path::Document;

/// The text file at `path` (as [`nearby::locate`] gives it). The error is what the model reads.
pub(crate) fn document(workspace: &Workspace, path: &Path) -> Result<Document, String> {
    let shown = workspace.display(path);
    let size = size(workspace, path)?;
    if size > LOADED {
        return Err(format!(
            "{shown} has {}; files above {} are not loaded. Read its lines by read or grep.",
            text::size(size),
            text::size(LOADED)
        ));
    }
    let mut bytes = Vec::new();
    open::for_reading(path)
        .and_then(|file| file.take(LOADED).read_to_end(&mut bytes))
        .map_err(|error| unreadable(workspace, path, &error))?;
    if kind::is_binary(&bytes[..bytes.len().min(kind::SAMPLE)]) {
        return Err(format!("{shown} is no text but {}.", kind::name(&bytes)));
    }
    Ok(Document::decode(bytes))
}

/// The size of an ordinary file. The error says that there is none, and what there is.
pub(crate) fn size(workspace: &Workspace, path: &Path) -> Result<u64, String> {
    let shown = workspace.display(path);
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(nearby::missing(workspace, path));
        }
        Err(error) => return Err(unreadable(workspace, path, &error)),
    };
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder, not a file."));
    }
    if !metadata.is_file() {
        return Err(format!("{shown} is {}, which cannot be read.", kind::special(&metadata)));
    }
    Ok(metadata.len())
}

/// The error for a file that the system does not let us read.
pub(crate) fn unreadable(workspace: &Workspace, path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}.", workspace.display(path))
}

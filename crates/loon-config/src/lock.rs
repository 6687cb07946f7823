//! One writer of a folder's settings at a time. The lock is on the folder itself, so that nothing is
//! left behind and read-only readers need no file.

use std::fs::File;
use std::path::Path;

/// Held until it is dropped.
pub(crate) struct FolderLock {
    _folder: Option<File>,
}

impl FolderLock {
    /// Waits for other writers of the folder. Where locks do not exist, as on some network disks, the
    /// comparison before the write still finds a change by another.
    pub(crate) fn take(folder: &Path) -> Self {
        let folder = File::open(folder).ok().filter(|folder| folder.lock().is_ok());
        Self { _folder: folder }
    }
}

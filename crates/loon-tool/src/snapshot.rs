//! Pre-images: the bytes of a file before a change, kept under their hash.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::Workspace;
use crate::workspace::ContentHash;

/// Where the bytes with this hash are kept.
pub(crate) fn place(workspace: &Workspace, hash: ContentHash) -> PathBuf {
    workspace.snapshots().join(hash.to_string())
}

/// Keeps these bytes under their hash; nothing to do if they are kept already.
pub(crate) fn keep(workspace: &Workspace, bytes: &[u8]) -> io::Result<()> {
    let target = place(workspace, ContentHash::of(bytes));
    if target.try_exists()? {
        return Ok(());
    }
    fs::create_dir_all(workspace.snapshots())?;
    let mut file = NamedTempFile::new_in(workspace.snapshots())?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_once_under_their_hash() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(root.path(), root.path().join("deep/snapshots")).unwrap();
        keep(&workspace, b"abc").unwrap();
        keep(&workspace, b"abc").unwrap();
        let kept: Vec<_> = fs::read_dir(workspace.snapshots())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(kept, ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]);
        assert_eq!(fs::read(workspace.snapshots().join(&kept[0])).unwrap(), b"abc");
    }
}

//! How the files will look after the steps planned so far, without any of them made.

use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use loon_api::EntryKind;

use crate::open;
use crate::workspace::ContentHash;
use crate::write_path::tree;

/// Files on disk with planned steps laid over them.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    moves: Vec<(PathBuf, PathBuf)>,
    planned: HashMap<PathBuf, Change>,
}

/// What a planned step does at a path.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// A file with these bytes.
    Write(Vec<u8>),
    /// A folder, made for what comes into it.
    Make,
    /// A folder that was empty is gone.
    Remove,
}

/// What will be at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prospect {
    pub(super) kind: EntryKind,
    /// Of the bytes of a file and of the target of a link.
    pub(super) hash: Option<ContentHash>,
}

impl Outlook {
    pub(super) fn write(&mut self, path: &Path, content: Vec<u8>) {
        self.make_folders(path);
        self.planned.insert(path.to_owned(), Change::Write(content));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.make_folders(to);
        self.planned.retain(|path, change| *change != Change::Remove || !path.starts_with(to));
        let below: Vec<PathBuf> =
            self.planned.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in below {
            if let Some(change) = self.planned.remove(&path) {
                self.planned.insert(rebased(&path, from, to).unwrap_or(path), change);
            }
        }
        self.moves.push((from.to_owned(), to.to_owned()));
    }

    fn make_folders(&mut self, path: &Path) {
        let above = path.ancestors().skip(1);
        let missing: Vec<PathBuf> =
            above.take_while(|folder| !self.is_there(folder)).map(Path::to_owned).collect();
        self.planned.extend(missing.into_iter().map(|folder| (folder, Change::Make)));
    }

    /// The folder goes if nothing will be in it. Says whether it does.
    pub(super) fn remove_empty(&mut self, folder: &Path) -> bool {
        let empty = self.is_there(folder) && self.is_empty(folder);
        if empty {
            self.planned.insert(folder.to_owned(), Change::Remove);
        }
        empty
    }

    fn is_empty(&self, folder: &Path) -> bool {
        let below = |place: &Path| place != folder && place.starts_with(folder);
        let planned = self.planned.keys().any(|path| below(path) && self.is_there(path));
        let arrives = self.moves.iter().any(|(_, to)| below(to) && self.is_there(to));
        let stays = |child: PathBuf| match child.file_name() {
            Some(name) => self.is_there(&folder.join(name)),
            None => false,
        };
        let disk = self.on_disk(folder);
        !planned
            && !arrives
            && !disk.is_some_and(|disk| tree::children(&disk).into_iter().any(stays))
    }

    fn is_there(&self, path: &Path) -> bool {
        self.at(path).is_ok_and(|it| it.is_some())
    }

    /// Where on disk the entry now is that will be at this path.
    pub(super) fn on_disk(&self, path: &Path) -> Option<PathBuf> {
        if self.planned.get(path) == Some(&Change::Remove) {
            return None;
        }
        let mut at = path.to_owned();
        for (from, to) in self.moves.iter().rev() {
            if let Some(earlier) = rebased(&at, to, from) {
                at = earlier;
            } else if at.starts_with(from) {
                return None;
            }
        }
        Some(at)
    }

    /// What will be there; absent if nothing will.
    pub(super) fn at(&self, path: &Path) -> io::Result<Option<Prospect>> {
        match self.planned.get(path) {
            Some(Change::Write(content)) => {
                let hash = Some(ContentHash::of(content));
                return Ok(Some(Prospect { kind: EntryKind::File, hash }));
            }
            Some(Change::Make) => {
                return Ok(Some(Prospect { kind: EntryKind::Folder, hash: None }));
            }
            Some(Change::Remove) => return Ok(None),
            None => {}
        }
        let Some(disk) = self.on_disk(path) else { return Ok(None) };
        let metadata = match disk.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let (kind, hash) = if metadata.is_dir() {
            (EntryKind::Folder, None)
        } else if metadata.is_symlink() {
            let target = disk.read_link()?;
            (EntryKind::Link, Some(ContentHash::of(target.as_os_str().as_bytes())))
        } else {
            (EntryKind::File, Some(ContentHash::of_reader(open::for_reading(&disk)?)?))
        };
        Ok(Some(Prospect { kind, hash }))
    }

    /// The bytes of the file that will be there.
    pub(super) fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        if let Some(Change::Write(content)) = self.planned.get(path) {
            return Ok(content.clone());
        }
        let disk = self.on_disk(path).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut open::for_reading(&disk)?, &mut bytes)?;
        Ok(bytes)
    }
}

/// `path` with the folder `from` above it, or in its place, as `to`.
pub(super) fn rebased(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
}

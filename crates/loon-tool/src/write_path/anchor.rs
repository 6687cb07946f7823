//! Entries of folders that were opened, not named: a name that becomes a link after it was looked
//! at leads nowhere else.
//!
//! A path is walked once, folder by folder, and no link is followed. What then happens to the
//! entry happens in the folder that was opened, wherever its name points by then.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

/// One name in an opened folder; whether there is anything under it is another question.
#[derive(Debug)]
pub(super) struct Anchor {
    folder: OwnedFd,
    name: OsString,
}

/// A folder that is only passed through needs no right to list it.
#[cfg(target_os = "linux")]
const PASSING: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const PASSING: OFlag = OFlag::O_RDONLY;

const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl Anchor {
    /// The entry at this path, which must be absolute and without links on its way.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Self::reach(path, |_, _, _, error| Err(error.into()))
    }

    /// The same; folders that are missing are made and told of, outermost first.
    pub(super) fn make(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<Self> {
        Self::reach(path, |at, folder, name, error| {
            if error != Errno::ENOENT {
                return Err(error.into());
            }
            match mkdirat(folder, name, Mode::from_bits_truncate(0o777)) {
                Ok(()) => made.push(at.to_owned()),
                // Someone else made it meanwhile.
                Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(openat(folder, name, PASSING | FOLDER, Mode::empty())?)
        })
    }

    fn reach(
        path: &Path,
        mut missing: impl FnMut(&Path, &OwnedFd, &OsStr, Errno) -> io::Result<OwnedFd>,
    ) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::EISDIR.into());
        };
        let mut folder = open("/", PASSING | FOLDER, Mode::empty())?;
        let mut at = PathBuf::from("/");
        for component in parent.components() {
            let Component::Normal(name) = component else { continue };
            at.push(name);
            folder = match openat(&folder, name, PASSING | FOLDER, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::ENOTDIR) if is_link(&folder, name) => return Err(Errno::ELOOP.into()),
                Err(error) => missing(&at, &folder, name, error)?,
            };
        }
        Ok(Self { folder, name: name.to_owned() })
    }

    /// Another name in the same folder.
    pub(super) fn beside(&self, name: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self { folder: self.folder.try_clone()?, name: name.into() })
    }

    /// A name in the folder that this entry is.
    pub(super) fn child(&self, name: impl Into<OsString>) -> io::Result<Self> {
        let folder = openat(&self.folder, self.name(), PASSING | FOLDER, Mode::empty())?;
        Ok(Self { folder, name: name.into() })
    }

    fn name(&self) -> &OsStr {
        &self.name
    }

    /// What is there, links not followed; absent if nothing is.
    pub(super) fn look(&self) -> io::Result<Option<FileStat>> {
        match fstatat(&self.folder, self.name(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens it without following a link and without waiting for anybody.
    pub(super) fn open(&self, flags: OFlag) -> io::Result<File> {
        self.open_new(flags, 0)
    }

    /// Opens it, made with this mode if the flags say so.
    pub(super) fn open_new(&self, flags: OFlag, mode: u32) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(File::from(openat(&self.folder, self.name(), flags, Mode::from_bits_truncate(mode))?))
    }

    /// All bytes of the file.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(OFlag::O_RDONLY)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Where the link points.
    pub(super) fn link_target(&self) -> io::Result<OsString> {
        Ok(readlinkat(&self.folder, self.name())?)
    }

    /// Names in the folder that this entry is, in no order.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = FOLDER | OFlag::O_RDONLY;
        let mut folder = nix::dir::Dir::openat(&self.folder, self.name(), flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in folder.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(std::os::unix::ffi::OsStringExt::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }

    pub(super) fn make_folder(&self, mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.folder, self.name(), Mode::from_bits_truncate(mode))?)
    }

    pub(super) fn make_link(&self, target: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.folder, self.name())?)
    }

    pub(super) fn remove_file(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, self.name(), UnlinkatFlags::NoRemoveDir)?)
    }

    /// Removes the folder if it is empty.
    pub(super) fn remove_folder(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, self.name(), UnlinkatFlags::RemoveDir)?)
    }

    /// Gives it another place, in which it takes the place of a file.
    pub(super) fn replace(&self, to: &Self) -> io::Result<()> {
        Ok(renameat(&self.folder, self.name(), &to.folder, to.name())?)
    }

    /// Gives it another place, in which nothing is.
    pub(super) fn rename(&self, to: &Self) -> io::Result<()> {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            use nix::fcntl::{RenameFlags, renameat2};
            let flags = RenameFlags::RENAME_NOREPLACE;
            match renameat2(&self.folder, self.name(), &to.folder, to.name(), flags) {
                // The file system does not know how.
                Err(Errno::EINVAL | Errno::ENOSYS) => {}
                renamed => return Ok(renamed?),
            }
        }
        match to.look()? {
            Some(_) => Err(Errno::EEXIST.into()),
            None => self.replace(to),
        }
    }

    /// Makes the names in the folder durable.
    pub(super) fn sync_folder(&self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        File::from(openat(&self.folder, ".", flags, Mode::empty())?).sync_all()
    }
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| kind(&stat) == SFlag::S_IFLNK)
}

/// The kind of an entry.
pub(super) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

#[cfg(test)]
mod tests;

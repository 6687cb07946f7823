//! Folders with all that is in them: what they hold, copying and removing them.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::SFlag;

use super::anchor::{Anchor, kind};

/// Most entries of one copy.
pub(crate) const MAX_ENTRIES: u64 = 100_000;
/// Most bytes of one copy.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// A copy under way: how much it may still take, and whether the original goes.
pub(super) struct Copying {
    entries: u64,
    bytes: u64,
    moves: bool,
}

impl Copying {
    /// The original stays.
    pub(super) fn once() -> Self {
        Self { entries: MAX_ENTRIES, bytes: MAX_BYTES, moves: false }
    }

    /// The original goes: times are kept, and bytes are on disk before it does.
    pub(super) fn to_move() -> Self {
        Self { moves: true, ..Self::once() }
    }
}

/// Copies an entry and all below it to a place where nothing is. Links stay links, modes are kept.
/// [`io::ErrorKind::FileTooLarge`] says that it is too much, [`io::ErrorKind::Unsupported`] that
/// there is something that cannot be copied.
pub(super) fn copy(from: &Anchor, to: &Anchor, copying: &mut Copying) -> io::Result<()> {
    let Some(stat) = from.look()? else { return Err(io::ErrorKind::NotFound.into()) };
    copying.entries = copying.entries.checked_sub(1).ok_or(io::ErrorKind::FileTooLarge)?;
    let mode = Permissions::from_mode(stat.st_mode & 0o7777);
    match kind(&stat) {
        SFlag::S_IFLNK => to.make_link(&from.link_target()?),
        SFlag::S_IFDIR => {
            to.make_folder(0o700)?;
            for name in from.names()? {
                copy(&from.child(&name)?, &to.child(&name)?, copying)?;
            }
            to.open(OFlag::O_RDONLY | OFlag::O_DIRECTORY)?.set_permissions(mode)
        }
        SFlag::S_IFREG => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            copying.bytes = copying.bytes.checked_sub(size).ok_or(io::ErrorKind::FileTooLarge)?;
            let source = from.open(OFlag::O_RDONLY)?;
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
            let mut target = to.open_new(flags, 0o600)?;
            // A file may grow while it is read.
            let taken = io::copy(&mut io::Read::take(&source, size), &mut target)?;
            if taken != size {
                return Err(io::Error::other("it changed while it was copied"));
            }
            target.set_permissions(mode)?;
            if copying.moves {
                let metadata = source.metadata()?;
                let times = FileTimes::new().set_modified(metadata.modified()?);
                target.set_times(times)?;
                target.sync_all()?;
            }
            Ok(())
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Removes an entry and all below it. Follows no link.
pub(super) fn remove(entry: &Anchor) -> io::Result<()> {
    match entry.look()? {
        Some(stat) if kind(&stat) == SFlag::S_IFDIR => {
            for name in entry.names()? {
                remove(&entry.child(&name)?)?;
            }
            entry.remove_folder()
        }
        Some(_) => entry.remove_file(),
        None => Ok(()),
    }
}

/// How much a folder holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Entries below it.
    pub(crate) entries: u64,
    /// Bytes of its files.
    pub(crate) bytes: u64,
}

/// How much is below this folder; nothing for anything else.
pub(crate) fn size(path: &Path) -> Size {
    let mut size = Size::default();
    visit(path, &mut |_, metadata| {
        size.entries += 1;
        if metadata.is_file() {
            size.bytes += metadata.len();
        }
    });
    size
}

/// All that is below a folder, one entry a line, with what changes if somebody changes it. Bytes
/// are not read: mode, size, time and number of a file tell.
pub(crate) fn listing(path: &Path) -> Vec<u8> {
    let mut lines = Vec::new();
    visit(path, &mut |entry, metadata| {
        let mut line = entry_name(entry.strip_prefix(path).unwrap_or(entry).as_os_str());
        let mode = metadata.mode();
        let _ = write!(line, "\0{mode:o}");
        if metadata.is_file() {
            let (size, inode) = (metadata.len(), metadata.ino());
            let (seconds, nanos) = (metadata.mtime(), metadata.mtime_nsec());
            let _ = write!(line, " {size} {seconds}.{nanos:09} {inode}");
        }
        lines.push(line);
    });
    lines.join("\n").into_bytes()
}

/// The names in a listing, each with what is said of it.
pub(crate) fn listed(listing: &str) -> impl Iterator<Item = (&str, &str)> {
    listing.lines().filter_map(|line| line.split_once('\0'))
}

/// A name on one line of a listing, and no other name the same.
pub(crate) fn entry_name(name: &OsStr) -> String {
    let mut out = String::new();
    for byte in name.as_bytes() {
        match byte {
            b' '..=b'~' if *byte != b'%' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "%{byte:02x}");
            }
        }
    }
    out
}

/// The name that [`entry_name`] gave.
pub(crate) fn named(name: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, more) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = more;
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Calls `each` on all that is below a folder, in the order of names, as far as it can be read.
fn visit(folder: &Path, each: &mut impl FnMut(&Path, &std::fs::Metadata)) {
    let mut waiting: Vec<PathBuf> = children(folder);
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        each(&path, &metadata);
        if metadata.is_dir() {
            waiting.extend(children(&path));
        }
    }
}

/// What is in a folder, last name first.
pub(crate) fn children(folder: &Path) -> Vec<PathBuf> {
    let is_folder = folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let Some(Ok(entries)) = is_folder.then(|| std::fs::read_dir(folder)) else { return Vec::new() };
    let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.into_iter().map(|name| folder.join(name)).collect()
}

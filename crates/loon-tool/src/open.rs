//! How files are opened for reading: without waiting for anybody.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens `path` for reading. Some files of the system call themselves ordinary and still make a
/// reader wait, like the kernel's log, and a file may become a pipe after it was looked at; here
/// they fail with [`io::ErrorKind::WouldBlock`], or are empty, instead.
pub(crate) fn for_reading(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

/// The first bytes of an ordinary file, at most `most`.
pub(crate) fn beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = for_reading(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no ordinary file"));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text.
pub(crate) fn beginning_as_text(path: &Path, most: u64) -> io::Result<String> {
    beginning(path, most).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_writes_to_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut bytes = Vec::new();
        for_reading(&pipe).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"");
        assert_eq!(beginning(&pipe, 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn no_more_is_read_than_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(beginning(&path, 3).unwrap(), b"\0\0\0");
        assert_eq!(beginning_as_text(&path, 1).unwrap(), "\0");
    }
}

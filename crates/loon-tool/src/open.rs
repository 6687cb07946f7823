//! How files are opened for reading: without waiting for anybody.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens `path` for reading. Some files of the system call themselves ordinary and still make a
/// reader wait, like the kernel's log, and a file may become a pipe after it was looked at; here
/// they fail with [`io::ErrorKind::WouldBlock`], or are empty, instead.
pub(crate) fn for_reading(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_pipe_that_nobody_writes_to_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut bytes = Vec::new();
        for_reading(&pipe).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"");
    }
}

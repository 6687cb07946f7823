//! A terminal for a process: our end of it, and the path of the end that the process opens.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Characters that a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A new terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Our end; it does not block.
    pub(crate) ours: OwnedFd,
    /// Path of the other end.
    pub(crate) path: CString,
}

impl Terminal {
    pub(crate) fn open(size: WindowSize) -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let path = ptsname(&ours, Vec::new())?;
        let WindowSize { rows, columns } = size;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(Self { ours, path })
    }
}

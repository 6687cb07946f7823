//! Starting a process as the leader of a session of its own.
//!
//! By `posix_spawn`: unlike a fork it does not copy our page tables, which takes longer the more
//! memory we use, and it runs none of our code in the child.

#![expect(
    unsafe_code,
    reason = "no safe wrapper can set both the session and the folder, or wait for one process"
)]

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::ptr;

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(not(target_vendor = "apple"))]
const SETSID: c_int = libc::POSIX_SPAWN_SETSID as c_int;
#[cfg(target_vendor = "apple")]
const SETSID: c_int = 0x0400;

/// What is to be started.
pub(crate) struct Leader<'a> {
    /// The program, looked for on `PATH`, and its arguments.
    pub(crate) argv: &'a [CString],
    /// `NAME=value` of all its variables.
    pub(crate) env: &'a [CString],
    /// Folder it runs in.
    pub(crate) cwd: &'a CStr,
    /// What it reads from and writes to.
    pub(crate) stdio: Stdio<'a>,
}

/// What a leader reads from and writes to.
pub(crate) enum Stdio<'a> {
    /// Standard input, output and error.
    Descriptors([BorrowedFd<'a>; 3]),
    /// The terminal with this path, which becomes the terminal of its session.
    Terminal(&'a CStr),
}

impl Stdio<'_> {
    /// What the process table says of a process that writes there.
    pub(crate) fn output(&self) -> Option<PathBuf> {
        match self {
            Self::Descriptors([_, output, _]) => {
                std::fs::read_link(format!("/proc/self/fd/{}", output.as_raw_fd())).ok()
            }
            Self::Terminal(path) => Some(OsStr::from_bytes(path.to_bytes()).into()),
        }
    }
}

impl Leader<'_> {
    /// Starts it, with our ignored and blocked signals put back to what programs expect.
    pub(crate) fn spawn(&self) -> io::Result<Pid> {
        let attributes = Attributes::new()?;
        let mut actions = Actions::new()?;
        match &self.stdio {
            Stdio::Descriptors(descriptors) => {
                for (target, fd) in (0..).zip(descriptors) {
                    actions.place(fd.as_raw_fd(), target)?;
                }
            }
            Stdio::Terminal(path) => {
                // The child leads its session already when it opens this first terminal, which
                // makes it the session's own.
                actions.open(path, libc::STDIN_FILENO)?;
                actions.place(libc::STDIN_FILENO, libc::STDOUT_FILENO)?;
                actions.place(libc::STDIN_FILENO, libc::STDERR_FILENO)?;
            }
        }
        actions.enter(self.cwd)?;
        let Some(program) = self.argv.first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (argv, env) = (pointers(self.argv), pointers(self.env));
        let mut pid = 0;
        // SAFETY: `argv` and `env` end with a null pointer and otherwise point to C strings that
        // outlive the call; `actions` and `attributes` are initialized.
        check(unsafe {
            libc::posix_spawnp(
                &raw mut pid,
                program.as_ptr(),
                &raw const actions.0,
                &raw const attributes.0,
                argv.as_ptr(),
                env.as_ptr(),
            )
        })?;
        Ok(Pid::from_raw(pid))
    }
}

/// Becomes readable when the process ends, and stays so; `None` where the system has no such thing.
#[cfg(target_os = "linux")]
pub(crate) fn ending(id: Pid) -> Option<AsyncFd<OwnedFd>> {
    // SAFETY: takes two numbers and gives a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, id.as_raw(), libc::PIDFD_NONBLOCK) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: just opened, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an `OwnedFd` keeps its one descriptor open until it is dropped.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ending(_: Pid) -> Option<AsyncFd<OwnedFd>> {
    None
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

fn check(code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// A session of its own, no blocked signals, and `SIGPIPE` as programs expect it: the Rust runtime
/// has us ignore it, which a child would inherit.
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `raw` is where the new attributes go.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialized by the call above, which succeeded.
        let mut attributes = Self(unsafe { raw.assume_init() });
        let (blocked, mut reset) = (SigSet::empty(), SigSet::empty());
        reset.add(Signal::SIGPIPE);
        let flags = SETSID
            | c_int::from(libc::POSIX_SPAWN_SETSIGDEF)
            | c_int::from(libc::POSIX_SPAWN_SETSIGMASK);
        let raw = &raw mut attributes.0;
        // SAFETY: `raw` is initialized, and both sets live through the calls, which copy them.
        unsafe {
            check(libc::posix_spawnattr_setsigmask(raw, blocked.as_ref()))?;
            check(libc::posix_spawnattr_setsigdefault(raw, reset.as_ref()))?;
            check(libc::posix_spawnattr_setflags(raw, flags as _))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialized, and not used after this.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

/// What the child does before it runs the program.
struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `raw` is where the new actions go.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialized by the call above, which succeeded.
        Ok(Self(unsafe { raw.assume_init() }))
    }

    fn place(&mut self, fd: RawFd, target: c_int) -> io::Result<()> {
        // SAFETY: the actions are initialized; a descriptor that is not open fails in the child.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, fd, target) })
    }

    fn open(&mut self, path: &CStr, target: c_int) -> io::Result<()> {
        // SAFETY: the actions are initialized; the path is a C string, of which the call keeps a copy.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(
                &raw mut self.0,
                target,
                path.as_ptr(),
                libc::O_RDWR,
                0,
            )
        })
    }

    fn enter(&mut self, folder: &CStr) -> io::Result<()> {
        // SAFETY: the actions are initialized; the path is a C string, of which the call keeps a copy.
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(&raw mut self.0, folder.as_ptr())
        })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialized, and not used after this.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

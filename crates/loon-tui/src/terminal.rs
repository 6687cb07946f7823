//! The terminal's modes behind one guard: whatever was switched on is switched off again, on every
//! way out that can be caught.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::Command as _;
use crossterm::clipboard::CopyToClipboard;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::Notify;

/// Alternate screen, no wrapping at its edge, bracketed paste, distinct escape codes for keys where
/// the terminal has them.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[>1u";
/// Clicks and wheel, without movement.
const ENTER_MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const LEAVE_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
/// Everything off, in the reverse order; switching off what was not on does nothing.
const LEAVE: &[u8] =
    b"\x1b[r\x1b[m\x1b[?2026l\x1b[<u\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The modes are on.
static ENTERED: AtomicBool = AtomicBool::new(false);
/// A thread panicked while the modes were on.
static PANICKED: Notify = Notify::const_new();
static HOOK: Once = Once::new();

/// The terminal while it is ours. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Terminal {
    out: File,
    mouse: bool,
}

impl Terminal {
    /// Takes the terminal over.
    pub(crate) fn enter(mouse: bool) -> io::Result<Self> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::other("standard output is no terminal"));
        }
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        install_hook();
        let mut terminal = Self { out, mouse };
        terminal.switch_on()?;
        Ok(terminal)
    }

    fn switch_on(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        self.out.write_all(ENTER)?;
        if self.mouse {
            self.out.write_all(ENTER_MOUSE)?;
        }
        Ok(())
    }

    /// Takes clicks and wheel, or leaves them to the terminal.
    pub(crate) fn use_mouse(&mut self, mouse: bool) -> io::Result<()> {
        if mouse == self.mouse {
            return Ok(());
        }
        self.mouse = mouse;
        self.out.write_all(if mouse { ENTER_MOUSE } else { LEAVE_MOUSE })
    }

    /// Columns and rows.
    pub(crate) fn size() -> (u16, u16) {
        match crossterm::terminal::window_size() {
            Ok(size) if size.columns > 0 && size.rows > 0 => (size.columns, size.rows),
            _ => (80, 24),
        }
    }

    /// Writes a picture.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.out.write_all(bytes) }
    }

    /// Puts text on the clipboard of whoever looks at this terminal.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        let mut sequence = String::new();
        // Writing to a string cannot fail.
        let _ = CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence);
        self.out.write_all(sequence.as_bytes())
    }

    /// Stops the whole job, as Ctrl+Z does in a shell. Returns when it goes on.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        restore();
        kill(Pid::from_raw(0), Signal::SIGTSTP)?;
        self.switch_on()
    }

    /// Sets the modes again after somebody else had the terminal.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        restore();
        self.switch_on()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Completes when a thread panicked.
pub(crate) async fn panicked() {
    PANICKED.notified().await;
}

/// Gives the terminal back if it is ours. Errors are of no use to anyone here.
fn restore() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        let _ = io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map(File::from)
            .and_then(|mut out| out.write_all(LEAVE));
        let _ = disable_raw_mode();
    }
}

/// A panic's message must not be painted over: the terminal is given back before it is written.
fn install_hook() {
    HOOK.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if ENTERED.load(Ordering::SeqCst) {
                restore();
                PANICKED.notify_one();
            }
            former(panic);
        }));
    });
}

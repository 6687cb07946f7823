//! A terminal of a given size with `loon` in it: what is on the screen, what was sent to it byte
//! for byte, and keys to press.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use crate::PATIENCE;
use crate::binary::loon_binary;
use crate::home::Home;

/// What keys send.
pub mod key {
    /// Enter.
    pub const ENTER: &str = "\r";
    /// Escape.
    pub const ESCAPE: &str = "\x1b";
    /// Tabulator.
    pub const TAB: &str = "\t";
    /// Backspace.
    pub const BACKSPACE: &str = "\x7f";
    /// Control and C.
    pub const CTRL_C: &str = "\x03";
    /// Control and D.
    pub const CTRL_D: &str = "\x04";
    /// Arrow up.
    pub const UP: &str = "\x1b[A";
    /// Arrow down.
    pub const DOWN: &str = "\x1b[B";
}

/// A terminal with a program in it. The program is killed with this value.
pub struct Screen {
    pty: Arc<Pty>,
    child: Child,
    shared: Arc<(Mutex<View>, Condvar)>,
}

struct View {
    parser: vt100::Parser<Queries>,
    raw: Vec<u8>,
    closed: bool,
}

/// Answers to what programs ask a terminal, as a plain one gives them.
#[derive(Default)]
struct Queries {
    answers: Vec<u8>,
}

impl vt100::Callbacks for Queries {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        command: char,
    ) {
        let parameter = parameters.first().and_then(|values| values.first()).copied();
        match (first, command, parameter) {
            (None, 'n', Some(6)) => {
                let (row, column) = screen.cursor_position();
                self.answers.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
            }
            (None, 'n', Some(5)) => self.answers.extend(b"\x1b[0n"),
            (None, 'c', _) => self.answers.extend(b"\x1b[?62;22c"),
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            [b"10", b"?"] => self.answers.extend(b"\x1b]10;rgb:cccc/cccc/cccc\x1b\\"),
            [b"11", b"?"] => self.answers.extend(b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
            _ => {}
        }
    }
}

impl Screen {
    /// Starts `loon` with these arguments on a screen of `columns` by `rows`.
    pub fn start(
        home: &Home,
        cwd: impl AsRef<Path>,
        arguments: &[&str],
        (columns, rows): (u16, u16),
    ) -> Self {
        Self::start_with(home, cwd, arguments, &[], (columns, rows))
    }

    /// The same with more variables.
    pub fn start_with(
        home: &Home,
        cwd: impl AsRef<Path>,
        arguments: &[&str],
        env: &[(&str, &str)],
        (columns, rows): (u16, u16),
    ) -> Self {
        let command = Command::new(loon_binary())
            .args(arguments)
            .env_clear()
            .envs(home.env())
            .env("TERM", "xterm-256color")
            .envs(env.iter().copied())
            .current_dir(cwd);
        Self::spawn(command, (columns, rows))
    }

    fn spawn(command: Command, (columns, rows): (u16, u16)) -> Self {
        let (pty, slave) = open().expect("a terminal");
        pty.resize(Size::new(rows, columns)).expect("a size");
        let child = command.spawn(slave).expect("loon starts");
        let (height, width) = cells(columns, rows);
        let parser = vt100::Parser::new_with_callbacks(height, width, 0, Queries::default());
        let view = View { parser, raw: Vec::new(), closed: false };
        let screen = Self {
            pty: Arc::new(pty),
            child,
            shared: Arc::new((Mutex::new(view), Condvar::new())),
        };
        screen.read_output();
        screen
    }

    fn read_output(&self) {
        let (pty, shared) = (Arc::clone(&self.pty), Arc::clone(&self.shared));
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                // The kernel reports an error, not an end, once the last program has left.
                let count = (&*pty).read(&mut buffer).unwrap_or(0);
                let mut view = shared.0.lock().unwrap();
                view.raw.extend_from_slice(&buffer[..count]);
                view.parser.process(&buffer[..count]);
                view.closed = count == 0;
                let answers = std::mem::take(&mut view.parser.callbacks_mut().answers);
                drop(view);
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
                let _ = (&*pty).write_all(&answers);
            }
        });
    }

    /// The text on the screen, one line a row, blanks at the right cut off.
    pub fn contents(&self) -> String {
        self.shared.0.lock().unwrap().parser.screen().contents()
    }

    /// A copy of the whole screen, with colours and modes.
    pub fn snapshot(&self) -> vt100::Screen {
        self.shared.0.lock().unwrap().parser.screen().clone()
    }

    /// Every byte that was sent to the terminal.
    pub fn raw(&self) -> Vec<u8> {
        self.shared.0.lock().unwrap().raw.clone()
    }

    /// Blocks until the text is on the screen, on one line.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Blocks until the text has left the screen.
    pub fn wait_gone(&self, text: &str) -> String {
        self.wait_until(&format!("no {text}"), |screen| !screen.contains(text))
    }

    /// Blocks until the text of the screen is as wanted.
    pub fn wait_until(&self, what: &str, met: impl Fn(&str) -> bool) -> String {
        let found = self.wait_at_most(PATIENCE, &met);
        found.unwrap_or_else(|| panic!("waited in vain for {what}:\n{}", self.last_words()))
    }

    /// Presses a key again and again, no faster than a person who waits for it to work, until the
    /// screen is as wanted: sheets ignore keys right after they appear and right after each other,
    /// so that typing does not answer them.
    pub fn press_until(&self, key: &str, what: &str, met: impl Fn(&str) -> bool) -> String {
        const AGAIN: Duration = Duration::from_millis(400);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.press(key);
            if let Some(contents) = self.wait_at_most(AGAIN, &met) {
                return contents;
            }
        }
        panic!("{key:?} does not lead to {what}:\n{}", self.last_words());
    }

    fn wait_at_most(&self, most: Duration, met: impl Fn(&str) -> bool) -> Option<String> {
        let end = Instant::now() + most;
        let mut view = self.shared.0.lock().unwrap();
        loop {
            let contents = view.parser.screen().contents();
            if met(&contents) {
                return Some(contents);
            }
            let left = end.saturating_duration_since(Instant::now());
            if view.closed || left.is_zero() {
                return None;
            }
            view = self.shared.1.wait_timeout(view, left).unwrap().0;
        }
    }

    /// What the report of a failure shows: the screen, and the end of what was sent to it.
    fn last_words(&self) -> String {
        let raw = self.raw();
        let end = String::from_utf8_lossy(&raw[raw.len().saturating_sub(400)..]).into_owned();
        format!("{}\n{}", self.contents(), end.escape_debug())
    }

    /// Types what a key sends, or plain text.
    pub fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("a living terminal");
    }

    /// Pastes text in brackets, as terminals do.
    pub fn paste(&self, text: &str) {
        self.press(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (height, width) = cells(columns, rows);
        self.shared.0.lock().unwrap().parser.set_size(height, width);
        self.pty.resize(Size::new(rows, columns)).expect("a size");
    }

    /// True while the terminal hands over lines and echoes them, as a shell expects it.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(self.pty.as_fd()).expect("modes of the terminal");
        modes.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
    }

    /// Process id of the program.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a living process");
    }

    /// Blocks until the program has ended; its exit status, if it ended by itself.
    pub fn wait_exit(&mut self) -> Option<i32> {
        let closed = {
            let view = self.shared.0.lock().unwrap();
            let waited = self.shared.1.wait_timeout_while(view, PATIENCE, |view| !view.closed);
            !waited.unwrap().1.timed_out()
        };
        assert!(closed, "loon does not end:\n{}", self.last_words());
        self.child.wait().expect("an exit status").code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn cells(columns: u16, rows: u16) -> (NonZeroU16, NonZeroU16) {
    let size = |count| NonZeroU16::new(count).expect("a size above nothing");
    (size(rows), size(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Screen {
        Screen::spawn(Command::new("sh").args(["-c", script]), (20, 4))
    }

    #[test]
    fn what_a_program_draws_and_asks_is_seen_and_answered() {
        let mut screen =
            shell("stty -icanon -echo; printf '\\033[2;3Hhi\\033[6n'; read -r line; printf 'got'");
        screen.wait_for("hi");
        assert_eq!(screen.contents().lines().nth(1), Some("  hi"));
        screen.press("x\n");
        screen.wait_for("got");
        assert_eq!(screen.wait_exit(), Some(0));
        assert!(screen.raw().starts_with(b"\x1b[2;3Hhi\x1b[6n"));
    }

    #[test]
    fn the_size_reaches_the_program_and_the_picture() {
        let screen = shell("trap 'stty size' WINCH; stty size; while :; do read -r x; done");
        screen.wait_for("4 20");
        screen.resize(30, 6);
        screen.wait_for("6 30");
        assert_eq!(screen.snapshot().size().1.get(), 30);
    }

    #[test]
    fn raw_and_cooked_modes_are_told_apart() {
        let screen = shell(
            "stty raw -echo; printf raw; head -c 1 >/dev/null; stty sane; printf sane; read -r x",
        );
        screen.wait_for("raw");
        assert!(!screen.is_cooked());
        screen.press("x");
        screen.wait_for("sane");
        assert!(screen.is_cooked());
    }
}

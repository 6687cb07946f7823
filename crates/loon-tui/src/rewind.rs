//! The sheet before going back to a message: what would happen to files, and how far to go.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use loon_api::{Command, ItemId};

use crate::diff;
use crate::glyphs::Glyphs;
use crate::line::{Break, Line, Look, wrap_text};
use crate::theme::Role;

/// Milliseconds for which a sheet that has just appeared takes no key.
const GUARD_MS: u64 = 333;
/// Bytes of the detail that are laid out.
const DETAIL_LIMIT: usize = 512 * 1024;

/// The choices in the order in which they stand: whether files go back too.
pub(crate) const CHOICES: [bool; 2] = [false, true];

/// A message to go back to.
#[derive(Debug)]
pub(crate) struct Rewind {
    to: ItemId,
    /// Its first line.
    words: String,
    /// What would happen to files; absent while the runtime looks.
    detail: Option<String>,
    /// Which choice is marked.
    pub(crate) marked: usize,
    /// Rows of the detail above the view.
    pub(crate) scrolled: usize,
    ready_at: u64,
    laid: (usize, Vec<Line>),
}

/// What became of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// It was used up.
    Taken,
    /// Send this and close.
    Send(Command),
    /// Close.
    Cancel,
}

impl Rewind {
    /// Begins with the question what would happen to files.
    pub(crate) fn ask(to: ItemId, text: &str) -> (Self, Command) {
        let words = text.lines().next().unwrap_or_default().to_owned();
        let rewind = Self {
            to: to.clone(),
            words,
            detail: None,
            marked: 0,
            scrolled: 0,
            ready_at: 0,
            laid: (0, Vec::new()),
        };
        (rewind, Command::PreviewRewind { to })
    }

    /// The answer to it. Gives the command to send at once if no file is concerned.
    pub(crate) fn answer(
        &mut self,
        to: &ItemId,
        detail: Option<&str>,
        now: u64,
    ) -> Option<Command> {
        if *to != self.to || self.detail.is_some() {
            return None;
        }
        match detail.filter(|detail| !detail.trim().is_empty()) {
            Some(detail) => {
                self.detail = Some(detail.to_owned());
                self.ready_at = now + GUARD_MS;
                None
            }
            None => Some(self.go(false)),
        }
    }

    /// The answer has come: there is something to choose.
    pub(crate) fn is_shown(&self) -> bool {
        self.detail.is_some()
    }

    /// It is laid out anew when it is shown next.
    pub(crate) fn forget_layout(&mut self) {
        self.laid.0 = 0;
    }

    /// Lays the detail out, if that was not done for this width.
    pub(crate) fn layout(&mut self, width: usize, glyphs: &Glyphs) {
        let Some(detail) = &self.detail else { return };
        if self.laid.0 == width {
            return;
        }
        let kept = detail.get(..detail.floor_char_boundary(DETAIL_LIMIT)).unwrap_or(detail);
        let words = Line::of(&format!("{} ", glyphs.bar), Role::User).and(&self.words, Role::Text);
        let mut lines = vec![words.cut(width, glyphs.ellipsis), Line::default()];
        lines.extend(diff::lay_files(kept, width, Look::of(Role::Text)));
        if kept.len() < detail.len() {
            let words = format!("{} KB more are not shown", (detail.len() - kept.len()) / 1024);
            lines.push(Line::of(&words, Role::Warn));
        }
        lines.push(Line::default());
        let words = "What commands did is not taken back, and neither are changes made by hand.";
        lines.extend(wrap_text(words, Role::Dim, width, Break::Words));
        self.laid = (width, lines);
    }

    /// The detail as last laid out.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.laid.1
    }

    /// Moves the detail; up if negative.
    pub(crate) fn scroll(&mut self, rows: isize) {
        self.scrolled = self.scrolled.saturating_add_signed(rows);
    }

    /// A key while the sheet shows.
    pub(crate) fn key(&mut self, key: KeyEvent, now: u64) -> Answer {
        if key.code == KeyCode::Esc {
            return Answer::Cancel;
        }
        if now < self.ready_at
            || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            return Answer::Taken;
        }
        match key.code {
            KeyCode::Char('c') => return Answer::Send(self.go(false)),
            KeyCode::Char('f') => return Answer::Send(self.go(true)),
            KeyCode::Enter => {
                let files = CHOICES.get(self.marked).copied().unwrap_or_default();
                return Answer::Send(self.go(files));
            }
            KeyCode::Up => self.marked = self.marked.saturating_sub(1),
            KeyCode::Down => self.marked = (self.marked + 1).min(CHOICES.len() - 1),
            KeyCode::PageUp => self.scroll(-5),
            KeyCode::PageDown => self.scroll(5),
            _ => {}
        }
        Answer::Taken
    }

    fn go(&self, files: bool) -> Command {
        Command::Rewind { to: self.to.clone(), files }
    }
}

//! The draft: text of several lines with a cursor, undo, history and chips for large pastes.

mod rows;
#[cfg(test)]
mod tests;

use unicode_segmentation::UnicodeSegmentation;

/// A paste with more lines than this becomes a chip.
const CHIP_LINES: usize = 10;
/// A paste with more characters than this becomes a chip.
const CHIP_CHARS: usize = 1000;
/// Characters that stand for chips within the draft: the last ones Unicode has, for private use.
const CHIP_FIRST: u32 = 0x10_f000;
const CHIP_LAST: u32 = 0x10_fffd;
/// States that undo can go back to.
const UNDO_LIMIT: usize = 200;
/// Prompts that history keeps.
const HISTORY_LIMIT: usize = 500;

/// Where a movement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// One character back.
    Left,
    /// One character on.
    Right,
    /// One word back.
    WordLeft,
    /// One word on.
    WordRight,
    /// Start of the line.
    LineStart,
    /// End of the line.
    LineEnd,
    /// Start of the draft.
    Start,
    /// End of the draft.
    End,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    text: String,
    cursor: usize,
}

/// The draft.
#[derive(Debug, Default)]
pub(crate) struct Composer {
    state: State,
    /// What chips stand for, by their number.
    pastes: Vec<String>,
    undo: Vec<State>,
    redo: Vec<State>,
    /// The last change was typing: the next typed character joins it.
    typing: bool,
    history: Vec<String>,
    /// Place in history while browsing it, with the draft that was left.
    browsing: Option<(usize, State)>,
}

impl Composer {
    /// True if there is no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.text.is_empty()
    }

    /// The draft as it would be sent: chips are what they stand for.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(self.state.text.len());
        for c in self.state.text.chars() {
            match self.paste(c) {
                Some(paste) => text.push_str(paste),
                None => text.push(c),
            }
        }
        text
    }

    /// The draft with chips as single characters: cheap, and enough to see how it begins.
    pub(crate) fn raw(&self) -> &str {
        &self.state.text
    }

    /// What chip `c` stands for, if it is one.
    pub(crate) fn paste(&self, c: char) -> Option<&str> {
        let number = u32::from(c).checked_sub(CHIP_FIRST)?;
        self.pastes.get(number as usize).map(String::as_str)
    }

    /// Puts a typed character at the cursor.
    pub(crate) fn type_char(&mut self, c: char) {
        if self.typing && !c.is_whitespace() {
            self.redo.clear();
        } else {
            self.remember();
        }
        self.typing = true;
        self.insert_raw(c.encode_utf8(&mut [0; 4]));
    }

    /// Puts a new line at the cursor.
    pub(crate) fn new_line(&mut self) {
        self.remember();
        self.insert_raw("\n");
    }

    /// Puts pasted text at the cursor; much of it becomes a chip.
    pub(crate) fn paste_text(&mut self, raw: &str) {
        let text = clean(raw);
        if text.is_empty() {
            return;
        }
        self.remember();
        let is_private = |c: char| (CHIP_FIRST..=CHIP_LAST).contains(&u32::from(c));
        let large = text.lines().count() > CHIP_LINES || text.chars().count() > CHIP_CHARS;
        let number = CHIP_FIRST + self.pastes.len() as u32;
        if let Some(chip) = char::from_u32(number).filter(|_| number <= CHIP_LAST)
            && (large || text.contains(is_private))
        {
            self.pastes.push(text);
            self.insert_raw(chip.encode_utf8(&mut [0; 4]));
        } else {
            self.insert_raw(&text);
        }
    }

    /// Replaces the draft; undo brings the former one back.
    pub(crate) fn set(&mut self, text: &str) {
        self.remember();
        self.state = State::default();
        self.browsing = None;
        self.insert_raw(&clean(text));
    }

    /// Takes the draft as it would be sent, and keeps it in history.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        self.keep(&text);
        self.state = State::default();
        self.pastes.clear();
        self.undo.clear();
        self.redo.clear();
        self.browsing = None;
        self.typing = false;
        text
    }

    /// Puts a prompt into history.
    pub(crate) fn keep(&mut self, text: &str) {
        if !text.trim().is_empty() && self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
            if self.history.len() > HISTORY_LIMIT {
                self.history.remove(0);
            }
        }
    }

    /// Moves the cursor.
    pub(crate) fn go(&mut self, to: Move) {
        self.typing = false;
        self.state.cursor = self.target(to);
    }

    /// Removes the text between the cursor and where the movement goes; false if there is none.
    pub(crate) fn delete(&mut self, to: Move) -> bool {
        let target = self.target(to);
        let (start, end) = (target.min(self.state.cursor), target.max(self.state.cursor));
        if start == end {
            return false;
        }
        self.remember();
        self.state.text.replace_range(start..end, "");
        self.state.cursor = start;
        true
    }

    /// Takes the last change back.
    pub(crate) fn undo(&mut self) {
        if let Some(state) = self.undo.pop() {
            self.redo.push(std::mem::replace(&mut self.state, state));
            self.typing = false;
        }
    }

    /// Makes a change again that was taken back.
    pub(crate) fn redo(&mut self) {
        if let Some(state) = self.redo.pop() {
            self.undo.push(std::mem::replace(&mut self.state, state));
            self.typing = false;
        }
    }

    /// One row up, or an older prompt from the first row. `width` is that of the text.
    pub(crate) fn up(&mut self, width: usize) {
        self.vertical(width, true);
    }

    /// One row down, or a newer prompt from the last row.
    pub(crate) fn down(&mut self, width: usize) {
        self.vertical(width, false);
    }

    fn vertical(&mut self, width: usize, up: bool) {
        self.typing = false;
        let rows = self.rows(width);
        let (row, column) = rows.cursor;
        let next =
            if up { row.checked_sub(1) } else { Some(row + 1).filter(|row| *row < rows.all.len()) };
        match next {
            Some(next) => self.state.cursor = rows.offset(next, column),
            None => self.browse(up),
        }
    }

    fn browse(&mut self, older: bool) {
        let at = match (&self.browsing, older) {
            (None, true) => self.history.len().checked_sub(1),
            (Some((at, _)), true) => at.checked_sub(1),
            (Some((at, _)), false) => Some(at + 1),
            (None, false) => None,
        };
        let Some(at) = at else { return };
        let left = match self.browsing.take() {
            Some((_, left)) => left,
            None => self.state.clone(),
        };
        match self.history.get(at) {
            Some(text) => {
                self.state = State { cursor: text.len(), text: text.clone() };
                self.browsing = Some((at, left));
            }
            None => self.state = left,
        }
    }

    fn remember(&mut self) {
        self.typing = false;
        self.browsing = None;
        self.redo.clear();
        self.undo.push(self.state.clone());
        if self.undo.len() > UNDO_LIMIT {
            self.undo.remove(0);
        }
    }

    fn insert_raw(&mut self, text: &str) {
        self.state.text.insert_str(self.state.cursor, text);
        self.state.cursor += text.len();
    }

    fn target(&self, to: Move) -> usize {
        let State { text, cursor } = &self.state;
        let (before, after) = text.split_at(*cursor);
        match to {
            Move::Left => cursor - before.graphemes(true).next_back().map_or(0, str::len),
            Move::Right => cursor + after.graphemes(true).next().map_or(0, str::len),
            Move::WordLeft => before.unicode_word_indices().next_back().map_or(0, |(at, _)| at),
            Move::WordRight => after
                .unicode_word_indices()
                .next()
                .map_or(text.len(), |(at, word)| cursor + at + word.len()),
            Move::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            Move::LineEnd => after.find('\n').map_or(text.len(), |at| cursor + at),
            Move::Start => 0,
            Move::End => text.len(),
        }
    }
}

/// Line ends become line feeds; other control characters than tabs go.
fn clean(raw: &str) -> String {
    raw.replace("\r\n", "\n")
        .chars()
        .map(|c| if c == '\r' { '\n' } else { c })
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

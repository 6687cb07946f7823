//! Reading output the way a terminal does, as far as its text goes: escape sequences take no
//! space, `\r` goes back to the beginning of the line, a backspace takes one character back.

use super::substitute;

/// Longest operating-system command that is still believed to be one; anything longer is text.
const STRING_LIMIT: usize = 4096;

/// Turns bytes into text, a piece at a time. Pieces may be cut anywhere.
///
/// A line that was redrawn many times (a progress bar) gives its last state only. One that was
/// redrawn once gives both, with `␍` between: that may as well be data.
#[derive(Debug, Default)]
pub struct Terminal {
    out: String,
    line: Line,
    state: State,
    /// The beginning of a character whose end has not come.
    cut: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character.
    Intermediate,
    /// In a control sequence; its parameter is the first digit, if any.
    Control { parameter: Option<char> },
    /// In a string that BEL or ESC `\` ends.
    Text { length: usize },
    /// After ESC in such a string.
    TextEscape,
}

#[derive(Debug, Default)]
struct Line {
    /// The first state of the line, while there are only two.
    first: String,
    /// The state that is being written.
    current: String,
    /// States before `current`.
    redraws: usize,
    /// A `\r` came, and nothing after it yet.
    returned: bool,
    /// The line was erased since that `\r`.
    erased: bool,
    /// Something of the current state was given out already.
    told: bool,
}

impl Terminal {
    /// The text of a whole output.
    pub fn read(bytes: &[u8]) -> String {
        let mut terminal = Self::default();
        terminal.push(bytes);
        terminal.finish()
    }

    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut joined = std::mem::take(&mut self.cut);
        let mut rest = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined[..]
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return text.chars().for_each(|ch| self.put(ch)),
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    String::from_utf8_lossy(valid).chars().for_each(|ch| self.put(ch));
                    let Some(length) = error.error_len() else {
                        self.cut = broken.to_vec();
                        return;
                    };
                    self.put(char::REPLACEMENT_CHARACTER);
                    rest = &broken[length..];
                }
            }
        }
    }

    /// Gives out what is new since the last time, for a reader who only ever sees text added: a
    /// line that is redrawn after it was given out goes on below.
    pub fn take(&mut self) -> String {
        let mut text = std::mem::take(&mut self.out);
        if !self.line.current.is_empty() {
            text.push_str(&self.line.current);
            self.line.current.clear();
            self.line.first.clear();
            self.line.redraws = 0;
            self.line.told = true;
        }
        text
    }

    /// The rest of the text.
    pub fn finish(mut self) -> String {
        if !self.cut.is_empty() {
            self.put(char::REPLACEMENT_CHARACTER);
        }
        self.line.finish(&mut self.out);
        self.out
    }

    fn put(&mut self, ch: char) {
        self.state = match (self.state, ch) {
            // A line end ends whatever was begun, so that a stray escape cannot hide the rest.
            (_, '\n') => {
                self.line.finish(&mut self.out);
                self.out.push('\n');
                State::Ground
            }
            (State::Text { .. }, '\x1b') => State::TextEscape,
            (_, '\x1b') => State::Escape,
            (State::Escape, '[') => State::Control { parameter: None },
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Text { length: 0 },
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Intermediate, '0'..='~')
            | (State::TextEscape, '\\')
            | (State::Text { .. }, '\x07') => State::Ground,
            (State::Control { parameter: None }, '0'..='9') => {
                State::Control { parameter: Some(ch) }
            }
            (State::Control { .. }, ' '..='?') => self.state,
            (State::Control { parameter }, '@'..='~') => {
                if ch == 'K' {
                    self.line.erase(parameter, &mut self.out);
                }
                State::Ground
            }
            (State::Text { length }, _) if length < STRING_LIMIT => {
                State::Text { length: length + 1 }
            }
            // Plain text, or no sequence after all.
            (_, _) => {
                self.print(ch);
                State::Ground
            }
        };
    }

    fn print(&mut self, ch: char) {
        match ch {
            '\r' => self.line.returned = true,
            '\x08' => self.line.back(),
            // A bell is a sound, not a text.
            '\x07' => {}
            _ => self.line.write(substitute(ch), &mut self.out),
        }
    }
}

impl Line {
    fn write(&mut self, ch: char, out: &mut String) {
        if self.returned {
            self.redraw(out);
        }
        self.current.push(ch);
    }

    /// Begins a new state of the line.
    fn redraw(&mut self, out: &mut String) {
        self.returned = false;
        let erased = std::mem::take(&mut self.erased);
        let before = std::mem::take(&mut self.current);
        if self.told {
            self.told = false;
            out.push_str(&before);
            out.push('\n');
        } else if !before.is_empty() && !erased {
            self.first = if self.redraws == 0 { before } else { String::new() };
            self.redraws += 1;
        }
    }

    fn erase(&mut self, parameter: Option<char>, out: &mut String) {
        if parameter == Some('2') || (self.returned && parameter != Some('1')) {
            self.returned = true;
            self.erased = true;
            if self.told {
                self.redraw(out);
            }
        }
    }

    fn back(&mut self) {
        if !self.returned {
            self.current.pop();
        }
    }

    /// Appends what is left of the line, without a line end, and begins an empty one.
    fn finish(&mut self, out: &mut String) {
        let line = std::mem::take(self);
        if line.returned && line.erased {
            return;
        }
        if !line.first.is_empty() {
            out.push_str(&line.first);
            if !line.current.is_empty() {
                out.push('\u{240D}');
            }
        }
        out.push_str(&line.current);
    }
}

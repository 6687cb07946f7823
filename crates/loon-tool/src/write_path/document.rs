//! A text file as the model sees it and as it lies on disk, side by side.
//!
//! The *view* is what the model reads and writes: no byte order mark, every line ending a single
//! LF. Each place of the view has a place in the bytes, so that an edit is a splice of bytes and
//! nothing outside of it is ever rewritten.

use std::ops::Range;

use super::encoding::Encoding;

/// How a line ends on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
    /// `\r`, only in files without any `\n`.
    Cr,
    /// The last line of a file without a final newline.
    None,
}

impl Ending {
    /// The characters it consists of.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
            Self::None => "",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Where it begins in the view.
    view: usize,
    ending: Ending,
}

/// A place known in both: every line start, and more of them within long lines.
#[derive(Clone, Copy, Debug)]
struct Mark {
    view: usize,
    byte: usize,
}

/// Bytes of the view after which a long line gets another mark.
const MARK_DISTANCE: usize = 128;

/// A text file: its bytes, the view on them, and the way from one to the other.
#[derive(Debug)]
pub struct Document {
    bytes: Vec<u8>,
    encoding: Encoding,
    bom: usize,
    view: String,
    lines: Vec<Line>,
    marks: Vec<Mark>,
    /// Bytes and view differ in line endings and byte order mark only.
    plain: bool,
}

impl Document {
    /// Decodes any bytes; every byte is kept, also those that stand for no character.
    pub fn decode(bytes: Vec<u8>) -> Self {
        let (encoding, bom) = Encoding::detect(&bytes);
        let has_lf = contains_lf(&bytes[bom..], encoding);
        let mut view = String::with_capacity(bytes.len());
        let mut lines = Vec::new();
        let mut marks = vec![Mark { view: 0, byte: bom }];
        let mut plain = encoding == Encoding::Utf8;
        let mut at = bom;
        let mut start = Line { view: 0, ending: Ending::None };
        let mut next_mark = MARK_DISTANCE;
        while at < bytes.len() {
            // Most text is ASCII, and most of it within lines.
            let run = encoding.ascii_run(&bytes[at..], MARK_DISTANCE);
            view.push_str(run);
            at += run.len();
            if at == bytes.len() {
                break;
            }
            let decoded = encoding.decode_first(&bytes[at..]);
            at += decoded.len;
            plain &= !decoded.foreign;
            let ending = match decoded.ch {
                '\n' => Ending::Lf,
                '\r' if !has_lf => Ending::Cr,
                '\r' if at < bytes.len() => {
                    let next = encoding.decode_first(&bytes[at..]);
                    if next.ch == '\n' {
                        at += next.len;
                        Ending::CrLf
                    } else {
                        Ending::None
                    }
                }
                _ => Ending::None,
            };
            if ending == Ending::None {
                view.push(decoded.ch);
            } else {
                view.push('\n');
                lines.push(Line { ending, ..start });
                start.view = view.len();
                next_mark = view.len();
            }
            if view.len() >= next_mark {
                marks.push(Mark { view: view.len(), byte: at });
                next_mark = view.len() + MARK_DISTANCE;
            }
        }
        if start.view < view.len() {
            lines.push(start);
        }
        Self { bytes, encoding, bom, view, lines, marks, plain }
    }

    /// What the model sees: no byte order mark, lines end with LF. Never holds U+FEFF for the mark.
    pub fn view(&self) -> &str {
        &self.view
    }

    /// The bytes as given.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How the bytes are encoded.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The byte order mark; empty without one.
    pub fn bom(&self) -> &[u8] {
        &self.bytes[..self.bom]
    }

    /// Number of lines; a last one without a final newline counts.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// How the line ends, counted from 0; [`Ending::None`] beyond the last.
    pub fn ending(&self, line: usize) -> Ending {
        self.lines.get(line).map_or(Ending::None, |line| line.ending)
    }

    /// Where the line lies in the view, its newline included; empty at the end beyond the last.
    pub fn line_span(&self, line: usize) -> Range<usize> {
        let start = |line: usize| self.lines.get(line).map_or(self.view.len(), |line| line.view);
        start(line)..start(line + 1)
    }

    /// The line, counted from 0, in which this place of the view lies.
    pub fn line_at(&self, view: usize) -> usize {
        self.lines.partition_point(|line| line.view <= view).saturating_sub(1)
    }

    /// The ending that most lines have; LF for a file without any.
    pub fn dominant_ending(&self) -> Ending {
        let count = |ending| self.lines.iter().filter(|line| line.ending == ending).count();
        let (lf, crlf, cr) = (count(Ending::Lf), count(Ending::CrLf), count(Ending::Cr));
        if crlf > lf {
            Ending::CrLf
        } else if cr > lf {
            Ending::Cr
        } else {
            Ending::Lf
        }
    }

    /// The ending that a new line at this line should take: its own, else that of the line before
    /// it, else the dominant one.
    pub fn ending_near(&self, line: usize) -> Ending {
        let before = line.checked_sub(1).map_or(Ending::None, |before| self.ending(before));
        [self.ending(line), before]
            .into_iter()
            .find(|ending| *ending != Ending::None)
            .unwrap_or_else(|| self.dominant_ending())
    }

    /// The place in the bytes of a place in the view, which must be a character boundary.
    pub fn byte_at(&self, view: usize) -> usize {
        if view >= self.view.len() {
            return self.bytes.len();
        }
        let above = self.marks.partition_point(|mark| mark.view <= view).saturating_sub(1);
        let mark = self.marks[above];
        let wanted = view - mark.view;
        if self.plain {
            return mark.byte + wanted;
        }
        let (mut seen, mut byte) = (0, mark.byte);
        while seen < wanted && byte < self.bytes.len() {
            let decoded = self.encoding.decode_first(&self.bytes[byte..]);
            seen += decoded.ch.len_utf8();
            byte += decoded.len;
        }
        byte
    }

    /// The bytes of every U+FFFD in this part of the view, in order, and whether it stands for a
    /// character of the file or for bytes that are none.
    pub fn replacement_marks(&self, view: Range<usize>) -> Vec<(Range<usize>, bool)> {
        let mut marks = Vec::new();
        if !self.view[view.clone()].contains(char::REPLACEMENT_CHARACTER) {
            return marks;
        }
        let (mut at, end) = (self.byte_at(view.start), self.byte_at(view.end));
        while at < end {
            let decoded = self.encoding.decode_first(&self.bytes[at..]);
            if decoded.ch == char::REPLACEMENT_CHARACTER {
                marks.push((at..at + decoded.len, decoded.foreign));
            }
            at += decoded.len;
        }
        marks
    }
}

fn contains_lf(bytes: &[u8], encoding: Encoding) -> bool {
    match encoding {
        Encoding::Utf8 | Encoding::Windows1252 => bytes.contains(&b'\n'),
        Encoding::Utf16Le => bytes.chunks_exact(2).any(|pair| pair == b"\n\0"),
        Encoding::Utf16Be => bytes.chunks_exact(2).any(|pair| pair == b"\0\n"),
    }
}

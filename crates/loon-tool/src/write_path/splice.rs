//! Replacing parts of a document: text of the model goes in, the file's own bytes stay wherever
//! the model did not ask for a change.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use thiserror::Error;

use super::document::Document;

/// After this, two very different texts are aligned more coarsely; fewer lines then count as kept.
const PATIENCE: Duration = Duration::from_millis(500);

/// One replacement in the view of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The part of the view that goes.
    pub span: Range<usize>,
    /// That part as the model wrote it: the same number of newlines as the span holds, though the
    /// text may differ (other normalisation, other indentation). Lines equal in `old` and `new`
    /// keep the file's bytes.
    pub old: String,
    /// What comes in its place, lines ending with LF.
    pub new: String,
}

/// Why a text cannot go into a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpliceError {
    /// The file's encoding has no such character.
    #[error(
        "the file is encoded in {encoding}, which has no {ch:?} (U+{:04X}); use characters it has, \
         or convert the file first",
        u32::from(*.ch)
    )]
    NotEncodable {
        /// The character.
        ch: char,
        /// The file's encoding.
        encoding: &'static str,
    },
    /// The new text holds U+FFFD where the file holds bytes that are no text.
    #[error(
        "line {line} holds bytes that are no {encoding} text (shown as U+FFFD); leave them out of \
         the edited text, or keep every one of them in the new text"
    )]
    ForeignBytes {
        /// Line of the file, from 1.
        line: usize,
        /// The file's encoding.
        encoding: &'static str,
    },
}

impl Document {
    /// The bytes after the replacements, which must not overlap and must be in order.
    pub fn splice(&self, splices: &[Splice]) -> Result<Vec<u8>, SpliceError> {
        let mut out = Vec::with_capacity(self.bytes().len());
        let mut done = 0;
        for splice in splices {
            let start = self.byte_at(splice.span.start);
            out.extend_from_slice(&self.bytes()[done.min(start)..start]);
            Replacement::new(self, splice).write(&mut out)?;
            done = self.byte_at(splice.span.end);
        }
        out.extend_from_slice(&self.bytes()[done..]);
        Ok(out)
    }

    fn encode(&self, text: &str, out: &mut Vec<u8>) -> Result<(), SpliceError> {
        let encoding = self.encoding();
        for ch in text.chars() {
            if !encoding.encode(ch, out) {
                return Err(SpliceError::NotEncodable { ch, encoding: encoding.name() });
            }
        }
        Ok(())
    }
}

/// The lines of one splice. A *piece* is a line or the part of one inside the span; between two
/// pieces there is a line break.
struct Replacement<'a> {
    document: &'a Document,
    span: Range<usize>,
    first_line: usize,
    /// The span's pieces, as parts of the view.
    file: Vec<Range<usize>>,
    new: Vec<&'a str>,
    /// For each new piece: the piece of the file at its place, and whether it is unchanged.
    source: Vec<Option<(usize, bool)>>,
}

impl<'a> Replacement<'a> {
    fn new(document: &'a Document, splice: &'a Splice) -> Self {
        let mut at = splice.span.start;
        let file: Vec<_> = document.view()[splice.span.clone()]
            .split('\n')
            .map(|piece| {
                let range = at..at + piece.len();
                at = range.end + 1;
                range
            })
            .collect();
        let old: Vec<_> = splice.old.split('\n').collect();
        let new: Vec<_> = splice.new.split('\n').collect();
        let source = align(&old, &new, file.len());
        let first_line = document.line_at(splice.span.start);
        Self { document, span: splice.span.clone(), first_line, file, new, source }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), SpliceError> {
        let mut marks = self.marks()?.into_iter();
        let mut ending = self.document.ending_near(self.first_line);
        for (index, piece) in self.new.iter().enumerate() {
            let source = self.source.get(index).copied().flatten();
            match source {
                Some((line, true)) => {
                    let range = &self.file[line];
                    let bytes =
                        self.document.byte_at(range.start)..self.document.byte_at(range.end);
                    out.extend_from_slice(&self.document.bytes()[bytes]);
                }
                _ => self.write_new(piece, &mut marks, out)?,
            }
            if index + 1 < self.new.len() {
                if let Some((line, _)) = source
                    && line + 1 < self.file.len()
                {
                    ending = self.document.ending_near(self.first_line + line);
                }
                self.document.encode(ending.as_str(), out)?;
            }
        }
        Ok(())
    }

    fn write_new(
        &self,
        piece: &str,
        marks: &mut impl Iterator<Item = Range<usize>>,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        let mut parts = piece.split(char::REPLACEMENT_CHARACTER);
        self.document.encode(parts.next().unwrap_or_default(), out)?;
        for part in parts {
            match marks.next() {
                Some(bytes) => out.extend_from_slice(&self.document.bytes()[bytes]),
                None => self.document.encode("\u{FFFD}", out)?,
            }
            self.document.encode(part, out)?;
        }
        Ok(())
    }

    /// The bytes that stand behind each U+FFFD of the new pieces: those of the replaced pieces in
    /// order, if there are as many; nothing, if the replaced pieces hold no foreign bytes.
    fn marks(&self) -> Result<Vec<Range<usize>>, SpliceError> {
        let wanted: usize = self
            .new
            .iter()
            .zip(&self.source)
            .filter(|(_, source)| !matches!(source, Some((_, true))))
            .map(|(piece, _)| piece.matches(char::REPLACEMENT_CHARACTER).count())
            .sum();
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let mut kept = vec![false; self.file.len()];
        for (line, unchanged) in self.source.iter().flatten() {
            kept[*line] |= unchanged;
        }
        let replaced: Vec<_> = self
            .file
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| !**kept)
            .flat_map(|(range, _)| self.document.replacement_marks(range.clone()))
            .collect();
        if replaced.len() == wanted {
            return Ok(replaced.into_iter().map(|(bytes, _)| bytes).collect());
        }
        match replaced.iter().find(|(_, foreign)| *foreign) {
            None => Ok(Vec::new()),
            Some(_) => Err(SpliceError::ForeignBytes {
                line: self.document.line_at(self.span.start) + 1,
                encoding: self.document.encoding().name(),
            }),
        }
    }
}

/// For each new piece the old piece at its place, and whether the two are equal.
fn align(old: &[&str], new: &[&str], file: usize) -> Vec<Option<(usize, bool)>> {
    let mut source = vec![None; new.len()];
    if old.len() != file {
        return source;
    }
    let deadline = Some(Instant::now() + PATIENCE);
    for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                for step in 0..len {
                    source[new_index + step] = Some((old_index + step, true));
                }
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                for step in 0..old_len.min(new_len) {
                    source[new_index + step] = Some((old_index + step, false));
                }
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => {}
        }
    }
    source
}

#[cfg(test)]
mod tests;

//! Markdown that arrives piece by piece. Blocks that can no longer change are laid out once; each
//! addition re-lays only what is still open.

mod block;

use std::collections::HashMap;
use std::sync::Arc;

use pulldown_cmark::{Event, Parser};

use self::block::Layout;
use crate::glyphs::{Glyphs, UNICODE};
use crate::highlight::{CodeId, Highlight};
use crate::line::Line;

/// Bytes an unfinished block may have before it is cut at a line, so that one addition never costs
/// more than this to lay out.
const OPEN_LIMIT: usize = 32 * 1024;
/// Bytes in which the end of a block is looked for first.
const FIRST_WINDOW: usize = 2 * 1024;

/// A laid-out part of a text.
pub(crate) type Chunk = Arc<[Line]>;

/// A code block that highlighting was not asked for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeBlock {
    /// Names language and text.
    pub(crate) id: CodeId,
    /// First word behind the fence.
    pub(crate) language: String,
    /// The code.
    pub(crate) text: String,
}

#[derive(Debug)]
struct Block {
    start: usize,
    end: usize,
    lines: Chunk,
    codes: Vec<CodeId>,
}

/// The fence of an unfinished code block at the outermost level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
}

/// A Markdown text and its layout.
#[derive(Debug)]
pub(crate) struct Markdown {
    text: String,
    complete: bool,
    blocks: Vec<Block>,
    /// Where the unfinished rest begins.
    tail: usize,
    tail_lines: Vec<Chunk>,
    /// Inside an open fence: how far complete lines were searched and laid out.
    fence: Option<OpenFence>,
    width: usize,
    glyphs: &'static Glyphs,
    dirty: bool,
    highlights: HashMap<CodeId, Highlight>,
    wanted: Vec<CodeBlock>,
}

#[derive(Debug)]
struct OpenFence {
    fence: Fence,
    searched: usize,
    laid: usize,
    chunks: Vec<Chunk>,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            text: String::new(),
            complete: false,
            blocks: Vec::new(),
            tail: 0,
            tail_lines: Vec::new(),
            fence: None,
            width: 0,
            glyphs: &UNICODE,
            dirty: false,
            highlights: HashMap::new(),
            wanted: Vec::new(),
        }
    }
}

impl Markdown {
    /// A text that is already whole.
    #[cfg(test)]
    pub(crate) fn whole(text: &str) -> Self {
        let mut markdown = Self::default();
        markdown.finish(text);
        markdown
    }

    /// Adds text at the end.
    pub(crate) fn push(&mut self, more: &str) {
        self.text.push_str(more);
        self.dirty = true;
    }

    /// Says that `text` is the whole text. Costs nothing twice if it is what arrived.
    pub(crate) fn finish(&mut self, text: &str) {
        if self.text != text {
            let highlights = std::mem::take(&mut self.highlights);
            *self = Self {
                text: text.to_owned(),
                highlights,
                width: self.width,
                glyphs: self.glyphs,
                ..Self::default()
            };
        }
        self.complete = true;
        self.dirty = true;
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Lays out what is not, for `width` columns with these signs.
    pub(crate) fn layout(&mut self, width: usize, glyphs: &'static Glyphs) {
        let other_signs = !std::ptr::eq(self.glyphs, glyphs);
        self.glyphs = glyphs;
        if width != self.width || other_signs {
            self.width = width;
            self.fence = None;
            for at in 0..self.blocks.len() {
                self.relay(at);
            }
            self.dirty = true;
        }
        if self.dirty {
            self.dirty = false;
            self.close_blocks();
            self.lay_tail();
        }
    }

    /// The layout, top to bottom.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        let fence = self.fence.iter().flat_map(|open| &open.chunks);
        self.blocks.iter().map(|block| &block.lines).chain(fence).chain(&self.tail_lines)
    }

    /// Code blocks that highlighting should be asked for; each is returned once.
    pub(crate) fn take_wanted(&mut self) -> Vec<CodeBlock> {
        std::mem::take(&mut self.wanted)
    }

    /// Takes a highlighting; true if a block uses it.
    pub(crate) fn set_highlight(&mut self, id: CodeId, highlight: Highlight) -> bool {
        let users: Vec<usize> = (0..self.blocks.len())
            .filter(|at| self.blocks.get(*at).is_some_and(|block| block.codes.contains(&id)))
            .collect();
        if users.is_empty() {
            return false;
        }
        self.highlights.insert(id, highlight);
        for at in users {
            self.relay(at);
        }
        true
    }

    fn relay(&mut self, at: usize) {
        let Some(block) = self.blocks.get(at) else { return };
        let source = self.text.get(block.start..block.end).unwrap_or_default();
        let laid = Layout::new(self.width, self.glyphs, &self.highlights).lay(source, at > 0);
        if let Some(block) = self.blocks.get_mut(at) {
            block.lines = laid.lines.into();
        }
    }

    /// Closes every block that no further text can change.
    fn close_blocks(&mut self) {
        loop {
            self.skip_blank_lines();
            let rest = self.text.get(self.tail..).unwrap_or_default();
            let done =
                if self.complete { rest.len() } else { rest.rfind('\n').map_or(0, |at| at + 1) };
            if done == 0 {
                return;
            }
            let Some(lines) = rest.get(..done) else { return };
            let end = match open_fence(lines) {
                Some(fence) => self.fence_end(fence, lines.len()),
                None => prose_end(lines, self.complete),
            };
            let Some(end) = end.or_else(|| self.complete.then_some(done)) else { return };
            self.close(self.tail + end);
        }
    }

    fn close(&mut self, end: usize) {
        let source = self.text.get(self.tail..end).unwrap_or_default();
        let laid = Layout::new(self.width, self.glyphs, &self.highlights)
            .lay(source, !self.blocks.is_empty());
        let codes = laid.codes.iter().map(|code| code.id).collect();
        self.wanted
            .extend(laid.codes.into_iter().filter(|code| !self.highlights.contains_key(&code.id)));
        if !laid.lines.is_empty() {
            self.blocks.push(Block { start: self.tail, end, lines: laid.lines.into(), codes });
        }
        self.tail = end;
        self.fence = None;
    }

    fn skip_blank_lines(&mut self) {
        while let Some(line) =
            self.text.get(self.tail..).and_then(|rest| rest.split_inclusive('\n').next())
        {
            if !line.ends_with('\n') || !line.trim().is_empty() {
                return;
            }
            self.tail += line.len();
        }
    }

    /// End of the fenced block at the tail within its first `done` bytes, if it is there.
    fn fence_end(&mut self, fence: Fence, done: usize) -> Option<usize> {
        let rest = self.text.get(self.tail..self.tail + done)?;
        let first = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let open = self.fence.get_or_insert(OpenFence {
            fence,
            searched: first,
            laid: first,
            chunks: Vec::new(),
        });
        while let Some(line) =
            rest.get(open.searched..).and_then(|rest| rest.split_inclusive('\n').next())
        {
            open.searched += line.len();
            if closes(open.fence, line) {
                return Some(open.searched);
            }
        }
        None
    }

    fn lay_tail(&mut self) {
        self.tail_lines.clear();
        let rest = self.text.get(self.tail..).unwrap_or_default();
        if rest.trim().is_empty() {
            return;
        }
        let layout = Layout::new(self.width, self.glyphs, &self.highlights);
        let spaced = !self.blocks.is_empty();
        if let Some(open) = &mut self.fence {
            if open.laid < open.searched || open.chunks.is_empty() {
                let code = rest.get(open.laid..open.searched).unwrap_or_default();
                let mut lines = if spaced && open.chunks.is_empty() {
                    vec![Line::default()]
                } else {
                    Vec::new()
                };
                lines.extend(layout.plain_code(code));
                open.chunks.push(lines.into());
                open.laid = open.searched;
            }
            let last = layout.plain_code(rest.get(open.laid..).unwrap_or_default());
            if !last.is_empty() {
                self.tail_lines.push(last.into());
            }
            return;
        }
        let laid = layout.lay(rest, spaced);
        if !laid.lines.is_empty() {
            self.tail_lines.push(laid.lines.into());
        }
    }
}

fn options() -> pulldown_cmark::Options {
    pulldown_cmark::Options::ENABLE_TABLES
        | pulldown_cmark::Options::ENABLE_STRIKETHROUGH
        | pulldown_cmark::Options::ENABLE_TASKLISTS
}

/// Where the first block of complete `lines` ends, if text behind it shows that it did.
fn prose_end(lines: &str, complete: bool) -> Option<usize> {
    // Blocks are read line by line: what the first lines say of an end, all lines say too. So a
    // long text is not read whole for each of its blocks.
    let mut window = FIRST_WINDOW;
    loop {
        let part = lines.get(..lines.floor_char_boundary(window)).unwrap_or(lines);
        let is_all = part.len() == lines.len();
        let part = if is_all {
            part
        } else {
            part.rfind('\n').and_then(|at| part.get(..=at)).unwrap_or_default()
        };
        if let Some(end) = second_start(part) {
            return Some(end);
        }
        if is_all {
            break;
        }
        window *= 4;
    }
    (!complete && lines.len() >= OPEN_LIMIT).then(|| forced_end(lines))
}

/// Start of the line on which a second block begins.
fn second_start(lines: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut blocks = 0;
    for (event, range) in Parser::new_ext(lines, options()).into_offset_iter() {
        let outermost = depth == 0;
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                continue;
            }
            _ => {}
        }
        if outermost {
            blocks += 1;
        }
        if outermost && blocks == 2 {
            let start = lines.get(..range.start)?.rfind('\n').map_or(0, |at| at + 1);
            return Some(start).filter(|start| *start > 0);
        }
    }
    None
}

/// Where to cut a block that grows too long: before a line that is not indented, if there is one.
fn forced_end(lines: &str) -> usize {
    let head = lines.get(..lines.floor_char_boundary(OPEN_LIMIT * 3 / 4)).unwrap_or(lines);
    let starts = head.rmatch_indices('\n').map(|(at, _)| at + 1);
    let is_indented =
        |at: &usize| lines.get(*at..).is_none_or(|rest| rest.starts_with([' ', '\t', '\n']));
    starts
        .clone()
        .find(|at| !is_indented(at))
        .or_else(|| starts.clone().next())
        .unwrap_or(head.len())
}

fn open_fence(lines: &str) -> Option<Fence> {
    let line = lines.lines().next()?;
    let (fence, info) = fence_marks(line)?;
    (fence.mark == b'~' || !info.contains('`')).then_some(fence)
}

fn closes(open: Fence, line: &str) -> bool {
    fence_marks(line).is_some_and(|(fence, info)| {
        fence.mark == open.mark && fence.length >= open.length && info.trim().is_empty()
    })
}

fn fence_marks(line: &str) -> Option<(Fence, &str)> {
    let inner = line.trim_start_matches(' ');
    let mark = *inner.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = inner.bytes().take_while(|byte| *byte == mark).count();
    (line.len() - inner.len() <= 3 && length >= 3)
        .then(|| (Fence { mark, length }, inner.get(length..).unwrap_or_default()))
}

#[cfg(test)]
mod tests;

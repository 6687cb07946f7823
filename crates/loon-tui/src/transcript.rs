//! The transcript: entries under stable keys, each laid out once per width, and the part of them
//! that is in view.

mod cell;
mod compaction;
mod entry;
mod record;
#[cfg(test)]
mod tests;
mod viewport;

use std::collections::VecDeque;

use loon_api::event::{DeltaKind, NoticeLevel};
use loon_api::{Compaction, ErrorInfo, Item, ItemId, ToolCallItem, ToolCallStatus, TurnStatus};

pub(crate) use self::cell::{Laid, Mark, elapsed};
use crate::glyphs::Glyphs;
use crate::highlight::{CodeId, Highlight};
use crate::markdown::{CodeBlock, Markdown};

/// Widest text column; longer lines are hard to read.
const WIDEST: usize = 120;
/// Bytes of live output that are kept of a running call.
const LIVE_LIMIT: usize = 16 * 1024;
/// Entries that stay while nobody looks at the far ones.
const KEPT_ENTRIES: usize = 400;
/// Bytes of text that stay while nobody looks at the far ones.
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Entries that stay however long they are.
const LEAST_ENTRIES: usize = 40;
/// Laid-out entries that stay beyond those in view.
const KEPT_LAYOUTS: usize = 80;

/// Names an entry: an item of the session, or something only this screen says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// An item.
    Item(ItemId),
    /// The n-th line of the screen's own.
    Local(u64),
}

/// Whether the user opened or closed an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fold {
    /// As its state suggests.
    #[default]
    Auto,
    /// Everything shows.
    Open,
    /// Only the head shows.
    Closed,
}

/// What an entry is.
#[derive(Debug)]
pub(crate) enum Body {
    /// Words of the user.
    User {
        /// As sent.
        text: String,
        /// Sent while a turn ran.
        steer: bool,
    },
    /// Words of the model.
    Assistant {
        /// The text and its layout.
        markdown: Box<Markdown>,
        /// It broke off.
        incomplete: bool,
    },
    /// Reasoning.
    Thinking {
        /// The text so far.
        text: String,
        /// No more will come.
        done: bool,
    },
    /// A tool call.
    Tool {
        /// As last told.
        call: Box<ToolCallItem>,
        /// End of the live output.
        live: String,
        /// Bytes of arguments that arrived.
        arguments: usize,
        /// When it began, in milliseconds of the screen's clock.
        since: u64,
    },
    /// Something the runtime tells model and user.
    Notice {
        /// The words.
        text: String,
    },
    /// What a compaction left of everything above it.
    Compaction {
        /// It.
        left: Box<Compaction>,
    },
    /// Something a person should know.
    Message {
        /// How much it matters.
        level: NoticeLevel,
        /// The words.
        message: String,
        /// What to do.
        hints: Vec<String>,
    },
    /// What a turn verifiably did.
    Receipt {
        /// One line, and below it the rest.
        text: String,
    },
    /// A turn that did not complete.
    Ended {
        /// How it ended.
        status: TurnStatus,
        /// Why.
        error: Option<ErrorInfo>,
    },
}

/// One entry.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) key: Key,
    /// What it is.
    pub(crate) body: Body,
    /// Open or closed.
    pub(crate) fold: Fold,
    laid: Option<Laid>,
    /// Some of it arrived after it was laid out.
    grown: bool,
}

/// What layout depends on besides the entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Columns for text.
    pub(crate) room: usize,
    /// Columns left of the text.
    pub(crate) gutter: u16,
    /// Little room: details are left out.
    pub(crate) narrow: bool,
    /// Signs.
    pub(crate) glyphs: &'static Glyphs,
    /// The screen's clock in milliseconds.
    pub(crate) now: u64,
    /// What merely grew is laid out anew too, rather than shown as it was.
    pub(crate) fresh: bool,
}

impl Page {
    /// The page for a transcript of `columns` columns.
    pub(crate) fn new(columns: u16, glyphs: &'static Glyphs, now: u64) -> Self {
        let narrow = columns < 60;
        let (gutter, margin) = if narrow { (2, 0) } else { (3, 2) };
        let room = usize::from(columns.saturating_sub(gutter + margin)).clamp(4, WIDEST);
        Self { room, gutter, narrow, glyphs, now, fresh: true }
    }
}

/// One visible row: a line of an entry, or a blank between entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Nothing.
    Blank,
    /// A line.
    Line {
        /// Which entry.
        entry: usize,
        /// Which of its lines.
        line: usize,
    },
}

/// A place in the transcript: an entry and one of its rows, the blank above it included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    entry: usize,
    row: usize,
}

/// The transcript.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: VecDeque<Entry>,
    next_local: u64,
    /// Top row in view; absent while the end is followed.
    top: Option<(Key, usize)>,
    /// After a change of width: the top row, and how many signs stand before it in its entry.
    kept: Option<(usize, usize)>,
    view: Vec<Row>,
    height: usize,
    room: usize,
    more: bool,
    loading: bool,
    focus: Option<Key>,
}

impl Transcript {
    /// Replaces everything.
    pub(crate) fn open(&mut self, items: &[Item], more: bool, now: u64) {
        let next_local = self.next_local;
        *self = Self { next_local, more, height: self.height, room: self.room, ..Self::default() };
        for item in items {
            self.complete(item, now);
        }
    }

    /// Puts older items above everything.
    pub(crate) fn prepend(&mut self, items: &[Item], more: bool, now: u64) {
        self.loading = false;
        // A page without items would be asked for again and again.
        self.more = more && !items.is_empty();
        for item in items.iter().rev() {
            if self.find(&item.id).is_none() {
                let mut entry = Entry::of(item, now);
                entry.update(item, now, true);
                self.entries.push_front(entry);
            }
        }
    }

    /// Begins an item, or replaces what stands under its id.
    pub(crate) fn begin(&mut self, item: &Item, now: u64) {
        self.upsert(item, now, false);
    }

    /// An item as it now stands.
    pub(crate) fn complete(&mut self, item: &Item, now: u64) {
        self.upsert(item, now, true);
    }

    fn upsert(&mut self, item: &Item, now: u64, done: bool) {
        let at = self.find(&item.id).unwrap_or_else(|| {
            self.entries.push_back(Entry::of(item, now));
            self.entries.len() - 1
        });
        if let Some(entry) = self.entries.get_mut(at) {
            entry.update(item, now, done);
        }
        self.forget_far();
    }

    /// More of an item.
    pub(crate) fn extend(&mut self, id: &ItemId, of: DeltaKind, text: &str) {
        if let Some(entry) = self.find(id).and_then(|at| self.entries.get_mut(at)) {
            entry.extend(of, text);
        }
    }

    /// An item will not come.
    pub(crate) fn drop_item(&mut self, id: &ItemId) {
        if let Some(at) = self.find(id) {
            self.remove_from(at, 1);
        }
    }

    /// Takes an item and everything after it away.
    pub(crate) fn rewind(&mut self, to: &ItemId) {
        if let Some(at) = self.find(to) {
            let count = self.entries.len() - at;
            self.remove_from(at, count);
        }
        self.top = None;
    }

    /// Adds a line of the screen's own.
    pub(crate) fn say(&mut self, body: Body) {
        let key = Key::Local(self.next_local);
        self.next_local += 1;
        self.entries.push_back(Entry { key, body, fold: Fold::Auto, laid: None, grown: false });
    }

    /// Lays running calls out anew, whose elapsed time moves on.
    pub(crate) fn tick(&mut self) {
        for entry in self.entries.iter_mut().rev().take(64) {
            if let Body::Tool { call, .. } = &entry.body
                && call.status == ToolCallStatus::Running
            {
                entry.laid = None;
            }
        }
    }

    /// Takes a highlighting.
    pub(crate) fn set_highlight(&mut self, key: &Key, id: CodeId, highlight: Highlight) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.key == *key)
            && let Body::Assistant { markdown, .. } = &mut entry.body
            && markdown.set_highlight(id, highlight)
        {
            entry.laid = None;
        }
    }

    /// Code blocks in view that wait for highlighting.
    pub(crate) fn take_wanted(&mut self) -> Vec<(Key, CodeBlock)> {
        let mut wanted = Vec::new();
        for entry in &mut self.entries {
            if let Body::Assistant { markdown, .. } = &mut entry.body {
                wanted.extend(
                    markdown.take_wanted().into_iter().map(|code| (entry.key.clone(), code)),
                );
            }
        }
        wanted
    }

    /// Puts an item at the top of the view, with the focus on it. False if it is not here.
    pub(crate) fn show_item(&mut self, id: &ItemId) -> bool {
        let key = Key::Item(id.clone());
        let is_here = self.position(&key).is_some();
        if is_here {
            self.top = Some((key.clone(), 0));
            self.kept = None;
            self.focus = Some(key);
        }
        is_here
    }

    /// Nothing is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The end is not in view.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.top.is_some()
    }

    /// User messages, oldest first.
    pub(crate) fn user_messages(&self) -> impl DoubleEndedIterator<Item = (&ItemId, &str)> {
        self.entries.iter().filter_map(|entry| match (&entry.key, &entry.body) {
            (Key::Item(id), Body::User { text, steer: false }) => Some((id, text.as_str())),
            _ => None,
        })
    }

    /// Text of the focused entry, else of the last answer.
    pub(crate) fn text_to_copy(&self) -> Option<&str> {
        let focused = self.focus.as_ref().and_then(|focus| {
            self.entries.iter().find(|entry| entry.key == *focus).and_then(Entry::text)
        });
        focused.or_else(|| {
            self.entries.iter().rev().find_map(|entry| match &entry.body {
                Body::Assistant { markdown, .. } => Some(markdown.text()),
                _ => None,
            })
        })
    }

    /// Visible rows, top to bottom, as last laid out.
    pub(crate) fn view(&self) -> &[Row] {
        &self.view
    }

    /// A visible line with its mark and whether its entry has the focus.
    pub(crate) fn line(&self, row: Row) -> Option<(&crate::line::Line, Option<Mark>, bool)> {
        let Row::Line { entry, line } = row else { return None };
        let entry = self.entries.get(entry)?;
        let laid = entry.laid.as_ref()?;
        Some((laid.line(line)?, laid.mark(line), self.focus.as_ref() == Some(&entry.key)))
    }

    /// Moves the focus to the next or previous entry that can be opened.
    pub(crate) fn move_focus(&mut self, page: &Page, back: bool) {
        let from = self.focus.as_ref().and_then(|focus| self.position(focus));
        let found = if back {
            let end = from.unwrap_or(self.entries.len());
            (0..end).rev().find(|at| self.can_open(*at))
        } else {
            from.and_then(|from| (from + 1..self.entries.len()).find(|at| self.can_open(*at)))
        };
        self.focus = found.and_then(|at| self.entries.get(at)).map(|entry| entry.key.clone());
        if let Some(at) = found
            && !self.view.iter().any(|row| matches!(row, Row::Line { entry, .. } if *entry == at))
        {
            self.show_from(page, Place { entry: at, row: 0 });
        }
    }

    /// Takes the focus away; true if there was one.
    pub(crate) fn clear_focus(&mut self) -> bool {
        self.focus.take().is_some()
    }

    /// Opens or closes the focused entry; true if there is one.
    pub(crate) fn toggle_focused(&mut self) -> bool {
        let Some(at) = self.focus.as_ref().and_then(|focus| self.position(focus)) else {
            return false;
        };
        self.toggle(at);
        true
    }

    /// Opens or closes the entry at a row of the view.
    pub(crate) fn toggle_row(&mut self, row: usize) {
        if let Some(Row::Line { entry, .. }) = self.view.get(row).copied()
            && self.can_open(entry)
        {
            self.toggle(entry);
        }
    }

    /// Opens or closes the last entry that can be.
    pub(crate) fn toggle_last(&mut self) {
        if let Some(at) = (0..self.entries.len()).rev().find(|at| self.can_open(*at)) {
            self.toggle(at);
        }
    }

    fn can_open(&self, at: usize) -> bool {
        matches!(
            self.entries.get(at).map(|entry| &entry.body),
            Some(Body::Tool { .. } | Body::Thinking { .. } | Body::Compaction { .. })
        )
    }

    fn toggle(&mut self, at: usize) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.fold = if entry.fold == Fold::Open { Fold::Closed } else { Fold::Open };
            entry.laid = None;
        }
    }

    fn find(&self, id: &ItemId) -> Option<usize> {
        self.entries.iter().rposition(|entry| matches!(&entry.key, Key::Item(own) if own == id))
    }

    fn position(&self, key: &Key) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.key == *key)
    }

    fn remove_from(&mut self, at: usize, count: usize) {
        let gone: Vec<Key> = self.entries.drain(at..at + count).map(|entry| entry.key).collect();
        if self.focus.as_ref().is_some_and(|focus| gone.contains(focus)) {
            self.focus = None;
        }
        if self.top.as_ref().is_some_and(|(key, _)| gone.contains(key)) {
            self.top = None;
        }
    }

    /// Drops the oldest entries while the end is followed; they can be asked for again.
    fn forget_far(&mut self) {
        if self.top.is_some() {
            return;
        }
        let mut count = match self.entries.len() {
            len if len > KEPT_ENTRIES + KEPT_ENTRIES / 2 => len - KEPT_ENTRIES,
            _ => 0,
        };
        let mut weight: usize = self.entries.iter().map(Entry::weight).sum();
        if weight > KEPT_BYTES {
            while weight > KEPT_BYTES / 2 && count + LEAST_ENTRIES < self.entries.len() {
                weight -= self.entries.get(count).map_or(0, Entry::weight);
                count += 1;
            }
        }
        if count > 0 {
            self.remove_from(0, count);
            self.more = true;
        }
    }
}

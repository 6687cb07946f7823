//! Which rows are in view. Only entries near the view are laid out, so that the cost of a frame
//! depends on the screen and not on the length of the transcript.

use super::{Body, Entry, KEPT_LAYOUTS, Key, Page, Place, Row, Transcript, cell};

impl Transcript {
    /// Finds the rows in view for a page of `height` rows. Answers the oldest item's key if older
    /// ones should be asked for.
    pub(crate) fn layout(&mut self, page: &Page, height: usize) -> Option<loon_api::ItemId> {
        self.height = height;
        if self.room != page.room {
            self.keep_top_line(page);
            self.room = page.room;
        }
        match self.top_place() {
            Some(place) => self.show_from(page, place),
            None => self.show_end(page),
        }
        self.forget_layouts();
        self.wants_older()
    }

    /// Lays everything out anew when it is next shown.
    pub(crate) fn forget_layout(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.laid = None);
    }

    /// Scrolls by rows, up if negative.
    pub(crate) fn scroll(&mut self, page: &Page, rows: isize) {
        let Some(mut place) = self.first_place(page) else { return };
        for _ in 0..rows.unsigned_abs() {
            let next = if rows < 0 { self.before(page, place) } else { self.after(page, place) };
            match next {
                Some(next) => place = next,
                None => break,
            }
        }
        self.show_from(page, place);
    }

    /// Scrolls by almost a whole page.
    pub(crate) fn scroll_page(&mut self, page: &Page, up: bool) {
        let rows = self.height.saturating_sub(2).max(1).cast_signed();
        self.scroll(page, if up { -rows } else { rows });
    }

    /// Goes to the oldest row that is here.
    pub(crate) fn scroll_to_start(&mut self, page: &Page) {
        self.show_from(page, Place { entry: 0, row: 0 });
    }

    /// Goes to the end and follows it.
    pub(crate) fn scroll_to_end(&mut self) {
        self.top = None;
    }

    fn wants_older(&mut self) -> Option<loon_api::ItemId> {
        let at_start =
            self.top.as_ref().is_some_and(|(key, _)| self.position(key).is_some_and(|at| at < 4));
        if at_start || self.view.len() < self.height { self.ask_older() } else { None }
    }

    /// The key of the oldest item, before which more is to be asked for; nothing while an answer is
    /// awaited, or if nothing is older.
    pub(crate) fn ask_older(&mut self) -> Option<loon_api::ItemId> {
        if !self.more || self.loading {
            return None;
        }
        let oldest = self.entries.iter().find_map(|entry| match &entry.key {
            Key::Item(id) => Some(id.clone()),
            Key::Local(_) => None,
        })?;
        self.loading = true;
        Some(oldest)
    }

    /// Older items were asked for and have not come.
    pub(crate) fn awaits_older(&self) -> bool {
        self.loading
    }

    fn top_place(&self) -> Option<Place> {
        let (key, row) = self.top.as_ref()?;
        self.position(key).map(|entry| Place { entry, row: *row })
    }

    /// The place of the top row in view.
    fn first_place(&mut self, page: &Page) -> Option<Place> {
        if let Some(place) = self.top_place() {
            return Some(place);
        }
        let mut place = self.last_place(page)?;
        for _ in 1..self.height {
            match self.before(page, place) {
                Some(before) => place = before,
                None => break,
            }
        }
        Some(place)
    }

    fn last_place(&mut self, page: &Page) -> Option<Place> {
        let mut entry = self.entries.len();
        loop {
            entry = entry.checked_sub(1)?;
            let rows = self.rows(page, entry);
            if rows > 0 {
                return Some(Place { entry, row: rows - 1 });
            }
        }
    }

    fn before(&mut self, page: &Page, place: Place) -> Option<Place> {
        if place.row > 0 {
            let row = (place.row - 1).min(self.rows(page, place.entry).saturating_sub(1));
            return Some(Place { entry: place.entry, row });
        }
        let mut entry = place.entry;
        loop {
            entry = entry.checked_sub(1)?;
            let rows = self.rows(page, entry);
            if rows > 0 {
                return Some(Place { entry, row: rows - 1 });
            }
        }
    }

    fn after(&mut self, page: &Page, place: Place) -> Option<Place> {
        if place.row + 1 < self.rows(page, place.entry) {
            return Some(Place { entry: place.entry, row: place.row + 1 });
        }
        let mut entry = place.entry + 1;
        while entry < self.entries.len() {
            if self.rows(page, entry) > 0 {
                return Some(Place { entry, row: 0 });
            }
            entry += 1;
        }
        None
    }

    fn show_end(&mut self, page: &Page) {
        self.top = None;
        match self.first_place(page) {
            Some(place) => self.fill(page, place),
            None => self.view.clear(),
        }
    }

    /// Shows from a place on, or the end if nothing would be left below it.
    pub(super) fn show_from(&mut self, page: &Page, place: Place) {
        self.fill(page, place);
        let full = self.view.len() >= self.height;
        let rest = full
            && self.last_shown(page, place).is_some_and(|last| self.after(page, last).is_some());
        if rest {
            self.top = self.entries.get(place.entry).map(|entry| (entry.key.clone(), place.row));
        } else {
            self.show_end(page);
        }
    }

    fn last_shown(&mut self, page: &Page, place: Place) -> Option<Place> {
        let mut last = place;
        for _ in 1..self.height {
            last = self.after(page, last)?;
        }
        Some(last)
    }

    fn fill(&mut self, page: &Page, from: Place) {
        let mut view = Vec::with_capacity(self.height);
        let mut entry = from.entry;
        let mut row = from.row;
        while view.len() < self.height && entry < self.entries.len() {
            let gap = self.gap(entry);
            let rows = self.rows(page, entry);
            while row < rows && view.len() < self.height {
                view.push(if row < gap {
                    Row::Blank
                } else {
                    Row::Line { entry, line: row - gap }
                });
                row += 1;
            }
            entry += 1;
            row = 0;
        }
        self.view = view;
    }

    /// Rows of an entry with the blank above it; lays it out if that was not done.
    fn rows(&mut self, page: &Page, at: usize) -> usize {
        let gap = self.gap(at);
        let Some(entry) = self.entries.get_mut(at) else { return 0 };
        let usable = entry.laid.as_ref().is_some_and(|laid| laid.width == page.room);
        if !usable || (entry.grown && page.fresh) {
            entry.laid = Some(cell::lay(entry, page));
            entry.grown = false;
        }
        let height = entry.laid.as_ref().map_or(0, |laid| laid.height);
        if height == 0 { 0 } else { height + gap }
    }

    /// Blank rows above an entry: none at the very top and between tool calls.
    fn gap(&self, at: usize) -> usize {
        let is_tool = |entry: &Entry| matches!(entry.body, Body::Tool { .. });
        let before = self.entries.iter().take(at).rev().find(|entry| !entry.is_blank());
        match (before, self.entries.get(at)) {
            (None, _) => 0,
            (Some(before), Some(entry)) => usize::from(!(is_tool(before) && is_tool(entry))),
            (Some(_), None) => 1,
        }
    }

    /// After a change of width: the same words stand at the top as before.
    fn keep_top_line(&mut self, page: &Page) {
        let Some(place) = self.top_place() else { return };
        let gap = self.gap(place.entry);
        let Some(entry) = self.entries.get_mut(place.entry) else { return };
        let Some(old) = entry.laid.take() else { return };
        let passed: usize = match self.kept {
            Some((row, passed)) if row == place.row => passed,
            _ => (0..place.row.saturating_sub(gap)).filter_map(|at| old.line(at)).map(signs).sum(),
        };
        let new = cell::lay(entry, page);
        let mut seen = 0;
        let mut row = 0;
        while row + 1 < new.height {
            seen += new.line(row).map_or(0, signs);
            if seen > passed {
                break;
            }
            row += 1;
        }
        let row = if place.row < gap { place.row } else { row + gap };
        self.top = Some((entry.key.clone(), row));
        self.kept = Some((row, passed));
        entry.laid = Some(new);
    }

    /// Layouts far from the view are made again when they are needed.
    fn forget_layouts(&mut self) {
        let laid = self.entries.iter().filter(|entry| entry.laid.is_some()).count();
        if laid <= KEPT_LAYOUTS + self.height {
            return;
        }
        let mut shown = self.view.iter().filter_map(|row| match row {
            Row::Line { entry, .. } => Some(*entry),
            Row::Blank => None,
        });
        let first = shown.next().unwrap_or(0);
        let last = shown.next_back().unwrap_or(first);
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if at + KEPT_LAYOUTS / 4 < first || at > last + KEPT_LAYOUTS / 4 {
                entry.laid = None;
            }
        }
    }
}

/// Signs of a line that do not depend on where lines are broken: no blanks, and none of the lines
/// that stand beside each row of a quote or table.
fn signs(line: &crate::line::Line) -> usize {
    let counts = |c: &char| !c.is_whitespace() && !matches!(c, '│' | '─' | '┼');
    line.spans.iter().map(|span| span.text.as_str().chars().filter(counts).count()).sum()
}

//! From one picture to the next with few bytes: rows that moved are moved by the terminal, the rest
//! is written where it differs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

/// Unchanged columns that are written again rather than jumped over.
const SMALL_GAP: u16 = 4;
/// Bytes above which a picture is put up at once, where the terminal can.
const SYNC_FROM: usize = 256;
/// Bytes it takes to go to a row and change colours there, about.
const ROW_COST: usize = 12;

const ATTRIBUTES: [(Modifier, u8); 6] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

/// Attributes that show where nothing is written.
const SHOWS_ON_BLANK: Modifier =
    Modifier::REVERSED.union(Modifier::UNDERLINED).union(Modifier::CROSSED_OUT);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pen {
    fg: Color,
    bg: Color,
    added: Modifier,
}

/// Knows what the terminal shows and writes what should.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    shown: Option<Buffer>,
    out: Vec<u8>,
    pen: Pen,
    /// Where the terminal's cursor is, if that is known.
    at: Option<(u16, u16)>,
    cursor: Option<(u16, u16)>,
}

impl Painter {
    /// Forgets what the terminal shows: the next picture is written whole.
    pub(crate) fn forget(&mut self) {
        self.shown = None;
    }

    /// The bytes that bring `next` on the screen, leaving something else in it, with the cursor at `cursor` or hidden. Rows of
    /// `scrolling` may be moved rather than written.
    pub(crate) fn paint(
        &mut self,
        next: &mut Buffer,
        scrolling: Rect,
        cursor: Option<(u16, u16)>,
    ) -> &[u8] {
        self.out.clear();
        mend(next);
        let mut shown = match self.shown.take() {
            Some(shown) if shown.area == next.area => shown,
            _ => self.start_over(next.area),
        };
        self.move_rows(&mut shown, next, scrolling);
        for y in next.area.top()..next.area.bottom() {
            self.paint_row(&shown, next, y);
        }
        self.place_cursor(cursor);
        // What was shown before is of no use to anyone: its memory takes the picture after this one.
        std::mem::swap(&mut shown, next);
        self.shown = Some(shown);
        if self.out.len() > SYNC_FROM {
            self.out.splice(0..0, *b"\x1b[?2026h");
            self.out.extend_from_slice(b"\x1b[?2026l");
        }
        &self.out
    }

    fn start_over(&mut self, area: Rect) -> Buffer {
        self.out.extend_from_slice(b"\x1b[?25l\x1b[m\x1b[2J");
        self.pen = Pen::default();
        self.at = None;
        self.cursor = None;
        Buffer::empty(area)
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a vector cannot fail.
        let _ = self.out.write_fmt(arguments);
    }

    fn place_cursor(&mut self, cursor: Option<(u16, u16)>) {
        if let Some(place) = cursor {
            self.go(place);
        }
        if cursor.is_some() != self.cursor.is_some() {
            self.out.extend_from_slice(if cursor.is_some() { b"\x1b[?25h" } else { b"\x1b[?25l" });
        }
        self.cursor = cursor;
    }

    fn go(&mut self, (x, y): (u16, u16)) {
        match self.at {
            Some(at) if at == (x, y) => return,
            Some((from, row)) if row == y && from < x => {
                self.write(format_args!("\x1b[{}C", x - from));
            }
            Some((_, row)) if row + 1 == y && x == 0 => self.out.extend_from_slice(b"\r\n"),
            Some((_, row)) if row == y && x == 0 => self.out.push(b'\r'),
            _ => self.write(format_args!("\x1b[{};{}H", y + 1, x + 1)),
        }
        self.at = Some((x, y));
    }

    /// Lets the terminal move rows within `area`, if most of them only changed place. What stands
    /// beside it moves too and is put back, if that is less than what is spared.
    fn move_rows(&mut self, shown: &mut Buffer, next: &Buffer, area: Rect) {
        let area = area.intersection(next.area);
        let rows = usize::from(area.height);
        let differs = |y: &u16| !same_row(row(shown, *y), row(next, *y));
        if rows < 3 || (area.top()..area.bottom()).filter(differs).count() < 3 {
            return;
        }
        let inside = usize::from(area.left())..usize::from(area.right());
        let hash = |buffer: &Buffer, y: u16| row_hash(part(row(buffer, y), inside.clone()));
        let old: Vec<u64> = (area.top()..area.bottom()).map(|y| hash(shown, y)).collect();
        let new: Vec<u64> = (area.top()..area.bottom()).map(|y| hash(next, y)).collect();
        let blank = hash(&Buffer::empty(Rect { height: 1, y: 0, ..next.area }), 0);
        let matches = |by: isize| {
            let hit = |(at, hash): &(usize, &u64)| {
                **hash != blank
                    && at.checked_add_signed(by).and_then(|from| old.get(from)) == Some(*hash)
                    && old.get(*at) != Some(*hash)
            };
            new.iter().enumerate().filter(hit).count()
        };
        let most = rows.cast_signed() - 1;
        let best = (1..=most).flat_map(|by| [by, -by]).max_by_key(|by| (matches(*by), -by.abs()));
        let Some(by) = best.filter(|by| matches(*by) >= 3) else { return };
        if beside_cost(shown, next, area, by) > inside_gain(shown, next, area, by) {
            return;
        }
        self.pen(Pen::default());
        self.write(format_args!("\x1b[{};{}r", area.top() + 1, area.bottom()));
        let count = by.unsigned_abs();
        if by > 0 {
            self.write(format_args!("\x1b[{};1H", area.bottom()));
            self.out.extend(std::iter::repeat_n(b'\n', count));
        } else {
            self.write(format_args!("\x1b[{};1H", area.top() + 1));
            for _ in 0..count {
                self.out.extend_from_slice(b"\x1bM");
            }
        }
        self.out.extend_from_slice(b"\x1b[r");
        self.at = None;
        shift(shown, area, by);
    }

    fn paint_row(&mut self, shown: &Buffer, next: &Buffer, y: u16) {
        let (old, new) = (row(shown, y), row(next, y));
        if same_row(old, new) {
            return;
        }
        let columns = new.len() as u16;
        let blank_from =
            new.iter().rposition(|cell| !is_blank(cell, new.last())).map_or(0, |at| at + 1) as u16;
        let mut x = 0;
        let mut overrun = 0;
        while x < blank_from {
            let Some((old_cell, cell)) = old.get(usize::from(x)).zip(new.get(usize::from(x)))
            else {
                break;
            };
            if x >= overrun && looks_same(old_cell, cell) {
                x += 1;
                continue;
            }
            self.reach(new, x, y);
            overrun = overrun.max(x + columns_apart(cell.symbol()));
            x = self.put_cell(cell, x, y, columns);
        }
        let rest = usize::from(blank_from);
        let differs = overrun > blank_from
            || old.iter().zip(new).skip(rest).any(|(old, new)| !looks_same(old, new));
        if differs && let Some(cell) = new.get(rest) {
            self.go((blank_from, y));
            self.pen(Pen { fg: self.pen.fg, bg: cell.bg, added: Modifier::empty() });
            self.out.extend_from_slice(b"\x1b[K");
        }
    }

    /// Goes to a column, over a small gap by writing it again.
    fn reach(&mut self, new: &[Cell], x: u16, y: u16) {
        if let Some((from, row)) = self.at
            && row == y
            && from < x
            && x - from <= SMALL_GAP
        {
            let gap = new.get(usize::from(from)..usize::from(x)).unwrap_or_default();
            if gap.iter().all(|cell| cell.symbol().len() == 1 && self.can_stay(cell)) {
                for cell in gap {
                    self.out.extend_from_slice(cell.symbol().as_bytes());
                }
                self.at = Some((x, y));
            }
        }
        self.go((x, y));
    }

    /// Writes one cell; gives the column behind it.
    fn put_cell(&mut self, cell: &Cell, x: u16, y: u16, columns: u16) -> u16 {
        if !self.can_stay(cell) {
            self.pen(pen_of(cell));
        }
        let symbol = cell.symbol();
        let width = (crate::safe::text_width(symbol) as u16).max(1);
        let joined = symbol.chars().nth(1).is_some();
        if joined {
            // Terminals disagree on the width of such characters: what they leave is blank.
            self.out.extend(std::iter::repeat_n(b' ', usize::from(width)));
            self.at = None;
            self.go((x, y));
        }
        if joined && x + columns_apart(symbol) > columns {
            // Drawn one by one, its characters would go on in the next row.
            let first = symbol.chars().next().map(String::from).unwrap_or_default();
            if crate::safe::text_width(&first) == usize::from(width) {
                self.out.extend_from_slice(first.as_bytes());
            }
        } else {
            self.out.extend_from_slice(symbol.as_bytes());
        }
        let end = x + width;
        self.at = if joined || end >= columns { None } else { Some((end, y)) };
        end
    }

    /// The cell looks right with the pen as it is: only the background of a blank shows.
    fn can_stay(&self, cell: &Cell) -> bool {
        pen_of(cell) == self.pen
            || (is_bare(cell)
                && cell.bg == self.pen.bg
                && !self.pen.added.intersects(SHOWS_ON_BLANK))
    }

    fn pen(&mut self, pen: Pen) {
        if pen == self.pen {
            return;
        }
        let mut codes: Vec<String> = Vec::new();
        let mut from = self.pen;
        if !pen.added.contains(from.added) || (pen.bg == Color::Reset && from.bg != Color::Reset) {
            codes.push("0".to_owned());
            from = Pen::default();
        }
        for (modifier, code) in ATTRIBUTES {
            if pen.added.contains(modifier) && !from.added.contains(modifier) {
                codes.push(code.to_string());
            }
        }
        if pen.fg != from.fg {
            codes.push(colour_code(pen.fg, 30));
        }
        if pen.bg != from.bg {
            codes.push(colour_code(pen.bg, 40));
        }
        self.write(format_args!("\x1b[{}m", codes.join(";")));
        self.pen = pen;
    }
}

fn colour_code(colour: Color, base: u8) -> String {
    match colour {
        Color::Indexed(index) => format!("{};5;{index}", base + 8),
        _ => (base + 9).to_string(),
    }
}

fn pen_of(cell: &Cell) -> Pen {
    Pen { fg: cell.fg, bg: cell.bg, added: cell.modifier }
}

/// Columns a symbol takes where the terminal draws its characters one by one: what is behind it may
/// be overrun so far.
fn columns_apart(symbol: &str) -> u16 {
    symbol.chars().map(|ch| crate::safe::text_width(ch.encode_utf8(&mut [0; 4])) as u16).sum()
}

fn is_bare(cell: &Cell) -> bool {
    cell.symbol() == " " && !cell.modifier.intersects(SHOWS_ON_BLANK)
}

/// A blank like the one at the end of the row.
fn is_blank(cell: &Cell, last: Option<&Cell>) -> bool {
    is_bare(cell) && last.is_some_and(|last| is_bare(last) && last.bg == cell.bg)
}

fn looks_same(a: &Cell, b: &Cell) -> bool {
    if is_bare(a) && is_bare(b) {
        a.bg == b.bg
    } else {
        a.symbol() == b.symbol() && pen_of(a) == pen_of(b)
    }
}

fn same_row(old: &[Cell], new: &[Cell]) -> bool {
    old.iter().zip(new).all(|(old, new)| looks_same(old, new))
}

fn row(buffer: &Buffer, y: u16) -> &[Cell] {
    let width = usize::from(buffer.area.width);
    let start = usize::from(y - buffer.area.y) * width;
    buffer.content.get(start..start + width).unwrap_or_default()
}

fn part(row: &[Cell], columns: Range<usize>) -> &[Cell] {
    row.get(columns).unwrap_or_default()
}

/// The row from which `y` would come if the rows of `area` moved up by `by`.
fn source(area: Rect, y: u16, by: isize) -> Option<u16> {
    let from = isize::from(y.cast_signed()).checked_add(by)?;
    u16::try_from(from).ok().filter(|from| (area.top()..area.bottom()).contains(from))
}

fn row_cost(cells: usize) -> usize {
    if cells == 0 { 0 } else { cells + ROW_COST }
}

/// Bytes, about, that need no writing because the terminal moves rows within `area`.
fn inside_gain(shown: &Buffer, next: &Buffer, area: Rect, by: isize) -> usize {
    let inside = usize::from(area.left())..usize::from(area.right());
    let gain = |y: u16| {
        let [old, new] = [shown, next].map(|buffer| part(row(buffer, y), inside.clone()));
        let moved = part(row(shown, source(area, y, by)?), inside.clone());
        let differing = old.iter().zip(new).filter(|(old, new)| !looks_same(old, new));
        same_row(moved, new).then(|| row_cost(differing.count()))
    };
    (area.top()..area.bottom()).filter_map(gain).sum()
}

/// Bytes, about, that would be written again beside `area`, where all is right as it is.
fn beside_cost(shown: &Buffer, next: &Buffer, area: Rect, by: isize) -> usize {
    let inside = usize::from(area.left())..usize::from(area.right());
    let blank = Cell::default();
    let cost = |y: u16| {
        let moved = source(area, y, by).map(|from| row(shown, from));
        let cells = row(shown, y).iter().zip(row(next, y)).enumerate();
        let spoilt = |(x, (old, new)): &(usize, (&Cell, &Cell))| {
            let arrives = moved.and_then(|moved| moved.get(*x)).unwrap_or(&blank);
            !inside.contains(x) && looks_same(old, new) && !looks_same(arrives, new)
        };
        row_cost(cells.filter(spoilt).count())
    };
    (area.top()..area.bottom()).map(cost).sum()
}

fn row_hash(cells: &[Cell]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for cell in cells {
        if is_bare(cell) {
            (" ", cell.bg).hash(&mut hasher);
        } else {
            (cell.symbol(), cell.fg, cell.bg, cell.modifier).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// What the terminal did to the rows of `area`.
fn shift(buffer: &mut Buffer, area: Rect, by: isize) {
    let width = usize::from(buffer.area.width);
    let start = usize::from(area.top()) * width;
    let end = usize::from(area.bottom()) * width;
    let Some(cells) = buffer.content.get_mut(start..end) else { return };
    let moved = (by.unsigned_abs() * width).min(cells.len());
    if by > 0 {
        cells.rotate_left(moved);
        let from = cells.len() - moved;
        cells.iter_mut().skip(from).for_each(Cell::reset);
    } else {
        cells.rotate_right(moved);
        cells.iter_mut().take(moved).for_each(Cell::reset);
    }
}

/// Wide characters that something else was drawn over become blanks.
fn mend(buffer: &mut Buffer) {
    let width = usize::from(buffer.area.width);
    if width == 0 {
        return;
    }
    for row in buffer.content.chunks_mut(width) {
        let mut x = 0;
        while x < row.len() {
            let columns = row.get(x).map_or(1, |cell| match cell.symbol() {
                symbol if symbol.len() == 1 => 1,
                symbol => crate::safe::text_width(symbol),
            });
            let whole = columns > 0
                && row
                    .get(x + 1..x + columns)
                    .is_some_and(|rest| rest.iter().all(|cell| cell.symbol().is_empty()));
            if !whole && let Some(cell) = row.get_mut(x) {
                cell.set_symbol(" ");
            }
            x += if whole { columns } else { 1 };
        }
    }
}

#[cfg(test)]
mod tests;

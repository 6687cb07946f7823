//! Layout of one or a few whole Markdown blocks.

use std::collections::HashMap;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui::style::Modifier;

use super::{CodeBlock, options};
use crate::glyphs::Glyphs;
use crate::highlight::{CodeId, Highlight};
use crate::line::{Break, Line, Look, Span, wrap};
use crate::theme::Role;

/// Columns that prefixes may take before deeper nesting stops moving to the right.
const DEEPEST: usize = 24;

/// What a layout gave.
pub(super) struct Laid {
    pub(super) lines: Vec<Line>,
    pub(super) codes: Vec<CodeBlock>,
}

/// Lays out blocks for one width.
pub(super) struct Layout<'a> {
    width: usize,
    glyphs: &'static Glyphs,
    highlights: &'a HashMap<CodeId, Highlight>,
}

/// What stands before every line inside a container.
struct Prefix {
    /// Before the first line only, then taken away.
    first: Option<Line>,
    rest: Line,
}

struct List {
    next: Option<u64>,
    items: usize,
    /// Blank lines stand between its items.
    loose: bool,
}

#[derive(Default)]
struct Table {
    aligned: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span>>>,
}

struct Builder<'a> {
    layout: &'a Layout<'a>,
    lines: Vec<Line>,
    codes: Vec<CodeBlock>,
    prefixes: Vec<Prefix>,
    lists: Vec<List>,
    looks: Vec<Look>,
    inline: Vec<Span>,
    link: Option<(String, usize)>,
    code: Option<(String, String)>,
    table: Option<Table>,
    /// A block of the present container stands above: the next one keeps a distance.
    spaced: bool,
}

impl<'a> Layout<'a> {
    pub(super) fn new(
        width: usize,
        glyphs: &'static Glyphs,
        highlights: &'a HashMap<CodeId, Highlight>,
    ) -> Self {
        Self { width: width.max(4), glyphs, highlights }
    }

    /// Lays out `source`; with `spaced`, behind a blank line.
    pub(super) fn lay(&self, source: &str, spaced: bool) -> Laid {
        let mut builder = Builder {
            layout: self,
            lines: Vec::new(),
            codes: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            looks: vec![Look::default()],
            inline: Vec::new(),
            link: None,
            code: None,
            table: None,
            spaced,
        };
        for event in Parser::new_ext(source, options()) {
            builder.take(event);
        }
        builder.flush();
        Laid { lines: builder.lines, codes: builder.codes }
    }

    /// Lines of code in one look.
    pub(super) fn plain_code(&self, code: &str) -> Vec<Line> {
        let width = self.width;
        code.lines().flat_map(|line| code_rows(&[Span::new(line, Role::Code)], width)).collect()
    }

    fn code(&self, id: CodeId, code: &str, width: usize) -> Vec<Line> {
        let Some(highlight) = self.highlights.get(&id) else {
            return code
                .lines()
                .flat_map(|line| code_rows(&[Span::new(line, Role::Code)], width))
                .collect();
        };
        code.lines()
            .enumerate()
            .flat_map(|(at, line)| code_rows(&highlight.spans(at, line), width))
            .collect()
    }
}

fn code_rows(spans: &[Span], width: usize) -> Vec<Line> {
    let indent = if width < 8 { 0 } else { 2 };
    wrap(spans, width - indent, Break::Anywhere)
        .into_iter()
        .map(|mut line| {
            if indent > 0 {
                line.spans.insert(0, Span::new("  ", Role::Text));
            }
            line
        })
        .collect()
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) => self.text(&text),
            Event::Code(text) => {
                let look = Look { role: Role::Code, ..self.look() };
                self.inline.push(Span::new(&text, look));
            }
            Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => {
                let look = self.look();
                self.inline.push(Span::new(&text, look));
            }
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.gap();
                let width = self.room().min(40);
                self.emit(Line::of(&self.layout.glyphs.rule.repeat(width), Role::Border));
                self.spaced = true;
            }
            Event::TaskListMarker(done) => {
                self.text(if done { "[x] " } else { "[ ] " });
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => {
                self.flush();
                if let Some(list) = self.lists.last_mut() {
                    list.loose = true;
                }
                self.gap();
            }
            Tag::Heading { level, .. } => {
                self.flush();
                self.gap();
                let mut look = Look::of(Role::Heading).with(Modifier::BOLD);
                if level == HeadingLevel::H1 {
                    look = look.with(Modifier::UNDERLINED);
                }
                self.looks.push(look);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.gap();
                let bar = format!("{} ", self.layout.glyphs.column);
                self.push_prefix(None, Line::of(&bar, Role::Border));
                self.looks.push(Look::of(Role::Quote));
                self.spaced = false;
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.gap();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() || self.spaced {
                    self.gap();
                }
                self.lists.push(List { next: first, items: 0, loose: false });
                self.spaced = false;
            }
            Tag::Item => self.start_item(),
            Tag::Table(aligned) => {
                self.flush();
                self.gap();
                self.table = Some(Table { aligned, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.push_look(Modifier::ITALIC),
            Tag::Strong => self.push_look(Modifier::BOLD),
            Tag::Strikethrough => self.push_look(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.into_string(), self.inline.len()));
                self.looks.push(Look { role: Role::Link, ..self.look() });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.spaced = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.looks.pop();
                self.spaced = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
                self.looks.pop();
                self.spaced = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.spaced = self.lists.last().is_none_or(|list| list.loose);
            }
            TagEnd::Item => {
                self.flush();
                // An empty item still shows its mark.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.emit(Line::default());
                }
                self.prefixes.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.looks.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.flush();
        let loose = self.spaced;
        let mark = match self.lists.last_mut() {
            Some(List { next: Some(number), items, .. }) => {
                let mark = format!("{number}. ");
                *number += 1;
                *items += 1;
                mark
            }
            Some(list) => {
                list.items += 1;
                format!("{} ", self.layout.glyphs.bullet)
            }
            None => String::new(),
        };
        if loose && self.lists.last().is_some_and(|list| list.items > 1) {
            self.gap();
        }
        let rest = Line::of(&" ".repeat(mark.chars().count()), Role::Text);
        self.push_prefix(Some(Line::of(&mark, Role::Accent)), rest);
        self.spaced = false;
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            return;
        }
        let look = self.look();
        let mut lines = text.split('\n');
        if let Some(first) = lines.next().filter(|first| !first.is_empty()) {
            self.inline.push(Span::new(first, look));
        }
        for line in lines {
            self.flush();
            if !line.is_empty() {
                self.inline.push(Span::new(line, look));
            }
        }
    }

    fn end_link(&mut self) {
        self.looks.pop();
        if let Some((url, from)) = self.link.take() {
            let shown: String =
                self.inline.iter().skip(from).map(|span| span.text.as_str()).collect();
            if shown != url && !url.is_empty() && url != format!("mailto:{shown}") {
                self.inline.push(Span::new(&format!(" ({url})"), Role::Dim));
            }
        }
    }

    fn end_code(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        let id = CodeId::of(&language, &text);
        let lines = self.layout.code(id, &text, self.room());
        for line in lines {
            self.emit(line);
        }
        if !language.is_empty() {
            self.codes.push(CodeBlock { id, language, text });
        }
        self.spaced = true;
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            for line in table.lay(self.room(), self.layout.glyphs) {
                self.emit(line);
            }
        }
        self.spaced = true;
    }

    fn look(&self) -> Look {
        self.looks.last().copied().unwrap_or_default()
    }

    fn push_look(&mut self, more: Modifier) {
        self.looks.push(self.look().with(more));
    }

    fn push_prefix(&mut self, first: Option<Line>, rest: Line) {
        let used: usize = self.prefixes.iter().map(|prefix| prefix.rest.width()).sum();
        let deepest = DEEPEST.min(self.layout.width / 2);
        let rest = if used + rest.width() > deepest { Line::default() } else { rest };
        let first = first.filter(|_| !rest.spans.is_empty());
        self.prefixes.push(Prefix { first, rest });
    }

    fn room(&self) -> usize {
        let used: usize = self
            .prefixes
            .iter()
            .map(|prefix| prefix.first.as_ref().map_or(0, Line::width).max(prefix.rest.width()))
            .sum();
        self.layout.width.saturating_sub(used).max(2)
    }

    /// Keeps a distance to the block above.
    fn gap(&mut self) {
        if std::mem::take(&mut self.spaced) {
            let mut line = Line::default();
            for prefix in &self.prefixes {
                if prefix.first.is_none() {
                    line.spans.extend(prefix.rest.spans.iter().cloned());
                }
            }
            self.lines.push(line);
        }
    }

    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        for line in wrap(&inline, self.room(), Break::Words) {
            self.emit(line);
        }
    }

    fn emit(&mut self, line: Line) {
        let mut whole = Line::default();
        for prefix in &mut self.prefixes {
            let part = prefix.first.take().unwrap_or_else(|| prefix.rest.clone());
            whole.spans.extend(part.spans);
        }
        whole.spans.extend(line.spans);
        self.lines.push(whole);
    }
}

impl Table {
    fn lay(&self, room: usize, glyphs: &Glyphs) -> Vec<Line> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if columns == 0 {
            return Vec::new();
        }
        let widths = self.widths(columns, room);
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| {
                    let cell = row.get(column).map(Vec::as_slice).unwrap_or_default();
                    wrap(cell, *width, Break::Words)
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                let mut line = Line::default();
                for (column, width) in widths.iter().enumerate() {
                    if column > 0 {
                        line.push(&format!(" {} ", glyphs.column), Role::Border);
                    }
                    let cell = cells.get(column).and_then(|cell| cell.get(part)).cloned();
                    self.align(column, cell.unwrap_or_default(), *width, at == 0, &mut line);
                }
                lines.push(line.cut(room, glyphs.ellipsis));
            }
            if at == 0 {
                let rule: Vec<String> =
                    widths.iter().map(|width| glyphs.rule.repeat(*width)).collect();
                let joint = format!("{0}{1}{0}", glyphs.rule, glyphs.cross);
                lines.push(Line::of(&rule.join(&joint), Role::Border).cut(room, glyphs.rule));
            }
        }
        lines
    }

    /// Widths that fit, wide columns giving way first.
    fn widths(&self, columns: usize, room: usize) -> Vec<usize> {
        let mut widths = vec![2; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.iter().map(|span| span.text.width()).sum());
            }
        }
        let available = room.saturating_sub(3 * (columns - 1));
        while widths.iter().sum::<usize>() > available {
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > 2) else { break };
            *widest -= 1;
        }
        widths
    }

    fn align(&self, column: usize, cell: Line, width: usize, head: bool, line: &mut Line) {
        let blank = width.saturating_sub(cell.width());
        let before = match self.aligned.get(column) {
            Some(Alignment::Right) => blank,
            Some(Alignment::Center) => blank / 2,
            _ => 0,
        };
        line.push(&" ".repeat(before), Role::Text);
        line.spans.extend(cell.spans.into_iter().map(|mut span| {
            if head {
                span.look = span.look.with(Modifier::BOLD);
            }
            span
        }));
        line.push(&" ".repeat(blank - before), Role::Text);
    }
}

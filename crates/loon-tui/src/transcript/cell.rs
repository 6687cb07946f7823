//! How each kind of entry is laid out.

use std::sync::Arc;

use loon_api::event::NoticeLevel;
use loon_api::{ErrorInfo, ToolCallItem, ToolCallStatus, TurnStatus};
use ratatui::style::Modifier;

use super::{Body, Entry, Fold, Page, compaction, record};
use crate::diff;
use crate::line::{Break, Line, Look, Span, spread, wrap, wrap_text};
use crate::markdown::Chunk;
use crate::theme::Role;

/// Lines of live output and of a failed call that show before they are opened.
const TAIL_LINES: usize = 8;
/// Bytes of one text that are laid out; how much is left out is said.
const BODY_LIMIT: usize = 512 * 1024;

/// What stands in the gutter of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The sign.
    pub(crate) glyph: &'static str,
    /// Its look.
    pub(crate) look: Look,
    /// Beside every line rather than the first.
    pub(crate) every_line: bool,
}

/// An entry laid out for one width.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(super) width: usize,
    pub(super) mark: Option<Mark>,
    /// Parts with the number of their first line.
    pub(super) chunks: Vec<(usize, Chunk)>,
    pub(super) height: usize,
}

impl Laid {
    fn new(width: usize, mark: Option<Mark>, parts: impl IntoIterator<Item = Chunk>) -> Self {
        let mut chunks = Vec::new();
        let mut height = 0;
        for part in parts {
            chunks.push((height, part.clone()));
            height += part.len();
        }
        Self { width, mark, chunks, height }
    }

    /// A line, counted from 0.
    pub(crate) fn line(&self, at: usize) -> Option<&Line> {
        let chunk = self.chunks.partition_point(|(first, _)| *first <= at).checked_sub(1)?;
        let (first, lines) = self.chunks.get(chunk)?;
        lines.get(at - first)
    }

    /// What stands in the gutter of a line.
    pub(crate) fn mark(&self, at: usize) -> Option<Mark> {
        self.mark.filter(|mark| at == 0 || mark.every_line)
    }
}

/// Lays an entry out.
pub(super) fn lay(entry: &mut Entry, page: &Page) -> Laid {
    let width = page.room;
    let fold = entry.fold;
    let parts: Vec<Chunk> = match &mut entry.body {
        Body::User { text, steer } => {
            let mut lines = wrap_text(text, Role::Text, width, Break::Words);
            if *steer {
                lines.push(Line::of("while it was working", Role::Dim));
            }
            vec![lines.into()]
        }
        Body::Assistant { markdown, incomplete } => {
            markdown.layout(width, page.glyphs);
            let mut parts: Vec<Chunk> = markdown.chunks().cloned().collect();
            if *incomplete {
                parts.push(Arc::new([Line::of("the answer broke off here", Role::Warn)]));
            }
            parts
        }
        Body::Thinking { text, done } => vec![thinking(text, *done, fold, page).into()],
        Body::Tool { call, live, arguments, since } => {
            vec![tool(call, live, *arguments, *since, fold, page).into()]
        }
        Body::Notice { text } => vec![wrap_text(text, Role::Dim, width, Break::Words).into()],
        Body::Compaction { left } => vec![compaction::lay(left, fold, page).into()],
        Body::Receipt { text } => vec![receipt(text, fold, page).into()],
        Body::Message { level, message, hints } => {
            vec![message_lines(*level, message, hints, width).into()]
        }
        Body::Ended { status, error } => vec![ended(*status, error.as_ref(), width).into()],
    };
    Laid::new(width, mark(&entry.body, page), parts)
}

fn mark(body: &Body, page: &Page) -> Option<Mark> {
    let glyphs = page.glyphs;
    let first = |glyph, role| Some(Mark { glyph, look: Look::of(role), every_line: false });
    match body {
        Body::User { .. } => {
            Some(Mark { glyph: glyphs.bar, look: Look::of(Role::User), every_line: true })
        }
        Body::Tool { call, .. } => match call.status {
            ToolCallStatus::Waiting | ToolCallStatus::Asking => first(glyphs.waiting, Role::Dim),
            ToolCallStatus::Running => first(glyphs.running, Role::Accent),
            ToolCallStatus::Done if record::is_record_only(call) => first(glyphs.done, Role::Dim),
            ToolCallStatus::Done => first(glyphs.done, Role::Ok),
            ToolCallStatus::Failed | ToolCallStatus::Unknown => first(glyphs.failed, Role::Error),
            ToolCallStatus::Denied | ToolCallStatus::Cancelled => first(glyphs.denied, Role::Warn),
        },
        Body::Compaction { .. } => first(glyphs.done, Role::Dim),
        Body::Ended { status: TurnStatus::Interrupted, .. } => first(glyphs.denied, Role::Warn),
        Body::Ended { .. } => first(glyphs.failed, Role::Error),
        _ => None,
    }
}

/// One dim line, and all of it once opened.
fn receipt(text: &str, fold: Fold, page: &Page) -> Vec<Line> {
    if fold == Fold::Open {
        return wrap_text(bounded(text), Role::Dim, page.room, Break::Words);
    }
    let first = text.lines().next().unwrap_or_default();
    let right = Line::of(page.glyphs.folded, Role::Dim);
    vec![spread(Line::of(first, Role::Dim), &right, page.room, page.glyphs.ellipsis)]
}

fn thinking(text: &str, done: bool, fold: Fold, page: &Page) -> Vec<Line> {
    let look = Look::of(Role::Dim).with(Modifier::ITALIC);
    if text.trim().is_empty() {
        return Vec::new();
    }
    if fold == Fold::Open {
        return wrap_text(bounded(text), look, page.room, Break::Words);
    }
    if done || fold == Fold::Closed {
        let words = text.split_whitespace().count();
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let noun = if words == 1 { "word" } else { "words" };
        let right = Line::of(&format!("thought, {words} {noun} {}", page.glyphs.folded), Role::Dim);
        return vec![spread(Line::of(first, look), &right, page.room, page.glyphs.ellipsis)];
    }
    let from = text.floor_char_boundary(text.len().saturating_sub(8 * 1024));
    let lines = wrap_text(text.get(from..).unwrap_or_default(), look, page.room, Break::Words);
    let hidden = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(hidden).collect()
}

fn tool(
    call: &ToolCallItem,
    live: &str,
    arguments: usize,
    since: u64,
    fold: Fold,
    page: &Page,
) -> Vec<Line> {
    let mut body = Vec::new();
    let own = record::title(&call.record);
    let title = if call.title.is_empty() { &own } else { &call.title };
    let title = title.lines().next().unwrap_or_default();
    // What only keeps the books stays in the background.
    let role = if record::is_record_only(call) { Role::Dim } else { Role::Text };
    let room = page.room.saturating_sub(2).max(4);
    let has_more = append_details(call, live, fold, room, page, &mut body);
    let mut left = Line::default();
    if call.by_user {
        left.push("you  ", Role::User);
    }
    left.push(&format!("{:<6} ", call.tool), role);
    if title.is_empty() && !call.status.is_final() && arguments > 0 {
        left.push(&format!("writing arguments, {}", size(arguments)), Role::Dim);
    } else {
        left.push(title, role);
    }
    let mut right = status_words(call, since, page);
    if has_more {
        let sign = if body.is_empty() { page.glyphs.folded } else { page.glyphs.unfolded };
        right.push(&format!(" {sign}"), Role::Dim);
    }
    let mut lines = vec![spread(left, &right, page.room, page.glyphs.ellipsis)];
    for change in &call.changes {
        if call.changes.len() > 1 {
            let counts = format!("+{} -{}", change.added, change.removed);
            let heading = Line::of(&format!("  {}", change.path), Role::Text);
            lines.push(spread(
                heading,
                &Line::of(&counts, Role::Dim),
                page.room,
                page.glyphs.ellipsis,
            ));
        }
        lines.extend(diff::lay(bounded(&change.diff), page.room.saturating_sub(1)));
    }
    let indent = Span::new("  ", Role::Text);
    lines.extend(body.into_iter().map(|mut line| {
        line.spans.insert(0, indent.clone());
        line
    }));
    lines
}

/// What stands below the head of a call; true if the call has more to show than its head.
fn append_details(
    call: &ToolCallItem,
    live: &str,
    fold: Fold,
    room: usize,
    page: &Page,
    body: &mut Vec<Line>,
) -> bool {
    let failed = matches!(
        call.status,
        ToolCallStatus::Failed | ToolCallStatus::Denied | ToolCallStatus::Unknown
    );
    let shown = match fold {
        Fold::Auto => failed || !call.status.is_final(),
        Fold::Open => true,
        Fold::Closed => false,
    };
    if shown {
        if fold == Fold::Open && call.title.len() + 8 > room {
            body.extend(wrap_text(&call.title, Role::Code, room, Break::Anywhere));
        }
        if let Some(error) = &call.error {
            body.extend(wrap_text(&error.message, Role::Error, room, Break::Words));
            for hint in &error.hints {
                body.extend(wrap_text(&format!("try: {hint}"), Role::Dim, room, Break::Words));
            }
        }
    }
    if !call.guidance_given().is_empty() {
        let files: Vec<&str> =
            call.guidance_given().iter().map(|file| file.path.as_str()).collect();
        let words = format!("with the instructions in {}", files.join(", "));
        body.push(Line::of(&words, Role::Dim).cut(room, page.glyphs.ellipsis));
    }
    if record::is_record_only(call) {
        if shown {
            record::append_changes(&call.record, room, page, body);
        }
        return true;
    }
    let output = call.result.as_ref().map_or(live, |result| result.text.as_str());
    // A short result that only says the error again is left out.
    let repeats = call.error.as_ref().is_some_and(|error| {
        output.trim().lines().count() <= 2 && output.contains(error.message.trim())
    });
    let output = if repeats { "" } else { output };
    if shown && !output.trim().is_empty() {
        append_output(output, fold, room, page, body);
    }
    call.error.is_some() || !output.trim().is_empty()
}

fn append_output(output: &str, fold: Fold, room: usize, page: &Page, body: &mut Vec<Line>) {
    if fold == Fold::Open {
        let kept = bounded(output);
        body.extend(wrap_text(kept, Role::Dim, room, Break::Anywhere));
        if kept.len() < output.len() {
            let left = size(output.len() - kept.len());
            body.push(Line::of(&format!("{left} more are not shown"), Role::Warn));
        }
        return;
    }
    // Only the end is laid out, however long the text is.
    let lines: Vec<&str> = output.trim_end().rsplit('\n').take(TAIL_LINES + 1).collect();
    let hidden = lines.len() > TAIL_LINES;
    let shown = lines.iter().take(TAIL_LINES).rev();
    let cut = |line: &str| {
        let end = line.floor_char_boundary(line.len().min(room * 4));
        Line::of(line.get(..end).unwrap_or_default(), Role::Dim).cut(room, page.glyphs.ellipsis)
    };
    if hidden {
        body.push(Line::of(page.glyphs.ellipsis, Role::Dim));
    }
    body.extend(shown.map(|line| cut(line)));
}

/// What is said at the right of a call's head.
fn status_words(call: &ToolCallItem, since: u64, page: &Page) -> Line {
    let dim = Look::of(Role::Dim);
    match call.status {
        ToolCallStatus::Waiting => Line::of("waiting", dim),
        ToolCallStatus::Asking => Line::of("asks you", Role::Warn),
        ToolCallStatus::Running => Line::of(&elapsed(page.now.saturating_sub(since)), dim),
        ToolCallStatus::Denied => Line::of("denied", Role::Warn),
        ToolCallStatus::Cancelled => Line::of("cancelled", Role::Warn),
        ToolCallStatus::Unknown => Line::of("outcome unknown, not run again", Role::Error),
        ToolCallStatus::Done | ToolCallStatus::Failed => {
            let failed = call.status == ToolCallStatus::Failed;
            let mut line = Line::default();
            let words = if call.summary.is_empty() && failed { "failed" } else { &call.summary };
            line.push(words, if failed { Look::of(Role::Error) } else { dim });
            if let Some(ms) = call.ms {
                let room =
                    if page.narrow { String::new() } else { format!("  {:>7}", duration(ms)) };
                line.push(&room, dim);
            }
            line
        }
    }
}

fn message_lines(level: NoticeLevel, message: &str, hints: &[String], width: usize) -> Vec<Line> {
    let (word, role) = match level {
        NoticeLevel::Info => ("", Role::Dim),
        NoticeLevel::Warning => ("warning: ", Role::Warn),
    };
    let mut lines = wrap(
        &[
            Span::new(word, role),
            Span::new(message, if word.is_empty() { Role::Dim } else { Role::Text }),
        ],
        width,
        Break::Words,
    );
    for hint in hints {
        lines.extend(wrap_text(&format!("try: {hint}"), Role::Dim, width, Break::Words));
    }
    lines
}

fn ended(status: TurnStatus, error: Option<&ErrorInfo>, width: usize) -> Vec<Line> {
    let (word, role) = match status {
        TurnStatus::Completed => ("done", Role::Ok),
        TurnStatus::Failed => ("failed", Role::Error),
        TurnStatus::Interrupted => ("stopped by you", Role::Warn),
        TurnStatus::Stopped => ("stopped", Role::Error),
        TurnStatus::DeadlineExceeded => ("the deadline passed", Role::Error),
    };
    let Some(error) = error else { return vec![Line::of(word, role)] };
    let mut lines = wrap_text(&format!("{word}: {}", error.message), role, width, Break::Words);
    for hint in &error.hints {
        lines.extend(wrap_text(&format!("try: {hint}"), Role::Dim, width, Break::Words));
    }
    lines
}

pub(super) fn bounded(text: &str) -> &str {
    text.get(..text.floor_char_boundary(BODY_LIMIT)).unwrap_or(text)
}

/// Milliseconds in words.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1000..=59_999 if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        1000..=59_999 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} m {:02} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// Milliseconds of something that goes on, in whole seconds.
pub(crate) fn elapsed(ms: u64) -> String {
    if ms < 1000 { "0 s".to_owned() } else { duration(ms / 1000 * 1000) }
}

/// Bytes in words.
pub(crate) fn size(bytes: usize) -> String {
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else {
        format!("{}.{} KB", bytes / 1024, bytes % 1024 * 10 / 1024)
    }
}

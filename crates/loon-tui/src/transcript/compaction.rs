//! A compaction in the transcript: one line, and the handoff when it is opened.

use loon_api::Compaction;

use super::cell::bounded;
use super::{Fold, Page};
use crate::line::{Break, Line, Span, spread, wrap_text};
use crate::session::count_words;
use crate::theme::Role;

pub(super) fn lay(left: &Compaction, fold: Fold, page: &Page) -> Vec<Line> {
    let arrow = page.glyphs.arrow;
    let (before, after) = (count_words(left.tokens_before), count_words(left.tokens_after));
    let words = format!("compacted: ~{before} {arrow} ~{after} tokens");
    let mut right = Line::default();
    if !page.narrow && left.requests > 0 {
        let noun = if left.requests == 1 { "request" } else { "requests" };
        right.push(&format!("{} {noun}", left.requests), Role::Dim);
    }
    if left.handoff.is_some() {
        let open = fold == Fold::Open;
        let sign = if open { page.glyphs.unfolded } else { page.glyphs.folded };
        right.push(&format!(" {sign}"), Role::Dim);
    }
    let mut lines =
        vec![spread(Line::of(&words, Role::Dim), &right, page.room, page.glyphs.ellipsis)];
    if fold == Fold::Open
        && let Some(handoff) = &left.handoff
    {
        let room = page.room.saturating_sub(2).max(4);
        let wrapped = wrap_text(bounded(handoff), Role::Dim, room, Break::Words);
        lines.extend(wrapped.into_iter().map(|mut line| {
            line.spans.insert(0, Span::new("  ", Role::Text));
            line
        }));
    }
    lines
}

//! The state line: what runs, with what, at what price.

use super::canvas::Canvas;
use crate::line::{Line, Look};
use crate::model::Model;
use crate::session::count_words;
use crate::theme::Role;
use crate::transcript::elapsed;

pub(super) fn draw(canvas: &mut Canvas<'_>) {
    let model = canvas.model;
    let area = model.places.state;
    let margin = if model.is_roomy() { 2 } else { 0 };
    let width = usize::from(area.width.saturating_sub(2 * margin));
    let line = line(model, width);
    canvas.put(area.x + margin, area.y, width as u16, &line);
}

/// The line for `width` columns. What does not fit is left out, from the right.
fn line(model: &Model, width: usize) -> Line {
    let mut line = state(model);
    let dot = format!(" {} ", model.glyphs.dot);
    if let Some(hint) = &model.hint {
        return line.and(&dot, Role::Dim).and(hint, Role::Warn).cut(width, model.glyphs.ellipsis);
    }
    line = fit(line.cut(width, model.glyphs.ellipsis), &dot, items(model), width);
    let keys = format!("? keys   {}K commands", model.glyphs.ctrl);
    let keys = Line::of(&keys, Role::Dim);
    if line.width() + keys.width() + 3 <= width {
        line.pad_to(width - keys.width());
        line.spans.extend(keys.spans);
    }
    line
}

fn fit(mut line: Line, between: &str, items: impl IntoIterator<Item = Line>, width: usize) -> Line {
    for item in items {
        if line.width() + between.chars().count() + item.width() > width {
            break;
        }
        line.push(between, Role::Dim);
        line.spans.extend(item.spans);
    }
    line
}

/// What goes on, in a word.
fn state(model: &Model) -> Line {
    let glyphs = model.glyphs;
    let waiting = model.approvals.len();
    if model.closing.is_some() {
        return Line::of(&format!("{} closing", glyphs.running), Role::Warn);
    }
    if !model.opened {
        return Line::of(&format!("{} opening", glyphs.running), Role::Dim);
    }
    if model.approvals.is_hidden() {
        let words = if waiting == 1 {
            "1 request waits".to_owned()
        } else {
            format!("{waiting} requests wait")
        };
        return Line::of(&format!("{} {words}, Ctrl+R", glyphs.waiting), Role::Warn);
    }
    if let Some(budget) = model.budget.as_ref().filter(|_| waiting == 0) {
        let words = if budget.is_hidden() { "budget spent, Ctrl+R" } else { "asks you" };
        return Line::of(&format!("{} {words}", glyphs.waiting), Role::Warn);
    }
    if waiting > 0 {
        return Line::of(&format!("{} asks you", glyphs.waiting), Role::Warn);
    }
    if let Some(shown) = &model.agents.shown {
        let agent = model.agents.find(&shown.id);
        let who = agent.map(|agent| format!(" ({}), {}", agent.summary.agent, agent.state_words()));
        let words = format!("{} agent {}{}", glyphs.running, shown.id, who.unwrap_or_default());
        return Line::of(&words, Role::Accent).and(": Enter steers it, Esc goes back", Role::Dim);
    }
    if let Some(holder) = &model.session.watched {
        let who = holder.pid.filter(|_| holder.words != "no process");
        let words = match who {
            Some(pid) => format!("{} watching process {pid}", glyphs.running),
            None => format!("{} watching, nobody works here", glyphs.waiting),
        };
        return Line::of(&words, Role::Warn);
    }
    if let Some(compacting) = model.session.compacting {
        let words = if compacting.stopping { "stopping the compaction" } else { "compacting" };
        let (request, of) = (compacting.request, compacting.of);
        return Line::of(&format!("{} {words} {request}/{of}", glyphs.running), Role::Accent);
    }
    let Some(turn) = model.session.turn else {
        return Line::of(&format!("{} ready", glyphs.done), Role::Ok);
    };
    if turn.stopping {
        return Line::of(&format!("{} stopping", glyphs.running), Role::Warn);
    }
    let elapsed = elapsed(model.now.saturating_sub(turn.since));
    let words = match model.session.reviewing {
        Some((number, of)) => format!("reviewing {number}/{of}"),
        None => model.spinner.clone(),
    };
    let mut line = Line::of(&format!("{} {words} {elapsed}", glyphs.running), Role::Accent);
    if let Some(retry) = &model.session.retry {
        let seconds = retry.at.saturating_sub(model.now).div_ceil(1000);
        line.push(&format!(", again in {seconds} s: {}", retry.reason), Role::Warn);
    }
    line
}

fn items(model: &Model) -> Vec<Line> {
    let session = &model.session;
    let mut items = Vec::new();
    if session.ultra {
        items.push(Line::of("ultra", Role::Accent));
    }
    let agents = model.agents.at_work();
    if agents > 0 {
        let plural = if agents == 1 { "" } else { "s" };
        let role = if model.agents.any_stalled() { Role::Warn } else { Role::Text };
        items.push(Line::of(&format!("{agents} agent{plural}"), role));
    }
    if model.panel_width() == 0
        && let Some(progress) = session.progress_words()
    {
        items.push(Line::of(&progress, Role::Text));
    }
    if let Some(name) = &session.model {
        let short = name.split_once('/').map_or(name.as_str(), |(_, model)| model);
        items.push(Line::of(short, Look::of(Role::Text)));
    }
    let folder = session.cwd.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
    if model.opened {
        items.push(match &session.branch {
            Some(branch) => Line::of(&format!("{folder} ({branch})"), Role::Dim),
            None => Line::of(folder, Role::Dim),
        });
    }
    if let Some(context) = &session.context {
        let window = context.limit.into_iter().chain(context.capacity).min();
        items.push(Line::of(&context_words(context.tokens, window), Role::Dim));
    }
    if let Some(meter) = session.meter.filter(|meter| meter.ms > 0) {
        let rate = meter.tokens * 1000 / meter.ms;
        let about = if meter.estimated { "~" } else { "" };
        items.push(Line::of(&format!("{about}{rate} t/s"), Role::Dim));
    }
    let role = if session.exceeded { Role::Warn } else { Role::Dim };
    let spent = session.budget_words().into_iter().map(|words| Line::of(&words, role));
    // A bound that is reached matters more than what stands before it.
    let at = if session.exceeded { 0 } else { items.len() };
    items.splice(at..at, spent);
    items
}

fn context_words(tokens: u64, capacity: Option<u64>) -> String {
    match capacity.filter(|capacity| *capacity > 0) {
        Some(capacity) => format!("context ~{} %", tokens * 100 / capacity),
        None => format!("context ~{} tokens", count_words(tokens)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_always_an_estimate() {
        assert_eq!(context_words(38_000, Some(100_000)), "context ~38 %");
        assert_eq!(context_words(12_345, None), "context ~12.3k tokens");
        assert_eq!(context_words(5, Some(0)), "context ~5 tokens");
    }
}

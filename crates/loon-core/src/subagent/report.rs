//! A child's end in words.

use std::fmt::Write as _;

use loon_api::event::SubagentFinished;
use loon_api::{Cost, Money, SubagentStatus, WorktreeState};

use super::session_words;

/// Most bytes of a report.
const LIMIT: usize = 16 * 1024;

/// A child's last words as others read them: bounded, without control characters.
pub(super) fn report(words: &str) -> String {
    let visible: String =
        words.trim().chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    bounded(&visible, LIMIT)
}

/// The first `limit` bytes or somewhat less, and a line that says so if anything was cut.
pub(super) fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!(
        "{}\n[cut here; {} bytes more are in the agent's session]",
        &text[..end],
        text.len() - end
    )
}

/// What the model reads of an ended child: first what is wrong, then its words, then where to look.
pub(super) fn end_words(finished: &SubagentFinished, limit: usize) -> String {
    let mut text = String::new();
    if finished.status != SubagentStatus::Completed {
        let why = finished.error.as_ref().map_or(finished.status.words(), |error| &error.message);
        let _ = writeln!(text, "{}: {}.\n", headline(finished.status), why.trim_end_matches('.'));
    }
    match &finished.report {
        Some(report) => text.push_str(&bounded(report, limit)),
        None => text.push_str("(It said nothing.)"),
    }
    let _ = write!(text, "\n\n[{}]", facts(finished));
    text
}

fn headline(status: SubagentStatus) -> String {
    let (first, rest) = status.words().split_at(1);
    first.to_uppercase() + rest
}

fn facts(finished: &SubagentFinished) -> String {
    let about = if finished.usage.estimated_tokens.is_some() { "about " } else { "" };
    let mut facts = vec![
        format!("agent {}", finished.id),
        session_words(finished.child),
        count(finished.steps.into(), "step"),
        format!("{about}{}", count(finished.usage.total(), "token")),
    ];
    facts.extend(cost_words(&finished.cost));
    facts.extend(finished.worktree.as_ref().map(worktree_words));
    facts.join("; ")
}

/// Where the worktree is, that it stays, what is in it that would be lost with it, and how to see it.
fn worktree_words(worktree: &WorktreeState) -> String {
    let path = &worktree.path;
    let mut words = format!("worktree {path}, which is kept");
    match (worktree.dirty, worktree.dirty_files) {
        (Some(true), Some(files)) => {
            let _ = write!(words, ", with uncommitted changes in {}", count(files, "file"));
        }
        (Some(true), None) => words.push_str(", with uncommitted changes"),
        (Some(false), _) => words.push_str(", nothing uncommitted"),
        (None, _) => words.push_str(", which could not be looked at"),
    }
    let base = worktree.base.as_deref().map(|base| &base[..base.floor_char_boundary(12)]);
    if let (Some(ahead), Some(base)) = (worktree.ahead.filter(|ahead| *ahead > 0), base) {
        let _ = write!(words, ", {} since {base}", count(ahead, "commit"));
    }
    if let Some(unmerged) = worktree.unmerged.filter(|unmerged| *unmerged > 0) {
        let _ = write!(words, ", {} on no branch", count(unmerged, "commit"));
    }
    if let Some(base) = base {
        let _ = write!(words, "; `git -C {path} diff {base}` shows what changed");
    }
    words
}

/// What was spent, as far as it is known.
pub(super) fn cost_words(cost: &Cost) -> Option<String> {
    let known = cost.usd != Money::ZERO;
    let more = if cost.unpriced > 0 { " or more" } else { "" };
    known.then(|| format!("${}{more}", cost.usd))
}

pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// One line for a call about a child, whatever the model wrote.
pub(super) fn order_title(agent: &str, words: &str) -> String {
    let line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().take(80).collect();
    let title = if line.is_empty() { agent.to_owned() } else { format!("{agent}: {line}") };
    title.split(char::is_control).collect::<Vec<_>>().join(" ")
}

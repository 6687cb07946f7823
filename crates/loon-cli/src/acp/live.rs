//! Live output of running calls: a bounded tail of each, told now and then.

use std::collections::HashMap;
use std::time::Duration;

use loon_api::ItemId;
use tokio::time::Instant;

/// Least time between two tellings of one call's output.
const INTERVAL: Duration = Duration::from_millis(250);

/// Most bytes of output that are kept of one call. The result has the rest.
const MAX_TAIL: usize = 8 * 1024;

/// The output of calls that run.
#[derive(Default)]
pub(super) struct LiveOutput {
    calls: HashMap<ItemId, Tail>,
}

#[derive(Default)]
struct Tail {
    text: String,
    /// More came before it.
    cut: bool,
    /// When what came since is to be told; absent if nothing came.
    due: Option<Instant>,
    told: Option<Instant>,
}

impl LiveOutput {
    /// Takes in more output.
    pub(super) fn push(&mut self, item: &ItemId, text: &str, now: Instant) {
        let tail = self.calls.entry(item.clone()).or_default();
        tail.text.push_str(text);
        if tail.text.len() > 2 * MAX_TAIL {
            let start = tail.text.ceil_char_boundary(tail.text.len() - MAX_TAIL);
            tail.text.drain(..start);
            tail.cut = true;
        }
        tail.due.get_or_insert_with(|| tail.told.map_or(now, |told| (told + INTERVAL).max(now)));
    }

    /// The call has ended.
    pub(super) fn forget(&mut self, item: &ItemId) {
        self.calls.remove(item);
    }

    /// When something is to be told next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.calls.values().filter_map(|tail| tail.due).min()
    }

    /// What is to be told now: the newest output of each call of which there is more.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(ItemId, String)> {
        let mut told = Vec::new();
        for (item, tail) in &mut self.calls {
            if tail.due.is_none_or(|due| due > now) {
                continue;
            }
            (tail.due, tail.told) = (None, Some(now));
            let start = tail.text.ceil_char_boundary(tail.text.len().saturating_sub(MAX_TAIL));
            let dots = if tail.cut || start > 0 { "…\n" } else { "" };
            told.push((item.clone(), format!("{dots}{}", &tail.text[start..])));
        }
        told.sort();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_output_is_told_at_once_and_more_after_a_while() {
        let (mut live, begin) = (LiveOutput::default(), Instant::now());
        let item = ItemId::call(1, 0, 0);
        live.push(&item, "a\n", begin);
        assert_eq!(live.take_due(begin), [(item.clone(), "a\n".to_owned())]);
        live.push(&item, "b\n", begin);
        assert_eq!(live.take_due(begin), []);
        assert_eq!(live.next_due(), Some(begin + INTERVAL));
        assert_eq!(live.take_due(begin + INTERVAL), [(item.clone(), "a\nb\n".to_owned())]);
        assert_eq!(live.next_due(), None);
        live.push(&item, "c\n", begin);
        live.forget(&item);
        assert_eq!(live.next_due(), None);
    }

    #[test]
    fn output_without_end_is_bounded() {
        let (mut live, begin) = (LiveOutput::default(), Instant::now());
        let item = ItemId::call(1, 0, 0);
        for _ in 0..100 {
            live.push(&item, &"é".repeat(1000), begin);
            assert!(live.calls[&item].text.len() <= 2 * MAX_TAIL);
        }
        let [(_, told)] = &live.take_due(begin)[..] else { panic!("one call") };
        assert!(told.starts_with("…\né") && told.len() <= MAX_TAIL + 8);
    }
}

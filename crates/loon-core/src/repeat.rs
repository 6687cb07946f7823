//! Calls that go in circles: the same call with the same result, again and again.

use loon_api::{Item, ItemBody, ToolCallItem};
use serde_json::Value;

/// So many times in a row are told to the model and the user, and then ever more rarely.
const TOLD: u32 = 3;

/// So many times in a row end a turn that a person can look at and go on with.
const ENDS_ATTENDED: u32 = 9;

/// The same where nobody is there: a program may well wait by asking again and again.
const ENDS_UNATTENDED: u32 = 250;

/// Counts how often the newest call came in a row.
#[derive(Debug)]
pub(crate) struct RepeatGuard {
    ends: u32,
    tells: u32,
    last: Option<Call>,
    times: u32,
}

#[derive(Debug, PartialEq)]
struct Call {
    tool: String,
    arguments: Value,
    result: Option<String>,
}

impl Call {
    fn of(call: &ToolCallItem) -> Self {
        Self {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            result: call.result.as_ref().map(|result| result.text.clone()),
        }
    }
}

/// What a call that came again means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The model should hear of it, in these words.
    Tell(String),
    /// The turn should end, for this reason.
    End(String),
}

impl RepeatGuard {
    pub(crate) fn new(unattended: bool) -> Self {
        let ends = if unattended { ENDS_UNATTENDED } else { ENDS_ATTENDED };
        Self { ends, tells: TOLD, last: None, times: 0 }
    }

    /// Looks at a finished call.
    pub(crate) fn look_at(&mut self, item: &Item) -> Option<Repeat> {
        let ItemBody::ToolCall(call) = &item.body else { return None };
        let call = Call::of(call);
        if self.last.as_ref() == Some(&call) {
            self.times += 1;
        } else {
            self.times = 1;
            self.tells = TOLD;
            self.last = Some(call);
        }
        let (tool, times) = (&self.last.as_ref()?.tool, self.times);
        if times >= self.ends {
            return Some(Repeat::End(format!(
                "The model made the same call of {tool} with the same result {times} times in a row."
            )));
        }
        if times < self.tells {
            return None;
        }
        self.tells *= TOLD;
        Some(Repeat::Tell(format!(
            "The same call of {tool} gave the same result {times} times in a row. Making it again \
             will not change that: try another way, or say what is missing."
        )))
    }
}

#[cfg(test)]
mod tests {
    use loon_api::{CallId, ItemId, ToolResult};
    use serde_json::json;

    use super::*;

    fn call(path: &str, text: &str) -> Item {
        let waiting = ToolCallItem::waiting(CallId::of(1, 0, 0), "read", json!({ "path": path }));
        let body =
            ItemBody::ToolCall(ToolCallItem { result: Some(ToolResult::ok(text)), ..waiting });
        Item { id: ItemId::call(1, 0, 0), turn: 1, body }
    }

    #[test]
    fn only_the_same_call_with_the_same_result_in_a_row_counts() {
        let mut guard = RepeatGuard::new(false);
        for (path, text) in [("a", "x"), ("a", "x"), ("a", "y"), ("a", "x"), ("b", "x"), ("a", "x")]
        {
            assert_eq!(guard.look_at(&call(path, text)), None);
        }
        assert_eq!(guard.look_at(&call("a", "x")), None);
        assert!(matches!(guard.look_at(&call("a", "x")), Some(Repeat::Tell(_))));
    }

    #[test]
    fn a_model_that_does_not_listen_is_stopped() {
        let mut guard = RepeatGuard::new(false);
        let seen: Vec<_> = (0..9).map(|_| guard.look_at(&call("a", "x"))).collect();
        let told = seen.iter().flatten().filter(|repeat| matches!(repeat, Repeat::Tell(_))).count();
        assert_eq!(told, 1);
        assert!(matches!(seen.last(), Some(Some(Repeat::End(_)))));
    }
}

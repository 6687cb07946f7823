//! A session's transcript as a page that needs nothing else. Whatever was said is text, never markup.

use std::fmt::Write as _;

use loon_api::{ExecutionId, Item, ItemBody, ToolCallItem};
use loon_core::Conversation;

use crate::safe::plain;

const STYLE: &str = "body{max-width:60rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,\
sans-serif;color:#222;background:#fff}pre{white-space:pre-wrap;overflow-wrap:anywhere;font:14px/1.45 \
ui-monospace,monospace;margin:.5rem 0}.user{border-left:3px solid #2563a8;padding-left:1rem;\
font-weight:600}.tool{color:#555}.tool pre{background:#f5f5f5;padding:.6rem}.notice{font-style:italic}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}.tool{color:#aaa}.tool pre\
{background:#222}}";

/// The page.
pub(super) fn page(exec: ExecutionId, conversation: &Conversation) -> String {
    let title = escaped(conversation.title().unwrap_or("Untitled"));
    let model = conversation.model().map(|model| format!(", {}", escaped(model)));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n\
         <p>Session {exec}{}</p>\n",
        model.unwrap_or_default(),
    );
    for item in conversation.items() {
        write_item(&mut page, item);
    }
    page.push_str("</html>\n");
    page
}

fn write_item(page: &mut String, item: &Item) {
    let id = escaped(item.id.as_str());
    let mut part = |class: &str, text: &str| {
        let _ = writeln!(page, "<section id=\"{id}\" class=\"{class}\">{text}</section>");
    };
    match &item.body {
        ItemBody::UserMessage { text, .. } => part("user", &pre(text)),
        ItemBody::AssistantMessage { text, incomplete } => {
            let mark = if *incomplete { "<p>(incomplete)</p>" } else { "" };
            part("assistant", &format!("{}{mark}", pre(text)));
        }
        ItemBody::Thinking(_) => {}
        ItemBody::Notice { text, .. } => part("notice", &pre(text)),
        ItemBody::Compaction(compaction) => {
            let (before, after) = (compaction.tokens_before, compaction.tokens_after);
            let handoff = pre(compaction.handoff.as_deref().unwrap_or_default());
            let title = format!("compacted: about {before} to {after} tokens");
            part("notice", &format!("<details><summary>{title}</summary>{handoff}</details>"));
        }
        ItemBody::ToolCall(call) => part("tool", &write_call(call)),
    }
}

fn write_call(call: &ToolCallItem) -> String {
    let status = serde_json::to_value(call.status).ok();
    let status = status.as_ref().and_then(|status| status.as_str()).unwrap_or_default();
    let mut text = format!(
        "<details><summary><b>{}</b> <code>{}</code> ({status}) {}</summary>",
        escaped(&call.tool),
        escaped(&call.title),
        escaped(&call.summary),
    );
    if !call.guidance_given().is_empty() {
        let files: Vec<&str> =
            call.guidance_given().iter().map(|file| file.path.as_str()).collect();
        let words = format!("with the instructions in {}", files.join(", "));
        text.extend(["<p>", &escaped(&words), "</p>"]);
    }
    for change in &call.changes {
        text.push_str(&pre(&change.diff));
    }
    if let Some(result) = call.result.as_ref().filter(|_| call.changes.is_empty()) {
        text.push_str(&pre(&result.text));
    }
    text + "</details>"
}

fn pre(text: &str) -> String {
    format!("<pre>{}</pre>", escaped(text.trim_end()))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_never_markup() {
        assert_eq!(
            escaped("<script>\"a\" & b</script>\x1b[2J"),
            "&lt;script&gt;&quot;a&quot; &amp; b&lt;/script&gt;\u{fffd}[2J"
        );
    }
}

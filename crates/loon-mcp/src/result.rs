//! Answers of servers as text for a model: safe, bounded as a whole, the rest in a file.

use std::fmt::Write as _;

use loon_kernel::ToolOutput;
use serde_json::Value;

use crate::results::Results;
use crate::words::{line, safe, size};

/// Most bytes of a text that a model reads at once.
const MOST: usize = 32 * 1024;

/// Of a longer one, bytes of its beginning and of its end.
const HEAD: usize = 20 * 1024;
const TAIL: usize = 8 * 1024;

/// Where the rest of long results goes, and how the server's resources are read.
pub(crate) struct Place<'a> {
    pub(crate) results: &'a Results,
    /// Name of the tool that reads resources of the server, if it has any.
    pub(crate) reader: Option<&'a str>,
}

/// What a call of a tool gave.
pub(crate) fn of_call(answer: &Value, place: &Place<'_>) -> ToolOutput {
    let failed = answer.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let mut text = blocks(answer.get("content"), place);
    if text.trim().is_empty()
        && let Some(structured) = answer.get("structuredContent").filter(|value| !value.is_null())
    {
        text = safe(&structured.to_string());
    }
    match (text.trim().is_empty(), failed) {
        (true, true) => ToolOutput::error("The tool failed and gave no reason."),
        (true, false) => ToolOutput::ok("The tool gave nothing back.", "no output"),
        (false, failed) => {
            let output = bounded(text, place.results);
            if failed { ToolOutput::error(output.result.text) } else { output }
        }
    }
}

/// What reading a resource gave.
pub(crate) fn of_resource(answer: &Value, place: &Place<'_>) -> ToolOutput {
    let contents = answer.get("contents").and_then(Value::as_array);
    let mut text = String::new();
    for content in contents.into_iter().flatten() {
        separate(&mut text);
        resource(content, &mut text);
    }
    if text.is_empty() {
        return ToolOutput::error("The server gave no content for this resource.");
    }
    bounded(text, place.results)
}

/// What asking for a prompt gave.
pub(crate) fn of_prompt(answer: &Value, place: &Place<'_>) -> ToolOutput {
    let mut text = String::new();
    if let Some(said) = answer.get("description").and_then(Value::as_str) {
        let _ = writeln!(text, "{}", safe(said));
    }
    for message in answer.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("unknown");
        separate(&mut text);
        let _ = writeln!(text, "[{}]", line(role, 40));
        if let Some(content) = message.get("content") {
            block(content, place, &mut text);
        }
    }
    if text.is_empty() {
        return ToolOutput::error("The server gave nothing for this prompt.");
    }
    bounded(text, place.results)
}

/// The text, or its beginning and end with the name of the file that holds all of it.
pub(crate) fn bounded(text: String, results: &Results) -> ToolOutput {
    let lines = text.lines().count();
    let summary = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    if text.len() <= MOST {
        return ToolOutput::ok(text, summary);
    }
    let head = &text[..text.floor_char_boundary(HEAD)];
    let head = &head[..head.rfind('\n').map_or(head.len(), |at| at + 1)];
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL)..];
    let tail = &tail[tail.find('\n').map_or(0, |at| at + 1)..];
    let omitted = text.len() - head.len() - tail.len();
    let (head, tail, whole) = (head.to_owned(), tail.to_owned(), size(text.len()));
    let note = match results.keep(text) {
        Ok(path) => format!(
            "[... {omitted} bytes left out here; all {lines} lines ({whole}) are in {}: read or grep \
             that file for the rest ...]",
            path.display()
        ),
        Err(error) => {
            format!(
                "[... {omitted} bytes left out here, and the rest could not be kept: {error} ...]"
            )
        }
    };
    let break_ = if head.ends_with('\n') { "" } else { "\n" };
    ToolOutput::ok(format!("{head}{break_}{note}\n{tail}"), summary)
}

fn blocks(content: Option<&Value>, place: &Place<'_>) -> String {
    let mut text = String::new();
    match content {
        Some(Value::Array(content)) => {
            for content in content {
                separate(&mut text);
                block(content, place, &mut text);
            }
        }
        // Some servers forget the list around one block, or send bare text.
        Some(Value::String(bare)) => text.push_str(&safe(bare)),
        Some(one @ Value::Object(_)) => block(one, place, &mut text),
        _ => {}
    }
    text
}

fn separate(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn block(content: &Value, place: &Place<'_>, text: &mut String) {
    let said = |member: &str| content.get(member).and_then(Value::as_str);
    let kind = said("type").unwrap_or_default();
    match kind {
        "text" => text.push_str(&safe(said("text").unwrap_or_default())),
        "image" | "audio" => {
            let mime = line(said("mimeType").unwrap_or("of unknown type"), 100);
            let bytes = decoded(said("data").unwrap_or_default());
            let _ = write!(text, "[{kind}, {mime}, {}: not shown]", size(bytes));
        }
        "resource_link" => {
            let uri = line(said("uri").unwrap_or_default(), 2000);
            let name =
                said("title").or(said("name")).map(|name| line(name, 200)).unwrap_or_default();
            let _ = write!(text, "[resource {uri}");
            if !name.is_empty() && name != uri {
                let _ = write!(text, " ({name})");
            }
            match place.reader {
                Some(reader) => {
                    let _ = write!(text, ": read it with {reader}]");
                }
                None => text.push(']'),
            }
        }
        "resource" => match content.get("resource") {
            Some(inner) => resource(inner, text),
            None => text.push_str("[a resource without content]"),
        },
        "" => text.push_str(&safe(&content.to_string())),
        other => {
            let _ = write!(text, "[content of the unknown type {:?}]", line(other, 60));
        }
    }
}

fn resource(content: &Value, text: &mut String) {
    let said = |member: &str| content.get(member).and_then(Value::as_str);
    let uri = line(said("uri").unwrap_or_default(), 2000);
    if let Some(words) = said("text") {
        let _ = writeln!(text, "[resource {uri}]");
        text.push_str(&safe(words));
    } else {
        let mime = line(said("mimeType").unwrap_or("of unknown type"), 100);
        let bytes = decoded(said("blob").unwrap_or_default());
        let _ = write!(text, "[resource {uri}, {mime}, {} of binary data: not shown]", size(bytes));
    }
}

/// Bytes that base64 text stands for.
fn decoded(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests;

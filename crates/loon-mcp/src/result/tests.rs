//! What becomes of answers.

use loon_kernel::Redactor;
use serde_json::json;

use super::*;

fn results() -> (tempfile::TempDir, Results) {
    let dir = tempfile::tempdir().unwrap();
    let results = Results::new(dir.path().join("r"), Redactor::default());
    (dir, results)
}

fn called(answer: &Value) -> ToolOutput {
    let (_dir, results) = results();
    of_call(answer, &Place { results: &results, reader: Some("mcp__lab__read_resource") })
}

#[test]
fn every_kind_of_content_is_said_in_words() {
    let answer = json!({"content": [
        {"type": "text", "text": "a\u{1b}[31m"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "audio", "mimeType": "audio/wav", "data": "AA=="},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "a://b", "blob": "AA==", "mimeType": "x/y"}},
        {"type": "resource", "resource": {"uri": "a://c", "text": "inner"}},
        {"type": "hologram"},
    ], "structuredContent": {"not": "said twice"}});
    let expected = "a\u{241b}[31m\n\
        [image, image/png, 3 bytes: not shown]\n\
        [audio, audio/wav, 1 bytes: not shown]\n\
        [resource file:///x (x): read it with mcp__lab__read_resource]\n\
        [resource a://b, x/y, 1 bytes of binary data: not shown]\n\
        [resource a://c]\ninner\n\
        [content of the unknown type \"hologram\"]";
    assert_eq!(called(&answer).result.text, expected);
}

#[test]
fn structure_stands_in_for_missing_text_and_failures_are_failures() {
    assert_eq!(called(&json!({"structuredContent": {"n": 1}})).result.text, r#"{"n":1}"#);
    assert_eq!(called(&json!({"content": "bare"})).result.text, "bare");
    let failed = called(&json!({"content": [], "isError": true}));
    assert_eq!(failed.result.text, "The tool failed and gave no reason.");
    assert!(failed.result.is_error);
    let told =
        called(&json!({"content": [{"type": "text", "text": "no such row"}], "isError": true}));
    assert_eq!((told.result.text.as_str(), told.result.is_error), ("no such row", true));
    assert!(!called(&json!({})).result.is_error);
}

#[test]
fn a_long_result_is_a_file_with_a_preview() {
    let (_dir, results) = results();
    let rows: Vec<String> = (0..400_000).map(|row| format!("row {row}\n")).collect();
    let rows = rows.concat();
    let output = bounded(rows.clone(), &results);
    let text = &output.result.text;
    assert!(text.len() <= MOST, "{}", text.len());
    assert!(text.starts_with("row 0\nrow 1\n") && text.ends_with("row 399999\n"));
    assert_eq!(output.summary, "400000 lines");
    let path = text.split("are in ").nth(1).unwrap().split(": read").next().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), rows);
    let one_line = "x".repeat(5 << 20);
    assert!(bounded(one_line, &results).result.text.len() <= MOST);
}

#[test]
fn prompts_and_resources_are_read() {
    let (_dir, results) = results();
    let place = Place { results: &results, reader: None };
    let prompt = json!({"description": "Asks.", "messages": [
        {"role": "user", "content": {"type": "text", "text": "Review this."}},
        {"role": "assistant", "content": {"type": "text", "text": "Gladly."}},
    ]});
    let text = "Asks.\n[user]\nReview this.\n[assistant]\nGladly.";
    assert_eq!(of_prompt(&prompt, &place).result.text, text);
    let resource = json!({"contents": [{"uri": "a://b", "text": "words"}]});
    assert_eq!(of_resource(&resource, &place).result.text, "[resource a://b]\nwords");
    assert!(of_resource(&json!({"contents": []}), &place).result.is_error);
}

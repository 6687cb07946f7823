//! Tests of `json_edit` on real files.

use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

fn edit(fixture: &Fixture, edits: &Value) -> ToolOutput {
    run(&JsonEdit::new(&fixture.workspace), json!({"path": "a.json", "edits": edits}))
}

fn refused(fixture: &Fixture, edits: &Value) -> String {
    let before = fixture.bytes("a.json");
    let output = edit(fixture, edits);
    assert!(output.result.is_error, "{}", output.result.text);
    assert_eq!(fixture.bytes("a.json"), before);
    output.result.text
}

#[test]
fn only_the_value_changes() {
    let fixture = Fixture::new();
    let file = "\u{FEFF}{\r\n\t\"big\" : 12345678901234567890123,\r\n\t\"n\":1.10, \"s\": \"\\u00e9\"\r\n}";
    fixture.put_seen("a.json", file);
    let output = edit(
        &fixture,
        &json!([
            {"op": "set", "pointer": "/n", "value": 2},
            {"op": "add", "pointer": "/new", "value": {"k": [null]}},
        ]),
    );
    assert_eq!(
        output.result.text,
        "Edited a.json, +6 -1 lines.\n2\t\t\"big\" : 12345678901234567890123,\n3\t\t\"n\":2, \"s\": \
         \"\\u00e9\",\n4\t\t\"new\" : {\n5\t\t\t\"k\" : [\n6\t\t\t\tnull\n7\t\t\t]\n8\t\t}\n9\t}"
    );
    assert_eq!(output.summary, "+6 -1");
    assert_eq!(
        fixture.text("a.json"),
        file.replace("1.10", "2").replace(
            "\"\r\n}",
            "\",\r\n\t\"new\" : {\r\n\t\t\"k\" : [\r\n\t\t\tnull\r\n\t\t]\r\n\t}\r\n}"
        )
    );
}

#[test]
fn all_edits_are_made_or_none() {
    let fixture = Fixture::new();
    fixture.put_seen("a.json", "{\"a\": 1, \"b\": 2}\n");
    assert_eq!(
        refused(
            &fixture,
            &json!([{"op": "remove", "pointer": "/a"}, {"op": "remove", "pointer": "/c/d"}])
        ),
        "Nothing was written. a.json: edit 2 of 2: /c/d is not there: The document is an object \
         with the keys b."
    );
    assert!(refused(&fixture, &json!([{"op": "set", "pointer": "/a"}])).contains("Give the value"));
    assert!(refused(&fixture, &json!([])).contains("at least one edit"));
    assert!(
        refused(&fixture, &json!([{"op": "set", "pointer": "/a", "value": 1}]))
            .contains("has these values already")
    );
}

#[test]
fn a_file_must_be_known_and_be_json() {
    let fixture = Fixture::new();
    fixture.put("a.json", "{\"a\": 1}");
    let set = json!([{"op": "set", "pointer": "/a", "value": 2}]);
    assert!(refused(&fixture, &set).contains("was not read in this session"));
    let read = crate::read_json::ReadJson::new(&fixture.workspace);
    assert!(!run(&read, json!({"path": "a.json"})).result.is_error);
    assert!(!edit(&fixture, &set).result.is_error);
    assert_eq!(fixture.text("a.json"), "{\"a\": 2}");
    fixture.put("a.json", "{\"a\": 3}");
    assert!(refused(&fixture, &set).contains("changed on disk since it was read"));
    fixture.put_seen("a.json", "{\"a\": 1, // one\n}");
    assert!(refused(&fixture, &set).contains("line 1, column 10: key must be a string. Comments"));
}

#[test]
fn null_is_a_value() {
    let fixture = Fixture::new();
    fixture.put_seen("a.json", "{\"a\": 1}");
    assert!(
        !edit(&fixture, &json!([{"op": "set", "pointer": "/a", "value": null}])).result.is_error
    );
    assert_eq!(fixture.text("a.json"), "{\"a\": null}");
}

#[test]
fn values_that_may_be_meant_otherwise_are_told() {
    let fixture = Fixture::new();
    fixture.put_seen("a.json", "{\"a\": 1}");
    let output = edit(
        &fixture,
        &json!([
            {"op": "set", "pointer": "/a", "value": "[1]"},
            {"op": "set", "pointer": "/b", "value": 1e30},
        ]),
    );
    let text = output.result.text;
    assert!(text.contains("/a is a string now that holds JSON, not the JSON itself."), "{text}");
    assert!(text.contains("A number at /b has more digits than are kept; check it."), "{text}");
}

#[test]
fn a_file_in_another_encoding_stays_in_it() {
    let fixture = Fixture::new();
    fixture.put_seen("a.json", b"{\"a\": \"caf\xe9\"}");
    assert!(
        !edit(&fixture, &json!([{"op": "add", "pointer": "/b", "value": "語é"}])).result.is_error
    );
    assert_eq!(fixture.bytes("a.json"), b"{\"a\": \"caf\xe9\", \"b\": \"\\u8a9e\\u00e9\"}");
}

#[test]
fn the_preview_is_the_diff() {
    let fixture = Fixture::new();
    fixture.put_seen("a.json", "{\"a\": 1}\n");
    let args = serde_json::from_value(
        json!({"path": "a.json", "edits": [{"op": "set", "pointer": "/a", "value": 2}]}),
    );
    assert_eq!(
        JsonEdit::new(&fixture.workspace).preview(&args.unwrap()).unwrap(),
        "--- a/a.json\n+++ b/a.json\n@@ -1 +1 @@\n-{\"a\": 1}\n+{\"a\": 2}\n"
    );
}

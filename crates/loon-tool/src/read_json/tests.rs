//! Tests of `read_json` on real files.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::fixture::{Fixture, run};

fn read(fixture: &Fixture, arguments: Value) -> ToolOutput {
    run(&ReadJson::new(&fixture.workspace), arguments)
}

fn text(fixture: &Fixture, arguments: Value) -> String {
    let output = read(fixture, arguments);
    assert!(!output.result.is_error, "{}", output.result.text);
    output.result.text
}

#[test]
fn a_value_is_shown_with_its_type_and_counts_as_read() {
    let fixture = Fixture::new();
    fixture.put("a.json", "\u{FEFF}{\r\n  \"n\": [1.10, 12345678901234567890123]\r\n}\r\n");
    let output = read(&fixture, json!({"path": "a.json", "pointer": "/n"}));
    assert_eq!(
        output.result.text,
        "[/n: array, 2 elements, 31 bytes, line 2]\n[1.10, 12345678901234567890123]"
    );
    assert_eq!(output.summary, "array, 2 elements, 31 bytes");
    let [read] = output.reads.as_slice() else { panic!("{:?}", output.reads) };
    assert_eq!(read.path, fixture.path("a.json").to_string_lossy());
    assert!(fixture.workspace.read_state(&fixture.path("a.json")).is_some());
}

#[test]
fn keys_that_stand_there_twice_are_told() {
    let fixture = Fixture::new();
    fixture.put("a.json", "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}, \"a\": 3}");
    assert!(
        text(&fixture, json!({"path": "a.json"}))
            .contains("\n[key \"a\" stands here 2 times; programs mostly take the last]\n")
    );
    assert_eq!(
        text(&fixture, json!({"path": "a.json", "pointer": "/b/c"})),
        "[/b/c: number, line 1]\n[/b/c stands there 2 times; programs mostly take the last]\n2"
    );
}

#[test]
fn a_large_value_is_shown_by_its_shape_page_by_page() {
    let fixture = Fixture::new();
    let mut items = Vec::new();
    for number in 0..3000 {
        items.push(json!({"id": number, "text": "x".repeat(100)}));
    }
    fixture.put("a.json", json!({"items": items, "name": "short"}).to_string());
    let whole = text(&fixture, json!({"path": "a.json"}));
    let size = text::size(json!(items).to_string().len() as u64);
    let end = format!("\n\"items\": (array, 3000 elements, {size})\n\"name\": \"short\"\n");
    assert!(whole.ends_with(&end), "{whole}");

    let mut seen = String::new();
    let mut offset = 0;
    while offset < 3000 {
        let page = text(&fixture, json!({"path": "a.json", "pointer": "/items", "offset": offset}));
        assert!(page.len() < 20_000);
        let mut lines = page.lines().skip(1);
        for line in lines.by_ref().take_while(|line| !line.starts_with('[')) {
            let _ = writeln!(seen, "{line}");
            offset += 1;
        }
    }
    assert!(seen.starts_with("0: (object, 2 keys, 118 bytes)\n1: (object"));
    assert!(seen.ends_with("\n2999: (object, 2 keys, 121 bytes)\n"));
    assert_eq!(seen.lines().count(), 3000);
    let past = read(&fixture, json!({"path": "a.json", "pointer": "/items", "offset": 3000}));
    assert_eq!(past.result.text, "Offset 3000 is past the end: the value has 3000 entries.");
}

#[test]
fn a_long_string_is_shown_in_parts() {
    let fixture = Fixture::new();
    fixture.put("a.json", json!(["ä\n".repeat(20_000)]).to_string());
    let first = text(&fixture, json!({"path": "a.json", "pointer": "/0"}));
    assert!(first.starts_with("[/0: string, 40000 characters, line 1]\nä\nä\n"));
    assert!(first.ends_with("\n[character 0-4095 of 40000; go on with offset 4096]\n"));
    let last = text(&fixture, json!({"path": "a.json", "pointer": "/0", "offset": 39_996}));
    assert!(last.ends_with("]\nä\nä\n\n"), "{last}");
}

#[test]
fn what_is_wrong_is_said() {
    let fixture = Fixture::new();
    fixture.put("tsconfig.json", "{\n  // comment\n  \"a\": 1\n}");
    fixture.put("a.json", "{\"a\": 1}");
    fixture.put("p.png", b"\x89PNG\r\n\x1a\n\0\0");
    let refused = |arguments: Value| {
        let output = read(&fixture, arguments);
        assert!(output.result.is_error && output.reads.is_empty());
        output.result.text
    };
    assert_eq!(
        refused(json!({"path": "tsconfig.json"})),
        "tsconfig.json is no valid JSON: line 2, column 3: key must be a string. Comments are no \
         JSON; use read and edit for this file."
    );
    assert_eq!(
        refused(json!({"path": "a.json", "pointer": "/b"})),
        "a.json: /b is not there: The document is an object with the keys a."
    );
    assert_eq!(refused(json!({"path": "b.json"})), "b.json does not exist. Did you mean a.json?");
    assert_eq!(refused(json!({"path": "p.png"})), "p.png is no text but a PNG image.");
    assert_eq!(refused(json!({"path": "."})), ". is a folder, not a file.");
}

//! Tests of the JSON scanner, pointers, layout and changes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::change::{Change, add, remove, set};
use super::layout::Layout;
use super::pointer::Pointer;
use super::show::{brief, extent, pretty};
use super::*;

fn pointer(written: &str) -> Pointer {
    Pointer::parse(written).unwrap()
}

fn at<'a>(text: &'a str, written: &str) -> &'a str {
    pointer(written).find(Node::parse(text).unwrap()).unwrap().node.raw()
}

fn missing(text: &str, written: &str) -> String {
    pointer(written).find(Node::parse(text).unwrap()).unwrap_err()
}

fn spliced(text: &str, change: Change) -> String {
    let mut out = text.to_owned();
    out.replace_range(change.span, &change.new);
    out
}

fn change(
    text: &str,
    make: impl FnOnce(Node<'_>, &Layout) -> Result<Change, String>,
) -> Result<String, String> {
    let root = Node::parse(text).unwrap();
    Ok(spliced(text, make(root, &Layout::of(root, false))?))
}

fn did_set(text: &str, place: &str, value: &Value) -> String {
    change(text, |root, layout| set(root, &pointer(place), value, layout)).unwrap()
}

fn did_add(text: &str, place: &str, value: &Value) -> String {
    change(text, |root, layout| add(root, &pointer(place), value, layout)).unwrap()
}

fn did_remove(text: &str, place: &str) -> String {
    change(text, |root, _| remove(root, &pointer(place))).unwrap()
}

#[test]
fn pointers_lead_to_values_as_they_are_written() {
    let text = r#" {"a": [1.10, {"x/y": 1e400, "~": null}], "": "e\u0301", "\u0061b": [ ]} "#;
    assert_eq!(at(text, "/a/0"), "1.10");
    assert_eq!(at(text, "/a/1/x~1y"), "1e400");
    assert_eq!(at(text, "/a/1/~0"), "null");
    assert_eq!(at(text, "/"), r#""e\u0301""#);
    assert_eq!(at(text, "/ab"), "[ ]");
    assert_eq!(at(text, ""), text.trim());
    assert_eq!(at(r#"{"a":1,"a":2}"#, "/a"), "2");
}

#[test]
fn what_is_not_there_is_told_from_the_nearest_value_on() {
    let text = r#"{"scripts": {"test": "x"}, "list": [1, 2], "none": {}}"#;
    assert_eq!(
        missing(text, "/scripts/biuld"),
        "/scripts/biuld is not there: /scripts is an object with the keys test."
    );
    assert_eq!(missing(text, "/list/2"), "/list/2 is not there: /list is an array of 2 elements.");
    assert_eq!(
        missing(text, "/list/x"),
        "/list/x is not there: /list is an array of 2 elements and has no keys."
    );
    assert_eq!(missing(text, "/list/00"), missing(text, "/list/x").replace("/x", "/00"));
    assert_eq!(
        missing(text, "/scripts/test/deep/er"),
        "/scripts/test/deep/er is not there: /scripts/test is a string."
    );
    assert_eq!(missing(text, "/none/a"), "/none/a is not there: /none is an empty object.");
    assert_eq!(
        missing(text, "/a"),
        "/a is not there: The document is an object with the keys scripts, list, none."
    );
    assert!(Pointer::parse("a.b").unwrap_err().starts_with("a.b is no JSON Pointer: it begins"));
    assert!(Pointer::parse("/a~2").unwrap_err().contains("write ~0 for ~"));
    assert!(Pointer::parse("/a~").is_err());
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    let problem = |text: &str| Node::parse(text).unwrap_err();
    assert_eq!(
        problem("{\n  // why\n  \"a\": 1\n}"),
        "line 2, column 3: key must be a string. Comments are no JSON; use read and edit for this \
         file."
    );
    assert_eq!(
        problem("{\"ü\": 1,}"),
        "line 1, column 9: key must be a string. JSON has no comma before a closing bracket; use \
         read and edit for this file."
    );
    assert!(problem("{\"a\":1}\n{\"a\":2}\n").contains("JSON Lines"));
    assert!(problem("").contains("The file is empty."));
    assert!(problem("{'a': 1}").starts_with("line 1, column 2: key must be a string."));
    assert!(problem("[\"a\nb\"]").contains("control character"));
    assert!(problem("[01]").starts_with("line 1, column 3"));
}

#[test]
fn any_depth_and_any_escape_is_read() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let root = Node::parse(&deep).unwrap();
    assert_eq!(root.span(), 0..400_000);
    assert_eq!(root.elements().count(), 1);
    assert_eq!(pretty(root, 1000), None);
    let text = |raw: &str| Node::parse(raw).unwrap().string().unwrap().into_owned();
    assert_eq!(text(r#""\ud83d\ude00\n\t\"\\\/\b\f\r""#), "\u{1F600}\n\t\"\\/\u{8}\u{c}\r");
    assert_eq!(text(r#""\ud83dx \ud83d\u0041""#), "\u{FFFD}x \u{FFFD}A");
}

#[test]
fn values_are_shown_with_every_scalar_as_it_is_written() {
    let text = r#"{"a":[1.10,2E5,"\u00e9"],"b":{"long":"0123456789012345678901234567890123456789","er":"0123456789012345678901234567890123456789"},"c":{}}"#;
    let root = Node::parse(text).unwrap();
    assert_eq!(
        pretty(root, 1000).unwrap(),
        "{\n  \"a\": [1.10, 2E5, \"\\u00e9\"],\n  \"b\": {\n    \"long\": \
         \"0123456789012345678901234567890123456789\",\n    \"er\": \
         \"0123456789012345678901234567890123456789\"\n  },\n  \"c\": {}\n}"
    );
    assert_eq!(pretty(root, 50), None);
    assert_eq!(extent(root), "object, 3 keys, 136 bytes");
    assert_eq!(brief(root.get("a").unwrap()), r#"[1.10, 2E5, "\u00e9"]"#);
    assert_eq!(brief(root), "(object, 3 keys, 136 bytes)");
}

const PACKAGE: &str = "{\n    \"name\": \"a\",\n    \"version\": \"1.10\",\n    \"files\": \
                       [\"lib\", \"bin\"],\n    \"scripts\": {\n        \"test\": \"x\"\n    \
                       },\n    \"empty\": {}\n}\n";

#[test]
fn new_values_take_the_layout_of_their_surroundings() {
    assert_eq!(
        did_set(PACKAGE, "/scripts/build", &json!("y")),
        PACKAGE.replace("\"x\"", "\"x\",\n        \"build\": \"y\"")
    );
    assert_eq!(
        did_set(PACKAGE, "/empty", &json!({"a": [1, {}]})),
        PACKAGE
            .replace("{}", "{\n        \"a\": [\n            1,\n            {}\n        ]\n    }")
    );
    assert_eq!(
        did_set(PACKAGE, "/empty/k", &json!(true)),
        PACKAGE.replace("{}", "{\n        \"k\": true\n    }")
    );
    assert_eq!(
        did_set(PACKAGE, "/files", &json!(["lib"])),
        PACKAGE.replace("[\"lib\", \"bin\"]", "[\"lib\"]")
    );
    assert_eq!(
        did_add(PACKAGE, "/files/-", &json!("doc")),
        PACKAGE.replace("\"bin\"]", "\"bin\", \"doc\"]")
    );
    assert_eq!(
        did_add(PACKAGE, "/files/0", &json!("doc")),
        PACKAGE.replace("[\"lib\"", "[\"doc\", \"lib\"")
    );
    let tabs = "{\n\t\"a\":[\n\t\t1\n\t]\n}";
    assert_eq!(
        did_add(tabs, "/a/0", &json!([2])),
        "{\n\t\"a\":[\n\t\t[\n\t\t\t2\n\t\t],\n\t\t1\n\t]\n}"
    );
    assert_eq!(
        did_add(tabs, "/b", &json!({"c": 1})),
        "{\n\t\"a\":[\n\t\t1\n\t],\n\t\"b\":{\n\t\t\"c\":1\n\t}\n}"
    );
    assert_eq!(
        did_set("{\"a\":1,\"b\":[1,2]}", "/b", &json!({"c": [1, 2]})),
        "{\"a\":1,\"b\":{\"c\":[1,2]}}"
    );
    assert_eq!(did_set("{\"a\": 1}", "/b", &json!([1, 2])), "{\"a\": 1, \"b\": [1, 2]}");
    assert_eq!(did_set("{}", "/a", &json!(1)), "{\n  \"a\": 1\n}");
    assert_eq!(did_set("[1]", "", &json!({"a": 1})), "{\"a\": 1}");
    assert_eq!(
        did_set("{\"\\u00e9\": 1}", "/x", &json!("ü😀")),
        "{\"\\u00e9\": 1, \"x\": \"\\u00fc\\ud83d\\ude00\"}"
    );
}

#[test]
fn removals_take_one_comma_with_them() {
    assert_eq!(did_remove(PACKAGE, "/name"), PACKAGE.replace("\"name\": \"a\",\n    ", ""));
    assert_eq!(did_remove(PACKAGE, "/empty"), PACKAGE.replace(",\n    \"empty\": {}", ""));
    assert_eq!(
        did_remove(PACKAGE, "/scripts/test"),
        PACKAGE.replace("{\n        \"test\": \"x\"\n    }", "{}")
    );
    assert_eq!(did_remove("[1 , 2,3]", "/1"), "[1 , 3]");
    assert_eq!(did_remove("[1 , 2,3]", "/2"), "[1 , 2]");
}

#[test]
fn impossible_changes_are_refused() {
    let refused = |place: &str| {
        change(PACKAGE, |root, layout| add(root, &pointer(place), &json!(1), layout)).unwrap_err()
    };
    assert_eq!(
        refused("/files/3"),
        "/files/3 is no place for a new element: /files is an array of 2 elements. Use an index up \
         to 2, or - for the end."
    );
    assert!(refused("/nope/a").starts_with("/nope is not there: The document is an object"));
    assert_eq!(refused("/name/a"), "/name/a is not there: /name is a string.");
    let double = "{\"a\": {\"b\": 1}, \"a\": {\"b\": 2}}";
    let error = change(double, |root, _| remove(root, &pointer("/a/b"))).unwrap_err();
    assert_eq!(error, "/a stands there 2 times; take one of them out by edit first.");
    assert!(change("1", |root, _| remove(root, &pointer(""))).is_err());
}

/// Any JSON value whose numbers are whole.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~äß😀\n\"\\\\/]{0,6}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c/~\"é]{0,2}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A value as text: compact, spaced, or indented by spaces or tabs.
fn text_of(value: &Value, style: u8) -> String {
    match style {
        0 => value.to_string(),
        1 => format!(" {}\n", serde_json::to_string_pretty(value).unwrap()),
        _ => serde_json::to_string_pretty(value).unwrap().replace("\n  ", "\n\t"),
    }
}

/// All pointers into a value.
fn places(value: &Value, here: &str, places: &mut Vec<String>) {
    places.push(here.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                self::places(item, &format!("{here}/{index}"), places);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                self::places(item, &format!("{here}/{key}"), places);
            }
        }
        _ => {}
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// All of the old text but the changed part is in the new one.
fn assert_kept(text: &str, change: &Change, new: &str) {
    assert!(new.starts_with(&text[..change.span.start]));
    assert!(new.ends_with(&text[change.span.end..]));
}

proptest! {
    #[test]
    fn a_change_of_the_text_is_the_change_of_the_value(
        document in value(),
        new in value(),
        style in 0_u8..3,
        pick in any::<prop::sample::Index>(),
    ) {
        let text = text_of(&document, style);
        let root = Node::parse(&text).unwrap();
        let layout = Layout::of(root, false);
        let mut all = Vec::new();
        places(&document, "", &mut all);
        let place = pick.get(&all);

        let planned = set(root, &pointer(place), &new, &layout).unwrap();
        let mut expected = document.clone();
        *expected.pointer_mut(place).unwrap() = new.clone();
        let changed = spliced(&text, planned.clone());
        prop_assert_eq!(parsed(&changed), expected);
        assert_kept(&text, &planned, &changed);
        prop_assert_eq!(planned.span, pointer(place).find(root).unwrap().node.span());

        if let Some((holder, last)) = place.rsplit_once('/') {
            let planned = remove(root, &pointer(place)).unwrap();
            let mut expected = document.clone();
            match expected.pointer_mut(holder).unwrap() {
                Value::Array(items) => drop(items.remove(last.parse().unwrap())),
                Value::Object(map) => {
                    map.shift_remove(&last.replace("~1", "/").replace("~0", "~"));
                }
                _ => unreachable!(),
            }
            let changed = spliced(&text, planned.clone());
            prop_assert_eq!(parsed(&changed), expected);
            assert_kept(&text, &planned, &changed);
        }

        let mut expected = document.clone();
        let (target, added) = match expected.pointer_mut(place).unwrap() {
            Value::Array(items) => {
                items.insert(items.len() / 2, new.clone());
                (format!("{place}/{}", (items.len() - 1) / 2), true)
            }
            Value::Object(map) => {
                map.insert("new key".to_owned(), new.clone());
                (format!("{place}/new key"), true)
            }
            _ => (String::new(), false),
        };
        if added {
            let planned = add(root, &pointer(&target), &new, &layout).unwrap();
            let changed = spliced(&text, planned.clone());
            prop_assert_eq!(parsed(&changed), expected);
            assert_kept(&text, &planned, &changed);
        }
    }

    #[test]
    fn what_is_shown_is_the_value(document in value(), style in 0_u8..3) {
        let text = text_of(&document, style);
        let root = Node::parse(&text).unwrap();
        prop_assert_eq!(parsed(&pretty(root, usize::MAX).unwrap()), document);
    }

    #[test]
    fn no_text_is_too_odd(text in "[\\[\\]{}\",:0-9a\\\\ \n'/ü-]{0,40}") {
        if let Ok(root) = Node::parse(&text) {
            prop_assert_eq!(root.raw(), text.trim());
            let _ = (pretty(root, 100), brief(root), extent(root), root.children().count());
        }
    }
}

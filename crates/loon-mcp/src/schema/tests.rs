//! What is mended, what is refused, and what stays as it is.

use super::*;

fn mended(schema: &Value) -> Value {
    mend(Some(schema)).unwrap().schema
}

#[test]
fn a_good_schema_stays_as_it_is() {
    let schema = json!({"type": "object", "properties": {"q": {"type": ["string", "null"]}}});
    assert_eq!(mend(Some(&schema)), Ok(Mended { schema: schema.clone(), change: None }));
}

#[test]
fn missing_schemas_and_types_are_filled_in() {
    for nothing in [None, Some(json!(null)), Some(json!(true)), Some(json!({}))] {
        let mended = mend(nothing.as_ref()).unwrap();
        assert_eq!(mended.schema, empty());
        assert!(mended.change.is_some());
    }
    let odd = json!({"type": ["object", "null"], "required": "a", "properties": []});
    assert_eq!(mended(&odd), empty());
}

#[test]
fn references_are_resolved_and_loops_end() {
    let schema = json!({
        "type": "object",
        "properties": {
            "r": {"$ref": "#/$defs/R", "description": "the r"},
            "x": {"$ref": "#"},
            "t": {"$ref": "#/$defs/Tree"},
            "no": {"$ref": "https://example.test/x"},
        },
        "$defs": {
            "R": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "Tree": {"type": "object", "properties": {
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
            }},
        },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "r": {"type": "object", "properties": {"n": {"type": "integer"}}, "description": "the r"},
            "x": {},
            "t": {"type": "object", "properties": {"kids": {"type": "array", "items": {}}}},
            "no": {},
        },
    });
    assert_eq!(mended(&schema), expected);
}

#[test]
fn alternatives_at_the_root_become_optional_members() {
    let schema = json!({"anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}, "k": {}}, "required": ["a", "k"]},
        {"type": "object", "properties": {"b": {"type": "string"}, "k": {}}, "required": ["b", "k"]},
    ]});
    let expected = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "k": {}, "b": {"type": "string"}},
        "required": ["k"],
    });
    assert_eq!(mended(&schema), expected);
    let all = json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}], "required": ["b"]});
    assert_eq!(mended(&all)["required"], json!(["b", "a"]));
}

#[test]
fn contradictions_and_booleans_inside_are_mended() {
    let schema = json!({"type": "object", "properties": {
        "e": {"type": "null", "enum": ["A"]}, "any": true, "never": false,
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
    }});
    let expected = json!({"type": "object", "properties": {
        "e": {"enum": ["A"]}, "any": {},
        "pair": {"type": "array", "items": {"type": "string"}},
    }});
    assert_eq!(mended(&schema), expected);
}

#[test]
fn what_no_provider_takes_is_refused_with_a_reason() {
    let huge: Map<String, Value> =
        (0..2000).map(|n| (format!("argument_{n}"), json!({"type": "string"}))).collect();
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let wide = json!({"$ref": "#/$defs/b"});
    let bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {
        "a": {"anyOf": vec![wide; 50]},
        "b": {"anyOf": vec![json!({"$ref": "#/$defs/c"}); 50]},
        "c": {"anyOf": vec![json!({"type": "null"}); 50]},
    }});
    for (schema, why) in [
        (json!({"type": "string"}), "no object"),
        (json!([]), "no object"),
        (json!({"oneOf": [{"type": "string"}]}), "no objects"),
        (json!({"type": "object", "properties": {"$filter": {}}}), "\"$filter\""),
        (json!({"type": "object", "properties": {"a": {"properties": {"b c": {}}}}}), "\"b c\""),
        (json!({"type": "object", "properties": huge}), "more than 24576 bytes"),
        (deep, "too deep"),
        (bomb, "too large"),
    ] {
        let reason = mend(Some(&schema)).unwrap_err();
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn long_descriptions_give_way() {
    let members: Map<String, Value> = (0..60)
        .map(|n| (format!("a{n}"), json!({"type": "string", "description": "x".repeat(1000)})))
        .chain([("description".to_owned(), json!({"type": "string"}))])
        .collect();
    let mended = mend(Some(&json!({"type": "object", "properties": members}))).unwrap();
    assert_eq!(mended.schema["properties"]["a1"], json!({"type": "string"}));
    assert_eq!(mended.schema["properties"]["description"], json!({"type": "string"}));
    assert!(mended.change.is_some_and(|change| change.contains("descriptions")));
}

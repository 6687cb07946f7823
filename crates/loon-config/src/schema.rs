//! The schema of the settings, and what is read from it: unknown keys, ranges, defaults, secrets, and
//! what a folder may set that nobody trusts.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::error::ConfigError;
use crate::key;
use crate::settings::Settings;

/// What stands in the place of a secret.
pub const MASK: &str = "********";

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Settings>()
        .to_value();
    drop_null(&mut schema);
    schema
});

/// JSON Schema (2020-12) of a settings file, without references. Fields carry `title`,
/// `description`, `default` and ranges; `readOnly` fields cannot be set, `writeOnly` ones are secret;
/// `x-live`, `x-untrusted` and `x-strict` are explained in [`crate::Settings`].
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// TOML has no null: what may be absent is absent.
fn drop_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("default").is_some_and(Value::is_null) {
                map.shift_remove("default");
            }
            if let Some(types) = map.get_mut("type")
                && let Some(list) = types.as_array_mut()
            {
                list.retain(|name| name != "null");
                if let [only] = list.as_slice() {
                    *types = only.clone();
                }
            }
            if let Some(list) = map.get_mut("enum").and_then(Value::as_array_mut) {
                list.retain(|value| !value.is_null());
            }
            let alternatives = map.get_mut("anyOf").and_then(Value::as_array_mut);
            if let Some(list) = alternatives {
                list.retain(|option| option.get("type").is_none_or(|name| name != "null"));
                if list.len() == 1
                    && let Some(Value::Object(only)) = list.pop()
                {
                    map.shift_remove("anyOf");
                    for (keyword, value) in only {
                        map.entry(keyword).or_insert(value);
                    }
                }
            }
            map.values_mut().for_each(drop_null);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_null),
        _ => {}
    }
}

/// The schema of one key, if there is such a key.
pub fn field(names: &[String]) -> Option<&'static Value> {
    names.iter().try_fold(schema(), |schema, name| child(schema, name))
}

/// The schema of `name` inside a table with this schema.
fn child<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    properties(schema)
        .and_then(|properties| properties.get(name))
        .or_else(|| schema.get("additionalProperties").filter(|extra| extra.is_object()))
}

fn properties(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// True if the schema describes a table of named settings or of named entries.
pub fn is_table(schema: &Value) -> bool {
    properties(schema).is_some() || schema.get("additionalProperties").is_some_and(Value::is_object)
}

fn has(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool).unwrap_or(false)
}

/// True if the value is never shown.
pub fn is_secret(schema: &Value) -> bool {
    has(schema, "writeOnly")
}

/// True if only Loom writes the value.
pub fn is_read_only(schema: &Value) -> bool {
    has(schema, "readOnly")
}

/// True if the value is text and nothing else, written in quotes or not.
pub(crate) fn is_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "string") || schema.get("oneOf").is_some()
}

/// True if a wrong value at this key must not be passed over: what is in force would be looser than
/// what was meant.
pub(crate) fn is_strict(names: &[String]) -> bool {
    (1..=names.len())
        .any(|depth| field(&names[..depth]).is_some_and(|field| has(field, "x-strict")))
}

/// What a setting takes, in words.
pub(crate) fn takes(schema: &Value) -> String {
    let words = |values: Vec<&Value>| {
        let quoted = |value: &&Value| match value {
            Value::String(text) => format!("`{text}`"),
            other => other.to_string(),
        };
        let words: Vec<String> = values.iter().map(quoted).collect();
        format!("one of {}", words.join(", "))
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return words(values.iter().collect());
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let one = |choice: &'_ Value| -> Option<Value> { choice.get("const").cloned() };
        let values: Vec<Value> = choices.iter().filter_map(one).collect();
        return words(values.iter().collect());
    }
    let such_as = |what: &str| match schema.pointer("/examples/0") {
        Some(example) => format!("{what} such as {example}"),
        None => what.to_owned(),
    };
    match schema.get("type") {
        Some(Value::Array(_)) => such_as("a number or text"),
        Some(Value::String(name)) => match name.as_str() {
            "boolean" => "true or false".to_owned(),
            "integer" => match (schema.get("minimum"), schema.get("maximum")) {
                (Some(min), Some(max)) => format!("a whole number from {min} to {max}"),
                (Some(min), None) => format!("a whole number of at least {min}"),
                _ => "a whole number".to_owned(),
            },
            "number" => "a number".to_owned(),
            "array" => match schema.get("items").map(takes) {
                Some(items) if items == "text" => "a list of texts".to_owned(),
                _ => "a list".to_owned(),
            },
            "object" => "a table".to_owned(),
            _ => such_as("text"),
        },
        _ => "something else".to_owned(),
    }
}

/// The error for a key that no setting has.
pub(crate) fn no_such_key(path: &str) -> ConfigError {
    let leaves: Vec<String> = leaves().into_iter().map(|(names, _)| names.join(".")).collect();
    let near = key::nearest(path, leaves.iter().map(String::as_str));
    ConfigError::Key {
        problem: match near {
            Some(near) => format!("no setting is called `{path}`; did you mean `{near}`?"),
            None => format!("no setting is called `{path}`"),
        },
        fix: "`loon config list` shows all keys".into(),
    }
}

/// Something about a value that its type does not say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// No setting has this key.
    Unknown { path: String, name: String, near: Option<String> },
    /// The number is not in its range.
    Range { names: Vec<String>, problem: String },
}

/// Compares a layer with the schema.
pub(crate) fn check(value: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk(value, schema(), &mut Vec::new(), "", &mut findings);
    findings
}

/// `names` leads to the value, or to the list it is in; `path` leads to it in any case.
fn walk(
    value: &Value,
    schema: &Value,
    names: &mut Vec<String>,
    path: &str,
    findings: &mut Vec<Finding>,
) {
    match value {
        Value::Object(map) if is_table(schema) => {
            for (name, value) in map {
                let in_list = path.ends_with(']');
                let path = key::join(path, name);
                if let Some(schema) = child(schema, name) {
                    if in_list {
                        walk(value, schema, names, &path, findings);
                    } else {
                        names.push(name.clone());
                        walk(value, schema, names, &path, findings);
                        names.pop();
                    }
                    continue;
                }
                let known = properties(schema).into_iter().flat_map(|map| map.keys());
                let near = key::nearest(name, known.map(String::as_str)).map(str::to_owned);
                findings.push(Finding::Unknown { path, name: name.clone(), near });
            }
        }
        Value::Array(list) => {
            if let Some(schema) = schema.get("items") {
                for (index, value) in list.iter().enumerate() {
                    walk(value, schema, names, &key::element(path, index), findings);
                }
            }
        }
        Value::Number(number) => {
            let (min, max) = (schema.get("minimum"), schema.get("maximum"));
            let below = min
                .and_then(Value::as_f64)
                .is_some_and(|min| number.as_f64().is_some_and(|n| n < min));
            let above = max
                .and_then(Value::as_f64)
                .is_some_and(|max| number.as_f64().is_some_and(|n| n > max));
            if below || above {
                let problem = format!("{path} is {number}, and takes {}", takes(schema));
                findings.push(Finding::Range { names: names.clone(), problem });
            }
        }
        _ => {}
    }
}

/// The keys of `value` that a folder without trust must not set, the shortest path for each.
pub(crate) fn untrusted(value: &Value) -> Vec<Vec<String>> {
    fn walk(value: &Value, schema: &Value, names: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
        let Some(map) = value.as_object() else { return };
        for (name, value) in map {
            let Some(field) = properties(schema).and_then(|properties| properties.get(name)) else {
                continue;
            };
            names.push(name.clone());
            if properties(field).is_some() && value.is_object() {
                walk(value, field, names, out);
            } else if !has(field, "x-untrusted") {
                out.push(names.clone());
            }
            names.pop();
        }
    }
    let mut out = Vec::new();
    walk(value, schema(), &mut Vec::new(), &mut out);
    out
}

/// Puts [`MASK`] over every secret.
pub(crate) fn mask(value: &mut Value) {
    fn walk(value: &mut Value, schema: &Value) {
        if is_secret(schema) {
            *value = Value::String(MASK.into());
        } else if let Value::String(text) = value {
            *text = without_login(text);
        } else if let Value::Object(map) = value {
            for (name, value) in map {
                if let Some(schema) = child(schema, name) {
                    walk(value, schema);
                }
            }
        }
    }
    walk(value, schema());
}

/// A URL with its login masked; anything else as it is.
pub fn without_login(text: &str) -> String {
    let masked = text.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let at = rest[..end].rfind('@')?;
        Some(format!("{scheme}://{MASK}{}", &rest[at..]))
    });
    masked.unwrap_or_else(|| text.to_owned())
}

/// Every setting that has a fixed name and holds no table, with its schema.
pub(crate) fn leaves() -> Vec<(Vec<String>, &'static Value)> {
    fn walk(
        schema: &'static Value,
        names: &mut Vec<String>,
        out: &mut Vec<(Vec<String>, &'static Value)>,
    ) {
        for (name, field) in properties(schema).into_iter().flatten() {
            names.push(name.clone());
            if properties(field).is_some() {
                walk(field, names, out);
            } else if !is_table(field) {
                out.push((names.clone(), field));
            }
            names.pop();
        }
    }
    let mut out = Vec::new();
    walk(schema(), &mut Vec::new(), &mut out);
    out
}

//! Schemas of arguments, mended so that every provider takes them, or refused with a reason.
//!
//! What a mended schema says less than the original, the server still checks: it gets the arguments as
//! the model wrote them.

use serde_json::{Map, Value, json};

/// Most bytes of a schema. Beyond, words for people are left out first.
const LARGEST: usize = 24 * 1024;

/// Deepest nesting.
const DEEPEST: usize = 24;

/// Most parts a schema may have once its references are resolved.
const MOST_PARTS: usize = 4000;

/// Keywords that tell a model nothing.
const NOISE: [&str; 7] =
    ["$schema", "$id", "$comment", "$defs", "definitions", "$anchor", "examples"];

/// A schema that can be used, and whether it is another one than the server's.
#[derive(Debug, PartialEq)]
pub(crate) struct Mended {
    pub(crate) schema: Value,
    /// What had to be changed, in a few words.
    pub(crate) change: Option<&'static str>,
}

/// Mends the schema of a tool. The error says why the tool cannot be offered.
pub(crate) fn mend(original: Option<&Value>) -> Result<Mended, String> {
    let root = match original {
        None | Some(Value::Null | Value::Bool(true)) => {
            return Ok(Mended {
                schema: empty(),
                change: Some("it had no schema of its arguments"),
            });
        }
        Some(Value::Object(root)) => root,
        Some(_) => return Err("the schema of its arguments is no object".to_owned()),
    };
    let whole = Value::Object(root.clone());
    let mut walk = Walk { whole: &whole, parts: 0, change: None };
    let mut schema = walk.part(&whole, &mut Vec::new(), 0)?;
    let Value::Object(map) = &mut schema else {
        return Err("the schema of its arguments is no object".to_owned());
    };
    root_variants(map, &mut walk.change)?;
    root_type(map, &mut walk.change)?;
    map.entry("properties").or_insert_with(|| json!({}));
    if let Some(name) = illegal_property(&schema) {
        let name = crate::words::line(&name, 80);
        return Err(format!("its argument {name:?} has a name that providers refuse"));
    }
    if schema.to_string().len() > LARGEST {
        walk.change = Some("its schema was too long; descriptions were left out");
        strip_words(&mut schema);
        if schema.to_string().len() > LARGEST {
            return Err(format!("its schema has more than {LARGEST} bytes"));
        }
    }
    Ok(Mended { schema, change: walk.change })
}

fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

/// A walk over the parts of a schema that resolves references within it.
struct Walk<'a> {
    whole: &'a Value,
    parts: usize,
    change: Option<&'static str>,
}

impl Walk<'_> {
    /// The part, mended. `open` are the references that led here.
    fn part(
        &mut self,
        part: &Value,
        open: &mut Vec<String>,
        depth: usize,
    ) -> Result<Value, String> {
        self.parts += 1;
        if self.parts > MOST_PARTS || depth > DEEPEST {
            return Err("its schema is too deep or too large".to_owned());
        }
        let map = match part {
            Value::Object(map) => map,
            Value::Bool(_) => {
                self.change = Some("parts of its schema were only true or false");
                return Ok(json!({}));
            }
            _ => {
                self.change = Some("parts of its schema were no schemas");
                return Ok(json!({}));
            }
        };
        if let Some(reference) = map.get("$ref") {
            return self.reference(reference, map, open, depth);
        }
        let mut mended = Map::new();
        for (key, value) in map {
            if NOISE.contains(&key.as_str()) {
                continue;
            }
            let value = match (key.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(members)) => {
                    let mut kept = Map::new();
                    for (name, member) in members {
                        // An argument that must not be given need not be told of.
                        if *member != Value::Bool(false) {
                            kept.insert(name.clone(), self.part(member, open, depth + 1)?);
                        }
                    }
                    Value::Object(kept)
                }
                ("properties" | "patternProperties", _) => json!({}),
                ("items", Value::Array(several)) => {
                    self.change = Some("a list in its schema had items of several kinds");
                    match several.first() {
                        Some(first) => self.part(first, open, depth + 1)?,
                        None => json!({}),
                    }
                }
                ("items" | "not" | "contains", value) => self.part(value, open, depth + 1)?,
                ("additionalProperties", value @ Value::Object(_)) => {
                    self.part(value, open, depth + 1)?
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(parts)) => {
                    let parts: Result<Vec<Value>, String> =
                        parts.iter().map(|part| self.part(part, open, depth + 1)).collect();
                    Value::Array(parts?)
                }
                ("required", Value::Array(names)) => {
                    names.iter().filter(|name| name.is_string()).cloned().collect()
                }
                ("required", _) => continue,
                _ => value.clone(),
            };
            mended.insert(key.clone(), value);
        }
        self.reconcile(&mut mended);
        Ok(Value::Object(mended))
    }

    /// What a reference leads to, with the words that stand beside it.
    fn reference(
        &mut self,
        reference: &Value,
        beside: &Map<String, Value>,
        open: &mut Vec<String>,
        depth: usize,
    ) -> Result<Value, String> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let target = pointer.and_then(|pointer| {
            if pointer.is_empty() { Some(self.whole) } else { self.whole.pointer(pointer) }
        });
        let (Some(pointer), Some(target)) = (pointer, target) else {
            self.change = Some("its schema refers to something that is not in it");
            return Ok(json!({}));
        };
        if pointer.is_empty() || open.iter().any(|known| known == pointer) {
            self.change = Some("its schema contains itself");
            return Ok(json!({}));
        }
        open.push(pointer.to_owned());
        let mut resolved = self.part(target, open, depth + 1)?;
        open.pop();
        if let (Value::Object(map), Some(words)) = (&mut resolved, beside.get("description")) {
            map.insert("description".to_owned(), words.clone());
        }
        Ok(resolved)
    }

    /// A list of values of which none has the type beside it loses the type.
    fn reconcile(&mut self, map: &mut Map<String, Value>) {
        let (Some(Value::Array(values)), Some(Value::String(kind))) =
            (map.get("enum"), map.get("type"))
        else {
            return;
        };
        if !values.iter().any(|value| is_of(value, kind)) {
            self.change = Some("its schema had values that contradict their type");
            map.remove("type");
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Providers refuse alternatives at the root: their members become members of the root.
fn root_variants(
    map: &mut Map<String, Value>,
    change: &mut Option<&'static str>,
) -> Result<(), String> {
    for (keyword, all_hold) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
        let Some(variants) = map.remove(keyword) else { continue };
        let Some(variants) = variants.as_array() else { continue };
        *change = Some("its schema had alternatives at the root; all their arguments are optional");
        let mut required: Option<Vec<Value>> = None;
        for variant in variants {
            let Some(variant) = variant.as_object() else { continue };
            if variant.get("type").is_some_and(|kind| kind != "object") {
                return Err(format!("its schema is {keyword} of things that are no objects"));
            }
            let members = variant.get("properties").and_then(Value::as_object);
            let own = map.entry("properties").or_insert_with(|| json!({}));
            if let (Some(own), Some(members)) = (own.as_object_mut(), members) {
                for (name, member) in members {
                    own.entry(name.clone()).or_insert_with(|| member.clone());
                }
            }
            let names = variant.get("required").and_then(Value::as_array).cloned();
            let names = names.unwrap_or_default();
            required = Some(match required {
                None => names,
                Some(known) if all_hold => known.into_iter().chain(names).collect(),
                Some(known) => known.into_iter().filter(|name| names.contains(name)).collect(),
            });
        }
        let own = map.entry("required").or_insert_with(|| json!([]));
        if let (Some(own), Some(more)) = (own.as_array_mut(), required) {
            for name in more {
                if !own.contains(&name) {
                    own.push(name);
                }
            }
        }
    }
    Ok(())
}

fn root_type(
    map: &mut Map<String, Value>,
    change: &mut Option<&'static str>,
) -> Result<(), String> {
    let is_object = match map.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        None => {
            *change = change.or(Some("its schema named no type"));
            true
        }
        Some(_) => false,
    };
    if !is_object {
        return Err("its arguments are no object".to_owned());
    }
    // In front, where models expect it.
    let mut ordered = Map::new();
    ordered.insert("type".to_owned(), json!("object"));
    map.remove("type");
    ordered.append(map);
    *map = ordered;
    Ok(())
}

fn illegal_property(schema: &Value) -> Option<String> {
    let legal = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '.' | '-');
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(members)) = map.get("properties") {
                let wrong =
                    |name: &&String| name.is_empty() || name.len() > 64 || !name.chars().all(legal);
                if let Some(name) = members.keys().find(wrong) {
                    return Some(name.clone());
                }
            }
            // Values of a list of values are no schemas.
            let parts =
                map.iter().filter(|(key, _)| !matches!(key.as_str(), "enum" | "default" | "const"));
            parts.map(|(_, part)| part).find_map(illegal_property)
        }
        Value::Array(parts) => parts.iter().find_map(illegal_property),
        _ => None,
    }
}

fn strip_words(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, part) in map.iter_mut() {
                if key == "properties" {
                    // An argument may be called description.
                    if let Value::Object(members) = part {
                        members.values_mut().for_each(strip_words);
                    }
                } else {
                    strip_words(part);
                }
            }
            for key in ["description", "title", "default"] {
                if map.get(key).is_some_and(|words| !words.is_object()) {
                    map.remove(key);
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(strip_words),
        _ => {}
    }
}

#[cfg(test)]
mod tests;

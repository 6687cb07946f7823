//! Members of JSON messages as servers really write them: text that is null, or a list of parts;
//! arguments that are a string, an object or null; counts that are missing or fractions.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Text that is borrowed from its message wherever it has no escapes. Also reads null (as empty), a
/// part (its text), a list of those (joined) and a whole number (some ids are one).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, null or text parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(Text(part)) = parts.next_element()? {
            joined.push_str(&part);
        }
        Ok(Cow::Owned(joined))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Self::Value, A::Error> {
        let mut text = Cow::Borrowed("");
        while let Some(Text(key)) = part.next_key()? {
            if key == "text" {
                Text(text) = part.next_value()?;
            } else {
                part.next_value::<IgnoredAny>()?;
            }
        }
        Ok(text)
    }
}

/// The JSON text of call arguments, or a piece of it: the content of a string, or any other JSON
/// as it stands. Null is empty.
pub(crate) fn arguments_text(raw: &RawValue) -> Result<Cow<'_, str>, serde_json::Error> {
    match raw.get() {
        "null" => Ok(Cow::Borrowed("")),
        text if text.starts_with('"') => serde_json::from_str::<Text<'_>>(text).map(|text| text.0),
        text => Ok(Cow::Borrowed(text)),
    }
}

/// Call arguments as a value: `{}` for none, and the text itself where it is no JSON object.
pub(crate) fn arguments_value(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// The first of these places in a report that holds a count.
pub(crate) fn count(report: &Value, pointers: &[&str]) -> Option<u64> {
    pointers.iter().find_map(|pointer| {
        let number = report.pointer(pointer)?;
        number.as_u64().or_else(|| {
            number.as_f64().filter(|float| *float >= 0.0 && *float < 1e15).map(|float| float as u64)
        })
    })
}

/// True if a member that stands for an error says that there is one.
pub(crate) fn is_failure(error: Option<&RawValue>) -> bool {
    error.is_some_and(|error| !matches!(error.get(), "null" | "false" | "\"\"" | "{}" | "[]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_borrowed_null_or_joined() {
        let read = |json| serde_json::from_str::<Text<'_>>(json).unwrap().0;
        assert!(matches!(read(r#""plain""#), Cow::Borrowed("plain")));
        assert_eq!(read(r#""a\nb""#), "a\nb");
        assert_eq!(read("null"), "");
        assert_eq!(
            read(r#"[{"type":"text","text":"a"},null,{"type":"image"},"b",{"text":"c","x":[1]}]"#),
            "abc"
        );
        assert_eq!(read(r#"{"type":"text","text":"a"}"#), "a");
        assert_eq!(read("5"), "5");
        assert!(serde_json::from_str::<Text<'_>>("true").is_err());
    }

    #[test]
    fn arguments_are_an_object_or_the_text_itself() {
        assert_eq!(arguments_value(""), serde_json::json!({}));
        assert_eq!(arguments_value(" \n"), serde_json::json!({}));
        assert_eq!(arguments_value(r#"{"a":1}"#), serde_json::json!({"a": 1}));
        assert_eq!(arguments_value("[1]"), Value::String("[1]".into()));
        assert_eq!(arguments_value(r#"{"a":"#), Value::String(r#"{"a":"#.into()));
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        assert_eq!(arguments_text(&raw(r#""{\"a\":1}""#)).unwrap(), r#"{"a":1}"#);
        assert_eq!(arguments_text(&raw(r#"{"a":1}"#)).unwrap(), r#"{"a":1}"#);
        assert_eq!(arguments_text(&raw("null")).unwrap(), "");
    }

    #[test]
    fn counts_may_be_fractions_null_or_elsewhere() {
        let report = serde_json::json!({"a": 5.0, "b": null, "c": {"d": 7}, "e": -1});
        assert_eq!(count(&report, &["/a"]), Some(5));
        assert_eq!(count(&report, &["/b", "/c/d"]), Some(7));
        assert_eq!(count(&report, &["/e", "/x"]), None);
    }
}

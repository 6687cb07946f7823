//! Texts without their middle, for windows that they do not fit.

use std::borrow::Cow;

use serde_json::Value;

/// `text`, or its beginning and end around a mark that says how much is left out. The result has at
/// most `limit` bytes, unless that is less than the mark alone takes.
pub(crate) fn without_middle(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let room = limit.saturating_sub(mark(text.len()).len());
    let head = text.floor_char_boundary(room / 2);
    let tail = text.ceil_char_boundary(text.len() - (room - room / 2));
    let mark = mark(tail - head);
    Cow::Owned([&text[..head], &mark, &text[tail..]].concat())
}

fn mark(bytes: usize) -> String {
    format!(
        "\n[… {bytes} bytes are left out here: the text is too long for the context window …]\n"
    )
}

/// A JSON value whose strings are cut like texts.
pub(crate) fn value_without_middles(value: &Value, limit: usize) -> Value {
    match value {
        Value::String(text) => Value::String(without_middle(text, limit).into_owned()),
        Value::Array(values) => {
            values.iter().map(|value| value_without_middles(value, limit)).collect()
        }
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), value_without_middles(value, limit)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_untouched_and_the_rest_says_what_is_missing() {
        assert_eq!(without_middle("short", 5), "short");
        let long = format!("begin{}end", "x".repeat(10_000));
        let cut = without_middle(&long, 200);
        assert!(cut.starts_with("begin") && cut.ends_with("end"), "{cut}");
        let missing = long.len() - cut.matches(['x', 'b', 'e']).count();
        assert!(missing > 9_000 && cut.contains("bytes are left out here"), "{cut}");
        let value = json!({"path": "a", "lines": ["y".repeat(400)], "n": 1});
        let cut = value_without_middles(&value, 150);
        assert_eq!((&cut["path"], &cut["n"]), (&json!("a"), &json!(1)));
        assert!(cut["lines"][0].as_str().unwrap().len() <= 150);
    }

    proptest! {
        #[test]
        fn it_never_gets_longer_than_the_limit(text in "\\PC{0,400}", limit in 100usize..600) {
            let cut = without_middle(&text, limit);
            prop_assert!(cut.len() <= limit.max(text.len().min(limit)));
        }
    }
}

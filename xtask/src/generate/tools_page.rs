//! The reference of the native tools, from what the built `loon` says of them.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tree::Tree;

/// Where the page lies.
pub(super) const FILE: &str = "docs/reference/tools.md";

const HEAD: &str = "# Tools\n\n\
What models are told of the native tools. `loon tools` prints the same for your folder, with what its \
settings leave out. Made by `cargo xtask reference`.\n\n\
The class of a tool decides what plan mode leaves, which calls run beside each other and what is asked \
about where no rule speaks: `reads` looks at files, `writes` changes them, `executes` starts programs, \
`network` talks to one, `session` keeps the session's own books.\n";

/// The page, from a built `loon`.
pub(super) fn render(binary: &Path) -> Result<String> {
    let home = tempfile::tempdir()?;
    let words = ["tools".to_owned(), "--json".to_owned()];
    let listed = Tree::ask_at_home(binary, &words, home.path())?;
    let mut page = String::from(HEAD);
    for line in listed.lines() {
        let tool: Value = serde_json::from_str(line).context("a line of `loon tools --json`")?;
        section(&tool, &mut page);
    }
    Ok(page)
}

fn section(tool: &Value, page: &mut String) {
    let text = |name: &str| tool[name].as_str().unwrap_or_default();
    let _ = write!(
        page,
        "\n## `{}`\n\n{}\n\nClass: {}.\n",
        text("name"),
        text("description"),
        text("class")
    );
    let Some(properties) =
        tool["parameters"]["properties"].as_object().filter(|map| !map.is_empty())
    else {
        return;
    };
    let required = tool["parameters"]["required"].as_array();
    page.push_str("\n| argument | type | |\n|---|---|---|\n");
    for (name, schema) in properties {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let about = schema["description"].as_str().unwrap_or_default();
        let need = if is_required { "required" } else { "" };
        let about =
            [need, about].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>();
        let about = about.join("; ").replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(page, "| `{name}` | {} | {about} |", kind(schema));
    }
}

/// `text`, `list of {op, pointer, value}`, `one of a, b`.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", choices.join(", "));
    }
    match schema["type"].as_str() {
        Some("string") => "text".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("object") => {
            let names: Vec<&str> = schema["properties"]
                .as_object()
                .map(|map| map.keys().map(String::as_str).collect())
                .unwrap_or_default();
            format!("{{{}}}", names.join(", "))
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_put_into_words() {
        let list =
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}}});
        assert_eq!(kind(&list), "list of {a, b}");
        assert_eq!(kind(&json!({"type": "string", "enum": ["x", "y"]})), "one of x, y");
        assert_eq!(kind(&json!({})), "any");
    }

    #[test]
    fn arguments_are_a_table() {
        let tool = json!({
            "name": "t", "class": "reads", "description": "Does.",
            "parameters": {"properties": {"p": {"type": "string", "description": "a|b"}}, "required": ["p"]},
        });
        let mut page = String::new();
        section(&tool, &mut page);
        assert!(page.ends_with("| `p` | text | required; a\\|b |\n"), "{page}");
    }
}

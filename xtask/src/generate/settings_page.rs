//! The settings reference, from the schema of the settings.

use std::fmt::Write;

use serde_json::Value;

const HEAD: &str = "# Settings\n\n\
Made from the settings' own types by `cargo xtask reference`. How files and layers work is told in\n\
[SETTINGS.md](../SETTINGS.md); the machine-readable form is [settings.schema.json](settings.schema.json).\n\n\
A change of a *live* setting takes effect while Loom runs; others are read at the start. *Open*\n\
settings are taken from a project's files even before you trust the folder. A wrong value costs only\n\
itself, except that of a *strict* setting: it refuses the file, because without it more would be allowed\n\
than was meant.\n";

/// The page.
pub(super) fn render(schema: &Value) -> String {
    let mut page = String::from(HEAD);
    for (name, section) in members(schema) {
        if section.get("properties").is_none() && section.get("additionalProperties").is_none() {
            heading(&mut page, name, section);
            row_head(&mut page);
            row(&mut page, name, section);
        } else {
            table(&mut page, name, section);
        }
    }
    page
}

fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn text<'a>(schema: &'a Value, keyword: &str) -> &'a str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

fn heading(page: &mut String, path: &str, schema: &Value) {
    let strict = schema.get("x-strict").is_some().then_some("\nAll of it is *strict*.");
    let strict = strict.unwrap_or_default();
    let _ = write!(page, "\n## `{path}`\n\n{}{strict}\n", text(schema, "description"));
}

/// One table of settings, then the tables inside it.
fn table(page: &mut String, path: &str, schema: &Value) {
    if let Some(entry) =
        schema.get("additionalProperties").filter(|entry| entry.get("properties").is_some())
    {
        heading(page, path, schema);
        table(page, &format!("{path}.<name>"), entry);
        return;
    }
    heading(page, path, schema);
    row_head(page);
    let mut inner = Vec::new();
    for (name, field) in members(schema) {
        if field.get("properties").is_some()
            || field["additionalProperties"].get("properties").is_some()
        {
            inner.push((format!("{path}.{name}"), field));
        } else {
            row(page, name, field);
        }
    }
    for (path, field) in inner {
        table(page, &path, field);
    }
}

fn row_head(page: &mut String) {
    page.push_str("\n| key | value | default | notes | meaning |\n|---|---|---|---|---|\n");
}

fn row(page: &mut String, name: &str, field: &Value) {
    let default = field.get("default").map(|value| format!("`{value}`")).unwrap_or_default();
    let notes: Vec<&str> = [
        ("readOnly", "written by Loom"),
        ("writeOnly", "secret"),
        ("x-live", "live"),
        ("x-untrusted", "open"),
        ("x-strict", "strict"),
    ]
    .into_iter()
    .filter(|(keyword, _)| field.get(*keyword).and_then(Value::as_bool) == Some(true))
    .map(|(_, note)| note)
    .collect();
    let meaning = text(field, "description").replace('\n', " ").replace('|', "\\|");
    let _ = writeln!(
        page,
        "| `{name}` | {} | {default} | {} | {meaning} |",
        kind(field),
        notes.join(", ")
    );
}

/// What a value looks like, in a few words.
fn kind(field: &Value) -> String {
    if let Some(options) = choices(field) {
        return options.iter().map(|option| format!("`{option}`")).collect::<Vec<_>>().join(", ");
    }
    let range = match (field.get("minimum"), field.get("maximum")) {
        (Some(min), Some(max)) => format!(", {min} to {max}"),
        (Some(min), None) if min != &Value::from(0) => format!(", at least {min}"),
        _ => String::new(),
    };
    match field.get("type") {
        Some(Value::Array(_)) => "decimal, as text or number".to_owned(),
        Some(Value::String(kind)) => match kind.as_str() {
            "array" => match field["items"].get("properties") {
                Some(_) => "list of tables".to_owned(),
                None => "list of texts".to_owned(),
            },
            "boolean" => "true or false".to_owned(),
            "integer" => format!("number{range}"),
            "object" => "table of texts".to_owned(),
            _ if field.get("pattern").is_some() => "text such as `10m`".to_owned(),
            _ => "text".to_owned(),
        },
        _ => String::new(),
    }
}

/// The words of a setting that takes one of a few.
fn choices(field: &Value) -> Option<Vec<&str>> {
    if let Some(list) = field.get("enum").and_then(Value::as_array) {
        return Some(list.iter().filter_map(Value::as_str).collect());
    }
    let options = field.get("oneOf")?.as_array()?;
    Some(options.iter().filter_map(|option| option.get("const").and_then(Value::as_str)).collect())
}

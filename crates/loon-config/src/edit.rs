//! Edits of a settings text that change one thing and leave the rest as it is: comments, blank lines,
//! order, unknown keys, line ends, byte order mark.

use loon_api::{PermissionRule, RuleEffect};
use serde_json::Value;
use toml_edit::{
    Array, ArrayOfTables, Document, DocumentMut, InlineTable, Item, Table, TableLike,
    Value as TomlValue,
};

use crate::document;
use crate::error::ConfigError;
use crate::key;
use crate::rules;
use crate::schema;

/// Reads the text of a value as the command line gives it: TOML, or else plain text. A setting that
/// takes text gets the text.
pub fn parse_value(path: &str, text: &str) -> Result<Value, ConfigError> {
    Ok(document::read_for(&known(path)?, text))
}

/// Sets one key. The value must be what [`crate::schema()`] says; that is checked when the text is
/// loaded, not here.
pub fn set(text: &str, path: &str, value: &Value) -> Result<String, ConfigError> {
    let names = known(path)?;
    let field = schema::field(&names);
    if field.is_some_and(schema::is_read_only) {
        return Err(ConfigError::Key {
            problem: format!("{path} is written by Loom alone"),
            fix: "leave it as it is".into(),
        });
    }
    if field.is_some_and(schema::is_table) && !value.is_object() {
        return Err(ConfigError::Key {
            problem: format!("{path} is a table of settings"),
            fix: format!("set what is in it, like {path}.NAME"),
        });
    }
    let value = to_toml(value).ok_or_else(|| ConfigError::Key {
        problem: format!("{path} cannot hold that value"),
        fix: "give text, a number, true or false, or a list".into(),
    })?;
    if let Some(edited) = splice(text, &names, &value)? {
        return Ok(edited);
    }
    rewrite(text, |document| {
        let (last, parents) = split(&names)?;
        let table = descend(document.as_item_mut(), parents, path)?;
        match table.get_mut(last) {
            Some(item) => *item = Item::Value(value),
            None => {
                table.insert(last, Item::Value(value));
            }
        }
        Ok(())
    })
}

/// Takes one key out, so that a weaker layer decides again. A key that is not there is no error.
pub fn remove(text: &str, path: &str) -> Result<String, ConfigError> {
    let names = key::parse(path)?;
    rewrite(text, |document| {
        let (last, parents) = split(&names)?;
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for name in parents {
            match table.get_mut(name).and_then(Item::as_table_like_mut) {
                Some(inner) => table = inner,
                None => return Ok(()),
            }
        }
        table.remove(last);
        Ok(())
    })
}

/// Adds a permission rule at the end of its list. A rule that is there already is not added again.
pub fn add_rule(
    text: &str,
    effect: RuleEffect,
    rule: &PermissionRule,
) -> Result<String, ConfigError> {
    rules::check(rule).map_err(|problem| ConfigError::Key {
        problem: format!("the rule cannot be kept: {problem}"),
        fix: "a rule is a tool and at most one matcher".into(),
    })?;
    let list = rules::list_of(effect);
    rewrite(text, |document| {
        let permissions =
            descend(document.as_item_mut(), &["permissions".to_owned()], "permissions")?;
        let item =
            permissions.entry(list).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        match item {
            Item::ArrayOfTables(tables) => {
                if !tables.iter().any(|table| same(table, rule)) {
                    let mut table = Table::new();
                    fill(&mut table, rule);
                    tables.push(table);
                }
            }
            Item::Value(TomlValue::Array(array)) => {
                if !array
                    .iter()
                    .filter_map(TomlValue::as_inline_table)
                    .any(|table| same(table, rule))
                {
                    let mut table = InlineTable::new();
                    fill(&mut table, rule);
                    array.push(TomlValue::InlineTable(table));
                }
            }
            _ => {
                return Err(ConfigError::Key {
                    problem: format!("permissions.{list} is no list"),
                    fix: "correct the file first".into(),
                });
            }
        }
        Ok(())
    })
}

fn members(rule: &PermissionRule) -> impl Iterator<Item = (&'static str, &str)> {
    [
        ("tool", Some(&rule.tool)),
        ("path_prefix", rule.path_prefix.as_ref()),
        ("command_prefix", rule.command_prefix.as_ref()),
        ("host", rule.host.as_ref()),
    ]
    .into_iter()
    .filter_map(|(name, text)| text.map(|text| (name, text.as_str())))
}

fn fill(table: &mut dyn TableLike, rule: &PermissionRule) {
    for (name, text) in members(rule) {
        table.insert(name, toml_edit::value(text));
    }
}

fn same(table: &dyn TableLike, rule: &PermissionRule) -> bool {
    table.len() == members(rule).count()
        && members(rule).all(|(name, text)| table.get(name).and_then(Item::as_str) == Some(text))
}

/// A path whose key exists, so that a slip does not write a line without effect.
fn known(path: &str) -> Result<Vec<String>, ConfigError> {
    let names = key::parse(path)?;
    if schema::field(&names).is_some() {
        return Ok(names);
    }
    Err(schema::no_such_key(path))
}

fn split(names: &[String]) -> Result<(&String, &[String]), ConfigError> {
    names.split_last().ok_or_else(|| ConfigError::Key {
        problem: "an empty key names nothing".into(),
        fix: "name a setting, like session.model".into(),
    })
}

/// The table under `names`, made where it is missing.
fn descend<'a>(
    root: &'a mut Item,
    names: &[String],
    path: &str,
) -> Result<&'a mut dyn TableLike, ConfigError> {
    let no_table = || ConfigError::Key {
        problem: format!("{path} cannot be set: a part of it is no table in this file"),
        fix: "correct the file first".into(),
    };
    let mut item = root;
    for (depth, name) in names.iter().enumerate() {
        let inside_inline = item.is_inline_table();
        let innermost = depth + 1 == names.len();
        item = item.as_table_like_mut().ok_or_else(no_table)?.entry(name).or_insert_with(|| {
            if inside_inline {
                return Item::Value(TomlValue::InlineTable(InlineTable::new()));
            }
            // Only the innermost new table needs a header of its own, and only if it gets values.
            let mut table = Table::new();
            table.set_implicit(!innermost || name == "permissions");
            Item::Table(table)
        });
    }
    item.as_table_like_mut().ok_or_else(no_table)
}

fn to_toml(value: &Value) -> Option<TomlValue> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => {
            TomlValue::Array(list.iter().map(to_toml).collect::<Option<Array>>()?)
        }
        Value::Object(map) => TomlValue::InlineTable(
            map.iter()
                .map(|(name, value)| Some((name.as_str(), to_toml(value)?)))
                .collect::<Option<InlineTable>>()?,
        ),
    })
}

/// Replaces the bytes of a value that is there, and nothing else.
fn splice(text: &str, names: &[String], value: &TomlValue) -> Result<Option<String>, ConfigError> {
    let document = Document::parse(text).map_err(|error| unreadable(&error))?;
    let mut item = document.as_item();
    for name in names {
        match item.as_table_like().and_then(|table| table.get(name)) {
            Some(inner) => item = inner,
            None => return Ok(None),
        }
    }
    let Some(span) = item.as_value().and_then(TomlValue::span) else { return Ok(None) };
    let (Some(before), Some(after)) = (text.get(..span.start), text.get(span.end..)) else {
        return Ok(None);
    };
    Ok(Some(format!("{before}{}{after}", value.to_string().trim())))
}

/// Edits the document as a tree, and puts back what the tree does not keep: line ends and mark.
fn rewrite(
    text: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), ConfigError>,
) -> Result<String, ConfigError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let crlf = body.contains("\r\n");
    let body = if crlf { body.replace("\r\n", "\n") } else { body.to_owned() };
    let mut document: DocumentMut = body.parse().map_err(|error| unreadable(&error))?;
    // What stands in a file without keys stays on top.
    let only_remarks = document.as_table().is_empty() && !body.trim().is_empty();
    if only_remarks {
        document = DocumentMut::new();
    }
    edit(&mut document)?;
    let edited = match document.to_string() {
        added if only_remarks && added.is_empty() => body,
        added if only_remarks => format!("{}\n\n{added}", body.trim_end()),
        edited => edited,
    };
    let edited = if crlf { edited.replace('\n', "\r\n") } else { edited };
    Ok(format!("{mark}{edited}"))
}

fn unreadable(error: &toml_edit::TomlError) -> ConfigError {
    ConfigError::Key {
        problem: format!("the file cannot be edited: {}", error.message().replace('\n', " ")),
        fix: "correct the file by hand first".into(),
    }
}

#[cfg(test)]
mod tests;

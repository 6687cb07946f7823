//! Files that are made from the types: JSON Schemas and reference pages under docs/reference.

mod commands_page;
mod settings_page;
mod tools_page;

use std::fs::{self, File};
use std::io::Write;

use anyhow::{Context, Result};
use loon_api::{AgentEvent, Command};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::tree::Tree;

/// A file's place and text.
pub(crate) struct Page {
    file: &'static str,
    text: String,
}

/// The published JSON Schemas.
pub(crate) fn schemas() -> Result<Vec<Page>> {
    let page = |file, schema: &Value| -> Result<Page> {
        Ok(Page { file, text: serde_json::to_string_pretty(schema)? + "\n" })
    };
    Ok(vec![
        page("docs/reference/events.schema.json", &events()?)?,
        page("docs/reference/commands.schema.json", &commands())?,
        page("docs/reference/settings.schema.json", loon_config::schema())?,
    ])
}

/// The generated pages of the reference. Builds `loon` to ask it for its help.
pub(crate) fn pages(tree: &Tree) -> Result<Vec<Page>> {
    tree.build()?;
    Ok(vec![
        settings(),
        Page { file: commands_page::FILE, text: commands_page::render(tree, &tree.binary())? },
        Page { file: tools_page::FILE, text: tools_page::render(&tree.binary())? },
    ])
}

fn settings() -> Page {
    Page { file: "docs/reference/settings.md", text: settings_page::render(loon_config::schema()) }
}

/// Writes what has changed and says so.
pub(crate) fn write(tree: &Tree, pages: &[Page]) -> Result<String> {
    let mut said = Vec::new();
    for page in pages {
        let path = tree.path(page.file);
        if fs::read_to_string(&path).is_ok_and(|text| text == page.text) {
            said.push(format!("{} is fresh", page.file));
            continue;
        }
        let failed = || format!("cannot write {}", page.file);
        fs::create_dir_all(path.parent().with_context(failed)?).with_context(failed)?;
        File::create(&path)
            .and_then(|mut file| file.write_all(page.text.as_bytes()))
            .with_context(failed)?;
        said.push(format!("wrote {}", page.file));
    }
    Ok(said.join("\n"))
}

/// Writes the built command's completion scripts for every shell it knows.
pub(crate) fn completions(tree: &Tree) -> Result<String> {
    let folder = tree.path("target/completions");
    std::fs::create_dir_all(&folder)?;
    let mut said = Vec::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = tree.ask(&tree.binary(), &["completions".to_owned(), shell.to_owned()])?;
        let file = folder.join(format!("loon.{shell}"));
        #[expect(clippy::disallowed_methods, reason = "a generated file under target")]
        std::fs::write(&file, script)?;
        said.push(format!("wrote target/completions/loon.{shell}"));
    }
    Ok(said.join("\n"))
}

/// The generated files that are not what the types say. The pages that `loon` tells are judged where it
/// has been built from the present sources, as it is when all tests run.
pub(crate) fn stale(tree: &Tree) -> Result<Vec<String>> {
    let mut made: Vec<(Page, &str)> = schemas()?.into_iter().map(|page| (page, "schema")).collect();
    made.push((settings(), "reference"));
    if let Some(binary) = commands_page::fresh_binary(tree) {
        made.push((
            Page { file: commands_page::FILE, text: commands_page::render(tree, &binary)? },
            "reference",
        ));
        made.push((
            Page { file: tools_page::FILE, text: tools_page::render(&binary)? },
            "reference",
        ));
    }
    Ok(made
        .iter()
        .filter(|(page, _)| {
            !fs::read_to_string(tree.path(page.file)).is_ok_and(|text| text == page.text)
        })
        .map(|(page, chore)| format!("{}: is stale; run `cargo xtask {chore}`", page.file))
        .collect())
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// One line of the stream: the members every event has, and by `type` those of its own.
fn events() -> Result<Value> {
    let mut generator = generator();
    let envelope = json!({
        "v": {"description": "Version of the vocabulary.", "const": loon_api::VERSION},
        "seq": {"description": "Place in the journal, from 1; passing events have none.", "type": "integer", "minimum": 1},
        "at": generator.subschema_for::<loon_api::At>(),
        "exec": generator.subschema_for::<loon_api::ExecutionId>(),
        "turn": {"description": "The turn it belongs to, from 1.", "type": "integer", "minimum": 1},
    });
    let events = AgentEvent::schemas(&mut generator)
        .into_iter()
        .map(|(kind, schema)| {
            json!({"properties": {"type": {"const": kind}}, "required": ["type"], "allOf": [schema]})
        })
        .collect::<Vec<_>>();
    let mut definitions = generator.take_definitions(true);
    optional_members(&mut definitions)?;
    Ok(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "One line of the event stream. Readers pass over members and types they do not know.",
        "type": "object",
        "properties": envelope,
        "required": ["v", "at", "exec", "type"],
        "oneOf": events,
        "$defs": definitions,
    }))
}

/// Events leave out what says nothing: a list without elements, an option without a value.
fn optional_members(definitions: &mut Map<String, Value>) -> Result<()> {
    for (name, definition) in definitions {
        let defaults: Vec<String> = definition["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, property)| property.get("default").is_some())
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(required) = definition.get_mut("required") {
            let required =
                required.as_array_mut().with_context(|| format!("{name} requires no list"))?;
            required.retain(|member| !defaults.iter().any(|default| member == default));
        }
    }
    Ok(())
}

fn commands() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<Command>()
        .to_value();
    schema["description"] = "One line of the command stream.".into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_golden_line_matches_the_schema_of_its_type_alone() {
        let validator = jsonschema::validator_for(&events().unwrap()).unwrap();
        for line in include_str!("../../crates/loon-api/tests/golden.jsonl").lines() {
            let mut event: Value = serde_json::from_str(line).unwrap();
            if let Err(error) = validator.validate(&event) {
                panic!("{line}: {error}");
            }
            event["type"] = "notice.of.nothing".into();
            assert!(!validator.is_valid(&event), "{line}");
        }
    }

    #[test]
    fn commands_match_their_schema() {
        let validator = jsonschema::validator_for(&commands()).unwrap();
        for good in [
            json!({"type": "prompt", "text": "go"}),
            json!({"type": "approve", "approval": "a1", "scope": "once"}),
            json!({"type": "interrupt"}),
        ] {
            assert!(validator.is_valid(&good), "{good}");
            assert!(serde_json::from_value::<Command>(good).is_ok());
        }
        assert!(!validator.is_valid(&json!({"type": "prompt"})));
    }
}

//! `loon config ...`.

use std::fmt::Write as _;
use std::path::Path;

use loon_api::RuleEffect;
use loon_config::{ConfigError, Layer, Loaded, edit};
use serde_json::Value;

use crate::args::{ConfigCommand, FileArgs};
use crate::failure::Failure;
use crate::wiring::{Setup, SetupPaths};

/// Runs one of them.
pub(super) fn run(command: &ConfigCommand) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Get { key } => get(key),
        ConfigCommand::Set { key, value, file } => set(key, value, *file),
        ConfigCommand::Unset { key, file } => unset(key, *file),
        ConfigCommand::List { show_origin } => list(*show_origin),
        ConfigCommand::Schema => {
            let schema =
                serde_json::to_string_pretty(loon_config::schema()).map_err(anyhow::Error::from)?;
            super::print(&format!("{schema}\n"))
        }
    }
}

fn get(key: &str) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    match setup.loaded.get(key)? {
        Some(value) => super::print(&format!("{}\n", plain_value(&value))),
        None => super::print("unset\n"),
    }
}

fn set(key: &str, text: &str, file: FileArgs) -> Result<u8, Failure> {
    let value = edit::parse_value(key, text)?;
    let change = |text: &str| edit::set(text, key, &value);
    let (setup, loaded) = change_file(file.layer(), change)?;
    let place = setup.files.of(file.layer()).unwrap_or(Path::new(""));
    let mut said = format!("{key} is set in {}.\n", place.display());
    said.push_str(&effect(&loaded, key, file.layer()));
    super::print(&said)
}

fn unset(key: &str, file: FileArgs) -> Result<u8, Failure> {
    let (setup, loaded) = change_file(file.layer(), |text| edit::remove(text, key))?;
    let place = setup.files.of(file.layer()).unwrap_or(Path::new("")).display();
    let now = match loaded.get(key)? {
        Some(value) => {
            let from = loaded.origins.get(key).map(|origin| format!(", from {origin}"));
            let from = from.unwrap_or_else(|| ", built in".to_owned());
            format!("It is {}{from}.", plain_value(&value))
        }
        None => "It is unset.".to_owned(),
    };
    super::print(&format!("{key} is not set in {place}. {now}\n"))
}

fn change_file(
    layer: Layer,
    change: impl Fn(&str) -> Result<String, ConfigError>,
) -> Result<(SetupPaths, Loaded), Failure> {
    let setup = Setup::load_paths(None, &[])?;
    let loaded = setup.update(layer, change)?;
    Ok((setup, loaded))
}

/// Why a value that was written does not hold, if it does not.
fn effect(loaded: &Loaded, key: &str, layer: Layer) -> String {
    let origin = loaded.origins.get(key);
    if let Some(stronger) = origin.filter(|origin| origin.layer > layer) {
        return format!("It is shadowed: {stronger} sets it too and is stronger.\n");
    }
    let lies_in = |ignored: &str| {
        key.strip_prefix(ignored).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let ignored = loaded
        .untrusted
        .iter()
        .find(|ignored| ignored.origin.layer == layer && lies_in(&ignored.key));
    match ignored {
        Some(ignored) if ignored.needs_trust => {
            "It has no effect until the folder is trusted: `loon trust`.\n".to_owned()
        }
        Some(_) => "It never has an effect in a project's file.\n".to_owned(),
        None => String::new(),
    }
}

fn list(show_origin: bool) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    let loaded = &setup.loaded;
    let mut text = String::new();
    for entry in loaded.entries() {
        let value = entry.value.map_or_else(|| "unset".to_owned(), |value| value.to_string());
        let _ = write!(text, "{} = {value}", entry.key);
        if show_origin {
            let _ = write!(text, "  ({})", entry.origin);
        }
        text.push('\n');
    }
    if show_origin {
        rules(&mut text, loaded);
    }
    for ignored in &loaded.untrusted {
        let _ = writeln!(text, "note: {ignored}");
    }
    for warning in loaded.problems.iter().chain(&loaded.warnings) {
        let _ = writeln!(text, "warning: {warning}");
    }
    super::print(&text)
}

/// Each rule with its own place: the rules of all files hold together.
fn rules(text: &mut String, loaded: &Loaded) {
    for (effect, rule, origin) in &loaded.rules.rules {
        let effect = match effect {
            RuleEffect::Allow => "allow",
            RuleEffect::Ask => "ask",
            RuleEffect::Deny => "deny",
        };
        let rule = serde_json::to_string(rule).unwrap_or_default();
        let line = origin.line.map(|line| format!(":{line}")).unwrap_or_default();
        let _ = writeln!(text, "{effect} {rule}  ({}{line})", origin.source);
    }
}

/// A value for a person: text without quotes.
fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

//! `loon config ...`.

use std::fmt::Write as _;
use std::path::Path;

use loon_config::Layer;
use loon_config::{edit, files};

use crate::args::ConfigCommand;
use crate::failure::Failure;
use crate::wiring::Setup;

/// Runs one of them.
pub(super) fn run(command: &ConfigCommand) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Get { key } => get(key),
        ConfigCommand::Set { key, value, project } => set(key, value, *project),
        ConfigCommand::List => list(),
        ConfigCommand::Schema => {
            let schema =
                serde_json::to_string_pretty(loon_config::schema()).map_err(anyhow::Error::from)?;
            super::print(&format!("{schema}\n"))
        }
    }
}

fn get(key: &str) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    match setup.loaded.get(key).map_err(|error| Failure::from(error.info()))? {
        Some(serde_json::Value::String(text)) => super::print(&format!("{text}\n")),
        Some(value) => super::print(&format!("{value}\n")),
        None => super::print("unset\n"),
    }
}

fn set(key: &str, value: &str, project: bool) -> Result<u8, Failure> {
    let setup = Setup::load_paths(None)?;
    let layer = if project { Layer::Project } else { Layer::User };
    let value = edit::parse_value(value);
    let change = |text: &str| edit::set(text, key, &value);
    files::update(&setup.files, &[], setup.trusted, layer, change)
        .map_err(|error| Failure::from(error.info()))?;
    let file = setup.files.of(layer).unwrap_or(Path::new(""));
    super::print(&format!("{key} is set in {}\n", file.display()))
}

fn list() -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    let mut text = String::new();
    for entry in setup.loaded.entries() {
        let value = entry.value.map_or_else(|| "unset".to_owned(), |value| value.to_string());
        let _ = writeln!(text, "{} = {value}  ({})", entry.key, entry.origin);
    }
    for ignored in &setup.loaded.untrusted {
        let _ = writeln!(text, "{ignored}");
    }
    for warning in &setup.loaded.warnings {
        let _ = writeln!(text, "{warning}");
    }
    super::print(&text)
}

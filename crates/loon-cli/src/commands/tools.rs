//! `loon tools`.

use std::fmt::Write as _;

use loon_api::ToolClass;
use loon_core::{CatalogEntry, tool_catalog};
use serde_json::json;

use crate::args::{SessionArgs, ToolsArgs};
use crate::failure::Failure;
use crate::wiring::{RunOptions, Setup};

/// Prints the tools that models have in this folder.
pub(super) fn run(args: &ToolsArgs) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    let session = SessionArgs { tools: args.tools, ..SessionArgs::default() };
    let runtime = super::runtime()?;
    let entries = runtime.block_on(async {
        let (deps, _) = setup.dependencies(RunOptions::attended(&session));
        tool_catalog(&deps).await
    });
    let entries = entries.map_err(Failure::from)?;
    super::print(&if args.json { as_json(&entries) } else { as_text(&entries) })
}

fn as_text(entries: &[CatalogEntry]) -> String {
    let mut text = String::new();
    for CatalogEntry { tool, offered } in entries {
        let class = class(tool.class);
        let note = if *offered { "" } else { "  (not offered)" };
        let _ = writeln!(text, "{:<24} {class:<9} {}{note}", tool.name, tool.description);
    }
    let offered = entries.iter().filter(|entry| entry.offered).count();
    let _ = writeln!(text, "\n{offered} of {} tools are in each request.", entries.len());
    text
}

fn as_json(entries: &[CatalogEntry]) -> String {
    let mut text = String::new();
    for CatalogEntry { tool, offered } in entries {
        let line = json!({
            "name": tool.name,
            "class": class(tool.class),
            "offered": offered,
            "description": tool.description,
            "parameters": tool.parameters,
        });
        let _ = writeln!(text, "{line}");
    }
    text
}

fn class(class: ToolClass) -> &'static str {
    match class {
        ToolClass::Reads => "reads",
        ToolClass::Writes => "writes",
        ToolClass::Executes => "executes",
        ToolClass::Network => "network",
        ToolClass::Remote => "remote",
        ToolClass::Session => "session",
    }
}

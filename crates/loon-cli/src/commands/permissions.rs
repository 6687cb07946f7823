//! `loon permissions ...`.

use std::path::{Path, PathBuf};

use loon_api::{Subject, ToolClass};
use loon_permission::Request;

use crate::args::PermissionsCommand;
use crate::failure::{Failure, plain};
use crate::wiring::Setup;

/// Runs one of them.
pub(super) fn run(command: &PermissionsCommand) -> Result<u8, Failure> {
    let PermissionsCommand::Explain { line, mode } = command;
    let setup = Setup::load(None, &[])?;
    let mode = mode.map_or(setup.loaded.settings.session.mode, Into::into);
    let subjects = [Subject::Command { line: line.clone(), cwd: setup.root.clone() }];
    let request = Request { tool: "bash", class: ToolClass::Executes, subjects: &subjects, mode };
    let judgement = setup.policy().decide(&request, &resolve);
    super::print(&plain(&loon_permission::explain(&judgement).to_string()))
}

fn resolve(path: &Path) -> PathBuf {
    loon_core::authority::resolve_existing(path)
}

//! `loon permissions ...`.

use loon_api::{Subject, ToolClass};
use loon_core::authority::resolve_existing;
use loon_permission::Request;

use crate::args::PermissionsCommand;
use crate::failure::Failure;
use crate::wiring::Setup;

/// Runs one of them.
pub(super) fn run(command: &PermissionsCommand) -> Result<u8, Failure> {
    let PermissionsCommand::Explain { line, mode } = command;
    let setup = Setup::load(None, &[])?;
    let mode = mode.map_or(setup.loaded.settings.session.mode, Into::into);
    let subjects = [Subject::Command { line: line.clone(), cwd: setup.root.clone() }];
    let request = Request { tool: "bash", class: ToolClass::Executes, subjects: &subjects, mode };
    let judgement = setup.policy().decide(&request, &resolve_existing);
    super::print(&loon_permission::explain(&judgement).to_string())
}

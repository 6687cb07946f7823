//! Projects of Cargo.

use toml_edit::DocumentMut;

use super::{Project, Purpose, Request, words};

/// Options by which a call itself says which packages it means.
const CHOICE: [&str; 5] = ["-p", "--package", "--workspace", "--all", "--manifest-path"];

pub(super) fn commands(
    project: &Project<'_>,
    request: &Request,
) -> Result<Vec<Vec<String>>, String> {
    project.require("cargo", "Ask the user to install Rust (rustup).")?;
    let mut command = match request.purpose {
        Purpose::Test => words(&["cargo", "test"], []),
        Purpose::Build => words(&["cargo", "build"], []),
        Purpose::Lint if (project.installed)("cargo-clippy") => {
            words(&["cargo", "clippy", "--all-targets"], [])
        }
        Purpose::Lint => words(&["cargo", "check", "--all-targets"], []),
    };
    let chosen = request.args.iter().any(|arg| {
        CHOICE.iter().any(|option| {
            arg == option || arg.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
        })
    });
    if !chosen && means_all_members(&project.read("Cargo.toml")) {
        command.push("--workspace".to_owned());
    }
    command.extend(request.args.iter().chain(&request.filter).cloned());
    Ok(vec![command])
}

/// The manifest is that of a workspace which does not say itself what is meant by default.
fn means_all_members(manifest: &str) -> bool {
    let Ok(manifest) = manifest.parse::<DocumentMut>() else { return false };
    manifest
        .get("workspace")
        .and_then(|workspace| workspace.as_table_like())
        .is_some_and(|workspace| !workspace.contains_key("default-members"))
}

//! Projects of Node: the scripts of `package.json`, run by the package manager of the lock file.

use serde_json::{Map, Value};

use super::{Project, Purpose, Request, words};
use crate::text;

/// Lock files and whose they are.
const LOCKS: [(&str, &str); 6] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
];
const MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
/// What `npm init` writes where there are no tests.
const PLACEHOLDER: &str = "no test specified";
/// Has test programs run once instead of waiting for changes.
const ONCE: (&str, &str) = ("CI", "true");

type Commands = (Vec<Vec<String>>, Vec<(&'static str, &'static str)>);

pub(super) fn commands(project: &Project<'_>, request: &Request) -> Result<Commands, String> {
    let package = package(project)?;
    let script =
        script(&package, request.purpose).ok_or_else(|| missing(project, &package, request))?;
    let manager = manager(project, &package)?;
    let how = match manager {
        "npm" => "Ask the user to install Node.",
        "bun" => "Ask the user to install bun.",
        _ => "Ask the user to install it; corepack enable does where Node is.",
    };
    project.require(manager, how)?;
    let added: Vec<String> = request.args.iter().chain(&request.filter).cloned().collect();
    let mut command = words(&[manager, "run", script], []);
    if manager == "npm" && !added.is_empty() {
        command.push("--".to_owned());
    }
    command.extend(added);
    let variables = if request.purpose == Purpose::Test { vec![ONCE] } else { Vec::new() };
    Ok((vec![command], variables))
}

/// There is a script for it.
pub(super) fn has_script(project: &Project<'_>, purpose: Purpose) -> bool {
    package(project).is_ok_and(|package| script(&package, purpose).is_some())
}

fn package(project: &Project<'_>) -> Result<Map<String, Value>, String> {
    let problem = |error: &dyn std::fmt::Display| {
        format!("package.json in {} cannot be read: {error}.", project.shown)
    };
    let text =
        crate::open::beginning_as_text(&project.folder.join("package.json"), super::LOOKED_AT)
            .map_err(|error| problem(&error))?;
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| problem(&error))
}

fn scripts(package: &Map<String, Value>) -> impl Iterator<Item = (&str, &str)> {
    let scripts = package.get("scripts").and_then(Value::as_object);
    scripts.into_iter().flatten().filter_map(|(name, line)| Some((name.as_str(), line.as_str()?)))
}

/// The script for a purpose, by the names in use.
fn script(package: &Map<String, Value>, purpose: Purpose) -> Option<&'static str> {
    let names: &[&str] = match purpose {
        Purpose::Test => &["test"],
        Purpose::Build => &["build", "compile"],
        Purpose::Lint => &["lint", "typecheck", "type-check", "check"],
    };
    names.iter().copied().find(|wanted| {
        scripts(package).any(|(name, line)| name == *wanted && !line.contains(PLACEHOLDER))
    })
}

fn missing(project: &Project<'_>, package: &Map<String, Value>, request: &Request) -> String {
    let names: Vec<String> = scripts(package)
        .filter(|(_, line)| !line.contains(PLACEHOLDER))
        .map(|(name, _)| text::visible_line(name))
        .collect();
    let there = if names.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    };
    format!(
        "package.json in {} has no {} script; {there}. Add one, or run the right command by bash.",
        project.shown, request.purpose
    )
}

/// The package manager: what `packageManager` names, else whose lock file is nearest, else npm.
fn manager(project: &Project<'_>, package: &Map<String, Value>) -> Result<&'static str, String> {
    if let Some(named) = package.get("packageManager").and_then(Value::as_str) {
        let name = named.split('@').next().unwrap_or_default();
        if let Some(known) = MANAGERS.iter().find(|manager| **manager == name) {
            return Ok(known);
        }
    }
    for folder in project.upwards() {
        let mut found: Vec<(&str, &'static str)> =
            LOCKS.iter().copied().filter(|(lock, _)| folder.join(lock).is_file()).collect();
        found.dedup_by_key(|(_, manager)| *manager);
        match found.as_slice() {
            [] => {}
            [(_, manager)] => return Ok(manager),
            [(one, _), (other, _), ..] => {
                return Err(format!(
                    "Both {one} and {other} are there, so it is not clear which package manager {} uses. Name it in packageManager in package.json, remove the stale one, or use bash.",
                    project.shown
                ));
            }
        }
    }
    Ok("npm")
}

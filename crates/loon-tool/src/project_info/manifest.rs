//! The manifests of a project, and the little that is told of each.

use std::path::Path;

use regex::Regex;

use crate::json::{Kind, Node};
use crate::open;
use crate::text;

/// Most bytes of a manifest that are looked at.
const LOOKED_AT: u64 = 256 * 1024;
/// Most names listed of one.
const NAMES: usize = 20;

/// Names of manifests at any depth.
const NAMED: [&str; 27] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "go.mod",
    "go.work",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "composer.json",
    "Gemfile",
    "mix.exs",
    "pubspec.yaml",
    "Package.swift",
    "CMakeLists.txt",
    "meson.build",
    "build.zig",
    "deno.json",
    "justfile",
    "Makefile",
    "Dockerfile",
    "docker-compose.yml",
    "flake.nix",
];

/// Files of services that build the project.
const BUILD_SERVICES: [&str; 6] = [
    ".gitlab-ci.yml",
    ".travis.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    ".circleci/config.yml",
    "compose.yaml",
];

/// True for a path relative to the root of a project that names a manifest.
pub(super) fn is_manifest(inside: &Path) -> bool {
    let name = inside.file_name().unwrap_or_default().to_string_lossy();
    let extension = inside.extension().and_then(|extension| extension.to_str());
    NAMED.contains(&name.as_ref())
        || matches!(extension, Some("sln" | "csproj" | "gemspec" | "cabal"))
        || BUILD_SERVICES.iter().any(|service| inside == Path::new(service))
        || inside.starts_with(".github/workflows")
}

/// Its first bytes as text; empty if it cannot be read.
pub(super) fn read(path: &Path) -> String {
    open::beginning_as_text(path, LOOKED_AT).unwrap_or_default()
}

/// The project's name, its scripts or its targets; empty if there is nothing to tell.
pub(super) fn details(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let content = || read(path);
    match name.as_ref() {
        "package.json" | "composer.json" => scripts(&content()),
        "Cargo.toml" => {
            let content = content();
            let workspace = content.lines().any(|line| line.trim() == "[workspace]");
            let named = first(&content, r#"^name\s*=\s*["']([^"']+)"#);
            [named, workspace.then(|| "workspace".to_owned())]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", ")
        }
        "pyproject.toml" => first(&content(), r#"^name\s*=\s*["']([^"']+)"#).unwrap_or_default(),
        "go.mod" => first(&content(), r"^module\s+(\S+)").unwrap_or_default(),
        "Makefile" | "justfile" => listed("targets", targets(&content())),
        _ => String::new(),
    }
}

/// Names of the scripts of a `package.json`.
fn script_names(content: &str) -> Vec<String> {
    let Ok(root) = Node::parse(content.trim_start_matches('\u{FEFF}')) else { return Vec::new() };
    let Some(scripts) = root.get("scripts").filter(|scripts| scripts.kind() == Kind::Object) else {
        return Vec::new();
    };
    scripts.members().filter_map(|member| Some(member.key.string()?.into_owned())).collect()
}

fn scripts(content: &str) -> String {
    let Ok(root) = Node::parse(content.trim_start_matches('\u{FEFF}')) else {
        return "no valid JSON".to_owned();
    };
    let name = root.get("name").and_then(Node::string).unwrap_or_default();
    let scripts = listed("scripts", script_names(content));
    match (name.is_empty(), scripts.is_empty()) {
        (true, _) => scripts,
        (false, true) => name.into_owned(),
        (false, false) => format!("{name}, {scripts}"),
    }
}

/// The targets of a Makefile or justfile.
pub(super) fn targets(content: &str) -> Vec<String> {
    let Ok(target) = Regex::new(r"^([A-Za-z0-9][\w.-]*)(?:\s+[\w='\x22*+]+)*\s*:(?:[^=:]|$)")
    else {
        return Vec::new();
    };
    let mut names: Vec<String> = Vec::new();
    for found in content.lines().filter_map(|line| target.captures(line)) {
        if !names.contains(&found[1].to_owned()) {
            names.push(found[1].to_owned());
        }
    }
    names
}

fn listed(what: &str, mut names: Vec<String>) -> String {
    let total = names.len();
    if total == 0 {
        return String::new();
    }
    names.truncate(NAMES);
    if total > NAMES {
        names.push(format!("{} more", total - NAMES));
    }
    let names: Vec<String> = names.iter().map(|name| text::visible_line(name)).collect();
    format!("{what} {}", names.join(" "))
}

fn first(content: &str, pattern: &str) -> Option<String> {
    let pattern = Regex::new(pattern).ok()?;
    content.lines().find_map(|line| Some(pattern.captures(line.trim())?[1].to_owned()))
}

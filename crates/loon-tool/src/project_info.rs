//! `project_info`: what the project in the workspace is, in a few lines.

mod commands;
mod manifest;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_exec::git::StatusSummary;
use loon_exec::{Git, Spawner};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::text;
use crate::walk::Sight;
use crate::workspace::Workspace;

/// Most files looked at.
const FILES: usize = 100_000;
/// Most languages and manifests named.
const LANGUAGES: usize = 8;
const MANIFESTS: usize = 24;

/// Files that guide those who work on a project.
const GUIDANCE: [&str; 6] =
    ["AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "README.md", "README.rst", "README"];

/// Describes the project.
pub struct ProjectInfo {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

/// Arguments of `project_info`: none.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {}

impl ProjectInfo {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

impl NativeTool for ProjectInfo {
    type Args = Args;

    const NAME: &'static str = "project_info";
    const DESCRIPTION: &'static str =
        "Describe the project: Git state, manifests, languages, guidance files, commands to test.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, _args: &Args) -> String {
        String::new()
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        let path = self.workspace.root().to_owned();
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, _args: Args, cx: &EffectContext) -> ToolOutput {
        let git = git_line(&self.spawner, self.workspace.root(), &cx.cancel).await;
        let (workspace, sight) = (Arc::clone(&self.workspace), Sight::of(cx));
        let spawner = self.spawner.clone();
        blocking(move || {
            describe(&workspace, &git, &|program| spawner.find(program).is_some(), &sight)
        })
        .await
    }
}

/// What Git says, in one line.
async fn git_line(spawner: &Spawner, root: &Path, cancel: &CancellationToken) -> String {
    if !root.ancestors().any(|above| above.join(".git").exists()) {
        return "git: not under version control".to_owned();
    }
    match Git::new(spawner, root, cancel).status_summary().await {
        Ok(status) => format!("git: {}", state(&status)),
        Err(error) => format!("git: {}", text::visible_line(&error.to_string())),
    }
}

fn state(status: &StatusSummary) -> String {
    let mut line = match (&status.branch, &status.commit) {
        (Some(branch), None) => format!("{branch}, no commit yet"),
        (Some(branch), Some(_)) => branch.clone(),
        (None, Some(commit)) => {
            format!("detached at {}", commit.chars().take(10).collect::<String>())
        }
        (None, None) => "no branch".to_owned(),
    };
    if let Some(upstream) = &status.upstream {
        let _ = write!(line, " following {upstream}");
    }
    let counts = [
        (status.ahead, "ahead"),
        (status.behind, "behind"),
        (status.staged, "staged"),
        (status.changed, "changed"),
        (status.untracked, "untracked"),
        (status.conflicted, "in conflict"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(line, ", {count} {what}");
    }
    if status.is_clean() {
        line.push_str(", clean");
    }
    if status.truncated {
        line.push_str(" (at least)");
    }
    text::visible_line(&line)
}

/// What a walk over the project found.
#[derive(Debug, Default)]
struct Survey {
    files: usize,
    /// Files and bytes of each language.
    languages: HashMap<&'static str, (usize, u64)>,
    manifests: Vec<PathBuf>,
    guidance: Vec<PathBuf>,
    stopped: bool,
    cancelled: bool,
}

fn survey(root: &Path, sight: &Sight) -> Survey {
    let mut survey = Survey::default();
    for entry in sight.walk(root, true).build().flatten() {
        if sight.is_cancelled() {
            survey.cancelled = true;
            break;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if survey.files == FILES {
            survey.stopped = true;
            break;
        }
        survey.files += 1;
        let path = entry.path();
        let inside = path.strip_prefix(root).unwrap_or(path);
        if let Some(language) = language(path) {
            let (files, bytes) = survey.languages.entry(language).or_default();
            *files += 1;
            *bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
        if manifest::is_manifest(inside) {
            survey.manifests.push(path.to_owned());
        }
        let name = entry.file_name().to_string_lossy();
        let guides = GUIDANCE.iter().any(|guide| guide.eq_ignore_ascii_case(&name));
        // Deeper ones guide only through the first two names.
        if guides && (entry.depth() == 1 || GUIDANCE[..2].contains(&name.as_ref())) {
            survey.guidance.push(path.to_owned());
        }
    }
    let depth = |path: &PathBuf| path.components().count();
    survey.manifests.sort_by_key(depth);
    survey.guidance.sort_by_key(depth);
    survey
}

fn describe(
    workspace: &Workspace,
    git: &str,
    installed: &dyn Fn(&str) -> bool,
    sight: &Sight,
) -> ToolOutput {
    let root = workspace.root();
    let survey = survey(root, sight);
    if survey.cancelled {
        return ToolOutput::error("Cancelled.");
    }
    let mut out = format!("root: {}\n{git}\n", text::visible_line(&root.to_string_lossy()));
    let more = if survey.stopped { ", and more that were not looked at" } else { "" };
    let _ = writeln!(out, "files: {}{more}", survey.files);
    let languages = languages(&survey.languages);
    if !languages.is_empty() {
        let _ = writeln!(out, "languages: {languages}");
    }
    for path in survey.manifests.iter().take(MANIFESTS) {
        let shown = workspace.display(path);
        let _ = match manifest::details(path) {
            details if details.is_empty() => writeln!(out, "manifest: {shown}"),
            details => writeln!(out, "manifest: {shown}: {}", text::visible_line(&details)),
        };
    }
    if survey.manifests.len() > MANIFESTS {
        let _ = writeln!(out, "[{} more manifests]", survey.manifests.len() - MANIFESTS);
    }
    let guidance: Vec<_> =
        survey.guidance.iter().take(MANIFESTS).map(|path| workspace.display(path)).collect();
    if !guidance.is_empty() {
        let _ = writeln!(out, "guidance: {}", guidance.join(", "));
    }
    for (purpose, commands) in commands::detect(workspace, installed) {
        let _ = writeln!(out, "{purpose}: {}", text::visible_line(&commands.join(", ")));
    }
    ToolOutput::ok(out.trim_end(), text::count(survey.files, "file"))
}

/// The languages with the most bytes.
fn languages(counted: &HashMap<&'static str, (usize, u64)>) -> String {
    let mut ranked: Vec<_> = counted.iter().collect();
    ranked.sort_by_key(|(name, (_, bytes))| (std::cmp::Reverse(*bytes), **name));
    let mut named: Vec<String> = ranked
        .iter()
        .take(LANGUAGES)
        .map(|(name, (files, bytes))| {
            format!("{name} ({}, {})", text::count(*files, "file"), text::size(*bytes))
        })
        .collect();
    if ranked.len() > LANGUAGES {
        named.push(format!("{} more", ranked.len() - LANGUAGES));
    }
    named.join(", ")
}

/// The language of a file of code or prose, by its name.
fn language(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "rs" => "Rust",
        "py" | "pyi" => "Python",
        "ipynb" => "Jupyter",
        "ts" | "tsx" | "mts" | "cts" => "TypeScript",
        "js" | "jsx" | "mjs" | "cjs" => "JavaScript",
        "vue" => "Vue",
        "svelte" => "Svelte",
        "go" => "Go",
        "java" => "Java",
        "kt" | "kts" => "Kotlin",
        "scala" => "Scala",
        "cs" => "C#",
        "fs" => "F#",
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => "C++",
        "m" | "mm" => "Objective-C",
        "swift" => "Swift",
        "rb" => "Ruby",
        "php" => "PHP",
        "pl" | "pm" => "Perl",
        "lua" => "Lua",
        "ex" | "exs" => "Elixir",
        "erl" => "Erlang",
        "hs" => "Haskell",
        "ml" | "mli" => "OCaml",
        "clj" | "cljs" => "Clojure",
        "dart" => "Dart",
        "zig" => "Zig",
        "r" => "R",
        "jl" => "Julia",
        "sh" | "bash" | "zsh" => "Shell",
        "sql" => "SQL",
        "tf" => "Terraform",
        "proto" => "Protocol Buffers",
        "html" | "htm" => "HTML",
        "css" | "scss" | "sass" | "less" => "CSS",
        "md" | "rst" | "adoc" => "Prose",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;

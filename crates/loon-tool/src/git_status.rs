//! `git_status`: the branch and what differs, file by file.

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_exec::git::{self, Change, Kind, Query, StatusEntry, StatusSummary};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::{Place, short, subjects};
use crate::text;
use crate::workspace::Workspace;

/// Most bytes of the list of files.
const LIST: usize = 32 * 1024;

/// Tells the state of a repository.
pub struct GitStatus {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl GitStatus {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `git_status`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: Option<String>,
}

impl Args {
    fn paths(&self) -> Vec<String> {
        self.path.iter().cloned().collect()
    }
}

impl NativeTool for GitStatus {
    type Args = Args;

    const NAME: &'static str = "git_status";
    const DESCRIPTION: &'static str =
        "Show the branch, what is under way, and staged, changed, conflicted and untracked files.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        text::visible_line(args.path.as_deref().unwrap_or_default())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        Ok(subjects(&self.workspace, &args.paths()))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let place = Place::find(&self.workspace, &self.spawner, &cx.cancel, &args.paths()).await;
        match place {
            Ok(place) => status(&place).await.unwrap_or_else(ToolOutput::error),
            Err(text) => ToolOutput::error(text),
        }
    }
}

async fn status(place: &Place) -> Result<ToolOutput, String> {
    place.needs_files()?;
    let options = [
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--find-renames",
        "--ignore-submodules=dirty",
    ];
    let answer = place.ask(Query::new("status").args(&options).paths(&place.paths)).await?;
    let summary = StatusSummary::of(&answer);
    let entries = git::entries(&answer);
    let mut text = head(&summary);
    if let Some(operation) = git::operation(&place.folder) {
        let _ = writeln!(text, "Under way: {}.", text::visible_line(&operation));
    }
    list(place, &entries, &mut text);
    if summary.truncated {
        text.push_str("[there is more; give a path]\n");
    }
    if entries.is_empty() {
        text.push_str("Nothing differs.\n");
        return Ok(ToolOutput::ok(text, "clean"));
    }
    Ok(ToolOutput::ok(text, text::count(entries.len(), "file")))
}

fn head(summary: &StatusSummary) -> String {
    let mut text = match (&summary.branch, &summary.commit) {
        (Some(branch), Some(commit)) => {
            format!("On branch {}, commit {}", text::visible_line(branch), short(commit))
        }
        (Some(branch), None) => {
            format!("On branch {}, which has no commit yet", text::visible_line(branch))
        }
        (None, Some(commit)) => format!("On no branch (detached), commit {}", short(commit)),
        (None, None) => "On no branch and no commit".to_owned(),
    };
    if let Some(upstream) = &summary.upstream {
        let (ahead, behind) = (summary.ahead, summary.behind);
        let upstream = text::visible_line(upstream);
        let _ = write!(text, "; {ahead} ahead of and {behind} behind {upstream}");
    }
    text.push_str(".\n");
    text
}

/// The line of a file in one section; absent if it is not part of it.
type Line = fn(&Place, &StatusEntry) -> Option<String>;

fn list(place: &Place, entries: &[StatusEntry], text: &mut String) {
    let sections: [(&str, Line); 4] = [
        ("Conflicts", conflict),
        ("Staged", staged),
        ("Not staged", unstaged),
        ("Untracked", untracked),
    ];
    for (title, line) in sections {
        let lines: Vec<String> = entries.iter().filter_map(|entry| line(place, entry)).collect();
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{title}:");
        for (index, line) in lines.iter().enumerate() {
            if text.len() > LIST {
                let rest = text::count(lines.len() - index, "file");
                let _ = writeln!(text, "  [{rest} more; give a path]");
                break;
            }
            let _ = writeln!(text, "  {line}");
        }
    }
}

fn conflict(place: &Place, entry: &StatusEntry) -> Option<String> {
    let Kind::Conflict(letters) = &entry.kind else { return None };
    let what = match letters.as_str() {
        "DD" => "both deleted",
        "AU" => "added by us",
        "UD" => "deleted by them",
        "UA" => "added by them",
        "DU" => "deleted by us",
        "AA" => "both added",
        _ => "both modified",
    };
    Some(format!("{what}: {}", place.shown(&entry.path)))
}

fn staged(place: &Place, entry: &StatusEntry) -> Option<String> {
    let Kind::Changed { staged, .. } = &entry.kind else { return None };
    Some(changed(place, entry, (*staged)?))
}

fn unstaged(place: &Place, entry: &StatusEntry) -> Option<String> {
    let Kind::Changed { unstaged, .. } = &entry.kind else { return None };
    Some(changed(place, entry, (*unstaged)?))
}

fn untracked(place: &Place, entry: &StatusEntry) -> Option<String> {
    let folder = entry.path.as_os_str().as_encoded_bytes().ends_with(b"/");
    matches!(entry.kind, Kind::Untracked)
        .then(|| format!("{}{}", place.shown(&entry.path), if folder { "/" } else { "" }))
}

fn changed(place: &Place, entry: &StatusEntry, change: Change) -> String {
    let word = match change {
        Change::Added => "added",
        Change::Modified => "modified",
        Change::Deleted => "deleted",
        Change::Renamed => "renamed",
        Change::Copied => "copied",
        Change::TypeChanged => "type changed",
    };
    let path = place.shown(&entry.path);
    let Kind::Changed { from, submodule, .. } = &entry.kind else { return path };
    let submodule = if *submodule { " (submodule)" } else { "" };
    match (from, change) {
        (Some(from), Change::Renamed | Change::Copied) => {
            format!("{word}: {} -> {path}{submodule}", place.shown(from))
        }
        _ => format!("{word}: {path}{submodule}"),
    }
}

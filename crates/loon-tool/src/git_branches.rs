//! `git_branches`: the branches, most recent first.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_exec::git::{self, Query};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::{Place, short, subjects};
use crate::text;
use crate::workspace::Workspace;

/// Most branches shown.
const BRANCHES: usize = 200;
/// Most characters of a subject.
const SUBJECT: usize = 120;
/// Name, commit, upstream, distance from it, date, worktree it is checked out in, subject: each
/// followed by a NUL.
const FORMAT: &str = "--format=%(refname)%00%(objectname)%00%(upstream:short)%00%(upstream:track,nobracket)%00%(committerdate:short)%00%(worktreepath)%00%(contents:subject)%00";
const FIELDS: usize = 7;

/// Lists branches.
pub struct GitBranches {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl GitBranches {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `git_branches`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(default)]
    remote: bool,
}

impl NativeTool for GitBranches {
    type Args = Args;

    const NAME: &'static str = "git_branches";
    const DESCRIPTION: &'static str =
        "List local or remote branches, most recent first, with upstream and last commit.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        if args.remote { "remote".to_owned() } else { String::new() }
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(subjects(&self.workspace, &[]))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match Place::find(&self.workspace, &self.spawner, &cx.cancel, &[]).await {
            Ok(place) => branches(&place, args.remote).await.unwrap_or_else(ToolOutput::error),
            Err(text) => ToolOutput::error(text),
        }
    }
}

async fn branches(place: &Place, remote: bool) -> Result<ToolOutput, String> {
    let below = if remote { "refs/remotes" } else { "refs/heads" };
    let query = Query::new("for-each-ref").args(&["--sort=-committerdate", FORMAT, below]);
    let answer = place.ask(query).await?;
    let listed = String::from_utf8_lossy(&answer.head);
    let fields: Vec<&str> = listed.split('\0').collect();
    let branches: Vec<Branch<'_>> = fields.chunks_exact(FIELDS).filter_map(Branch::parse).collect();
    let current = git::branch(&place.folder);
    let mut text = head(place, current.as_deref()).await?;
    for branch in branches.iter().take(BRANCHES) {
        let mark = if !remote && current.as_deref() == Some(branch.name) { "*" } else { " " };
        let _ = writeln!(text, "{mark} {}", branch.line(place));
    }
    if branches.len() > BRANCHES || !answer.is_whole() {
        let rest = text::count(branches.len().saturating_sub(BRANCHES), "branch");
        let _ = writeln!(text, "[{rest} more; git_log takes any by name]");
    }
    if branches.is_empty() {
        text.push_str(if remote { "No remote branches.\n" } else { "No branches.\n" });
    }
    Ok(ToolOutput::ok(text, text::count(branches.len(), "branch")))
}

/// What is checked out, where the list does not show it.
async fn head(place: &Place, current: Option<&str>) -> Result<String, String> {
    Ok(match (current, place.head().await?) {
        (Some(branch), None) => {
            format!("On branch {}, which has no commit yet.\n", text::visible_line(branch))
        }
        (None, Some(commit)) if place.repository.worktree.is_some() => {
            format!("On no branch (detached), commit {}.\n", short(&commit))
        }
        _ => String::new(),
    })
}

struct Branch<'a> {
    name: &'a str,
    commit: &'a str,
    upstream: &'a str,
    distance: &'a str,
    date: &'a str,
    worktree: &'a str,
    subject: &'a str,
}

impl<'a> Branch<'a> {
    fn parse(fields: &[&'a str]) -> Option<Self> {
        let [name, commit, upstream, distance, date, worktree, subject] = *fields else {
            return None;
        };
        let name = name.trim_start_matches('\n');
        let name = name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/remotes/"))?;
        Some(Self { name, commit, upstream, distance, date, worktree, subject })
    }

    fn line(&self, place: &Place) -> String {
        let mut text =
            format!("{} {} {}", text::visible_line(self.name), short(self.commit), self.date);
        if !self.upstream.is_empty() {
            let distance = if self.distance.is_empty() { "even" } else { self.distance };
            let _ = write!(text, " [{}: {distance}]", text::visible_line(self.upstream));
        }
        if !self.worktree.is_empty()
            && place.repository.worktree.as_deref() != Some(Path::new(self.worktree))
        {
            let _ = write!(text, " [checked out in {}]", text::visible_line(self.worktree));
        }
        let subject: String = text::visible_line(self.subject).chars().take(SUBJECT).collect();
        let _ = write!(text, " {subject}");
        text
    }
}

//! `git_diff`: what differs, as a patch.

use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_exec::git::Query;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::{Place, patch, subjects};
use crate::text;
use crate::workspace::Workspace;

/// Shows differences.
pub struct GitDiff {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl GitDiff {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `git_diff`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(default)]
    staged: bool,
    /// Revision, or a range `a..b`.
    base: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    offset: Option<usize>,
}

impl NativeTool for GitDiff {
    type Args = Args;

    const NAME: &'static str = "git_diff";
    const DESCRIPTION: &'static str =
        "Show unstaged changes as a patch, or staged ones, or those against base.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let staged = args.staged.then(|| "staged".to_owned());
        let words = staged.iter().chain(&args.base).chain(&args.paths);
        words.map(|word| text::visible_line(word)).collect::<Vec<_>>().join(" ")
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        Ok(subjects(&self.workspace, &args.paths))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match Place::find(&self.workspace, &self.spawner, &cx.cancel, &args.paths).await {
            Ok(place) => diff(&place, &args).await.unwrap_or_else(ToolOutput::error),
            Err(text) => ToolOutput::error(text),
        }
    }
}

async fn diff(place: &Place, args: &Args) -> Result<ToolOutput, String> {
    let sides = match &args.base {
        Some(base) => sides(place, base).await?,
        None => Vec::new(),
    };
    if sides.len() < 2 {
        place.needs_files()?;
    } else if args.staged {
        return Err(
            "A range compares two commits: leave staged out, or give one revision.".to_owned()
        );
    }
    let mut query = Query::new("diff").args(&patch::OPTIONS);
    for option in place.names() {
        query = query.arg(option);
    }
    if args.staged {
        query = query.arg("--cached");
    }
    let answer = place.ask(query.revisions(&sides).paths(&place.paths)).await?;
    if answer.total() == 0 {
        return Ok(ToolOutput::ok(nothing(args, &sides), "no differences"));
    }
    let page = patch::page(&answer, args.offset.unwrap_or(1))?;
    Ok(ToolOutput::ok(page.text, page.summary))
}

/// The one or two commits to compare.
async fn sides(place: &Place, base: &str) -> Result<Vec<String>, String> {
    let objects = place.resolve(base).await?;
    let from = objects.iter().find_map(|object| object.strip_prefix('^'));
    let to = objects.iter().find(|object| !object.starts_with('^'));
    match (from, to) {
        (Some(from), Some(to)) => Ok(vec![from.to_owned(), to.clone()]),
        (None, Some(_)) => Ok(vec![place.commit(base).await?]),
        (_, None) => Err(format!("{} excludes commits and names none.", text::visible_line(base))),
    }
}

fn nothing(args: &Args, sides: &[String]) -> String {
    let mut text = "No differences".to_owned();
    if args.staged {
        text.push_str(" staged");
    }
    if !args.paths.is_empty() {
        text.push_str(" in these paths");
    }
    text.push('.');
    if sides.is_empty() && !args.staged {
        text.push_str(" Staged and untracked files are not part of this; git_status lists them.");
    }
    text
}

//! `git_log`: commits, newest first, a line each.

use std::fmt::Write as _;
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

/// Commits shown unless the call says otherwise, and at most.
const COMMITS: usize = 20;
const MOST: usize = 200;
/// Most characters of a field.
const FIELD: usize = 200;
/// Hash, names that point to it, author, date, subject: each followed by a NUL.
const FORMAT: &str = "--format=tformat:%H%x00%D%x00%an%x00%as%x00%s";
const FIELDS: usize = 5;

/// Lists commits.
pub struct GitLog {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl GitLog {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `git_log`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// Or a range `a..b`.
    revision: Option<String>,
    path: Option<String>,
    limit: Option<usize>,
    skip: Option<usize>,
}

impl Args {
    fn paths(&self) -> Vec<String> {
        self.path.iter().cloned().collect()
    }
}

impl NativeTool for GitLog {
    type Args = Args;

    const NAME: &'static str = "git_log";
    const DESCRIPTION: &'static str =
        "List commits, newest first, a line each: all, or those that changed path.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let words = args.revision.iter().chain(&args.path);
        words.map(|word| text::visible_line(word)).collect::<Vec<_>>().join(" ")
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        Ok(subjects(&self.workspace, &args.paths()))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match Place::find(&self.workspace, &self.spawner, &cx.cancel, &args.paths()).await {
            Ok(place) => log(&place, &args).await.unwrap_or_else(ToolOutput::error),
            Err(text) => ToolOutput::error(text),
        }
    }
}

async fn log(place: &Place, args: &Args) -> Result<ToolOutput, String> {
    let revisions = match &args.revision {
        Some(revision) => place.resolve(revision).await?,
        None => match place.head().await? {
            Some(head) => vec![head],
            None => return Ok(ToolOutput::ok(unborn(place), "no commits")),
        },
    };
    let limit = args.limit.unwrap_or(COMMITS).clamp(1, MOST);
    let skip = args.skip.unwrap_or(0);
    let mut query = Query::new("log")
        .args(&["-z", "--no-patch", FORMAT])
        .arg(format!("--max-count={}", limit + 1))
        .arg(format!("--skip={skip}"))
        .revisions(&revisions);
    if args.path.is_some() {
        if let [file] = place.paths.as_slice()
            && file.is_file()
        {
            query = query.arg("--follow");
        }
        query = query.paths(&place.paths);
    }
    let answer = place.ask(query).await?;
    let answer = String::from_utf8_lossy(&answer.head);
    let fields: Vec<&str> = answer.split('\0').collect();
    let commits: Vec<&[&str]> = fields.chunks_exact(FIELDS).collect();
    let mut text = String::new();
    for commit in commits.iter().take(limit) {
        let _ = writeln!(text, "{}", line(commit));
    }
    let shown = commits.len().min(limit);
    if commits.len() > limit {
        let _ = writeln!(text, "[more commits follow; go on with skip {}]", skip + shown);
    } else if place.repository.shallow {
        text.push_str("[the history was cut off when the repository was cloned]\n");
    }
    if shown == 0 {
        text.insert_str(0, "No commits.\n");
    }
    Ok(ToolOutput::ok(text, text::count(shown, "commit")))
}

fn line(commit: &[&str]) -> String {
    let [hash, names, author, date, subject] = commit else { return String::new() };
    let names = if names.is_empty() { String::new() } else { format!(" ({})", field(names)) };
    format!("{} {date} {}{names}: {}", short(hash), field(author), field(subject))
}

/// One line, not too long.
fn field(text: &str) -> String {
    let line = text::visible_line(text);
    match line.char_indices().nth(FIELD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn unborn(place: &Place) -> String {
    match git::branch(&place.folder) {
        Some(branch) => format!("No commits yet on branch {}.", text::visible_line(&branch)),
        None => "No commits yet.".to_owned(),
    }
}

//! `git_show`: one commit with its differences, or a file or folder as it was in it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
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

/// Most bytes of a file's or folder's page.
const PAGE: usize = 48 * 1024;
/// Most bytes of a commit's message.
const MESSAGE: usize = 8 * 1024;
/// Bytes looked at to tell a binary file.
const LOOKED_AT: usize = 8000;
/// Hash, parents, author, committer, message: each followed by a NUL.
const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an <%ae>, %aI%x00%cn <%ce>, %cI%x00%D%x00%B";
const FIELDS: usize = 6;

/// Shows commits and what is in them.
pub struct GitShow {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl GitShow {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `git_show`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    revision: String,
    path: Option<String>,
    offset: Option<usize>,
}

impl Args {
    fn paths(&self) -> Vec<String> {
        self.path.iter().cloned().collect()
    }
}

impl NativeTool for GitShow {
    type Args = Args;

    const NAME: &'static str = "git_show";
    const DESCRIPTION: &'static str =
        "Show a commit with its changes, or with path that file or folder as it was in it.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let words = [Some(&args.revision), args.path.as_ref()];
        words
            .into_iter()
            .flatten()
            .map(|word| text::visible_line(word))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        Ok(subjects(&self.workspace, &args.paths()))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match Place::find(&self.workspace, &self.spawner, &cx.cancel, &args.paths()).await {
            Ok(place) => show(&place, &args).await.unwrap_or_else(ToolOutput::error),
            Err(text) => ToolOutput::error(text),
        }
    }
}

async fn show(place: &Place, args: &Args) -> Result<ToolOutput, String> {
    let commit = place.commit(&args.revision).await?;
    match &args.path {
        Some(path) => entry(place, &commit, path, args).await,
        None => whole(place, commit, args.offset.unwrap_or(1)).await,
    }
}

async fn whole(place: &Place, commit: String, offset: usize) -> Result<ToolOutput, String> {
    let commit = [commit];
    let mut text = String::new();
    if offset <= 1 {
        let query = Query::new("show").args(&["-z", "--no-patch", FORMAT]).revisions(&commit);
        let answer = place.ask(query).await?;
        let answer = String::from_utf8_lossy(&answer.head);
        let fields: Vec<&str> = answer.splitn(FIELDS, '\0').collect();
        head(&fields, place.repository.shallow, &mut text);
    }
    let mut query = Query::new("show")
        .args(&["--format=", "--diff-merges=first-parent"])
        .args(&patch::OPTIONS)
        .revisions(&commit)
        .paths(&place.paths);
    for option in place.names() {
        query = query.arg(option);
    }
    let answer = place.ask(query).await?;
    let page = patch::page(&answer, offset)?;
    if page.summary.is_empty() {
        text.push_str("No differences.\n");
    }
    text.push_str(&page.text);
    Ok(ToolOutput::ok(text, page.summary))
}

fn head(fields: &[&str], shallow: bool, text: &mut String) {
    let [hash, parents, author, committer, names, message] = fields else { return };
    let _ = writeln!(text, "commit {hash}");
    if parents.contains(' ') {
        let _ = writeln!(text, "merge of {parents}; shown against the first");
    } else if parents.is_empty() && shallow {
        text.push_str(
            "the history ends here because it was cut off when cloned; all files show as new\n",
        );
    }
    let _ = writeln!(text, "author {}", text::visible_line(author));
    if author != committer {
        let _ = writeln!(text, "committer {}", text::visible_line(committer));
    }
    if !names.is_empty() {
        let _ = writeln!(text, "refs {}", text::visible_line(names));
    }
    let message = text::visible(message.trim_end_matches(['\0', '\n']));
    let cut = message.floor_char_boundary(MESSAGE);
    text.push('\n');
    for line in message[..cut].lines() {
        let _ = writeln!(text, "    {line}");
    }
    if cut < message.len() {
        let _ = writeln!(
            text,
            "    [{} of the message not shown]",
            text::size((message.len() - cut) as u64)
        );
    }
    text.push('\n');
}

/// A file or folder of a commit.
async fn entry(place: &Place, commit: &str, path: &str, args: &Args) -> Result<ToolOutput, String> {
    let inside = inside(place, path);
    let shown = text::visible_line(path);
    let commit = commit.to_owned();
    if inside.as_os_str().is_empty() {
        return folder(place, &commit, args).await;
    }
    let query = Query::new("ls-tree").args(&["-z", "--full-tree", &commit]).paths(&[&inside]);
    let answer = place.ask(query).await?;
    let line = String::from_utf8_lossy(&answer.head).into_owned();
    let mut words = line.split(['\t', '\0']).next().unwrap_or_default().split(' ');
    let (mode, kind, object) = (words.next(), words.next(), words.next());
    let (Some(mode), Some(kind), Some(object)) = (mode, kind, object) else {
        return Err(format!(
            "{shown} is not in {}. git_log with this path shows which commits changed it.",
            text::visible_line(&args.revision)
        ));
    };
    match (mode, kind) {
        (_, "tree") => folder(place, object, args).await,
        ("160000", _) => Ok(ToolOutput::ok(
            format!("{shown} is a submodule, at its commit {object}."),
            "submodule",
        )),
        _ => {
            let answer = place.ask(Query::new("cat-file").args(&["blob", object])).await?;
            if mode == "120000" {
                let target = text::visible_line(&String::from_utf8_lossy(&answer.head));
                return Ok(ToolOutput::ok(format!("{shown} is a link to {target}."), "link"));
            }
            let start = &answer.head[..answer.head.len().min(LOOKED_AT)];
            if start.contains(&0) {
                let size = place.ask(Query::new("cat-file").args(&["-s", object])).await?;
                let size = String::from_utf8_lossy(&size.head).trim().parse().unwrap_or_default();
                let size = text::size(size);
                return Ok(ToolOutput::ok(format!("{shown} is binary, {size}."), "binary"));
            }
            lines(&answer.head, b'\n', answer.is_whole(), args.offset.unwrap_or(1), true)
        }
    }
}

/// The path relative to the root of the repository.
fn inside(place: &Place, path: &str) -> PathBuf {
    match (&place.repository.worktree, place.paths.first()) {
        (Some(worktree), Some(absolute)) => {
            absolute.strip_prefix(worktree).unwrap_or(absolute).to_owned()
        }
        // Without working files there is nothing that a path could be relative to but the root.
        _ => Path::new(path).components().collect(),
    }
}

async fn folder(place: &Place, tree: &str, args: &Args) -> Result<ToolOutput, String> {
    let query = Query::new("ls-tree").args(&["-z", "--full-tree", "--name-only", tree]);
    let answer = place.ask(query).await?;
    lines(&answer.head, 0, answer.is_whole(), args.offset.unwrap_or(1), false)
}

/// A page of lines, numbered or not.
fn lines(
    content: &[u8],
    end: u8,
    whole: bool,
    offset: usize,
    numbered: bool,
) -> Result<ToolOutput, String> {
    let content = content.strip_suffix(&[end]).unwrap_or(content);
    let lines: Vec<&[u8]> =
        if content.is_empty() { Vec::new() } else { content.split(|byte| *byte == end).collect() };
    let first = offset.max(1);
    if first > 1 && first > lines.len() {
        return Err(format!(
            "It has {}; offset is past its end.",
            text::count(lines.len(), "line")
        ));
    }
    let mut text = String::new();
    let mut next = first - 1;
    while let Some(line) = lines.get(next) {
        let line = patch::shown(line);
        let line =
            if numbered { format!("{}\t{line}", next + 1) } else { text::visible_line(&line) };
        if text.len() + line.len() > PAGE && next >= first {
            break;
        }
        text.push_str(line.trim_end_matches('\n'));
        text.push('\n');
        next += 1;
    }
    if lines.is_empty() {
        text.push_str("It is empty.\n");
    }
    if next < lines.len() {
        let _ = writeln!(text, "[{} lines in all; go on with offset {}]", lines.len(), next + 1);
    } else if !whole {
        text.push_str("[the rest is too large to be shown]\n");
    }
    Ok(ToolOutput::ok(text, text::count(next + 1 - first, "line")))
}

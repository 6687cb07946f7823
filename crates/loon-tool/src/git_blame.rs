//! `git_blame`: who last changed each line of a file, and in which commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_exec::git::Query;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::{Place, patch, short, subjects};
use crate::text;
use crate::workspace::Workspace;

/// Lines shown at most.
const LINES: usize = 400;
/// Most bytes of the lines shown.
const PAGE: usize = 40 * 1024;
/// Most characters of a subject.
const SUBJECT: usize = 120;

/// Tells who changed lines.
pub struct GitBlame {
    workspace: Arc<Workspace>,
    spawner: Spawner,
}

impl GitBlame {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { workspace: Arc::clone(workspace), spawner: spawner.clone() }
    }
}

/// Arguments of `git_blame`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
    first: Option<usize>,
    last: Option<usize>,
    revision: Option<String>,
}

impl NativeTool for GitBlame {
    type Args = Args;

    const NAME: &'static str = "git_blame";
    const DESCRIPTION: &'static str = "Show which commit last changed each line of a file.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let path = text::visible_line(&args.path);
        match (args.first, args.last) {
            (None, None) => path,
            (first, None) => format!("{path}:{}-", first.unwrap_or(1)),
            (first, Some(last)) => format!("{path}:{}-{last}", first.unwrap_or(1)),
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        Ok(subjects(&self.workspace, std::slice::from_ref(&args.path)))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let paths = std::slice::from_ref(&args.path);
        match Place::find(&self.workspace, &self.spawner, &cx.cancel, paths).await {
            Ok(place) => blame(&place, &args).await.unwrap_or_else(ToolOutput::error),
            Err(text) => ToolOutput::error(text),
        }
    }
}

async fn blame(place: &Place, args: &Args) -> Result<ToolOutput, String> {
    let first = args.first.unwrap_or(1).max(1);
    let last = args.last.unwrap_or(usize::MAX).min(first.saturating_add(LINES - 1));
    if last < first {
        return Err(format!("last ({last}) comes before first ({first})."));
    }
    let revisions = match (&args.revision, &place.repository.worktree) {
        (Some(revision), _) => vec![place.commit(revision).await?],
        (None, None) => vec![place.commit("HEAD").await?],
        (None, Some(_)) => Vec::new(),
    };
    // One line more tells whether there is more.
    let range = format!("-L{first},{}", last.saturating_add(1));
    let query = Query::new("blame")
        .args(&["--porcelain", "--no-textconv", "--encoding=UTF-8", &range])
        .revisions(&revisions)
        .paths(&place.paths);
    let answer = place.ask(query).await?;
    let blame = Blame::parse(&answer.head);
    let mut text = String::new();
    let mut shown = 0;
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for line in blame.lines.iter().take(last - first + 1) {
        let content = patch::shown(&line.content);
        if text.len() + content.len() > PAGE && shown > 0 {
            break;
        }
        let content = content.trim_end_matches('\n');
        let _ = writeln!(text, "{} {}\t{content}", name(&line.commit), line.number);
        used.insert(&line.commit);
        shown += 1;
    }
    let more = blame.lines.len() > shown || !answer.is_whole();
    if more && args.last.is_none_or(|last| last >= first + shown) {
        let _ = writeln!(text, "[more lines follow; go on with first {}]", first + shown);
    }
    text.push('\n');
    for commit in used.iter().filter_map(|hash| blame.commits.get(*hash)) {
        let _ = writeln!(text, "{}", commit.line());
    }
    Ok(ToolOutput::ok(text, text::count(shown, "line")))
}

fn name(hash: &str) -> &str {
    if is_nothing(hash) { "uncommitted" } else { short(hash) }
}

/// Git's name for the commit that is not made yet.
fn is_nothing(hash: &str) -> bool {
    hash.bytes().all(|byte| byte == b'0')
}

/// What `blame --porcelain` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Blame {
    lines: Vec<Line>,
    commits: BTreeMap<String, Commit>,
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    commit: String,
    number: usize,
    content: Vec<u8>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Commit {
    hash: String,
    author: String,
    time: i64,
    subject: String,
}

impl Blame {
    fn parse(answer: &[u8]) -> Self {
        let mut blame = Self::default();
        let mut place: Option<(String, usize)> = None;
        for line in answer.split(|byte| *byte == b'\n') {
            if let Some(content) = line.strip_prefix(b"\t") {
                if let Some((commit, number)) = place.take() {
                    blame.lines.push(Line { commit, number, content: content.to_vec() });
                }
                continue;
            }
            let line = String::from_utf8_lossy(line);
            match &place {
                None => {
                    let mut words = line.split(' ');
                    let hash = words.next().unwrap_or_default();
                    let number = words.nth(1).and_then(|number| number.parse().ok());
                    place = number.map(|number| (hash.to_owned(), number));
                }
                Some((hash, _)) => {
                    let commit = blame.commits.entry(hash.clone()).or_default();
                    commit.hash.clone_from(hash);
                    commit.take(&line);
                }
            }
        }
        blame
    }
}

impl Commit {
    fn take(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("author", name)) => name.clone_into(&mut self.author),
            Some(("author-time", time)) => self.time = time.parse().unwrap_or_default(),
            Some(("summary", subject)) => subject.clone_into(&mut self.subject),
            _ => {}
        }
    }

    fn line(&self) -> String {
        if is_nothing(&self.hash) {
            return "uncommitted: changes that are in no commit yet".to_owned();
        }
        let subject: String = text::visible_line(&self.subject).chars().take(SUBJECT).collect();
        let author = text::visible_line(&self.author);
        format!("{} {} {author}: {subject}", short(&self.hash), day(self.time))
    }
}

/// The day of a time in seconds since 1970, in UTC.
fn day(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map(|time| time.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default()
}

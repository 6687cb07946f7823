//! `grep`: searches file contents with a regular expression.

mod matcher;
mod report;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::glob::pattern::Pattern;
use crate::nearby;
use crate::open;
use crate::text;
use crate::walk::Sight;
use crate::workspace::Workspace;
use matcher::Expression;
use report::{Found, Report};

/// Most lines of context on each side.
const CONTEXT: usize = 20;
/// Most bytes of one line, or of one file if a pattern spans lines.
const HEAP: usize = 32 * 1024 * 1024;

/// Searches file contents.
pub struct Grep {
    workspace: Arc<Workspace>,
}

impl Grep {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// What is shown of the matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The matching lines.
    #[default]
    Content,
    /// The paths of files that match.
    Files,
    /// The number of matching lines of each file.
    Count,
}

/// Arguments of `grep`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Rust regex.
    pattern: String,
    /// File or folder.
    path: Option<String>,
    /// Only files like *.rs, or !*.rs.
    glob: Option<String>,
    ignore_case: Option<bool>,
    /// Lines around each match.
    context: Option<usize>,
    #[serde(default)]
    mode: Mode,
    /// Hidden files too.
    hidden: Option<bool>,
}

// By hand: a derived schema would spend a sentence on each name.
impl JsonSchema for Mode {
    fn schema_name() -> Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["content", "files", "count"]})
    }
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

impl NativeTool for Grep {
    type Args = Args;

    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str =
        "Search file contents with a regular expression, without what .gitignore leaves out.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let pattern = text::visible_line(&args.pattern);
        match (&args.path, &args.glob) {
            (Some(place), _) | (None, Some(place)) => {
                format!("{pattern} in {}", text::visible_line(place))
            }
            (None, None) => pattern,
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, args.path());
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, sight) = (Arc::clone(&self.workspace), Sight::of(cx));
        blocking(move || search(&workspace, &args, &sight).unwrap_or_else(ToolOutput::error)).await
    }
}

fn search(workspace: &Workspace, args: &Args, sight: &Sight) -> Result<ToolOutput, String> {
    let expression = Expression::new(&args.pattern, args.ignore_case.unwrap_or(false))?;
    let only = args.glob.as_deref().map(Only::new).transpose()?;
    let root = nearby::locate(workspace, args.path());
    if !root.exists() {
        return Err(nearby::missing(workspace, &root));
    }
    let hidden_too = args.hidden.unwrap_or(false) || only.as_ref().is_some_and(|only| only.hidden);
    let context =
        if args.mode == Mode::Content { args.context.unwrap_or(0).min(CONTEXT) } else { 0 };
    let mut searcher = searcher(&expression, context);
    let mut report = Report::new(args.mode);
    for entry in sight.walk(&root, hidden_too).build() {
        if sight.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        let Ok(entry) = entry else {
            report.unreadable += 1;
            continue;
        };
        let is_file = match entry.file_type() {
            Some(kind) if kind.is_symlink() => false,
            Some(kind) => kind.is_file(),
            None => false,
        };
        let inside = entry.path().strip_prefix(&root).unwrap_or(entry.path());
        let wanted = entry.depth() == 0 || only.as_ref().is_none_or(|only| only.takes(inside));
        if !is_file || !wanted {
            continue;
        }
        let name = text::visible_line(&workspace.display(entry.path()));
        let mut found = Found::new(&expression, &report);
        let searched = open::for_reading(entry.path()).and_then(|file| {
            let file = Cancellable { file, cancel: sight.cancel() };
            searcher.search_reader(&expression.matcher, file, &mut found)
        });
        match searched {
            Ok(()) => report.add(&name, &found),
            Err(_) => report.unreadable += 1,
        }
        if report.is_over() {
            break;
        }
    }
    if sight.is_cancelled() {
        return Err("Cancelled.".to_owned());
    }
    let place = nearby::place(workspace, &root);
    let mut output = report.finish(&place, hidden_too);
    sight.tell_left_out(workspace, &root, &mut output);
    Ok(output)
}

fn searcher(expression: &Expression, context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(if expression.spans_lines {
            LineTerminator::byte(b'\n')
        } else {
            LineTerminator::crlf()
        })
        .multi_line(expression.spans_lines)
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(HEAP))
        .build()
}

/// A file whose reading breaks off when the call is cancelled, however long it is.
struct Cancellable<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

/// Which files are searched.
struct Only {
    pattern: Pattern,
    negated: bool,
    /// It names hidden files.
    hidden: bool,
}

impl Only {
    fn new(glob: &str) -> Result<Self, String> {
        let (negated, glob) = match glob.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, glob),
        };
        let hidden =
            !negated && glob.split('/').any(|part| part.starts_with('.') && part.len() > 2);
        // A leading slash says that the pattern begins at the top, which a slash within says too.
        let pattern = match glob.strip_prefix('/') {
            Some(rest) => Pattern::new(&format!("./{rest}"))?,
            None => Pattern::new(glob)?,
        };
        Ok(Self { pattern, negated, hidden })
    }

    fn takes(&self, path: &Path) -> bool {
        self.pattern.matches(path) != self.negated
    }
}

#[cfg(test)]
mod tests;

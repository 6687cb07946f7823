//! `edit`: replaces text in one file.

pub mod matcher;
pub(crate) mod nearest;

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::nearby;
use crate::text::visible;
use crate::workspace::unfinished;
use crate::write_path::{
    Call, Described, Document, Ending, Knowledge, Planned, Splice, WriteError, commit, load,
    preview, vacant,
};
use matcher::{Hit, Tier, find};

/// Replaces text in one file, byte for byte.
#[derive(Debug)]
pub(crate) struct Edit {
    workspace: Arc<Workspace>,
}

/// Arguments of `edit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct EditArgs {
    #[serde(alias = "file_path")]
    path: String,
    /// The file's own text, without line numbers.
    #[serde(default, alias = "old_string")]
    old: Option<String>,
    #[serde(default, alias = "new_string")]
    new: Option<String>,
    #[serde(default)]
    replace_all: bool,
    /// Several instead of one: in order, all or none.
    #[serde(default)]
    edits: Vec<Replacement>,
}

/// One replacement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Replacement {
    #[serde(alias = "old_string")]
    old: String,
    #[serde(alias = "new_string")]
    new: String,
    #[serde(default)]
    replace_all: bool,
}

/// How the texts of an edit were found.
#[derive(Default)]
struct Found {
    replacements: usize,
    notes: Vec<String>,
}

impl Edit {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, args: &EditArgs) -> Result<(Planned, Found), String> {
        let replaces = replaces(args)?;
        let path = nearby::locate(&self.workspace, &args.path);
        if let [Replacement { old, new, .. }] = replaces.as_slice()
            && old.is_empty()
            && vacant(&self.workspace, &path).is_ok()
        {
            let planned = Planned::Create { path, content: new.clone().into_bytes() };
            return Ok((planned, Found { replacements: 1, notes: Vec::new() }));
        }
        let base = load(&self.workspace, &path, Knowledge::Read).map_err(|error| match error {
            WriteError::Missing { .. } => nearby::missing(&self.workspace, &path),
            error => error.to_string(),
        })?;
        let shown = self.workspace.display(&path);
        let mut found = Found::default();
        let mut content = base.clone();
        for (index, replace) in replaces.iter().enumerate() {
            content = replace_in(content, replace, &mut found).map_err(|problem| {
                let which = match replaces.len() {
                    1 => String::new(),
                    count => format!("edit {} of {count}: ", index + 1),
                };
                format!("{shown}: {which}{problem}")
            })?;
        }
        if content == base {
            return Err(format!("{shown}: the edits undo each other; nothing changes."));
        }
        Ok((Planned::Modify { path, base, content }, found))
    }
}

fn replaces(args: &EditArgs) -> Result<Vec<Replacement>, String> {
    match (&args.old, &args.new, args.edits.is_empty()) {
        (Some(old), Some(new), true) => Ok(vec![Replacement {
            old: old.clone(),
            new: new.clone(),
            replace_all: args.replace_all,
        }]),
        (None, None, false) => Ok(args.edits.clone()),
        _ => Err("Give either old and new, or a list of edits with old and new each.".to_owned()),
    }
}

const EMPTY_OLD: &str = "`old` is empty, but the file exists. Put the text at the place you mean \
    into `old`, or use write to replace the whole file.";

/// The file's bytes after one replacement.
fn replace_in(bytes: Vec<u8>, replace: &Replacement, found: &mut Found) -> Result<Vec<u8>, String> {
    let document = Document::decode(bytes);
    let (old, new) = in_view(&document, replace);
    if old.is_empty() {
        return Err(EMPTY_OLD.to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same; there is nothing to change.".to_owned());
    }
    let (old, new, hits) = search(&document, old, new);
    let hits = choose(&document, &old, hits, replace.replace_all)?;
    let mut splices = Vec::with_capacity(hits.len());
    for hit in &hits {
        let fit = |text: &str| {
            hit.indent.apply(text).ok_or_else(|| {
                format!(
                    "`old` is at line {} with other indentation, and `new` cannot be moved with \
                     it. Use the file's own indentation.",
                    document.line_at(hit.span.start) + 1
                )
            })
        };
        splices.push(Splice { span: hit.span.clone(), old: fit(&old)?, new: fit(&new)? });
        if hit.tier != Tier::Exact {
            found.notes.push(format!(
                "The text at line {} differs from `old` in {}; it was the only such place.",
                document.line_at(hit.span.start) + 1,
                hit.tier.difference()
            ));
        }
    }
    found.replacements += splices.len();
    document.splice(&splices).map_err(|error| format!("{error}."))
}

/// Both texts as the view has them: LF endings where the file's own are meant, no byte order mark.
fn in_view(document: &Document, replace: &Replacement) -> (String, String) {
    let has = |wanted| (0..document.line_count()).any(|line| document.ending(line) == wanted);
    let own_crlf = replace.old.contains("\r\n") || has(Ending::CrLf);
    let own_cr = has(Ending::Cr);
    let text = |text: &str| {
        let text = match document.bom() {
            [] => text,
            _ => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        };
        match (own_crlf, own_cr) {
            (true, false) => text.replace("\r\n", "\n"),
            (_, true) => text.replace("\r\n", "\n").replace('\r', "\n"),
            (false, false) => text.to_owned(),
        }
    };
    (text(&replace.old), text(&replace.new))
}

/// Finds the text. At the end of a file without a final newline, a final newline of both texts
/// counts as not given: the file stays without.
fn search(document: &Document, old: String, new: String) -> (String, String, Vec<Hit>) {
    let view = document.view();
    let hits = find(view, &old);
    if hits.is_empty()
        && !view.ends_with('\n')
        && let (Some(open_old), Some(open_new)) = (old.strip_suffix('\n'), new.strip_suffix('\n'))
    {
        let mut hits = find(view, open_old);
        hits.retain(|hit| hit.span.end == view.len());
        if !hits.is_empty() {
            return (open_old.to_owned(), open_new.to_owned(), hits);
        }
    }
    (old, new, hits)
}

/// The hits to replace, or why none can be chosen.
fn choose(
    document: &Document,
    old: &str,
    hits: Vec<Hit>,
    replace_all: bool,
) -> Result<Vec<Hit>, String> {
    match hits.as_slice() {
        [] => Err(format!("`old` was not found. {}", nearest::explain(document.view(), old))),
        [_] => Ok(hits),
        [first, ..] if first.tier != Tier::Exact => Err(format!(
            "`old` was not found; {} differ from it only in {}. Copy the text of the one you mean \
             exactly.",
            at_lines(document, &hits),
            first.tier.difference()
        )),
        _ if replace_all => {
            let mut end = 0;
            Ok(hits
                .into_iter()
                .filter(|hit| {
                    let apart = hit.span.start >= end;
                    end = if apart { hit.span.end } else { end };
                    apart
                })
                .collect())
        }
        _ => Err(format!(
            "`old` is there {} times, at {}. Give more of the text around the one you mean, or set \
             replace_all.",
            hits.len(),
            at_lines(document, &hits)
        )),
    }
}

/// `lines 3, 8 and 20`, shortened where there are many.
pub(crate) fn at_lines(document: &Document, hits: &[Hit]) -> String {
    const SHOWN: usize = 20;
    let mut lines: Vec<String> = hits
        .iter()
        .take(SHOWN)
        .map(|hit| (document.line_at(hit.span.start) + 1).to_string())
        .collect();
    if hits.len() > SHOWN {
        lines.push(format!("{} more", hits.len() - SHOWN));
    }
    match lines.split_last() {
        Some((last, [])) => format!("line {last}"),
        Some((last, others)) => format!("lines {} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl NativeTool for Edit {
    type Args = EditArgs;

    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str =
        "Replace text in a file that was read. `old` must occur once, else set replace_all.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &EditArgs) -> String {
        self.workspace.display(&nearby::locate(&self.workspace, &args.path))
    }

    fn subjects(&self, args: &EditArgs) -> Result<Vec<Subject>, String> {
        replaces(args)?;
        let path = nearby::locate(&self.workspace, &args.path);
        Ok([PathAccess::Read, PathAccess::Write]
            .map(|access| Subject::Path { access, path: path.clone() })
            .to_vec())
    }

    fn preview(&self, args: &EditArgs) -> Option<String> {
        let (planned, _) = self.plan(args).ok()?;
        Some(preview(&self.workspace, &[planned]))
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: EditArgs, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || {
            let (planned, found) = match tool.plan(&args) {
                Ok(planned) => planned,
                Err(problem) => return nothing_written(&problem),
            };
            match commit(&tool.workspace, &[planned], &call) {
                Ok(described) => report(described, &found),
                Err(error) => failed(&error),
            }
        })
        .await
    }
}

/// A failed output that says what the model needs to know before all else.
pub(crate) fn nothing_written(problem: &str) -> ToolOutput {
    ToolOutput::error(format!("Nothing was written. {}", visible(problem)))
}

/// The output for a change that could not be put in place.
pub(crate) fn failed(error: &WriteError) -> ToolOutput {
    match error {
        WriteError::NotRestored { .. } => ToolOutput::error(visible(&error.to_string())),
        error => nothing_written(&error.to_string()),
    }
}

fn report(described: Vec<Described>, found: &Found) -> ToolOutput {
    let mut text = String::new();
    for Described { change, excerpt, note, .. } in &described {
        let times = match found.replacements {
            1 => "1 replacement".to_owned(),
            count => format!("{count} replacements"),
        };
        let (path, added, removed) = (&change.path, change.added, change.removed);
        let _ = match change.before {
            Some(_) => writeln!(text, "Edited {path}: {times}, +{added} -{removed} lines."),
            None => writeln!(text, "Created {path}, {added} lines."),
        };
        for note in found.notes.iter().chain([note]).filter(|note| !note.is_empty()) {
            let _ = writeln!(text, "{note}");
        }
        text.push_str(excerpt);
    }
    changed(&text, described)
}

/// A successful output about changed files.
pub(crate) fn changed(text: &str, described: Vec<Described>) -> ToolOutput {
    let changes: Vec<_> = described.into_iter().map(|described| described.change).collect();
    let added: u32 = changes.iter().map(|change| change.added).sum();
    let removed: u32 = changes.iter().map(|change| change.removed).sum();
    ToolOutput { changes, ..ToolOutput::ok(text.trim_end(), format!("+{added} -{removed}")) }
}

#[cfg(test)]
mod tests;

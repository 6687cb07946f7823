//! `read_json`: shows one value of a JSON file, or the shape of a large one.

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::json::pointer::Pointer;
use crate::json::show::{brief, extent, pretty};
use crate::json::{Kind, Node};
use crate::nearby;
use crate::text;
use crate::whole;
use crate::workspace::Workspace;

/// Most bytes of a value that is shown whole.
const WHOLE: usize = 24 * 1024;
/// Most bytes of a page of a larger one.
const PAGE: usize = 16 * 1024;

/// Shows values of JSON files.
pub struct ReadJson {
    workspace: Arc<Workspace>,
}

/// Arguments of `read_json`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
    /// JSON Pointer as /a/0/b, default all.
    pointer: Option<String>,
    /// First entry of a large value.
    offset: Option<usize>,
}

impl ReadJson {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

impl NativeTool for ReadJson {
    type Args = Args;

    const NAME: &'static str = "read_json";
    const DESCRIPTION: &'static str =
        "Show a value of a JSON file, or the keys, types and sizes of a large one.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let pointer = args.pointer.as_deref().unwrap_or_default();
        text::visible_line(format!("{} {pointer}", args.path).trim_end())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let workspace = Arc::clone(&self.workspace);
        blocking(move || show(&workspace, &args).unwrap_or_else(ToolOutput::error)).await
    }
}

fn show(workspace: &Workspace, args: &Args) -> Result<ToolOutput, String> {
    let pointer = Pointer::parse(args.pointer.as_deref().unwrap_or_default())?;
    let path = nearby::locate(workspace, &args.path);
    let document = whole::document(workspace, &path)?;
    let shown = workspace.display(&path);
    let root = Node::parse(document.view())
        .map_err(|problem| format!("{shown} is no valid JSON: {}", text::visible(&problem)))?;
    let found = pointer.find(root).map_err(|problem| format!("{shown}: {problem}"))?;
    let mut out = format!("[{pointer}: {}, line {}]\n", extent(found.node), found.node.line());
    for doubled in found.doubled.iter().cloned().chain(doubled_keys(found.node)) {
        let _ = writeln!(out, "[{doubled}; programs mostly take the last]");
    }
    if std::str::from_utf8(document.bytes()).is_err() {
        let _ = writeln!(out, "[the file is no valid UTF-8: {}]", document.encoding().name());
    }
    let offset = args.offset.unwrap_or(0);
    match pretty(found.node, WHOLE) {
        Some(value) if offset == 0 => out.push_str(&value),
        _ => page(found.node, offset, &mut out)?,
    }
    let reads = vec![workspace.note_read(&path, document.bytes())];
    Ok(ToolOutput { reads, ..ToolOutput::ok(out, extent(found.node)) })
}

/// The keys that an object holds more than once.
fn doubled_keys(node: Node<'_>) -> Vec<String> {
    let mut keys: Vec<String> =
        node.members().filter_map(|member| Some(member.key.string()?.into_owned())).collect();
    keys.sort_unstable();
    let mut doubled: Vec<String> = keys
        .chunk_by(|one, other| one == other)
        .filter(|same| same.len() > 1)
        .map(|same| {
            format!("key {:?} stands here {} times", text::visible_line(&same[0]), same.len())
        })
        .collect();
    doubled.truncate(10);
    doubled
}

/// A page of a value that is too large to be shown whole: of a container one line an entry, of a
/// string its characters.
fn page(node: Node<'_>, offset: usize, out: &mut String) -> Result<(), String> {
    let (total, noun) = match node.kind() {
        Kind::Object => (node.members().count(), "entry"),
        Kind::Array => (node.elements().count(), "entry"),
        _ => (node.string().map_or(0, |string| string.chars().count()), "character"),
    };
    if offset > 0 && offset >= total {
        let total = text::count(total, noun);
        return Err(format!("Offset {offset} is past the end: the value has {total}."));
    }
    let end = match node.kind() {
        Kind::Object => {
            let lines = node.members().map(|member| {
                format!("{}: {}", text::visible_line(member.key.raw()), brief(member.value))
            });
            list(lines, offset, out)
        }
        Kind::Array => {
            let lines =
                node.elements().enumerate().map(|(i, item)| format!("{i}: {}", brief(item)));
            list(lines, offset, out)
        }
        _ => {
            let string = node.string().unwrap_or_else(|| node.raw().into());
            let part: String = string.chars().skip(offset).take(PAGE / 4).collect();
            out.push_str(&text::visible(&part));
            out.push('\n');
            offset + part.chars().count()
        }
    };
    if end < total {
        let _ = writeln!(out, "[{noun} {offset}-{} of {total}; go on with offset {end}]", end - 1);
    }
    Ok(())
}

/// Writes lines from the `offset`-th on until the page is full; gives the number of the next.
fn list(lines: impl Iterator<Item = String>, offset: usize, out: &mut String) -> usize {
    let begun = out.len();
    let mut next = offset;
    for line in lines.skip(offset) {
        if next > offset && out.len() - begun + line.len() > PAGE {
            break;
        }
        out.push_str(&shortened(&line));
        out.push('\n');
        next += 1;
    }
    next
}

/// A line whose key may be of any length.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;

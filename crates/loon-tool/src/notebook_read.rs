//! `notebook_read`: shows the cells of a Jupyter notebook.

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::json::Node;
use crate::nearby;
use crate::notebook::{Cell, CellName, Notebook, joined};
use crate::text::{self, Terminal};
use crate::whole;
use crate::workspace::Workspace;

/// Most bytes shown in one answer; a first cell is always shown, within the bounds below.
const PAGE: usize = 48 * 1024;
/// Most bytes of a source, and of the outputs of one cell, among others and alone.
const AMONG: Bounds = Bounds { source: 8 * 1024, output: 2 * 1024 };
const ALONE: Bounds = Bounds { source: 32 * 1024, output: 16 * 1024 };

#[derive(Clone, Copy)]
struct Bounds {
    source: usize,
    output: usize,
}

/// Shows notebooks.
pub struct NotebookRead {
    workspace: Arc<Workspace>,
}

/// Arguments of `notebook_read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
    /// Id or index from 0, to see more of one.
    #[serde(default)]
    #[schemars(schema_with = "CellName::schema")]
    cell: Option<CellName>,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl NotebookRead {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

impl NativeTool for NotebookRead {
    type Args = Args;

    const NAME: &'static str = "notebook_read";
    const DESCRIPTION: &'static str =
        "Show the cells of a Jupyter notebook with their ids and outputs.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let path = text::visible_line(&args.path);
        match &args.cell {
            Some(cell) => format!("{path} cell {cell}"),
            None => path,
        }
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
    let path = nearby::locate(workspace, &args.path);
    let document = whole::document(workspace, &path)?;
    let shown = workspace.display(&path);
    let said = |problem: String| format!("{shown}: {}", text::visible(&problem));
    let notebook = Notebook::parse(document.view()).map_err(said)?;
    let total = notebook.cells().count();
    let mut out = format!("[nbformat 4.{}", notebook.minor);
    if let Some(language) = notebook.language() {
        let _ = write!(out, ", {}", text::visible_line(&language));
    }
    let _ = writeln!(out, ", {}]", text::count(total, "cell"));
    if let Some(name) = &args.cell {
        let index = notebook.find(name).map_err(said)?;
        for cell in notebook.cells().skip(index).take(1) {
            out.push_str(&described(index, cell, ALONE));
        }
    } else {
        let offset = args.offset.unwrap_or(0);
        if offset > 0 && offset >= total {
            let total = text::count(total, "cell");
            return Err(said(format!("offset {offset} is past the end; it has {total}.")));
        }
        let next = cells(notebook, offset, args.limit.unwrap_or(usize::MAX).max(1), &mut out);
        if next < total {
            let _ = writeln!(
                out,
                "[cells {offset}-{} of {total}; go on with offset {next}]",
                next.saturating_sub(1)
            );
        }
    }
    let reads = vec![workspace.note_read(&path, document.bytes())];
    Ok(ToolOutput { reads, ..ToolOutput::ok(out, text::count(total, "cell")) })
}

/// Writes cells from `offset` on; gives the index of the next one.
fn cells(notebook: Notebook<'_>, offset: usize, limit: usize, out: &mut String) -> usize {
    let mut next = offset;
    for (index, cell) in notebook.cells().enumerate().skip(offset).take(limit) {
        let cell = described(index, cell, AMONG);
        if index > offset && out.len() + cell.len() > PAGE {
            break;
        }
        out.push_str(&cell);
        next = index + 1;
    }
    next
}

fn described(index: usize, cell: Cell<'_>, bounds: Bounds) -> String {
    let mut out = format!("--- cell {index}, {}", text::visible_line(&cell.kind()));
    if let Some(id) = cell.id() {
        let _ = write!(out, ", id {}", text::visible_line(&id));
    }
    if let Some(count) = cell.0.get("execution_count").filter(|count| count.raw() != "null") {
        let _ = write!(out, ", run {}", text::visible_line(count.raw()));
    }
    out.push('\n');
    put(&text::visible(&cell.source()), bounds.source, "source", &mut out);
    let Some(outputs) = cell.0.get("outputs") else { return out };
    let mut left = bounds.output;
    for (place, output) in outputs.elements().enumerate() {
        if left == 0 {
            let rest = text::count(outputs.elements().count() - place, "output");
            let _ = writeln!(out, "[{rest} more, not shown]");
            break;
        }
        let before = out.len();
        put_output(output, left, &mut out);
        left = left.saturating_sub(out.len() - before);
    }
    out
}

/// One output: its text, or what it is.
fn put_output(output: Node<'_>, most: usize, out: &mut String) {
    let text_of = |key: &str| output.get(key).map(joined).unwrap_or_default();
    let kind = text_of("output_type");
    match kind.as_str() {
        "stream" => {
            let _ = writeln!(out, "--- {}", text::visible_line(&text_of("name")));
            put(&printed(&text_of("text")), most, "output", out);
        }
        "error" => {
            let (name, value) = (text_of("ename"), text_of("evalue"));
            let _ = writeln!(out, "--- error {}", text::visible_line(&format!("{name}: {value}")));
            let lines: Vec<_> = output
                .get("traceback")
                .into_iter()
                .flat_map(Node::elements)
                .filter_map(Node::string)
                .collect();
            put(&printed(&lines.join("\n")), most, "traceback", out);
        }
        _ => put_data(output, &kind, most, out),
    }
}

/// The forms of a displayed value: plain text is shown, all others are named.
fn put_data(output: Node<'_>, kind: &str, most: usize, out: &mut String) {
    let forms: Vec<_> = output.get("data").into_iter().flat_map(Node::members).collect();
    let mut named = Vec::new();
    let mut plain = None;
    for form in &forms {
        let name = form.key.string().unwrap_or_default();
        if name == "text/plain" {
            plain = Some(joined(form.value));
        } else {
            let size = match name.starts_with("image/") && name != "image/svg+xml" {
                // Base64: three bytes in four characters.
                true => joined(form.value).trim_end().trim_end_matches('=').len() * 3 / 4,
                false if form.value.is_container() => form.value.raw().len(),
                false => joined(form.value).len(),
            };
            named.push(format!("{} of {}", text::visible_line(&name), text::size(size as u64)));
        }
    }
    let _ = write!(out, "--- {}", text::visible_line(kind));
    if !named.is_empty() {
        let _ = write!(out, " ({} not shown)", named.join(", "));
    }
    out.push('\n');
    if let Some(plain) = plain {
        put(&printed(&plain), most, "output", out);
    }
}

/// What a program printed, as a terminal would show it.
fn printed(text: &str) -> String {
    Terminal::read(text.as_bytes())
}

/// Adds a text that ends with a newline, cut at a bound that is told.
fn put(text: &str, most: usize, what: &str, out: &mut String) {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.push_str(&text[..end]);
    if end > 0 && !text[..end].ends_with('\n') {
        out.push('\n');
    }
    if end < text.len() {
        let _ = writeln!(
            out,
            "[{what} cut: {} of {} shown]",
            text::size(end as u64),
            text::size(text.len() as u64)
        );
    }
}

#[cfg(test)]
mod tests;

//! `notebook_edit`: changes one cell of a Jupyter notebook and leaves the rest byte for byte.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::blocking::blocking;
use crate::edit::{changed, failed, nothing_written};
use crate::json::change::{self, Change};
use crate::json::layout::Layout;
use crate::json::pointer::Pointer;
use crate::json::{Kind, Node};
use crate::json_edit::{load_known, made};
use crate::nearby;
use crate::notebook::{Cell, CellName, Notebook};
use crate::workspace::{ContentHash, Workspace, unfinished};
use crate::write_path::{Call, Described, Document, Planned, commit, preview};

/// Changes notebooks.
pub struct NotebookEdit {
    workspace: Arc<Workspace>,
}

/// Arguments of `notebook_edit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
    op: Op,
    /// Id or index from 0; insert goes before it, else to the end.
    #[serde(default)]
    #[schemars(schema_with = "CellName::schema")]
    cell: Option<CellName>,
    source: Option<String>,
    #[serde(default, rename = "type")]
    #[schemars(schema_with = "CellKind::schema")]
    kind: Option<CellKind>,
}

/// What to do with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Replace,
    Insert,
    Delete,
}

/// What sort of cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CellKind {
    Code,
    Markdown,
    Raw,
}

impl CellKind {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

// By hand: derived schemas would spend more words on the same.
impl JsonSchema for Op {
    fn schema_name() -> Cow<'static, str> {
        "CellOp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["replace", "insert", "delete"]})
    }
}

impl CellKind {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["code", "markdown", "raw"]})
    }
}

/// A planned change and what there is to say about it.
struct Plan {
    planned: Planned,
    said: String,
}

impl NotebookEdit {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn path(&self, args: &Args) -> PathBuf {
        nearby::locate(&self.workspace, &args.path)
    }

    fn plan(&self, args: &Args) -> Result<Plan, String> {
        let path = self.path(args);
        let base = load_known(&self.workspace, &path)?;
        let (content, said) = edited(base.clone(), args)
            .map_err(|problem| format!("{}: {problem}", self.workspace.display(&path)))?;
        if content == base {
            return Err(format!("{} has this cell already.", self.workspace.display(&path)));
        }
        Ok(Plan { planned: Planned::Modify { path, base, content }, said })
    }
}

/// The bytes after the change, and what was done.
fn edited(bytes: Vec<u8>, args: &Args) -> Result<(Vec<u8>, String), String> {
    let document = Document::decode(bytes);
    let notebook = Notebook::parse(document.view())?;
    match args.op {
        Op::Insert => insert(&document, notebook, args),
        Op::Replace => replace(&document, notebook, args),
        Op::Delete => {
            let index = named(notebook, args)?;
            let bytes =
                steps(document.bytes().to_vec(), &[Step::remove(format!("/cells/{index}"))])?;
            Ok((bytes, format!("Deleted cell {index}.")))
        }
    }
}

fn named(notebook: Notebook<'_>, args: &Args) -> Result<usize, String> {
    notebook.find(args.cell.as_ref().ok_or("name the cell by its id or index.")?)
}

fn replace(
    document: &Document,
    notebook: Notebook<'_>,
    args: &Args,
) -> Result<(Vec<u8>, String), String> {
    let index = named(notebook, args)?;
    let cell = notebook.cells().nth(index).ok_or("there is no such cell.")?;
    let old = cell.kind();
    let new = args.kind.map_or(old.as_ref(), |kind| kind.name());
    if args.source.is_none() && args.kind.is_none() {
        return Err("give the new source or type of the cell.".to_owned());
    }
    let at = |key: &str| format!("/cells/{index}/{key}");
    let mut plan = Vec::new();
    if let Some(text) = &args.source {
        let list = match cell.0.get("source") {
            Some(source) => source.kind() == Kind::Array,
            None => writes_lists(notebook),
        };
        plan.push(Step::set(at("source"), source(text, list)));
    }
    if new != old {
        plan.push(Step::set(at("cell_type"), Value::from(new)));
    }
    let mut said = format!("Replaced cell {index}.");
    if new == "code" {
        let stale =
            cell.0.get("outputs").is_some_and(|outputs| outputs.elements().next().is_some());
        if stale {
            said.push_str(" Its outputs were cleared; it has to be run again.");
        }
        if cell.0.get("outputs").is_none_or(|outputs| outputs.children().next().is_some()) {
            plan.push(Step::set(at("outputs"), Value::Array(Vec::new())));
        }
        plan.push(Step::set(at("execution_count"), Value::Null));
    }
    let gone: &[&str] =
        if new == "code" { &["attachments"] } else { &["outputs", "execution_count"] };
    for key in gone {
        if cell.0.get(key).is_some() && new != old {
            plan.push(Step::remove(at(key)));
        }
    }
    Ok((steps(document.bytes().to_vec(), &plan)?, said))
}

fn insert(
    document: &Document,
    notebook: Notebook<'_>,
    args: &Args,
) -> Result<(Vec<u8>, String), String> {
    let place = match &args.cell {
        Some(name) => notebook.find(name)?,
        None => notebook.cells().count(),
    };
    let text = args.source.as_deref().unwrap_or_default();
    let kind = args.kind.unwrap_or(CellKind::Code);
    let mut cell = Map::new();
    cell.insert("cell_type".to_owned(), kind.name().into());
    if kind == CellKind::Code {
        cell.insert("execution_count".to_owned(), Value::Null);
    }
    let mut said = format!("Inserted cell {place}");
    if notebook.minor >= 5 {
        let id = new_id(notebook, text);
        let _ = write!(said, " with id {id}");
        cell.insert("id".to_owned(), id.into());
    }
    cell.insert("metadata".to_owned(), Value::Object(Map::new()));
    if kind == CellKind::Code {
        cell.insert("outputs".to_owned(), Value::Array(Vec::new()));
    }
    cell.insert("source".to_owned(), source(text, writes_lists(notebook)));
    let step = Step::add(format!("/cells/{place}"), Value::Object(cell));
    said.push('.');
    Ok((steps(document.bytes().to_vec(), &[step])?, said))
}

/// One change of a value on the way.
struct Step {
    pointer: String,
    make: Make,
}

enum Make {
    Set(Value),
    Add(Value),
    Remove,
}

impl Step {
    fn set(pointer: String, value: Value) -> Self {
        Self { pointer, make: Make::Set(value) }
    }

    fn add(pointer: String, value: Value) -> Self {
        Self { pointer, make: Make::Add(value) }
    }

    fn remove(pointer: String) -> Self {
        Self { pointer, make: Make::Remove }
    }

    fn plan(&self, root: Node<'_>, layout: &Layout) -> Result<Change, String> {
        let pointer = Pointer::parse(&self.pointer)?;
        match &self.make {
            Make::Set(value) => change::set(root, &pointer, value, layout),
            Make::Add(value) => change::add(root, &pointer, value, layout),
            Make::Remove => change::remove(root, &pointer),
        }
    }
}

fn steps(bytes: Vec<u8>, steps: &[Step]) -> Result<Vec<u8>, String> {
    steps.iter().try_fold(bytes, |bytes, step| made(bytes, |root, layout| step.plan(root, layout)))
}

/// A source in the shape that the file uses: a list of lines with their newlines, or one string.
fn source(text: &str, list: bool) -> Value {
    if list { text.split_inclusive('\n').map(Value::from).collect() } else { Value::from(text) }
}

/// True if new sources should be lists: most notebooks write them so.
fn writes_lists(notebook: Notebook<'_>) -> bool {
    let kind = notebook.cells().find_map(|cell| Some(cell.0.get("source")?.kind()));
    kind != Some(Kind::String)
}

/// An id that no cell has. The same change gets the same one, so that a preview shows it.
fn new_id(notebook: Notebook<'_>, text: &str) -> String {
    let taken: Vec<_> = notebook.cells().filter_map(Cell::id).collect();
    let mut round = 0_u64;
    loop {
        let seed = format!("{round} {text} {}", notebook.root.whole());
        let id: String = ContentHash::of(seed.as_bytes()).to_string().chars().take(8).collect();
        if !taken.iter().any(|other| *other == id) {
            return id;
        }
        round += 1;
    }
}

impl NativeTool for NotebookEdit {
    type Args = Args;

    const NAME: &'static str = "notebook_edit";
    const DESCRIPTION: &'static str =
        "Replace, insert or delete a cell of a notebook that was read; stale outputs go.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &Args) -> String {
        let path = self.workspace.display(&self.path(args));
        match &args.cell {
            Some(cell) => format!("{path} cell {cell}"),
            None => path,
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = self.path(args);
        Ok([PathAccess::Read, PathAccess::Write]
            .map(|access| Subject::Path { access, path: path.clone() })
            .to_vec())
    }

    fn preview(&self, args: &Args) -> Option<String> {
        Some(preview(&self.workspace, &[self.plan(args).ok()?.planned]))
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || {
            let Plan { planned, said } = match tool.plan(&args) {
                Ok(plan) => plan,
                Err(problem) => return nothing_written(&problem),
            };
            match commit(&tool.workspace, &[planned], &call) {
                Ok(described) => report(said, described),
                Err(error) => failed(&error),
            }
        })
        .await
    }
}

fn report(said: String, described: Vec<Described>) -> ToolOutput {
    let mut lines = vec![said];
    for Described { change, note, .. } in &described {
        lines.push(format!("Edited {}, +{} -{} lines.", change.path, change.added, change.removed));
        lines.extend(Some(note).filter(|note| !note.is_empty()).cloned());
    }
    changed(&lines.join(" "), described)
}

#[cfg(test)]
mod tests;

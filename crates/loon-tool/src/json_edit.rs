//! `json_edit`: changes values of a JSON file and leaves every other byte as it is.

use std::borrow::Cow;
use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::blocking::blocking;
use crate::edit::{changed, failed, nothing_written};
use crate::json::Node;
use crate::json::change::{self, Change};
use crate::json::layout::Layout;
use crate::json::pointer::Pointer;
use crate::nearby;
use crate::text;
use crate::workspace::{Workspace, unfinished};
use crate::write_path::{
    Call, Described, Document, Encoding, Knowledge, Planned, Splice, WriteError, commit, load,
    preview,
};

/// Changes values of JSON files.
pub struct JsonEdit {
    workspace: Arc<Workspace>,
}

/// Arguments of `json_edit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
    edits: Vec<Edit>,
}

// No doc comment: it would be told to the model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Edit {
    op: Op,
    /// JSON Pointer as /a/0/b; /a/- appends.
    #[serde(alias = "path")]
    pointer: String,
    /// Any JSON value.
    #[serde(default, deserialize_with = "given")]
    #[schemars(schema_with = "any_value")]
    value: Option<Value>,
}

/// What to do with the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    /// Replace the value, or add the key.
    #[serde(alias = "replace")]
    Set,
    /// Insert an element before this index, or add the key.
    #[serde(alias = "insert")]
    Add,
    /// Take it away.
    #[serde(alias = "delete")]
    Remove,
}

// By hand: a derived schema would spend a sentence on each name.
impl JsonSchema for Op {
    fn schema_name() -> Cow<'static, str> {
        "Op".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["set", "add", "remove"]})
    }
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// A `null` that is there is a value.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl JsonEdit {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, args: &Args) -> Result<Planned, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        let base = load_known(&self.workspace, &path)?;
        let shown = self.workspace.display(&path);
        if args.edits.is_empty() {
            return Err("Give at least one edit.".to_owned());
        }
        let mut content = base.clone();
        for (place, edit) in args.edits.iter().enumerate() {
            content =
                made(content, |root, layout| apply(root, edit, layout)).map_err(|problem| {
                    let which = match args.edits.len() {
                        1 => String::new(),
                        count => format!("edit {} of {count}: ", place + 1),
                    };
                    format!("{shown}: {which}{problem}")
                })?;
        }
        if content == base {
            return Err(format!("{shown} has these values already; nothing changes."));
        }
        Ok(Planned::Modify { path, base, content })
    }
}

/// The bytes of a JSON file that is about to change and that the model knows.
pub(crate) fn load_known(workspace: &Workspace, path: &std::path::Path) -> Result<Vec<u8>, String> {
    load(workspace, path, Knowledge::Read).map_err(|error| match error {
        WriteError::Missing { .. } => nearby::missing(workspace, path),
        error => error.to_string(),
    })
}

/// The bytes of a JSON file after one change, which must leave it valid.
pub(crate) fn made(
    bytes: Vec<u8>,
    plan: impl FnOnce(Node<'_>, &Layout) -> Result<Change, String>,
) -> Result<Vec<u8>, String> {
    let document = Document::decode(bytes);
    let root =
        Node::parse(document.view()).map_err(|problem| format!("no valid JSON: {problem}"))?;
    let layout = Layout::of(root, document.encoding() == Encoding::Windows1252);
    let Change { span, new } = plan(root, &layout)?;
    let old = document.view()[span.clone()].to_owned();
    let bytes =
        document.splice(&[Splice { span, old, new }]).map_err(|error| format!("{error}."))?;
    Node::parse(Document::decode(bytes.clone()).view())
        .map_err(|problem| format!("the change would leave invalid JSON: {problem}"))?;
    Ok(bytes)
}

fn apply(root: Node<'_>, edit: &Edit, layout: &Layout) -> Result<Change, String> {
    let pointer = Pointer::parse(&edit.pointer)?;
    let value = || edit.value.as_ref().ok_or("Give the value to put there.");
    match edit.op {
        Op::Set => change::set(root, &pointer, value()?, layout),
        Op::Add => change::add(root, &pointer, value()?, layout),
        Op::Remove => change::remove(root, &pointer),
    }
}

impl NativeTool for JsonEdit {
    type Args = Args;

    const NAME: &'static str = "json_edit";
    const DESCRIPTION: &'static str =
        "Change values of a JSON file that was read, all or none; every other byte stays.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &Args) -> String {
        let path = self.workspace.display(&nearby::locate(&self.workspace, &args.path));
        match args.edits.as_slice() {
            [edit] => format!("{path} {}", text::visible_line(&edit.pointer)).trim_end().to_owned(),
            _ => path,
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        Ok([PathAccess::Read, PathAccess::Write]
            .map(|access| Subject::Path { access, path: path.clone() })
            .to_vec())
    }

    fn preview(&self, args: &Args) -> Option<String> {
        Some(preview(&self.workspace, &[self.plan(args).ok()?]))
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || {
            let planned = match tool.plan(&args) {
                Ok(planned) => planned,
                Err(problem) => return nothing_written(&problem),
            };
            match commit(&tool.workspace, &[planned], &call) {
                Ok(described) => report(described, &notes(&args)),
                Err(error) => failed(&error),
            }
        })
        .await
    }
}

fn report(described: Vec<Described>, notes: &[String]) -> ToolOutput {
    let mut lines = Vec::new();
    for Described { change, excerpt, note, .. } in &described {
        lines.push(format!("Edited {}, +{} -{} lines.", change.path, change.added, change.removed));
        lines.extend(notes.iter().chain([note]).filter(|note| !note.is_empty()).cloned());
        lines.push(excerpt.clone());
    }
    changed(&lines.join("\n"), described)
}

/// What may not be as it was meant.
fn notes(args: &Args) -> Vec<String> {
    let mut notes = Vec::new();
    for Edit { pointer, value, op } in &args.edits {
        let Some(value) = value.as_ref().filter(|_| *op != Op::Remove) else { continue };
        let pointer = text::visible_line(pointer);
        if let Value::String(text) = value
            && text.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<Value>(text).is_ok()
        {
            notes.push(format!("{pointer} is a string now that holds JSON, not the JSON itself."));
        }
        if holds_inexact(value) {
            notes.push(format!("A number at {pointer} has more digits than are kept; check it."));
        }
    }
    notes
}

/// A number so large that its last digits were lost on the way here.
fn holds_inexact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|value| value.abs() >= u64::MAX as f64)
        }
        Value::Array(items) => items.iter().any(holds_inexact),
        Value::Object(map) => map.values().any(holds_inexact),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

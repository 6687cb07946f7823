//! `write`: makes a file or replaces one as a whole.

use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::{changed, failed, nothing_written};
use crate::nearby;
use crate::workspace::unfinished;
use crate::write_path::{
    Call, Document, Encoding, Ending, Knowledge, Planned, Splice, SpliceError, WriteError, commit,
    load, preview,
};

/// Makes a file or replaces one as a whole.
#[derive(Debug)]
pub(crate) struct Write {
    workspace: Arc<Workspace>,
}

/// Arguments of `write`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteArgs {
    #[serde(alias = "file_path")]
    path: String,
    content: String,
}

/// What a call would do, and what of the old file it keeps.
enum Plan {
    Change {
        planned: Planned,
        note: String,
    },
    /// The file has this content already.
    Same,
}

impl Write {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn plan(&self, args: &WriteArgs) -> Result<Plan, WriteError> {
        let path = nearby::locate(&self.workspace, &args.path);
        let base = match load(&self.workspace, &path, Knowledge::Read) {
            Err(WriteError::Missing { .. }) => {
                let content = args.content.clone().into_bytes();
                let planned = Planned::Create { path, content };
                return Ok(Plan::Change { planned, note: String::new() });
            }
            loaded => loaded?,
        };
        let (content, note) = replace(base.clone(), &args.content)
            .map_err(|source| WriteError::Text { path: self.workspace.display(&path), source })?;
        if content == base {
            return Ok(Plan::Same);
        }
        Ok(Plan::Change { planned: Planned::Modify { path, base, content }, note })
    }
}

/// The bytes of a file after `text` took the place of all its text, and what was kept. Lines that
/// stay the same keep their bytes; byte order mark, encoding and line endings are the file's own.
fn replace(bytes: Vec<u8>, text: &str) -> Result<(Vec<u8>, String), SpliceError> {
    let document = Document::decode(bytes);
    let mut kept = Vec::new();
    let mut text = text;
    if !document.bom().is_empty() {
        text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        kept.push("byte order mark");
    }
    let mut text = text.to_owned();
    match document.dominant_ending() {
        Ending::CrLf => {
            text = text.replace("\r\n", "\n");
            kept.push("CRLF line endings");
        }
        Ending::Cr => {
            text = text.replace("\r\n", "\n").replace('\r', "\n");
            kept.push("CR line endings");
        }
        Ending::Lf | Ending::None => {}
    }
    if document.encoding() != Encoding::Utf8 {
        kept.push(document.encoding().name());
    }
    let note = match kept.as_slice() {
        [] => String::new(),
        kept => format!(" Kept the file's {}.", kept.join(", ")),
    };
    let whole =
        Splice { span: 0..document.view().len(), old: document.view().to_owned(), new: text };
    match document.splice(std::slice::from_ref(&whole)) {
        Err(SpliceError::NotEncodable { encoding, .. }) => Ok((
            whole.new.into_bytes(),
            format!(" The file is UTF-8 now: {encoding} has not all of its characters."),
        )),
        outcome => outcome.map(|content| (content, note)),
    }
}

impl NativeTool for Write {
    type Args = WriteArgs;

    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str =
        "Make a file, or replace a whole one that was read. To change a part, use edit.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &WriteArgs) -> String {
        self.workspace.display(&nearby::locate(&self.workspace, &args.path))
    }

    fn subjects(&self, args: &WriteArgs) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        Ok(vec![Subject::Path { access: PathAccess::Write, path }])
    }

    fn preview(&self, args: &WriteArgs) -> Option<String> {
        match self.plan(args).ok()? {
            Plan::Change { planned, .. } => Some(preview(&self.workspace, &[planned])),
            Plan::Same => None,
        }
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: WriteArgs, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || {
            let (planned, note) = match tool.plan(&args) {
                Ok(Plan::Change { planned, note }) => (planned, note),
                Ok(Plan::Same) => {
                    let path = tool.title(&args);
                    return ToolOutput::ok(
                        format!("{path} has exactly this content already; nothing was written."),
                        "unchanged",
                    );
                }
                Err(error) => return nothing_written(&error.to_string()),
            };
            let created = matches!(planned, Planned::Create { .. });
            match commit(&tool.workspace, &[planned], &call) {
                Ok(described) => {
                    let text = described.iter().map(|described| {
                        let change = &described.change;
                        let (path, added, removed) = (&change.path, change.added, change.removed);
                        if created {
                            format!("Created {path}, {added} lines.")
                        } else {
                            let more = &described.note;
                            format!("Replaced {path}, +{added} -{removed} lines.{note}\n{more}")
                        }
                    });
                    changed(&text.collect::<String>(), described)
                }
                Err(error) => failed(&error),
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests;

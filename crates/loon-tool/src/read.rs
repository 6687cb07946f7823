//! `read`: shows the lines of a text file with their numbers.

pub(crate) mod kind;
pub(crate) mod page;

use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::nearby;
use crate::text;
use crate::workspace::Workspace;
use page::{PAGE, Window};

/// Lines shown unless the call says otherwise.
pub(crate) const LINES: usize = 2000;

/// Shows text files.
pub struct Read {
    workspace: Arc<Workspace>,
}

impl Read {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// Arguments of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
    /// First line, from 1.
    offset: Option<usize>,
    /// Lines to show, default 2000.
    limit: Option<usize>,
}

impl Args {
    fn window(&self) -> Window {
        Window {
            first: self.offset.unwrap_or(1).max(1),
            lines: self.limit.unwrap_or(LINES).max(1),
            bytes: PAGE,
        }
    }
}

impl NativeTool for Read {
    type Args = Args;

    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str =
        "Read a text file. Each line comes as its number, a tab, and the unchanged line.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let path = text::visible_line(&args.path);
        match (args.offset, args.limit) {
            (None, None) => path,
            (offset, None) => format!("{path}:{}", offset.unwrap_or(1)),
            (offset, Some(limit)) => {
                let first = offset.unwrap_or(1);
                format!("{path}:{first}-{}", first.saturating_add(limit).saturating_sub(1))
            }
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, cancel) = (Arc::clone(&self.workspace), cx.cancel.clone());
        blocking(move || {
            let path = nearby::locate(&workspace, &args.path);
            match page::read(&workspace, &path, args.window(), &cancel) {
                Ok(page) => {
                    let summary = text::count(page.lines, "line");
                    let reads = page.read.into_iter().collect();
                    ToolOutput { reads, ..ToolOutput::ok(page.text, summary) }
                }
                Err(text) => ToolOutput::error(text),
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests;

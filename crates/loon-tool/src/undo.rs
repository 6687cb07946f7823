//! `undo`: takes back what calls changed in files.

mod outlook;
mod plan;

use std::fmt::Write as _;
use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::failed;
use crate::text::{count, visible};
use crate::workspace::{Target, unfinished};
use crate::write_path::{Call, perform};
use plan::{Plan, plan};

/// Most files named one by one.
const NAMED: usize = 200;

/// Takes back what calls changed in files.
#[derive(Debug)]
pub(crate) struct Undo {
    workspace: Arc<Workspace>,
}

/// Arguments of `undo`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Number of calls, default 1.
    count: Option<usize>,
    /// Take back the newest undo instead.
    #[serde(default)]
    redo: bool,
    /// Take back all changes of this call and later ones. For the runtime.
    #[schemars(skip)]
    since: Option<EffectKey>,
}

impl Args {
    fn check(&self) -> Result<(), String> {
        if self.count == Some(0) && !self.redo && self.since.is_none() {
            return Err("count is 0, so nothing would be taken back. Give 1 or more, or leave it \
                        out for the newest change."
                .to_owned());
        }
        Ok(())
    }
}

impl Undo {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    fn targets(&self, args: &Args) -> Vec<Target> {
        let log = self.workspace.log();
        match &args.since {
            Some(since) => log.since(since),
            None if args.redo => log.newest_undo(),
            None => log.newest_calls(args.count.unwrap_or(1)),
        }
    }

    fn plan(&self, args: &Args, key: &EffectKey) -> Plan {
        plan(&self.workspace, key, &self.targets(args))
    }

    fn make(&self, args: &Args, call: &Call) -> ToolOutput {
        if let Err(problem) = args.check() {
            return ToolOutput::error(problem);
        }
        let _guard = self.workspace.committing();
        let Plan { intents, told, conflicts } = self.plan(args, &call.key);
        match (intents.is_empty(), conflicts.is_empty(), &args.since) {
            (true, true, Some(_)) => return ToolOutput::ok("No file has to change.", "nothing"),
            (true, true, None) if args.redo => {
                return ToolOutput::error("No undo is left to take back.");
            }
            (true, true, None) => {
                return ToolOutput::error("No file change of this session is left to take back.");
            }
            (true, false, _) => {
                let text = format!("Nothing was taken back.\n{}", listed(&[], &conflicts));
                return ToolOutput::error(visible(text.trim_end()));
            }
            (false, ..) => {}
        }
        match perform(&self.workspace, call, &intents) {
            Ok(changes) => {
                let files = count(told.len(), "file");
                let mut text = listed(&told, &conflicts);
                text.push_str("What shell commands did is not taken back.");
                let text = visible(&text).into_owned();
                ToolOutput { changes, ..ToolOutput::ok(text, files) }
            }
            Err(error) => failed(&error),
        }
    }
}

/// What happens to which file, and what is left out and why.
fn listed(told: &[String], conflicts: &[String]) -> String {
    let mut text = String::new();
    for lines in [told, conflicts] {
        if std::ptr::eq(lines, conflicts) && !conflicts.is_empty() {
            text.push_str("Left as they are:\n");
        }
        for line in lines.iter().take(NAMED) {
            let _ = writeln!(text, "{line}");
        }
        if lines.len() > NAMED {
            let _ = writeln!(text, "... and {} more", lines.len() - NAMED);
        }
    }
    text
}

impl NativeTool for Undo {
    type Args = Args;

    const NAME: &'static str = "undo";
    const DESCRIPTION: &'static str =
        "Take back file changes of the newest calls. Files changed by hand since are kept.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &Args) -> String {
        match args {
            Args { since: Some(_), .. } => "since an earlier message".to_owned(),
            Args { redo: true, .. } => "the newest undo".to_owned(),
            Args { count: Some(number), .. } if *number != 1 => count(*number, "call"),
            _ => "the newest change".to_owned(),
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        args.check()?;
        let plan = self.plan(args, &EffectKey::new("undo"));
        let trash = self.workspace.trash();
        let trash = trash.canonicalize().unwrap_or(trash);
        let mut paths: Vec<_> =
            plan.intents.iter().flat_map(|intent| intent.action.places()).collect();
        paths.retain(|path| !path.starts_with(&trash));
        paths.sort();
        paths.dedup();
        let write = |path: &std::path::Path| Subject::Tree {
            access: PathAccess::Write,
            path: path.to_owned(),
        };
        Ok(paths.into_iter().map(write).collect())
    }

    fn preview(&self, args: &Args) -> Option<String> {
        let Plan { intents, told, conflicts } = self.plan(args, &EffectKey::new("undo"));
        if told.is_empty() && conflicts.is_empty() {
            return None;
        }
        let mut text = listed(&told, &conflicts);
        for change in intents.iter().filter_map(|intent| intent.change.as_ref()) {
            text.push_str(&change.diff);
        }
        Some(visible(&text).into_owned())
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || tool.make(&args, &call)).await
    }
}

#[cfg(test)]
mod tests;

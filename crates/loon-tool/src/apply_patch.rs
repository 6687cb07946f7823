//! `apply_patch`: changes over several files, all or none.

mod locate;
pub mod parse;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loon_api::{EffectKey, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Workspace;
use crate::blocking::blocking;
use crate::edit::{changed, failed, nothing_written};
use crate::nearby;
use crate::text::visible;
use crate::workspace::unfinished;
use crate::write_path::{
    Call, Described, Document, Knowledge, Planned, WriteError, commit, load, preview, vacant,
};
use parse::{Action, FilePatch, Hunk, Patch, parse};

/// Applies a patch over one or more files.
#[derive(Debug)]
pub(crate) struct ApplyPatch {
    workspace: Arc<Workspace>,
}

/// Arguments of `apply_patch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ApplyPatchArgs {
    /// `*** Begin Patch`, then for each file `*** Add File: PATH` with `+` lines, `*** Delete
    /// File: PATH`, or `*** Update File: PATH` (then maybe `*** Move to: PATH`) with changes: `@@`
    /// and maybe a line from above it, then lines with blank, `-` or `+` in front. Last `*** End
    /// Patch`. A unified diff is taken too.
    #[serde(alias = "input")]
    patch: String,
}

impl ApplyPatch {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }

    /// All changes, or all problems together.
    fn plan(&self, args: &ApplyPatchArgs) -> Result<Vec<Planned>, String> {
        let patch = merged(read(args)?);
        let mut problems = Vec::new();
        let mut planned = Vec::with_capacity(patch.files.len());
        for file in &patch.files {
            match self.plan_file(file) {
                Ok(change) => planned.push(change),
                Err(more) => problems.extend(more),
            }
        }
        self.reject_twice(&patch, &mut problems);
        match problems.as_slice() {
            [] => Ok(planned),
            [one] => Err(one.clone()),
            many => Err(format!("The patch has {} problems:\n- {}", many.len(), many.join("\n- "))),
        }
    }

    fn plan_file(&self, file: &FilePatch) -> Result<Planned, Vec<String>> {
        let path = nearby::locate(&self.workspace, &file.path);
        self.reject_link(file)?;
        match &file.action {
            Action::Add { content } => {
                vacant(&self.workspace, &path).map_err(|error| vec![error.to_string()])?;
                Ok(Planned::Create { path, content: content.clone().into_bytes() })
            }
            Action::Delete => {
                let base = load(&self.workspace, &path, Knowledge::Proven)
                    .map_err(|error| vec![self.explain(&error, &path)])?;
                Ok(Planned::Delete { path, base })
            }
            Action::Update { move_to, hunks } => self.plan_update(path, move_to.as_deref(), hunks),
        }
    }

    /// A link stays where it is: what goes or moves is a file by its own name.
    fn reject_link(&self, file: &FilePatch) -> Result<(), Vec<String>> {
        let stays =
            matches!(file.action, Action::Add { .. } | Action::Update { move_to: None, .. });
        let written = self.workspace.root().join(&file.path);
        if stays || !written.is_symlink() {
            return Ok(());
        }
        let target = self.workspace.display(&nearby::locate(&self.workspace, &file.path));
        Err(vec![format!("{} is a link to {target}; name the file itself.", file.path)])
    }

    fn plan_update(
        &self,
        path: PathBuf,
        move_to: Option<&str>,
        hunks: &[Hunk],
    ) -> Result<Planned, Vec<String>> {
        let mut problems = Vec::new();
        let target = move_to.map(|to| nearby::locate(&self.workspace, to)).filter(|to| *to != path);
        if let Some(target) = &target
            && let Err(error) = vacant(&self.workspace, target)
        {
            problems.push(error.to_string());
        }
        let changed = load(&self.workspace, &path, Knowledge::Proven)
            .map_err(|error| vec![self.explain(&error, &path)])
            .and_then(|base| {
                let content = self.changed(&path, base.clone(), hunks)?;
                Ok((base, content))
            });
        match (changed, target) {
            (Err(more), _) => {
                problems.extend(more);
                Err(problems)
            }
            (Ok(_), _) if !problems.is_empty() => Err(problems),
            (Ok((base, content)), Some(to)) => Ok(Planned::Move { from: path, to, base, content }),
            (Ok((base, content)), None) if base == content => {
                Err(vec![format!("{}: the patch changes nothing.", self.workspace.display(&path))])
            }
            (Ok((base, content)), None) => Ok(Planned::Modify { path, base, content }),
        }
    }

    fn changed(&self, path: &Path, base: Vec<u8>, hunks: &[Hunk]) -> Result<Vec<u8>, Vec<String>> {
        let document = Document::decode(base);
        let shown = self.workspace.display(path);
        let splices = locate::splices(&document, hunks).map_err(|problems| {
            problems
                .iter()
                .map(|problem| sentence(&format!("{shown}: {problem}")))
                .collect::<Vec<_>>()
        })?;
        document
            .splice(&splices)
            .map_err(|source| vec![WriteError::Text { path: shown, source }.to_string()])
    }

    fn explain(&self, error: &WriteError, path: &Path) -> String {
        match error {
            WriteError::Missing { .. } => nearby::missing(&self.workspace, path),
            error => error.to_string(),
        }
    }

    fn reject_twice(&self, patch: &Patch, problems: &mut Vec<String>) {
        let mut seen = std::collections::BTreeSet::new();
        for path in patch.files.iter().flat_map(touched) {
            let path = nearby::locate(&self.workspace, path);
            if !seen.insert(path.clone()) {
                let path = self.workspace.display(&path);
                problems.push(WriteError::Twice { path }.to_string());
            }
        }
    }
}

fn read(args: &ApplyPatchArgs) -> Result<Patch, String> {
    parse(&args.patch).map_err(|error| sentence(&visible(&error.to_string())))
}

/// Later updates of the same file put together with the first.
fn merged(patch: Patch) -> Patch {
    let mut files: Vec<FilePatch> = Vec::with_capacity(patch.files.len());
    for file in patch.files {
        if let Action::Update { move_to: None, hunks: more } = &file.action
            && let Some(Action::Update { hunks, .. }) = files
                .iter_mut()
                .find(|earlier| earlier.path == file.path)
                .map(|earlier| &mut earlier.action)
        {
            hunks.extend(more.iter().cloned());
        } else {
            files.push(file);
        }
    }
    Patch { files }
}

/// The paths that a part of the patch touches, as written.
fn touched(file: &FilePatch) -> impl Iterator<Item = &str> {
    let moved = match &file.action {
        Action::Update { move_to, .. } => move_to.as_deref().filter(|to| *to != file.path),
        Action::Add { .. } | Action::Delete => None,
    };
    std::iter::once(file.path.as_str()).chain(moved)
}

/// With a full stop at its end, unless it ends in a listing.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

impl NativeTool for ApplyPatch {
    type Args = ApplyPatchArgs;

    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = "Applies a patch that adds, updates, moves or deletes one or \
        more files, all of it or nothing. Lines of a change are found by their text.";
    const CLASS: ToolClass = ToolClass::Writes;

    fn title(&self, args: &ApplyPatchArgs) -> String {
        let Ok(patch) = parse(&args.patch) else { return String::new() };
        let paths: Vec<_> = merged(patch)
            .files
            .iter()
            .map(|file| self.workspace.display(&nearby::locate(&self.workspace, &file.path)))
            .collect();
        paths.join(", ")
    }

    fn subjects(&self, args: &ApplyPatchArgs) -> Result<Vec<Subject>, String> {
        let patch = read(args)?;
        let mut subjects = Vec::new();
        for file in &patch.files {
            if !matches!(file.action, Action::Add { .. }) {
                let path = nearby::locate(&self.workspace, &file.path);
                subjects.push(Subject::Path { access: PathAccess::Read, path });
            }
            subjects.extend(touched(file).map(|path| Subject::Path {
                access: PathAccess::Write,
                path: nearby::locate(&self.workspace, path),
            }));
        }
        Ok(subjects)
    }

    fn preview(&self, args: &ApplyPatchArgs) -> Option<String> {
        Some(preview(&self.workspace, &self.plan(args).ok()?))
    }

    fn recorded(&self, key: &EffectKey) {
        unfinished::settle(&self.workspace, key);
    }

    async fn run(&self, args: ApplyPatchArgs, cx: &EffectContext) -> ToolOutput {
        let (tool, call) = (Self::new(&self.workspace), Call::of(cx));
        blocking(move || {
            let planned = match tool.plan(&args) {
                Ok(planned) => planned,
                Err(problem) => return nothing_written(&problem),
            };
            match commit(&tool.workspace, &planned, &call) {
                Ok(described) => report(described),
                Err(error) => failed(&error),
            }
        })
        .await
    }
}

fn report(described: Vec<Described>) -> ToolOutput {
    let mut text = String::from("The patch was applied.\n");
    for Described { done, change, excerpt, note } in &described {
        let (path, added, removed) = (&change.path, change.added, change.removed);
        let _ = writeln!(text, "{path}: {done}, +{added} -{removed} lines");
        if !note.is_empty() {
            let _ = writeln!(text, "{note}");
        }
        text.push_str(excerpt);
    }
    changed(&text, described)
}

#[cfg(test)]
mod tests;

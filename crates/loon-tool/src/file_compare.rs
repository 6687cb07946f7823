//! `file_compare`: tells how two files differ.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::diff::LineDiff;
use crate::nearby;
use crate::open;
use crate::read::kind;
use crate::read::page::{Endings, LOADED};
use crate::text;
use crate::whole;
use crate::workspace::Workspace;
use crate::write_path::{Document, Encoding};

/// Compares files.
pub struct FileCompare {
    workspace: Arc<Workspace>,
}

/// Arguments of `file_compare`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    old: String,
    new: String,
}

/// One of the two files.
struct Side {
    path: PathBuf,
    shown: String,
    size: u64,
}

/// Where two files stop being the same.
struct Contents {
    /// Their first difference, counted from 0; absent if they are the same.
    first: Option<u64>,
    hashes: [String; 2],
}

impl FileCompare {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

impl NativeTool for FileCompare {
    type Args = Args;

    const NAME: &'static str = "file_compare";
    const DESCRIPTION: &'static str =
        "Show the unified diff of two files, or say whether binary ones are the same.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        text::visible_line(&format!("{} {}", args.old, args.new))
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let paths = [&args.old, &args.new].map(|path| nearby::locate(&self.workspace, path));
        Ok(paths.map(|path| Subject::Path { access: PathAccess::Read, path }).to_vec())
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, cancel) = (Arc::clone(&self.workspace), cx.cancel.clone());
        blocking(move || compare(&workspace, &args, &cancel).unwrap_or_else(ToolOutput::error))
            .await
    }
}

fn compare(
    workspace: &Workspace,
    args: &Args,
    cancel: &CancellationToken,
) -> Result<ToolOutput, String> {
    let old = Side::find(workspace, &args.old)?;
    let new = Side::find(workspace, &args.new)?;
    if old.path == new.path {
        return Err(format!("Both paths are the same file, {}.", old.shown));
    }
    let contents = contents(workspace, &old, &new, cancel)?;
    let [old_hash, new_hash] = &contents.hashes;
    let Some(first) = contents.first else {
        let size = text::size(old.size);
        let said =
            format!("{} and {} are identical: {size}, sha256 {old_hash}.", old.shown, new.shown);
        return Ok(ToolOutput::ok(said, "identical"));
    };
    let texts = if old.size.max(new.size) <= LOADED {
        old.text(workspace)?.zip(new.text(workspace)?)
    } else {
        None
    };
    if let Some((before, after)) = texts {
        return Ok(text_diff(&old.shown, &new.shown, &before, &after));
    }
    let large = old.size.max(new.size) > LOADED;
    let why = if large { "too large for a diff" } else { "binary" };
    let mut said = format!("The files differ from byte {first} on ({why}).\n");
    for (side, hash) in [(&old, old_hash), (&new, new_hash)] {
        let kind = side.kind(workspace)?;
        let _ = writeln!(said, "{}: {} bytes, {kind}, sha256 {hash}", side.shown, side.size);
    }
    Ok(ToolOutput::ok(said, "they differ"))
}

impl Side {
    fn find(workspace: &Workspace, wanted: &str) -> Result<Self, String> {
        let path = nearby::locate(workspace, wanted);
        let size = whole::size(workspace, &path)?;
        Ok(Self { shown: workspace.display(&path), path, size })
    }

    fn open(&self, workspace: &Workspace) -> Result<File, String> {
        open::for_reading(&self.path)
            .map_err(|error| whole::unreadable(workspace, &self.path, &error))
    }

    /// Its beginning.
    fn sample(&self, workspace: &Workspace) -> Result<Vec<u8>, String> {
        self.bytes(workspace, kind::SAMPLE as u64)
    }

    fn bytes(&self, workspace: &Workspace, most: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        self.open(workspace)?
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(|error| whole::unreadable(workspace, &self.path, &error))?;
        Ok(bytes)
    }

    fn kind(&self, workspace: &Workspace) -> Result<&'static str, String> {
        let sample = self.sample(workspace)?;
        Ok(if kind::is_binary(&sample) { kind::name(&sample) } else { "text" })
    }

    /// Its text, if it is any.
    fn text(&self, workspace: &Workspace) -> Result<Option<Document>, String> {
        if kind::is_binary(&self.sample(workspace)?) {
            return Ok(None);
        }
        Ok(Some(Document::decode(self.bytes(workspace, LOADED)?)))
    }
}

/// Reads both files side by side, however large.
fn contents(
    workspace: &Workspace,
    old: &Side,
    new: &Side,
    cancel: &CancellationToken,
) -> Result<Contents, String> {
    let mut readers = [BufReader::new(old.open(workspace)?), BufReader::new(new.open(workspace)?)];
    let mut hashes = [Sha256::new(), Sha256::new()];
    let (mut first, mut at) = (None, 0);
    loop {
        if cancel.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        let [left, right] = &mut readers;
        let left_bytes = fill(workspace, left, old)?;
        let right_bytes = fill(workspace, right, new)?;
        // As much of both as is there; where one is at its end, the rest of the other.
        let length = match (left_bytes.len(), right_bytes.len()) {
            (0, 0) => break,
            (0, rest) | (rest, 0) => rest,
            (one, other) => one.min(other),
        };
        let left_part = &left_bytes[..length.min(left_bytes.len())];
        let right_part = &right_bytes[..length.min(right_bytes.len())];
        if first.is_none() && left_part != right_part {
            let same = left_part.iter().zip(right_part).take_while(|(one, other)| one == other);
            first = Some(at + same.count() as u64);
        }
        hashes[0].update(left_part);
        hashes[1].update(right_part);
        let (left_length, right_length) = (left_part.len(), right_part.len());
        left.consume(left_length);
        right.consume(right_length);
        at += length as u64;
    }
    let hashes = hashes.map(|hash| {
        hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    });
    Ok(Contents { first, hashes })
}

fn fill<'a>(
    workspace: &Workspace,
    reader: &'a mut BufReader<File>,
    side: &Side,
) -> Result<&'a [u8], String> {
    let filled: io::Result<&[u8]> = reader.fill_buf();
    filled.map_err(|error| whole::unreadable(workspace, &side.path, &error))
}

fn text_diff(old: &str, new: &str, before: &Document, after: &Document) -> ToolOutput {
    let mut notes = Vec::new();
    let mut by_text = false;
    let form = |document: &Document| {
        let mark = if document.bom().is_empty() { "" } else { " with byte order mark" };
        format!("{}{mark}", document.encoding().name())
    };
    if form(before) != form(after) {
        notes.push(format!("encoding: {} and {}", form(before), form(after)));
        by_text = before.encoding() != Encoding::Utf8 || after.encoding() != Encoding::Utf8;
    }
    let endings = |document: &Document| Endings::of(document).unusual().unwrap_or("LF");
    if endings(before) != endings(after) {
        notes.push(format!("line endings: {} and {}", endings(before), endings(after)));
        by_text = true;
    }
    let diff = if by_text || before.bom() != after.bom() {
        LineDiff::between(&plain(before), &plain(after))
    } else {
        LineDiff::between(before, after)
    };
    let mut said = String::new();
    for note in &notes {
        let _ = writeln!(said, "[{note}]");
    }
    if diff.hunks.is_empty() {
        said.push_str("The text is the same otherwise.");
        return ToolOutput::ok(said, "same text");
    }
    said.push_str(&diff.unified(Some(old), Some(new)));
    ToolOutput::ok(said, format!("+{} -{}", diff.added, diff.removed))
}

/// The text alone, without what the notes tell.
fn plain(document: &Document) -> Document {
    Document::decode(document.view().as_bytes().to_vec())
}

#[cfg(test)]
mod tests;

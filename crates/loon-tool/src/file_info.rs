//! `file_info`: what is known of one file or folder without showing its content.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use loon_api::{At, PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::nearby;
use crate::open;
use crate::read::kind;
use crate::read::page::{Endings, LOADED};
use crate::text;
use crate::workspace::Workspace;
use crate::write_path::Document;

/// Describes files.
pub struct FileInfo {
    workspace: Arc<Workspace>,
}

impl FileInfo {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

/// Arguments of `file_info`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: String,
}

impl NativeTool for FileInfo {
    type Args = Args;

    const NAME: &'static str = "file_info";
    const DESCRIPTION: &'static str =
        "Tell type, size, lines, encoding, line endings, time, mode and link target of a path.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        text::visible_line(&args.path)
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, &args.path);
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let workspace = Arc::clone(&self.workspace);
        blocking(move || describe(&workspace, &args.path).unwrap_or_else(ToolOutput::error)).await
    }
}

fn describe(workspace: &Workspace, wanted: &str) -> Result<ToolOutput, String> {
    let path = nearby::locate(workspace, wanted);
    let target = link_target(workspace, wanted);
    let mut lines = vec![format!("path: {}", text::visible_line(&workspace.display(&path)))];
    if let Some(target) = &target {
        let target = text::visible_line(&target.to_string_lossy());
        lines.push(format!("link: {} -> {target}", text::visible_line(wanted)));
    }
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(_) if target.is_some() => {
            lines.push("type: a link to nothing".to_owned());
            return Ok(ToolOutput::ok(lines.join("\n"), "broken link"));
        }
        Err(_) => return Err(nearby::missing(workspace, &path)),
    };
    let kind = content(&path, &metadata, &mut lines).map_err(|error| {
        format!("{} cannot be read: {error}.", text::visible_line(&workspace.display(&path)))
    })?;
    lines.push(format!("modified: {}", modified(&metadata)));
    lines.push(format!("mode: {:04o}", metadata.permissions().mode() & 0o7777));
    Ok(ToolOutput::ok(lines.join("\n"), kind))
}

/// Where the path leads if its last component is a link.
fn link_target(workspace: &Workspace, wanted: &str) -> Option<PathBuf> {
    let path = workspace.root().join(wanted);
    let place = nearby::locate(workspace, &path.parent()?.to_string_lossy());
    std::fs::read_link(place.join(path.file_name()?)).ok()
}

/// Adds what the content tells, and gives a phrase for the whole.
fn content(path: &Path, metadata: &Metadata, lines: &mut Vec<String>) -> std::io::Result<String> {
    if metadata.is_dir() {
        let entries = text::count(std::fs::read_dir(path)?.count(), "entry");
        lines.push(format!("type: folder, {entries}"));
        return Ok(entries);
    }
    if !metadata.is_file() {
        let special = kind::special(metadata);
        lines.push(format!("type: {special}"));
        return Ok(special.to_owned());
    }
    let size = text::size(metadata.len());
    let mut file = open::for_reading(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(kind::SAMPLE as u64).read_to_end(&mut bytes)?;
    let binary = kind::is_binary(&bytes);
    let what = if binary { kind::name(&bytes) } else { "text" };
    lines.push(format!("type: {what}"));
    lines.push(format!("size: {} bytes", metadata.len()));
    if binary {
        return Ok(size);
    }
    if metadata.len() > LOADED {
        lines.push("lines: not counted, as the file is large".to_owned());
        return Ok(size);
    }
    file.take(LOADED).read_to_end(&mut bytes)?;
    let document = Document::decode(bytes);
    let mut encoding = format!("encoding: {}", document.encoding().name());
    if !document.bom().is_empty() {
        let _ = write!(encoding, " with byte order mark");
    }
    let count = text::count(document.line_count(), "line");
    lines.push(format!("lines: {}", document.line_count()));
    lines.push(encoding);
    if document.view().contains('\n') {
        lines.push(format!("line endings: {}", Endings::of(&document).unusual().unwrap_or("LF")));
    }
    if !document.view().is_empty() && !document.view().ends_with('\n') {
        lines.push("no newline at the end".to_owned());
    }
    Ok(format!("{count}, {size}"))
}

fn modified(metadata: &Metadata) -> String {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    match since.and_then(|since| i64::try_from(since.as_millis()).ok()) {
        Some(ms) => At::from_unix_ms(ms).to_string(),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn info(workspace: &Workspace, path: &str) -> Result<String, String> {
        describe(workspace, path).map(|output| output.result.text)
    }

    #[test]
    fn files_folders_and_links_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
        let root = workspace.root();
        let mut file = File::create(root.join("a.txt")).unwrap();
        file.write_all(b"\xef\xbb\xbfone\r\ntwo").unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_040_000_007))
            .unwrap();
        fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
        let rest = "type: text\nsize: 11 bytes\nlines: 2\nencoding: UTF-8 with byte order mark\n\
                    line endings: CRLF\nno newline at the end\nmodified: 2026-11-30T12:00:00.007Z\nmode: 0640";
        assert_eq!(info(&workspace, "a.txt").unwrap(), format!("path: a.txt\n{rest}"));

        std::os::unix::fs::symlink("a.txt", root.join("l")).unwrap();
        assert_eq!(
            info(&workspace, "l").unwrap(),
            format!("path: a.txt\nlink: l -> a.txt\n{rest}")
        );
        std::os::unix::fs::symlink("gone", root.join("m")).unwrap();
        assert!(
            info(&workspace, "m").unwrap().ends_with("link: m -> gone\ntype: a link to nothing")
        );

        assert!(info(&workspace, ".").unwrap().starts_with("path: .\ntype: folder, 3 entries\n"));
        File::create(root.join("p.png")).unwrap().write_all(b"\x89PNG\r\n\x1a\n\0\0").unwrap();
        assert!(info(&workspace, "p.png").unwrap().contains("type: a PNG image\nsize: 10 bytes\n"));
        assert_eq!(
            info(&workspace, "a.tx").unwrap_err(),
            "a.tx does not exist. Did you mean a.txt?"
        );
    }
}

//! `find_symbol`: finds where something is declared, by the shape of its line.

mod language;
mod mask;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use loon_api::{PathAccess, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use regex::Regex;
use regex::bytes::Regex as BytesRegex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::nearby;
use crate::open;
use crate::read::kind::{SAMPLE, is_binary, is_utf16};
use crate::text;
use crate::walk::Sight;
use crate::workspace::Workspace;
use crate::write_path::Document;
use language::{KINDS, Language};

/// Most declarations shown.
const SHOWN: usize = 60;
/// Most declarations gathered before the walk ends.
const GATHERED: usize = 5000;
/// Most files looked at.
const FILES: usize = 50_000;
/// Larger files are mostly made by programs.
const FILE: u64 = 2 * 1024 * 1024;
/// Most characters shown of a line.
const LINE: usize = 160;

/// Finds declarations.
pub struct FindSymbol {
    workspace: Arc<Workspace>,
}

/// Arguments of `find_symbol`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    name: String,
    /// As function, class, type.
    kind: Option<String>,
    path: Option<String>,
}

/// How a name fits the one looked for, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    OtherCase,
    Prefix,
    Part,
}

/// One declaration.
#[derive(Debug)]
struct Hit {
    fit: Fit,
    path: String,
    line: usize,
    kind: &'static str,
    name: String,
    text: String,
}

/// What was found and what was not looked at.
#[derive(Debug, Default)]
struct Search {
    hits: Vec<Hit>,
    files: usize,
    large: usize,
    /// The walk ended before its end.
    stopped: bool,
}

impl FindSymbol {
    pub(crate) fn new(workspace: &Arc<Workspace>) -> Self {
        Self { workspace: Arc::clone(workspace) }
    }
}

impl NativeTool for FindSymbol {
    type Args = Args;

    const NAME: &'static str = "find_symbol";
    const DESCRIPTION: &'static str =
        "Find where a function, class, type or constant is declared, by name or part of it.";
    const CLASS: ToolClass = ToolClass::Reads;

    fn title(&self, args: &Args) -> String {
        let name = text::visible_line(&args.name);
        match &args.path {
            Some(path) => format!("{name} in {}", text::visible_line(path)),
            None => name,
        }
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let path = nearby::locate(&self.workspace, args.path.as_deref().unwrap_or("."));
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let (workspace, sight) = (Arc::clone(&self.workspace), Sight::of(cx));
        blocking(move || find(&workspace, &args, &sight).unwrap_or_else(ToolOutput::error)).await
    }
}

fn find(workspace: &Workspace, args: &Args, sight: &Sight) -> Result<ToolOutput, String> {
    // `Type::method` and `object.method` are declared by their last part.
    let name = args.name.trim().trim_end_matches("()");
    let name = name.rsplit(['.', ':', '#', '/']).next().unwrap_or_default();
    if name.is_empty() {
        return Err("Give the name of a declaration, or a part of it.".to_owned());
    }
    let kind = args.kind.as_deref().map(known_kind).transpose()?;
    let root = nearby::locate(workspace, args.path.as_deref().unwrap_or("."));
    if !root.exists() {
        return Err(nearby::missing(workspace, &root));
    }
    let wanted = Wanted::new(name, kind)?;
    let mut search = search(workspace, &root, &wanted, sight)?;
    let best = search.hits.iter().map(|hit| hit.fit).min();
    if best == Some(Fit::Exact) {
        search.hits.retain(|hit| hit.fit == Fit::Exact);
    }
    // The walk is in the order of names already.
    search.hits.sort_by_key(|hit| hit.fit);
    let mut output = report(workspace, name, &root, &search);
    sight.tell_left_out(workspace, &root, &mut output);
    Ok(output)
}

fn known_kind(wanted: &str) -> Result<&'static str, String> {
    let wanted = wanted.trim().to_lowercase();
    let wanted = match wanted.as_str() {
        "fn" | "func" | "def" | "method" => "function",
        "constant" => "const",
        "var" | "let" | "static" => "variable",
        "mod" | "namespace" | "package" => "module",
        other => other,
    };
    KINDS.into_iter().find(|kind| *kind == wanted).ok_or_else(|| {
        format!("No such kind: {}. There are {}.", text::visible_line(wanted), KINDS.join(", "))
    })
}

/// The name and kind looked for.
struct Wanted {
    name: String,
    folded: String,
    kind: Option<&'static str>,
    anywhere: Regex,
    /// The same for bytes not yet decoded, if every encoding but UTF-16 writes the name alike.
    undecoded: Option<BytesRegex>,
}

impl Wanted {
    fn new(name: &str, kind: Option<&'static str>) -> Result<Self, String> {
        let pattern = format!("(?i){}", regex::escape(name));
        let too_long = |_| "The name is too long.".to_owned();
        let anywhere = Regex::new(&pattern).map_err(too_long)?;
        let undecoded =
            if name.is_ascii() { Some(BytesRegex::new(&pattern).map_err(too_long)?) } else { None };
        let (name, folded) = (name.to_owned(), name.to_lowercase());
        Ok(Self { name, folded, kind, anywhere, undecoded })
    }

    /// False if the file holds the name nowhere.
    fn may_be_in(&self, bytes: &[u8]) -> bool {
        is_utf16(bytes) || self.undecoded.as_ref().is_none_or(|name| name.is_match(bytes))
    }

    fn fit(&self, name: &str) -> Option<Fit> {
        if name == self.name {
            return Some(Fit::Exact);
        }
        let folded = name.to_lowercase();
        if folded == self.folded {
            Some(Fit::OtherCase)
        } else if folded.starts_with(&self.folded) {
            Some(Fit::Prefix)
        } else if folded.contains(&self.folded) {
            Some(Fit::Part)
        } else {
            None
        }
    }
}

fn search(
    workspace: &Workspace,
    root: &Path,
    wanted: &Wanted,
    sight: &Sight,
) -> Result<Search, String> {
    let mut search = Search::default();
    for entry in sight.walk(root, false).build().flatten() {
        if sight.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Some(language) = Language::of(entry.path()) else { continue };
        if search.files == FILES || search.hits.len() >= GATHERED {
            search.stopped = true;
            break;
        }
        search.files += 1;
        let Ok(file) = open::for_reading(entry.path()) else { continue };
        let mut bytes = Vec::new();
        if file.take(FILE + 1).read_to_end(&mut bytes).is_err() {
            continue;
        }
        if bytes.len() as u64 > FILE {
            search.large += 1;
            continue;
        }
        if !wanted.may_be_in(&bytes) || is_binary(&bytes[..bytes.len().min(SAMPLE)]) {
            continue;
        }
        let document = Document::decode(bytes);
        if wanted.anywhere.is_match(document.view()) {
            let shown = workspace.display(entry.path());
            declarations(document.view(), language, wanted, &shown, &mut search.hits);
        }
    }
    Ok(search)
}

/// Gathers the declarations of one file.
fn declarations(text: &str, language: &Language, wanted: &Wanted, path: &str, hits: &mut Vec<Hit>) {
    let masked = mask::mask(text, language.syntax());
    for (number, (line, code)) in text.lines().zip(masked.lines()).enumerate() {
        if !wanted.anywhere.is_match(code) {
            continue;
        }
        let Some((kind, name)) = language.declared(code) else { continue };
        let Some(fit) = wanted.fit(name) else { continue };
        if wanted.kind.is_none_or(|wanted| wanted == kind) {
            hits.push(Hit {
                fit,
                path: path.to_owned(),
                line: number + 1,
                kind,
                name: name.to_owned(),
                text: line.trim().chars().take(LINE).collect(),
            });
        }
    }
}

fn report(workspace: &Workspace, name: &str, root: &Path, search: &Search) -> ToolOutput {
    let mut out = String::new();
    let looked = text::count(search.files, "source file");
    let name = text::visible_line(name);
    if search.hits.is_empty() {
        let place = nearby::place(workspace, root);
        let _ = writeln!(
            out,
            "No declaration of {name} in {looked} of {place}. It may be declared in another way, or \
             in files that .gitignore leaves out: try grep."
        );
    } else if search.hits.iter().all(|hit| hit.fit != Fit::Exact) {
        let _ = writeln!(out, "[no declaration is called {name}; these names hold it]");
    }
    for hit in search.hits.iter().take(SHOWN) {
        let Hit { path, line, kind, name, text, .. } = hit;
        let _ = writeln!(out, "{path}:{line} {kind} {name}: {}", text::visible_line(text));
    }
    if search.hits.len() > SHOWN {
        let total = search.hits.len();
        let _ = writeln!(out, "[{SHOWN} of {total}; give a longer name, a kind or a path]");
    }
    if search.stopped {
        let _ = writeln!(out, "[stopped after {looked}; give a path to look at the others]");
    }
    if search.large > 0 {
        let large = text::count(search.large, "file");
        let _ = writeln!(out, "[{large} above {} not looked at]", text::size(FILE));
    }
    ToolOutput::ok(out.trim_end(), text::count(search.hits.len(), "declaration"))
}

#[cfg(test)]
mod tests;

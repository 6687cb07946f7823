//! `context7_resolve_library`: finds the id of a library by its name.

use std::cmp::Ordering;
use std::fmt::Write as _;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context7::{Context7, Library, SEARCH, libraries};
use crate::text;
use crate::web::LiveWebOptions;

/// Most libraries shown.
const SHOWN: usize = 3;

/// Finds the id of a library.
pub struct ResolveLibrary {
    context7: Context7,
}

impl ResolveLibrary {
    pub(crate) fn new(options: LiveWebOptions) -> Self {
        Self { context7: Context7::new(options) }
    }
}

/// Arguments of `context7_resolve_library`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    name: String,
    /// What it is needed for.
    topic: Option<String>,
}

impl Args {
    fn query(&self) -> Result<[(&str, &str); 2], String> {
        let name = self.name.trim();
        if name.is_empty() {
            return Err("name must not be empty.".to_owned());
        }
        let topic = self.topic.as_deref().map(str::trim).filter(|topic| !topic.is_empty());
        Ok([("libraryName", name), ("query", topic.unwrap_or(name))])
    }
}

impl NativeTool for ResolveLibrary {
    type Args = Args;

    const NAME: &'static str = "context7_resolve_library";
    const DESCRIPTION: &'static str =
        "Find the Context7 id of a library by name, needed by context7_query_docs.";
    const CLASS: ToolClass = ToolClass::Network;

    fn title(&self, args: &Args) -> String {
        text::visible_line(args.name.trim())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        self.context7.subjects(SEARCH, &args.query()?)
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match args.query() {
            Ok(query) => {
                self.context7.ask(SEARCH, &query, cx, |answer| show(answer, args.name.trim())).await
            }
            Err(problem) => ToolOutput::error(problem),
        }
    }
}

/// How well a library fits a name, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Id,
    Title,
    Repository,
    Ranked,
}

impl Fit {
    fn of(library: &Library, name: &str) -> Self {
        let same = |other: &str| plain(other) == plain(name);
        let last = library.id.rsplit('/').next().unwrap_or_default();
        if library.id.trim_matches('/').eq_ignore_ascii_case(name.trim_matches('/')) {
            Self::Id
        } else if library.title.as_deref().is_some_and(same) {
            Self::Title
        } else if same(last) {
            Self::Repository
        } else {
            Self::Ranked
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Id => "this is its id",
            Self::Title => "its name is the same",
            Self::Repository => "its repository has the name",
            Self::Ranked => "Context7 ranks it here",
        }
    }
}

/// A name without what people write differently: `Next.js`, `nextjs`, `next_js`.
fn plain(name: &str) -> String {
    name.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn show(answer: &str, name: &str) -> Result<ToolOutput, String> {
    let mut found = libraries(answer)?;
    if found.is_empty() {
        let name = text::visible_line(name);
        let words = format!("No library called {name}. Try context7_search with what it does.");
        return Ok(ToolOutput::ok(words, "nothing"));
    }
    // Where the fit is the same, trust decides, and then the order of the service.
    let trust = |library: &Library| library.trust_score.unwrap_or(-1.0);
    found.sort_by(|one, other| {
        let fit = Fit::of(one, name).cmp(&Fit::of(other, name));
        let trusted = || match Fit::of(one, name) {
            Fit::Ranked => Ordering::Equal,
            _ => trust(other).total_cmp(&trust(one)),
        };
        fit.then_with(trusted)
    });
    let mut shown = String::new();
    for library in found.iter().take(SHOWN) {
        let _ = write!(shown, "{}\n  {}", library.heading(), Fit::of(library, name).reason());
        let scores = library.scores();
        if !scores.is_empty() {
            let _ = write!(shown, "; {scores}");
        }
        shown.push('\n');
        if let Some(about) = library.about() {
            let _ = writeln!(shown, "  {about}");
        }
        if let Some(versions) = library.versions() {
            let _ = writeln!(shown, "  versions (append one as /version): {versions}");
        }
    }
    let best = found.first().map(|library| text::visible_line(&library.id)).unwrap_or_default();
    Ok(ToolOutput::ok(shown, best))
}

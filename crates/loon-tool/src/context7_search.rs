//! `context7_search`: lists libraries that have documentation.

use std::fmt::Write as _;

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context7::{Context7, SEARCH, libraries};
use crate::text;
use crate::web::LiveWebOptions;

/// Most libraries shown.
const SHOWN: usize = 10;

/// Searches for libraries.
pub struct Search {
    context7: Context7,
}

impl Search {
    pub(crate) fn new(options: LiveWebOptions) -> Self {
        Self { context7: Context7::new(options) }
    }
}

/// Arguments of `context7_search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    query: String,
}

impl Args {
    fn query(&self) -> Result<[(&str, &str); 2], String> {
        match self.query.trim() {
            "" => Err("query must not be empty.".to_owned()),
            query => Ok([("libraryName", query), ("query", query)]),
        }
    }
}

impl NativeTool for Search {
    type Args = Args;

    const NAME: &'static str = "context7_search";
    const DESCRIPTION: &'static str =
        "Search Context7 for libraries with documentation, by name or purpose.";
    const CLASS: ToolClass = ToolClass::Network;

    fn title(&self, args: &Args) -> String {
        text::visible_line(args.query.trim())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        self.context7.subjects(SEARCH, &args.query()?)
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match args.query() {
            Ok(query) => self.context7.ask(SEARCH, &query, cx, show).await,
            Err(problem) => ToolOutput::error(problem),
        }
    }
}

fn show(answer: &str) -> Result<ToolOutput, String> {
    let found = libraries(answer)?;
    if found.is_empty() {
        return Ok(ToolOutput::ok("No library. Try other words.", "nothing"));
    }
    let mut shown = String::new();
    for library in found.iter().take(SHOWN) {
        let _ = writeln!(shown, "{}", library.heading());
        let scores = Some(library.scores()).filter(|scores| !scores.is_empty());
        let versions = library.versions().map(|versions| format!("versions: {versions}"));
        for line in [library.about(), scores, versions].into_iter().flatten() {
            let _ = writeln!(shown, "  {line}");
        }
    }
    if found.len() > SHOWN {
        let _ = writeln!(shown, "[{SHOWN} of {}; make the query narrower]", found.len());
    }
    Ok(ToolOutput::ok(shown, text::count(found.len(), "library")))
}

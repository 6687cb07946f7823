//! `context7_query_docs`: reads the documentation of a library on one topic.

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context7::Context7;
use crate::text;
use crate::web::LiveWebOptions;

/// Where documentation is asked for.
const CONTEXT: &str = "/api/v2/context";
/// Tokens shown if the call does not say.
const TOKENS: usize = 5000;
/// Most tokens shown.
const MOST_TOKENS: usize = 12_000;
/// Bytes that a token has, roughly.
const TOKEN: usize = 4;
/// The line between two pieces of documentation.
const BETWEEN: &str = "\n--------------------------------\n";

/// Reads documentation.
pub struct QueryDocs {
    context7: Context7,
}

impl QueryDocs {
    pub(crate) fn new(options: LiveWebOptions) -> Self {
        Self { context7: Context7::new(options) }
    }
}

/// Arguments of `context7_query_docs`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// /owner/name[/version]
    library_id: String,
    topic: String,
    /// Default 5000.
    tokens: Option<usize>,
}

impl Args {
    fn query(&self) -> Result<[(&str, &str); 3], String> {
        let (id, topic) = (self.library_id.trim(), self.topic.trim());
        if topic.is_empty() {
            return Err("topic must not be empty: ask a question.".to_owned());
        }
        if id.trim_matches('/').split('/').filter(|part| !part.is_empty()).count() < 2 {
            return Err(format!(
                "{} is no library id. Find it with context7_resolve_library.",
                text::visible_line(id)
            ));
        }
        Ok([("libraryId", id), ("query", topic), ("type", "txt")])
    }

    fn bytes(&self) -> usize {
        self.tokens.unwrap_or(TOKENS).clamp(1, MOST_TOKENS) * TOKEN
    }
}

impl NativeTool for QueryDocs {
    type Args = Args;

    const NAME: &'static str = "context7_query_docs";
    const DESCRIPTION: &'static str =
        "Read a library's current documentation on a topic from Context7.";
    const CLASS: ToolClass = ToolClass::Network;

    fn title(&self, args: &Args) -> String {
        let (id, topic) = (args.library_id.trim(), args.topic.trim());
        text::visible_line(&format!("{id}: {topic}"))
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        self.context7.subjects(CONTEXT, &args.query()?)
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        match args.query() {
            Ok(query) => {
                self.context7
                    .ask(CONTEXT, &query, cx, |answer| Ok(show(answer, args.bytes())))
                    .await
            }
            Err(problem) => ToolOutput::error(problem),
        }
    }
}

fn show(answer: &str, bytes: usize) -> ToolOutput {
    let answer = answer.replace("\r\n", "\n");
    let answer = text::visible(answer.trim());
    if answer.is_empty() || answer.starts_with("No content available") {
        return ToolOutput::ok(
            "No documentation on that topic. Ask in other words, or use fetch on the official \
             documentation.",
            "nothing",
        );
    }
    if answer.len() <= bytes {
        return ToolOutput::ok(answer.as_ref(), text::size(answer.len() as u64));
    }
    let end = piece_end(&answer, bytes);
    ToolOutput::ok(
        format!(
            "{}\n[{end} of {} bytes; ask a narrower topic or for more tokens]",
            &answer[..end],
            answer.len()
        ),
        text::size(end as u64),
    )
}

/// Where to cut: between two pieces of documentation if one ends in the second half, else after a
/// line.
fn piece_end(answer: &str, bytes: usize) -> usize {
    let room = &answer[..answer.floor_char_boundary(bytes)];
    let later = |end: &usize| *end >= room.len() / 2;
    let piece = room.rfind(BETWEEN).filter(later);
    piece.or_else(|| room.rfind('\n').filter(later)).unwrap_or(room.len())
}

//! Highlighting of code on a thread of its own. Syntaxes are loaded with the first block that asks
//! for them; what is too long or takes too long stays plain from there on.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::line::Span;
use crate::theme::Role;

/// Longest code, in bytes, that is highlighted.
const TEXT_LIMIT: usize = 128 * 1024;
/// Longest line, in bytes, that is highlighted.
const LINE_LIMIT: usize = 2_000;
/// Longest time one block may take.
const TIME_LIMIT: Duration = Duration::from_secs(1);

/// Names a piece of code together with its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodeId(u64);

impl CodeId {
    /// The name of `text` in `language`.
    pub(crate) fn of(language: &str, text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (language, text).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Roles of the pieces of each line, as `(bytes, role)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Highlight {
    lines: Vec<Vec<(usize, Role)>>,
}

impl Highlight {
    /// The pieces of line `at`, whose text is `line`.
    pub(crate) fn spans(&self, at: usize, line: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut from = 0;
        for (length, role) in self.lines.get(at).map(Vec::as_slice).unwrap_or_default() {
            let Some(piece) = line.get(from..(from + length).min(line.len())) else { break };
            if !piece.is_empty() {
                spans.push(Span::new(piece, *role));
            }
            from += piece.len();
        }
        if let Some(rest) = line.get(from..).filter(|rest| !rest.is_empty()) {
            spans.push(Span::new(rest, Role::Code));
        }
        spans
    }
}

/// A block to highlight, for whoever `owner` is.
#[derive(Clone, Debug)]
pub(crate) struct Job<O> {
    /// Comes back with the result.
    pub(crate) owner: O,
    /// The code's name.
    pub(crate) id: CodeId,
    /// Language as the fence names it.
    pub(crate) language: String,
    /// The code.
    pub(crate) text: String,
}

/// Starts the thread. It ends when the sender is dropped; `done` is called for every job.
pub(crate) fn start<O: Send + 'static>(
    done: impl Fn(O, CodeId, Highlight) + Send + 'static,
) -> std::io::Result<mpsc::Sender<Job<O>>> {
    let (sender, jobs) = mpsc::channel::<Job<O>>();
    std::thread::Builder::new().name("highlight".to_owned()).spawn(move || {
        let Ok(first) = jobs.recv() else { return };
        let rules = Rules::load(TIME_LIMIT);
        for job in std::iter::once(first).chain(jobs) {
            let highlight = rules.highlight(&job.language, &job.text);
            done(job.owner, job.id, highlight);
        }
    })?;
    Ok(sender)
}

/// Loaded syntaxes and what their scopes mean here.
struct Rules {
    time_limit: Duration,
    syntaxes: SyntaxSet,
    roles: Vec<(Scope, Role)>,
}

impl Rules {
    fn load(time_limit: Duration) -> Self {
        let roles = [
            ("comment", Role::Comment),
            ("string", Role::Literal),
            ("constant", Role::Number),
            ("keyword.operator", Role::Code),
            ("keyword", Role::Keyword),
            ("storage", Role::Keyword),
            ("entity.name.function", Role::Function),
            ("support.function", Role::Function),
            ("variable.function", Role::Function),
            ("entity.name.tag", Role::Keyword),
            ("entity.name", Role::Type),
            ("support.type", Role::Type),
            ("entity.other.attribute-name", Role::Function),
            ("markup.heading", Role::Heading),
            ("markup.inserted", Role::Added),
            ("markup.deleted", Role::Removed),
        ];
        Self {
            time_limit,
            syntaxes: two_face::syntax::extra_newlines(),
            roles: roles
                .into_iter()
                .filter_map(|(scope, role)| Some((Scope::new(scope).ok()?, role)))
                .collect(),
        }
    }

    fn highlight(&self, language: &str, text: &str) -> Highlight {
        let mut highlight = Highlight::default();
        let Some(syntax) = self.syntaxes.find_syntax_by_token(language) else { return highlight };
        if text.len() > TEXT_LIMIT {
            return highlight;
        }
        let began = Instant::now();
        let mut state = ParseState::new(syntax);
        let mut stack = ScopeStack::new();
        for line in text.split_inclusive('\n') {
            if line.len() > LINE_LIMIT || began.elapsed() > self.time_limit {
                break;
            }
            let Ok(changes) = state.parse_line(line, &self.syntaxes) else { break };
            let mut pieces = Vec::new();
            let mut from = 0;
            for (at, change) in changes {
                if at > from {
                    pieces.push((at - from, self.role(&stack)));
                    from = at;
                }
                if stack.apply(&change).is_err() {
                    return highlight;
                }
            }
            if line.len() > from {
                pieces.push((line.len() - from, self.role(&stack)));
            }
            highlight.lines.push(pieces);
        }
        highlight
    }

    /// The innermost scope that means something decides.
    fn role(&self, stack: &ScopeStack) -> Role {
        stack
            .as_slice()
            .iter()
            .rev()
            .find_map(|scope| {
                self.roles
                    .iter()
                    .find(|(known, _)| known.is_prefix_of(*scope))
                    .map(|(_, role)| *role)
            })
            .unwrap_or(Role::Code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_gets_roles_and_keeps_its_text() {
        let rules = Rules::load(Duration::MAX);
        let text = "fn main() { // go\n    let x = \"s\";\n}\n";
        let highlight = rules.highlight("rust", text);
        let spans = highlight.spans(0, "fn main() { // go");
        let role_of = |piece: &str| {
            spans.iter().find(|span| span.text.as_str().contains(piece)).unwrap().look.role
        };
        assert_eq!(role_of("fn"), Role::Keyword);
        assert_eq!(role_of("main"), Role::Function);
        assert_eq!(role_of("go"), Role::Comment);
        let joined: String = spans.iter().map(|span| span.text.as_str()).collect();
        assert_eq!(joined, "fn main() { // go");
    }

    #[test]
    fn long_lines_and_unknown_languages_stay_plain() {
        let rules = Rules::load(Duration::MAX);
        assert_eq!(rules.highlight("no-such-language", "x\n"), Highlight::default());
        let line = "x".repeat(LINE_LIMIT + 1);
        let highlight = rules.highlight("rust", &line);
        assert_eq!(highlight.spans(0, &line), [Span::new(&line, Role::Code)]);
    }
}

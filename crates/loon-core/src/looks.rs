//! Looks into the index of sessions that go on beside the work: a cold index takes its time.

use std::sync::Arc;

use loon_api::event::{Notice, NoticeLevel, SessionsFound, SessionsListed};
use loon_api::{AgentEvent, ErrorCode, ErrorInfo, ExecutionId, SessionSummary};
use tokio::task::JoinSet;

use crate::deps::Dependencies;
use crate::index::{Filter, IndexError, Search};

/// Sessions in one list.
const MOST_SESSIONS: usize = 500;

/// Hits of one search.
const MOST_HITS: usize = 100;

/// What a look gives, if there is anything to tell.
pub(crate) type Answer = Result<Option<AgentEvent>, ErrorInfo>;

/// Looks under way.
#[derive(Default)]
pub(crate) struct Looks {
    jobs: JoinSet<Answer>,
}

impl Looks {
    /// Lists the sessions of this folder, or of all.
    pub(crate) fn list(&mut self, deps: &Dependencies, all: bool) {
        let filter =
            Filter { cwd: folder(deps, all), limit: Some(MOST_SESSIONS), ..Filter::default() };
        let (index, store) = (deps.index.clone(), Arc::clone(&deps.store));
        self.jobs.spawn_blocking(move || {
            let sessions = index.list(store.as_ref(), &filter).map_err(told)?;
            Ok(Some(SessionsListed { sessions }.into()))
        });
    }

    /// Looks whether somebody else works in the same folder, and says so.
    pub(crate) fn neighbours(&mut self, deps: &Dependencies, own: ExecutionId) {
        let cwd = deps.options.cwd.display().to_string();
        let (index, store) = (deps.index.clone(), Arc::clone(&deps.store));
        self.jobs.spawn_blocking(move || {
            // Nothing depends on it: whatever is wrong is told when it is asked for.
            let found = index.neighbours(store.as_ref(), &cwd, own).unwrap_or_default();
            Ok(others_words(&found).map(|message| {
                let hints =
                    vec!["Both change the same files; each is told of a conflict.".to_owned()];
                Notice { level: NoticeLevel::Warning, message, hints }.into()
            }))
        });
    }

    /// Searches the sessions of this folder, or of all.
    pub(crate) fn search(&mut self, deps: &Dependencies, query: String, all: bool) {
        let search = Search { query, cwd: folder(deps, all), limit: MOST_HITS };
        let (index, store) = (deps.index.clone(), Arc::clone(&deps.store));
        self.jobs.spawn_blocking(move || {
            let hits = index.search(store.as_ref(), &search).map_err(told)?;
            Ok(Some(SessionsFound { query: search.query, hits }.into()))
        });
    }

    /// The next answer. Never comes while nobody asked.
    pub(crate) async fn next(&mut self) -> Answer {
        match self.jobs.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => {
                let message = format!("Looking at the sessions was cut off: {error}");
                Err(ErrorInfo::new(ErrorCode::Internal, message))
            }
            None => std::future::pending().await,
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn told(error: IndexError) -> ErrorInfo {
    error.info()
}

/// Who else works in the folder, in words.
fn others_words(others: &[SessionSummary]) -> Option<String> {
    let first = others.first()?;
    let title = if first.title.is_empty() { "untitled" } else { &first.title };
    let process = first.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    let more = match others.len() - 1 {
        0 => String::new(),
        1 => " and one more".to_owned(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "Another session works in this folder: {} (\"{title}\"{process}){more}.",
        first.exec
    ))
}

fn folder(deps: &Dependencies, all: bool) -> Option<String> {
    (!all).then(|| deps.options.cwd.display().to_string())
}

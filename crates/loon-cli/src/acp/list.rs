//! The sessions there are, a page at a time.

use agent_client_protocol_schema::v1::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use loon_api::{ErrorCode, ErrorInfo, SessionSummary};
use loon_core::SessionIndex;
use loon_core::index::Filter;
use loon_kernel::FileStore;

use crate::failure::Failure;
use crate::paths::Paths;

/// Sessions of one page.
const PAGE: usize = 50;

/// Answers the request. Reads journals that changed since the index saw them.
pub(super) fn answer(request: &ListSessionsRequest) -> Result<ListSessionsResponse, ErrorInfo> {
    let paths = Paths::from_environment().map_err(|failure| told(&failure))?;
    let store = FileStore::new(&paths.data);
    let index = SessionIndex::at(paths.index_file());
    // Sessions have their folder with links followed.
    let cwd = request.cwd.as_ref().map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
    let filter = Filter { cwd: cwd.map(|cwd| cwd.display().to_string()), ..Filter::default() };
    let sessions = index.list(&store, &filter).map_err(|error| error.info())?;
    page(&sessions, request.cursor.as_deref())
}

fn told(failure: &Failure) -> ErrorInfo {
    failure.error().clone()
}

/// The page after the session that the cursor names.
fn page(
    sessions: &[SessionSummary],
    cursor: Option<&str>,
) -> Result<ListSessionsResponse, ErrorInfo> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let place = sessions.iter().position(|session| session.exec.to_string() == cursor);
            let place = place.ok_or_else(|| {
                let message = format!("{cursor} is no place in the list of sessions any more.");
                ErrorInfo::new(ErrorCode::Invalid, message).hint("Ask for the list from its start.")
            })?;
            place + 1
        }
    };
    let rest = &sessions[start..];
    let page = &rest[..rest.len().min(PAGE)];
    let more = page.last().filter(|_| rest.len() > PAGE);
    Ok(ListSessionsResponse::new(page.iter().map(info).collect())
        .next_cursor(more.map(|session| session.exec.to_string())))
}

fn info(session: &SessionSummary) -> SessionInfo {
    SessionInfo::new(session.exec.to_string(), session.cwd.clone())
        .title((!session.title.is_empty()).then(|| session.title.clone()))
        .updated_at(session.updated.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loon_api::ExecutionId;

    fn sessions(count: usize) -> Vec<SessionSummary> {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        (0..count).map(|_| SessionSummary::begun(ExecutionId::generate(), now)).collect()
    }

    #[test]
    fn pages_follow_each_other_without_a_gap() {
        let all = sessions(PAGE * 2 + 1);
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = page(&all, cursor.as_deref()).unwrap();
            seen.extend(page.sessions.iter().map(|session| session.session_id.to_string()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let ids: Vec<String> = all.iter().map(|session| session.exec.to_string()).collect();
        assert_eq!(seen, ids);
        assert_eq!(page(&all[..PAGE], None).unwrap().next_cursor, None);
    }

    #[test]
    fn a_cursor_of_nothing_is_an_error() {
        assert_eq!(page(&sessions(1), Some("gone")).unwrap_err().code, ErrorCode::Invalid);
    }
}

//! Lists that come in pages, with an end whatever the server does.

use std::collections::BTreeSet;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Fault};

/// Most pages of one list.
const PAGES: usize = 200;

/// Most entries of one list.
const ENTRIES: usize = 2000;

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    /// The member of an answer that holds the entries.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page)),
            Self::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page))
            }
            Self::Templates => {
                let request = ListResourceTemplatesRequest::with_param(page);
                ClientRequest::ListResourceTemplatesRequest(request)
            }
            Self::Prompts => {
                ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page))
            }
        }
    }
}

/// A list, and why it is not whole, if it is not.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Value>,
    pub(crate) cut: Option<String>,
}

/// Asks for all pages of a list.
pub(crate) async fn list(
    connection: &Connection,
    kind: Kind,
    cancel: &CancellationToken,
) -> Result<Listing, Fault> {
    let mut listing = Listing::default();
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let mut answer = connection.ask(kind.request(cursor.clone()), None, cancel).await?;
        match answer.get_mut(kind.member()).map(Value::take) {
            Some(Value::Array(entries)) => listing.entries.extend(entries),
            _ => {
                let message = format!("its list of {} cannot be read", kind.member());
                return Err(Fault::Answered(message));
            }
        }
        if listing.entries.len() > ENTRIES {
            listing.entries.truncate(ENTRIES);
            listing.cut =
                Some(format!("the list has more than {ENTRIES} entries; the rest is left out"));
            return Ok(listing);
        }
        let Some(next) = answer.get("nextCursor").and_then(Value::as_str) else {
            return Ok(listing);
        };
        if !seen.insert(next.to_owned()) {
            listing.cut =
                Some("the list leads in a circle; what came until then is used".to_owned());
            return Ok(listing);
        }
        cursor = Some(next.to_owned());
    }
    listing.cut = Some(format!("the list has more than {PAGES} pages; the rest is left out"));
    Ok(listing)
}

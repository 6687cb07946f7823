//! Context7, a service with the documentation of many libraries: its client and its errors.

mod library;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use loon_api::Subject;
use loon_kernel::{EffectContext, ToolOutput};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;

use crate::text;
use crate::web::body;
use crate::web::client;
use crate::web::{Context7Options, LiveWebOptions};
pub(crate) use library::{Library, SEARCH, libraries};

/// Most bytes of an answer.
const ANSWER: usize = 1024 * 1024;
/// Most characters of the service's own words in an error.
const WORDS: usize = 300;

/// What to do as long as the service cannot be used.
const INSTEAD: &str = "Until then, use fetch on the library's official documentation.";

/// Asks the service.
#[derive(Clone)]
pub(crate) struct Context7 {
    options: LiveWebOptions,
}

/// What the service says beside an answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Complaint {
    message: Option<String>,
    error: Option<String>,
    redirect_url: Option<String>,
}

impl Context7 {
    pub(crate) fn new(options: LiveWebOptions) -> Self {
        Self { options }
    }

    /// What a request touches, or why none can be made, so that nobody is asked in vain.
    pub(crate) fn subjects(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<Subject>, String> {
        let options = self.options.borrow();
        key(&options.context7)?;
        Ok(vec![Subject::Url { url: url(&options.context7, path, query)?.into() }])
    }

    /// Makes a request, and an output of its answer.
    pub(crate) async fn ask(
        &self,
        path: &str,
        query: &[(&str, &str)],
        cx: &EffectContext,
        show: impl FnOnce(&str) -> Result<ToolOutput, String>,
    ) -> ToolOutput {
        let options = Arc::clone(&self.options.borrow());
        let options = &options.context7;
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => ToolOutput::error("Cancelled."),
            ended = tokio::time::timeout(options.timeout, get(options, path, query)) => {
                let answer = ended.unwrap_or_else(|_| Err(too_slow(options)));
                answer.and_then(|answer| show(&answer)).unwrap_or_else(ToolOutput::error)
            }
        }
    }
}

async fn get(
    options: &Context7Options,
    path: &str,
    query: &[(&str, &str)],
) -> Result<String, String> {
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key(options)?.expose_secret()))
        .map_err(|_| {
            "The Context7 API key has characters that no key has. Set it anew.".to_owned()
        })?;
    bearer.set_sensitive(true);
    let url = url(options, path, query)?;
    // A server that settings name may stand anywhere.
    let own: Vec<String> = url.domain().map(str::to_owned).into_iter().collect();
    let response = client::client(&url, &own, client::system_lookup)?
        .get(url)
        .header(AUTHORIZATION, bearer)
        .header(ACCEPT_ENCODING, body::ACCEPTED)
        .send()
        .await
        .map_err(|error| {
            let server = format!("Context7 at {}", options.base_url);
            format!("{} {INSTEAD}", client::unreached(&server, &error))
        })?;
    let status = response.status();
    let waits = client::retry_after(&response);
    let body = body::read(response, ANSWER).await.map_err(|why| format!("Context7: {why}"))?;
    let answer = String::from_utf8_lossy(&body.bytes).into_owned();
    if status == StatusCode::OK {
        return Ok(masked(&answer, options));
    }
    let complaint = serde_json::from_str(&answer).unwrap_or_default();
    Err(masked(&problem(status, waits, &complaint, options), options))
}

/// The key, or what to do about its lack.
fn key(options: &Context7Options) -> Result<&SecretString, String> {
    if !options.enabled {
        return Err(format!("Context7 is switched off (setting context7.enabled). {INSTEAD}"));
    }
    options.api_key.as_ref().ok_or_else(|| {
        format!(
            "Context7 needs an API key. Tell the user: make one at https://context7.com/dashboard, \
             then export it as {} before starting loon, or save it as context7.api_key in the \
             user's settings file. {INSTEAD}",
            options.api_key_env
        )
    })
}

fn url(options: &Context7Options, path: &str, query: &[(&str, &str)]) -> Result<Url, String> {
    let wrong = |problem: &str| format!("The setting context7.base_url {problem}.");
    let mut url = Url::parse(&options.base_url).map_err(|_| wrong("is no URL"))?;
    let secure =
        url.scheme() == "https" || (url.scheme() == "http" && client::is_this_machine(&url));
    if !secure {
        return Err(wrong("must begin with https://, or the key would travel in the clear"));
    }
    url.set_fragment(None);
    url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    url.query_pairs_mut().clear().extend_pairs(query);
    Ok(url)
}

/// What a status means, and what to do.
fn problem(
    status: StatusCode,
    waits: Option<String>,
    complaint: &Complaint,
    options: &Context7Options,
) -> String {
    let said = complaint.message.as_deref().or(complaint.error.as_deref()).unwrap_or_default();
    let said = cut(&text::visible_line(said.trim()), WORDS);
    let said = if said.is_empty() { String::new() } else { format!(" It says: {said}") };
    match status.as_u16() {
        401 => format!(
            "Context7 does not accept the API key (401). Tell the user to check {} or the setting \
             context7.api_key; keys are made at https://context7.com/dashboard. {INSTEAD}{said}",
            options.api_key_env
        ),
        403 => format!(
            "Context7 does not give this key access to that (403). Choose another library. \
             {INSTEAD}{said}"
        ),
        429 => format!(
            "Context7 has had too many requests with this key (429). Try again {}. {INSTEAD}{said}",
            waits.unwrap_or_else(|| "later".to_owned())
        ),
        202 => {
            format!("Context7 is still preparing this library. Try again later. {INSTEAD}{said}")
        }
        404 => {
            format!("Context7 does not know that. Find ids with context7_resolve_library.{said}")
        }
        301 | 302 | 307 | 308 => match &complaint.redirect_url {
            Some(to) => format!(
                "The library has another id now. Call again with {}.",
                cut(&text::visible_line(to), WORDS)
            ),
            None => "Context7 redirects elsewhere; the setting context7.base_url must name the \
                     server itself."
                .to_owned(),
        },
        _ => format!("Context7 answered {status}. {INSTEAD}{said}"),
    }
}

fn too_slow(options: &Context7Options) -> String {
    format!(
        "Context7 did not answer within {} seconds (setting context7.timeout_secs). {INSTEAD}",
        options.timeout.as_secs()
    )
}

/// The words without the key, should the service have repeated it.
fn masked(words: &str, options: &Context7Options) -> String {
    match &options.api_key {
        Some(key) if !key.expose_secret().is_empty() => words.replace(key.expose_secret(), "****"),
        _ => words.to_owned(),
    }
}

/// The text, cut to so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

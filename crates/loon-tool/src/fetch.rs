//! `fetch`: reads one page of the web.

mod html;
mod page;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::text;
use crate::web::body::{self, Body};
use crate::web::client::{self, Lookup};
use crate::web::{LiveWebOptions, WebOptions};
use page::{Media, Page};

/// Most bytes of a body.
const BODY: usize = 5 * 1024 * 1024;
/// Most bytes of a body that tells of an error.
const ERROR_BODY: usize = 64 * 1024;
/// Most bytes of a URL. Servers take no more.
const URL: usize = 8 * 1024;
/// Most bytes of a URL of the server that an error shows.
const SHOWN_URL: usize = 300;
/// Most redirects on the way to one page.
const REDIRECTS: usize = 5;
/// What is asked for, the best first.
const WANTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.9, */*;q=0.5";

/// Reads pages.
pub struct Fetch {
    options: LiveWebOptions,
    lookup: Lookup,
    /// The page read last, for those who go on in it.
    last: Mutex<Option<Arc<Page>>>,
}

impl Fetch {
    pub(crate) fn new(options: LiveWebOptions) -> Self {
        Self::with_lookup(options, client::system_lookup)
    }

    fn with_lookup(options: LiveWebOptions, lookup: Lookup) -> Self {
        Self { options, lookup, last: Mutex::new(None) }
    }
}

// What to make of a page. The model need not be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    #[default]
    Markdown,
    Text,
    Raw,
}

/// Arguments of `fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    url: String,
    #[serde(default)]
    format: Format,
    /// Byte to go on from.
    offset: Option<usize>,
}

/// Where a request led.
enum Reached {
    Page(Response, Url),
    /// A redirect to what the gate has not judged.
    Elsewhere(StatusCode, Url),
}

impl NativeTool for Fetch {
    type Args = Args;

    const NAME: &'static str = "fetch";
    const DESCRIPTION: &'static str =
        "Read a web page or text file by URL. HTML comes as Markdown.";
    const CLASS: ToolClass = ToolClass::Network;

    fn title(&self, args: &Args) -> String {
        text::visible_line(args.url.trim())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        Ok(vec![Subject::Url { url: target(&args.url)?.into() }])
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let options = Arc::clone(&self.options.borrow());
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => ToolOutput::error("Cancelled."),
            ended = tokio::time::timeout(options.timeout, self.fetch(&args, &options)) => {
                let ended = ended.unwrap_or_else(|_| Err(too_slow(&args, &options)));
                ended.unwrap_or_else(ToolOutput::error)
            }
        }
    }
}

impl Fetch {
    async fn fetch(&self, args: &Args, options: &WebOptions) -> Result<ToolOutput, String> {
        let url = target(&args.url)?;
        let format = args.format;
        let offset = args.offset.unwrap_or(0);
        if offset > 0
            && let Some(page) = self.kept(&url, format)
        {
            return page.show(offset);
        }
        let (response, at) = match self.reach(url.clone(), options).await? {
            Reached::Page(response, at) => (response, at),
            Reached::Elsewhere(status, to) => return Ok(elsewhere(&url, status, &to)),
        };
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Ok(refused(response, at).await);
        }
        let media = Media::of(header(&response, CONTENT_TYPE).as_deref());
        if media.is_refused() {
            return Err(not_text(&response, &at, &media));
        }
        let body =
            body::read(response, BODY).await.map_err(|problem| format!("{at}: {problem}"))?;
        let page = Arc::new(convert(body, media, url, at, format).await?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&page));
        page.show(offset)
    }

    fn kept(&self, url: &Url, format: Format) -> Option<Arc<Page>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|page| page.asked == *url && page.format == format).cloned()
    }

    /// Asks for the URL and follows redirects as far as the same decision holds for them.
    async fn reach(&self, url: Url, options: &WebOptions) -> Result<Reached, String> {
        let mut at = url;
        for _ in 0..=REDIRECTS {
            let response = client::client(&at, &options.private_hosts, self.lookup)?
                .get(at.clone())
                .header(ACCEPT, WANTED)
                .header(ACCEPT_ENCODING, body::ACCEPTED)
                .send()
                .await
                .map_err(|error| client::unreached(at.as_str(), &error))?;
            let status = response.status();
            let Some(to) = redirect(&response, &at)? else {
                return Ok(Reached::Page(response, at));
            };
            if !is_same_place(&at, &to) {
                return Ok(Reached::Elsewhere(status, to));
            }
            at = to;
        }
        Err(format!("{at} redirects more than {REDIRECTS} times; it may lead in a circle."))
    }
}

/// The URL in the form that the gate judges and the client gets.
fn target(url: &str) -> Result<Url, String> {
    let url = url.trim();
    if url.len() > URL {
        let (size, most) = (text::size(url.len() as u64), text::size(URL as u64));
        return Err(format!("The URL has {size}; at most {most} are asked for."));
    }
    let mut parsed = Url::parse(url).map_err(|error| {
        format!("{} is no URL: {error}. Write it whole, with https://.", text::visible_line(url))
    })?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!(
            "Only http and https can be fetched, not {}. Read files with read.",
            parsed.scheme()
        ));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("A URL with a user name or password is not fetched: leave them out.".to_owned());
    }
    parsed.set_fragment(None);
    Ok(parsed)
}

/// Where the answer sends us, if anywhere.
fn redirect(response: &Response, at: &Url) -> Result<Option<Url>, String> {
    let status = response.status();
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = header(response, LOCATION) else { return Ok(None) };
    let shown = text::visible_line(&location[..location.floor_char_boundary(SHOWN_URL)]);
    let to =
        at.join(&location).map_err(|_| format!("{at} redirects to {shown}, which is no URL."))?;
    target(to.as_str())
        .map(Some)
        .map_err(|why| format!("{at} redirects to {shown}, which cannot be followed: {why}"))
}

/// One decision of the gate holds for both: the same host and the same server on it, or its secure
/// side.
fn is_same_place(from: &Url, to: &Url) -> bool {
    let port = |url: &Url| url.port_or_known_default();
    let same = from.scheme() == to.scheme() && port(from) == port(to);
    let secured = (from.scheme(), port(from)) == ("http", Some(80))
        && (to.scheme(), port(to)) == ("https", Some(443));
    from.host() == to.host() && (same || secured)
}

fn elsewhere(url: &Url, status: StatusCode, to: &Url) -> ToolOutput {
    let host = to.host_str().unwrap_or_default();
    ToolOutput::ok(
        format!(
            "{url} redirects ({}) to another server. Nothing was read. To go on, call fetch with:\n{to}",
            status.as_u16()
        ),
        format!("redirects to {}", text::visible_line(host)),
    )
}

/// Makes a page of a body, on a thread of its own that stops when nobody waits for it.
async fn convert(
    body: Body,
    media: Media,
    asked: Url,
    at: Url,
    format: Format,
) -> Result<Page, String> {
    let stop = CancellationToken::new();
    let _stopper = stop.clone().drop_guard();
    tokio::task::spawn_blocking(move || Page::new(&body, &media, asked, &at, format, &stop))
        .await
        .unwrap_or_else(|error| Err(format!("The page could not be converted: {error}.")))
}

/// The answer of a server that said no.
async fn refused(response: Response, at: Url) -> ToolOutput {
    let status = response.status();
    let media = Media::of(header(&response, CONTENT_TYPE).as_deref());
    let mut words = format!("{at} answered {status}.");
    if status == StatusCode::TOO_MANY_REQUESTS
        && let Some(wait) = client::retry_after(&response)
    {
        let _ = write!(words, " Try again {wait}.");
    }
    if !media.is_refused()
        && let Ok(body) = body::read(response, ERROR_BODY).await
        && let Ok(page) = convert(body, media, at.clone(), at, Format::Text).await
    {
        words.push_str(&page.excerpt());
    }
    let summary = format!("status {}", status.as_u16());
    ToolOutput { summary, ..ToolOutput::error(words) }
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> Option<String> {
    response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn not_text(response: &Response, at: &Url, media: &Media) -> String {
    let length = header(response, CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let size = length.map_or_else(|| "of unknown size".to_owned(), text::size);
    format!("{at} is {} ({size}), not text, and was not read.", media.name())
}

fn too_slow(args: &Args, options: &WebOptions) -> String {
    format!(
        "{} was not read within {} seconds (setting web.timeout_secs).",
        text::visible_line(args.url.trim()),
        options.timeout.as_secs()
    )
}

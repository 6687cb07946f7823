//! What came over the network, as text in pages.

use std::borrow::Cow;
use std::fmt::Write as _;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use loon_kernel::ToolOutput;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{BODY, Format, html};
use crate::text;
use crate::web::body::Body;

/// Most bytes shown at once.
const SHOWN: usize = 40 * 1024;
/// Most bytes shown of an error.
const EXCERPT: usize = 2 * 1024;
/// How much of a body is looked at to find out what it is.
const SNIFFED: usize = 1024;

/// Types besides `text/...` that are text.
const TEXTS: [&str; 15] = [
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/ndjson",
    "application/sql",
    "application/toml",
    "application/typescript",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    /// The bytes must tell.
    Unsaid,
    Other,
}

/// What a server says a body is.
#[derive(Debug)]
pub(super) struct Media {
    name: String,
    kind: Kind,
    charset: Option<&'static Encoding>,
}

impl Media {
    /// Of the value of `Content-Type`.
    pub(super) fn of(header: Option<&str>) -> Self {
        let mut parts = header.unwrap_or_default().split(';');
        let name = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            key.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| Encoding::for_label(value.as_bytes()))?
        });
        let kind = match name.as_str() {
            "" | "application/octet-stream" | "binary/octet-stream" => Kind::Unsaid,
            "text/html" | "application/xhtml+xml" => Kind::Html,
            _ if name.starts_with("text/")
                || ["+json", "+xml", "+yaml"].iter().any(|ending| name.ends_with(ending))
                || TEXTS.contains(&name.as_str()) =>
            {
                Kind::Text
            }
            _ => Kind::Other,
        };
        Self { name, kind, charset }
    }

    /// It is no text, so that it need not be read.
    pub(super) fn is_refused(&self) -> bool {
        self.kind == Kind::Other
    }

    pub(super) fn name(&self) -> String {
        if self.name.is_empty() { "of no type".to_owned() } else { text::visible_line(&self.name) }
    }
}

/// A page, converted.
#[derive(Debug)]
pub(super) struct Page {
    /// The URL that was asked for.
    pub(super) asked: Url,
    /// What was made of it.
    pub(super) format: Format,
    /// Lines above the text.
    head: String,
    text: String,
    /// Why the text is not the whole page.
    lack: Option<Cow<'static, str>>,
}

impl Page {
    pub(super) fn new(
        body: &Body,
        media: &Media,
        asked: Url,
        at: &Url,
        format: Format,
        stop: &CancellationToken,
    ) -> Result<Self, String> {
        let bytes = body.bytes.as_slice();
        let encoding = encoding(body, media);
        if is_binary(body, media, encoding) {
            let size = text::size(bytes.len() as u64);
            return Err(format!("{at} is not text ({}, {size}).", media.name()));
        }
        let decoded = encoding.decode(bytes).0;
        let is_html = match media.kind {
            Kind::Html => true,
            Kind::Unsaid => looks_like_html(&decoded),
            Kind::Text | Kind::Other => false,
        };
        let mut head = String::new();
        if asked != *at {
            let _ = writeln!(head, "[from {at}]");
        }
        let mut lack = body.cut.then(|| {
            let most = text::size(BODY as u64);
            Cow::from(format!("the page is larger than {most}; this is its beginning"))
        });
        let converted = if is_html && format != Format::Raw {
            let converted = html::convert(&decoded, at, format, stop)?;
            if let Some(title) = converted.title {
                let _ = writeln!(head, "Title: {}", text::visible_line(&title));
            }
            lack = converted.lack.map(Cow::from).or(lack);
            converted.text
        } else {
            decoded.into_owned()
        };
        let text = text::visible(&one_kind_of_line_end(converted)).into_owned();
        Ok(Self { asked, format, head, text, lack })
    }

    /// The text from `offset` on, as much as fits.
    pub(super) fn show(&self, offset: usize) -> Result<ToolOutput, String> {
        let total = self.text.len();
        if offset > 0 && offset >= total {
            return Err(format!("The page has {total} bytes: offset must be below that."));
        }
        let start = self.text.floor_char_boundary(offset);
        let end = page_end(&self.text, start);
        let mut shown = self.head.clone();
        if !shown.is_empty() {
            shown.push('\n');
        }
        let piece = &self.text[start..end];
        shown.push_str(if piece.trim().is_empty() { "[no text]" } else { piece });
        if end < total {
            let _ = write!(shown, "\n[bytes {start} to {end} of {total}; go on with offset {end}]");
        } else if start > 0 {
            let _ = write!(shown, "\n[bytes {start} to {end}, the end]");
        }
        if let Some(lack) = self.lack.as_ref().filter(|_| end == total) {
            let _ = write!(shown, "\n[{lack}]");
        }
        Ok(ToolOutput::ok(shown, text::size((end - start) as u64)))
    }

    /// The beginning, for an error.
    pub(super) fn excerpt(&self) -> String {
        let text = self.text.trim();
        let end = text.floor_char_boundary(EXCERPT);
        match (text.is_empty(), end < text.len()) {
            (true, _) => String::new(),
            (false, false) => format!("\n{text}"),
            (false, true) => format!("\n{}\n[{} of {} bytes]", &text[..end], end, text.len()),
        }
    }
}

/// Where a piece of the text from `start` on ends: at a line end if there is one in its second half.
fn page_end(text: &str, start: usize) -> usize {
    if text.len() - start <= SHOWN {
        return text.len();
    }
    let end = text.floor_char_boundary(start + SHOWN);
    match text[start..end].rfind('\n') {
        Some(at) if at >= SHOWN / 2 => start + at + 1,
        _ => end,
    }
}

/// A byte order mark goes before what the server says, and that before what the page says of itself.
fn encoding(body: &Body, media: &Media) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(&body.bytes) {
        return encoding;
    }
    let own = || (media.kind != Kind::Text).then(|| declared(&body.bytes)).flatten();
    let encoding = media.charset.or_else(own);
    encoding.unwrap_or(if is_utf8(body) { UTF_8 } else { WINDOWS_1252 })
}

/// A character that the bound cut off is no sign of another encoding.
fn is_utf8(body: &Body) -> bool {
    match std::str::from_utf8(&body.bytes) {
        Ok(_) => true,
        Err(error) => body.cut && error.error_len().is_none(),
    }
}

/// What a `meta` element at the head of the page says.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(SNIFFED)].to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let metas = head.split("<meta").skip(1).filter_map(|rest| rest.split('>').next());
    let encoding = metas.filter_map(|meta| meta.split_once("charset")).find_map(|(_, rest)| {
        let value =
            rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let label = value.split(['"', '\'', ';', ' ', '/']).next()?;
        Encoding::for_label(label.as_bytes())
    })?;
    // A page whose `meta` could be read is not in UTF-16, whatever it says.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

fn is_binary(body: &Body, media: &Media, encoding: &'static Encoding) -> bool {
    if Encoding::for_bom(&body.bytes).is_some() || !encoding.is_ascii_compatible() {
        return false;
    }
    let beginning = &body.bytes[..body.bytes.len().min(8 * SNIFFED)];
    beginning.contains(&0) || (media.kind == Kind::Unsaid && !is_utf8(body))
}

fn looks_like_html(text: &str) -> bool {
    let start = text.trim_start();
    let start = start[..start.floor_char_boundary(SNIFFED)].to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.starts_with(tag))
}

fn one_kind_of_line_end(text: String) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

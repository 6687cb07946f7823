//! HTML becomes Markdown or plain text.

use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, Options};
use html5ever::Attribute;
use html5ever::tendril::StrTendril;
use markup5ever_rcdom::{Handle, NodeData};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{Format, tree};

/// Nesting up to which a page becomes Markdown: the converter goes down by recursion. What is nested
/// deeper becomes plain text.
const DEPTH: usize = 150;

/// Elements without words for a reader.
const SILENT: [&str; 15] = [
    "audio", "canvas", "datalist", "embed", "iframe", "link", "math", "meta", "object", "script",
    "select", "style", "svg", "template", "video",
];

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 35] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
];

/// A page as text.
pub(super) struct Converted {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Why the text is not the whole page.
    pub(super) lack: Option<&'static str>,
}

/// Converts a page that was read from `at`.
pub(super) fn convert(
    html: &str,
    at: &Url,
    format: Format,
    stop: &CancellationToken,
) -> Result<Converted, String> {
    let (dom, is_part) = tree::parse(html, stop)?;
    let seen = tidy(&dom.document, at);
    let mut lack = is_part
        .then_some("the page is nested too deep or has too many elements; this is its beginning");
    let text = if format == Format::Text || seen.depth > DEPTH {
        if format != Format::Text {
            lack = lack.or(Some("nested too deep for Markdown, shown as plain text"));
        }
        plain(&dom.document)
    } else {
        let options = Options {
            bullet_list_marker: BulletListMarker::Dash,
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        };
        HtmlToMarkdown::builder().options(options).build().tree_to_markdown(&dom.document)
    };
    Ok(Converted { title: seen.title, text, lack })
}

/// What was seen on the way through a tree.
struct Seen {
    title: Option<String>,
    depth: usize,
}

/// Takes out what a reader does not need and makes links absolute.
fn tidy(document: &Handle, at: &Url) -> Seen {
    let mut seen = Seen { title: None, depth: 0 };
    let mut base = None;
    let mut waiting = vec![(Handle::clone(document), 0)];
    while let Some((node, depth)) = waiting.pop() {
        seen.depth = seen.depth.max(depth);
        if let NodeData::Element { name, attrs, .. } = &node.data {
            let attrs = &mut *attrs.borrow_mut();
            match &*name.local {
                "base" if base.is_none() => {
                    base = value(attrs, "href").and_then(|href| at.join(href).ok());
                }
                "a" => link(attrs, "href", base.as_ref().unwrap_or(at)),
                "img" => link(attrs, "src", base.as_ref().unwrap_or(at)),
                "title" if seen.title.is_none() => {
                    let words = plain(&node).split_whitespace().collect::<Vec<_>>().join(" ");
                    seen.title = Some(words).filter(|words| !words.is_empty());
                    node.children.borrow_mut().clear();
                }
                _ => {}
            }
        }
        node.children.borrow_mut().retain(is_for_readers);
        let children = node.children.borrow();
        waiting.extend(children.iter().rev().map(|child| (Handle::clone(child), depth + 1)));
    }
    seen
}

fn is_for_readers(node: &Handle) -> bool {
    match &node.data {
        NodeData::Text { .. } | NodeData::Document => true,
        NodeData::Element { name, attrs, .. } => match &*name.local {
            // An image without words says nothing.
            "img" => value(&attrs.borrow(), "alt").is_some_and(|alt| !alt.trim().is_empty()),
            tag => !SILENT.contains(&tag),
        },
        _ => false,
    }
}

fn value<'a>(attrs: &'a [Attribute], name: &str) -> Option<&'a str> {
    attrs.iter().find(|attr| &*attr.name.local == name).map(|attr| &*attr.value)
}

/// Makes a link absolute. One that leads nowhere else is taken away, its words stay.
fn link(attrs: &mut Vec<Attribute>, name: &str, base: &Url) {
    let Some(to) = value(attrs, name) else { return };
    let whole = base.join(to).ok().filter(|url| {
        !to.trim_start().starts_with('#') && matches!(url.scheme(), "http" | "https" | "mailto")
    });
    match whole {
        Some(url) => {
            for attr in attrs.iter_mut().filter(|attr| &*attr.name.local == name) {
                attr.value = StrTendril::from_slice(url.as_str());
            }
        }
        None => attrs.retain(|attr| &*attr.name.local != name),
    }
}

/// A step of the way through a tree.
enum Step {
    Enter(Handle, bool),
    /// The end of an element that stands on lines of its own.
    Break,
}

/// The words of a tree. Goes down without recursion, so that depth does not matter.
fn plain(root: &Handle) -> String {
    let mut text = String::new();
    let mut steps = vec![Step::Enter(Handle::clone(root), false)];
    while let Some(step) = steps.pop() {
        let (node, mut exact) = match step {
            Step::Enter(node, exact) => (node, exact),
            Step::Break => {
                new_line(&mut text);
                continue;
            }
        };
        match &node.data {
            NodeData::Text { contents } if exact => text.push_str(&contents.borrow()),
            NodeData::Text { contents } => push_words(&mut text, &contents.borrow()),
            NodeData::Element { name, attrs, .. } => {
                let tag = &*name.local;
                if BLOCKS.contains(&tag) {
                    new_line(&mut text);
                    steps.push(Step::Break);
                }
                match tag {
                    "pre" | "textarea" => exact = true,
                    "br" => text.push('\n'),
                    "li" => text.push_str("- "),
                    "td" | "th" => push_words(&mut text, " "),
                    "img" => push_words(&mut text, value(&attrs.borrow(), "alt").unwrap_or("")),
                    _ => {}
                }
            }
            _ => {}
        }
        let children = node.children.borrow();
        steps.extend(children.iter().rev().map(|child| Step::Enter(Handle::clone(child), exact)));
    }
    text
}

fn new_line(text: &mut String) {
    text.truncate(text.trim_end_matches([' ', '\t']).len());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Adds words with one space between them, where there was any.
fn push_words(text: &mut String, words: &str) {
    for ch in words.chars() {
        if !matches!(ch, ' ' | '\t' | '\n' | '\r' | '\x0c') {
            text.push(ch);
        } else if !text.is_empty() && !text.ends_with([' ', '\n']) {
            text.push(' ');
        }
    }
}

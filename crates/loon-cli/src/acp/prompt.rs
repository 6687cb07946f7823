//! A prompt of an editor as the words of a user: text, links, and resources that came along.

use std::fmt::Write as _;

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ResourceLink,
};
use loon_api::{ErrorCode, ErrorInfo};
use url::Url;

use super::text::fenced;

/// The words. Text and links stay in their order; resources follow, each under its name.
pub(super) fn words(blocks: &[ContentBlock]) -> Result<String, ErrorInfo> {
    let mut words = String::new();
    let mut resources = String::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => words.push_str(&text.text),
            ContentBlock::ResourceLink(link) => words.push_str(&place(link)),
            ContentBlock::Resource(resource) => add_resource(resource, &mut resources),
            ContentBlock::Image(_) => return Err(not_taken("Pictures")),
            ContentBlock::Audio(_) => return Err(not_taken("Sounds")),
            _ => return Err(not_taken("Parts of this kind")),
        }
    }
    if !resources.is_empty() {
        words.truncate(words.trim_end().len());
        words.push_str(&resources);
    }
    if words.trim().is_empty() {
        return Err(ErrorInfo::new(ErrorCode::Invalid, "The prompt is empty."));
    }
    Ok(words)
}

fn not_taken(what: &str) -> ErrorInfo {
    let message = format!("{what} cannot be part of a prompt.");
    ErrorInfo::new(ErrorCode::Invalid, message).hint("Name a file in the prompt instead.")
}

/// A file by its path, which the tools can read; anything else by name and address.
fn place(link: &ResourceLink) -> String {
    match path_of(&link.uri) {
        Some(path) => format!("`{path}`"),
        None => format!("[{}]({})", link.name, link.uri),
    }
}

/// The path of a file's URI, with the lines it names.
fn path_of(uri: &str) -> Option<String> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    let path = url.to_file_path().ok()?.display().to_string();
    Some(match url.fragment() {
        Some(lines) => format!("{path}#{lines}"),
        None => path,
    })
}

fn add_resource(resource: &EmbeddedResource, out: &mut String) {
    let name = |uri: &str| path_of(uri).unwrap_or_else(|| uri.to_owned());
    // Writing to a string cannot fail.
    let _ = match &resource.resource {
        EmbeddedResourceResource::TextResourceContents(text) => {
            let (name, text) = (name(&text.uri), fenced(&text.text));
            write!(out, "\n\nFrom the editor, `{name}` as it stands there:\n{text}")
        }
        EmbeddedResourceResource::BlobResourceContents(blob) => {
            let name = name(&blob.uri);
            write!(out, "\n\nFrom the editor, `{name}`, which is no text and is not shown.")
        }
        _ => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(blocks: Value) -> Result<String, ErrorInfo> {
        words(&serde_json::from_value::<Vec<ContentBlock>>(blocks).unwrap())
    }

    #[test]
    fn text_and_links_stay_in_order_and_resources_follow() {
        let told = of(json!([
            {"type": "text", "text": "Fix "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a%20b.rs#L3"},
            {"type": "resource", "resource": {"uri": "file:///w/new.rs", "text": "fn a() {}\n```"}},
            {"type": "text", "text": " and "},
            {"type": "resource_link", "name": "docs", "uri": "https://example.org/x"},
        ]));
        assert_eq!(
            told.unwrap(),
            "Fix `/w/a b.rs#L3` and [docs](https://example.org/x)\n\n\
             From the editor, `/w/new.rs` as it stands there:\n````\nfn a() {}\n```\n````"
        );
    }

    #[test]
    fn what_cannot_be_taken_is_said() {
        let image = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
        for (blocks, words) in [
            (image, "Pictures"),
            (json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]), "Sounds"),
            (json!([]), "empty"),
            (json!([{"type": "text", "text": " \n"}]), "empty"),
        ] {
            let error = of(blocks).unwrap_err();
            assert!(error.message.contains(words), "{}", error.message);
        }
        let blob = of(
            json!([{"type": "resource", "resource": {"uri": "file:///w/a.png", "blob": "AA=="}}]),
        );
        assert!(blob.unwrap().contains("`/w/a.png`, which is no text"));
    }
}

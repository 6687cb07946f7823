//! The digest by which a request can be compared with one that is built later.

use loon_api::Message;

use crate::store::sha256;

/// SHA-256 of the messages, hexadecimal. They come from the journal alone; system text and tools hang
/// on the day, the folder and the version, and are left out.
pub fn request_digest(messages: &[Message]) -> String {
    // Messages are strings and JSON values, which can always be written.
    sha256(&serde_json::to_vec(messages).unwrap_or_default())
}

//! The digest by which a request can be compared with one that is built later.

use loon_api::Message;

use crate::store::sha256;

/// SHA-256 of the messages, hexadecimal. They come from the journal alone; system text and tools hang
/// on the day, the folder and the version, and are left out.
pub fn request_digest(messages: &[Message]) -> String {
    // Messages are strings and JSON values, which can always be written.
    sha256(&serde_json::to_vec(messages).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loon_api::{AnsweredCall, AssistantMessage, AssistantPart, CallId, ToolResult, UserPart};

    /// Journals hold digests of former versions. Arguments keep the order in which the model wrote
    /// them, in the journal and in the digest, so how JSON objects are ordered must never change.
    #[test]
    fn a_digest_in_a_journal_is_that_of_the_same_request_for_ever() {
        let arguments = r#"{"path":"b","old":"1","a":{"z":1,"b":2}}"#;
        let call = AnsweredCall {
            id: CallId::of(1, 0, 0),
            name: "edit".to_owned(),
            arguments: serde_json::from_str(arguments).unwrap(),
            result: ToolResult::ok("ok"),
        };
        let parts = vec![AssistantPart::Call(call)];
        let messages = [
            Message::User(vec![UserPart::Text("go".to_owned())]),
            Message::Assistant(AssistantMessage { parts }),
        ];
        let written = serde_json::to_string(&messages).unwrap();
        assert!(written.contains(arguments), "{written}");
        assert_eq!(
            request_digest(&messages),
            "3360e9b9d4e45c9023592cc761da67dee3ea412447aec9279e2a730e52082639"
        );
    }
}

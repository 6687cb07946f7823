//! JSON-RPC 2.0, one message a line: what a client sends, taken apart, and what it is sent.

use agent_client_protocol_schema::v1::{
    Error, ErrorCode, JsonRpcMessage, Notification, Request, RequestId, Response,
};
use loon_api::{ErrorCode as Code, ErrorInfo};
use serde::Serialize;
use serde_json::{Value, json};

use crate::safe::json;

/// What a client sends.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// It wants an answer.
    Request {
        /// To be repeated in the answer.
        id: RequestId,
        /// What it wants.
        method: String,
        /// With what.
        params: Value,
    },
    /// It wants none.
    Notification {
        /// What it tells.
        method: String,
        /// With what.
        params: Value,
    },
    /// It answers a request of ours.
    Response {
        /// That of the request.
        id: RequestId,
        /// What it gives, or why it gives nothing.
        result: Result<Value, Error>,
    },
}

/// A line that is no message.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed {
    /// Its id, as far as it has one.
    pub(super) id: RequestId,
    /// What is wrong with it.
    pub(super) code: ErrorCode,
    /// The same in words.
    pub(super) message: String,
}

/// Reads one line.
pub(super) fn read(line: &[u8]) -> Result<Message, Malformed> {
    let value: Value = serde_json::from_slice(line).map_err(|problem| Malformed {
        id: RequestId::Null,
        code: ErrorCode::ParseError,
        message: format!("The line is no JSON: {problem}."),
    })?;
    let mut object = match value {
        Value::Object(object) => object,
        Value::Array(_) => {
            return Err(invalid(
                RequestId::Null,
                "Batches are not taken; send one message a line.",
            ));
        }
        _ => return Err(invalid(RequestId::Null, "A message is a JSON object.")),
    };
    let id = match object.remove("id").map(serde_json::from_value::<RequestId>) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => {
            let message = "The id of a message is text or a whole number.";
            return Err(invalid(RequestId::Null, message));
        }
    };
    let or_null = || id.clone().unwrap_or(RequestId::Null);
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(or_null(), "A message says \"jsonrpc\": \"2.0\"."));
    }
    if let Some(method) = object.remove("method") {
        let Value::String(method) = method else {
            return Err(invalid(or_null(), "The method of a message is text."));
        };
        // Left out and empty say the same.
        let params = object.remove("params").filter(|params| !params.is_null());
        let params = params.unwrap_or_else(|| json!({}));
        return Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    let result = match (object.remove("result"), object.remove("error")) {
        (_, Some(problem)) => Some(Err(serde_json::from_value(problem)
            .unwrap_or_else(|_| error(ErrorCode::InternalError, "an error without words")))),
        (Some(result), None) => Some(Ok(result)),
        (None, None) => None,
    };
    match (id, result) {
        (Some(id), Some(result)) => Ok(Message::Response { id, result }),
        (id, _) => {
            let message = "A message has a method, or an id with a result or an error.";
            Err(invalid(id.unwrap_or(RequestId::Null), message))
        }
    }
}

fn invalid(id: RequestId, message: &str) -> Malformed {
    Malformed { id, code: ErrorCode::InvalidRequest, message: message.to_owned() }
}

/// An error in words for a person.
pub(super) fn error(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// An error of ours. What to do about it stands in the message, since editors show that; programs
/// branch on `data.code`.
pub(super) fn failure(info: &ErrorInfo) -> Error {
    let code = match info.code {
        Code::Invalid => ErrorCode::InvalidParams,
        Code::NotFound => ErrorCode::ResourceNotFound,
        _ => ErrorCode::InternalError,
    };
    let lines: Vec<&str> =
        std::iter::once(&info.message).chain(&info.hints).map(String::as_str).collect();
    error(code, lines.join("\n")).data(json!({ "code": info.code, "hints": info.hints }))
}

/// The answer to a request.
pub(super) fn response<T: Serialize>(id: RequestId, result: Result<T, Error>) -> String {
    line(&JsonRpcMessage::wrap(Response::new(id, result)))
}

/// A request of ours.
pub(super) fn request<T: Serialize>(id: i64, method: &str, params: T) -> String {
    let params = Some(params);
    line(&JsonRpcMessage::wrap(Request { id: id.into(), method: method.into(), params }))
}

/// A notification of ours.
pub(super) fn notification<T: Serialize>(method: &str, params: T) -> String {
    line(&JsonRpcMessage::wrap(Notification { method: method.into(), params: Some(params) }))
}

fn line(message: &impl Serialize) -> String {
    json(message).unwrap_or_else(|problem| {
        let words = format!("A message could not be written: {problem}.");
        let error = json!({ "code": i32::from(ErrorCode::InternalError), "message": words });
        json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (RequestId, i32) {
        let malformed = read(line.as_bytes()).unwrap_err();
        (malformed.id, malformed.code.into())
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let method = "session/list".to_owned();
        let (id, params) = (RequestId::Number(1), json!({}));
        assert_eq!(
            read(br#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#),
            Ok(Message::Request { id, method: method.clone(), params: params.clone() })
        );
        assert_eq!(
            read(br#"{"jsonrpc":"2.0","method":"session/list","params":null}"#),
            Ok(Message::Notification { method, params })
        );
        let answer = read(br#"{"jsonrpc":"2.0","id":"a","result":null}"#);
        let id = RequestId::Str("a".into());
        assert_eq!(answer, Ok(Message::Response { id, result: Ok(Value::Null) }));
        let answer = read(br#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#);
        let result = Err(Error::new(-1, "no"));
        assert_eq!(answer, Ok(Message::Response { id: RequestId::Number(7), result }));
    }

    #[test]
    fn what_is_no_message_is_refused_under_its_id() {
        assert_eq!(refused("{"), (RequestId::Null, -32700));
        assert_eq!(refused("\u{1f9f5}"), (RequestId::Null, -32700));
        for line in [
            "7",
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#,
            r#"{"id":{},"jsonrpc":"2.0","method":"x"}"#,
        ] {
            assert_eq!(refused(line), (RequestId::Null, -32600), "{line}");
        }
        for line in [
            r#"{"id":3,"method":"x"}"#,
            r#"{"id":3,"jsonrpc":"2.0"}"#,
            r#"{"id":3,"jsonrpc":"2.0","method":4}"#,
        ] {
            assert_eq!(refused(line), (RequestId::Number(3), -32600), "{line}");
        }
    }

    #[test]
    fn an_error_says_what_to_do() {
        let info = ErrorInfo::new(Code::Auth, "The key is wrong.").hint("Set LAB_KEY.");
        let line = response::<()>(RequestId::Number(2), Err(failure(&info)));
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603,
                "message": "The key is wrong.\nSet LAB_KEY.",
                "data": {"code": "AUTH", "hints": ["Set LAB_KEY."]}}})
        );
    }
}

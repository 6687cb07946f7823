//! Requests for a decision: asked of the person at the editor, and answered with a command.

use std::collections::HashMap;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, Error, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, ToolCallContent, ToolCallId,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use loon_api::command::ApprovalScope;
use loon_api::{Approval, ApprovalId, Command, PermissionRule};
use loon_permission::rule_words;
use serde_json::Value;

use super::text::title;
use super::tool_call::{detail, kind, named_paths, raw_input};
use super::wire;
use crate::safe::plain;

const ONCE: &str = "allow_once";
const SESSION: &str = "allow_for_session";
const ALWAYS: &str = "allow_always";
const REJECT: &str = "reject_once";

/// Sessions of a connection number their requests in ranges of this size.
const RANGE: u32 = 32;

/// The number of the session that sent the request with this id.
pub(super) fn session_of(request: i64) -> i64 {
    request >> RANGE
}

/// The requests of one session that the client has not answered.
pub(super) struct Questions {
    next: i64,
    open: HashMap<i64, Question>,
}

struct Question {
    approval: ApprovalId,
    always: Option<PermissionRule>,
}

impl Questions {
    /// None yet, for the session of this number.
    pub(super) fn of(session: i64) -> Self {
        Self { next: session << RANGE, open: HashMap::new() }
    }

    /// The line that asks.
    pub(super) fn ask(&mut self, session: &SessionId, approval: &Approval, cwd: &Path) -> String {
        let id = self.next;
        self.next += 1;
        let question = Question { approval: approval.id.clone(), always: approval.always.clone() };
        self.open.insert(id, question);
        let call = ToolCallUpdate::new(call_id(approval), fields(approval, cwd));
        let request = RequestPermissionRequest::new(session.clone(), call, options(approval));
        wire::request(id, CLIENT_METHOD_NAMES.session_request_permission, request)
    }

    /// What the answer to a request means; nothing if it was withdrawn, or never asked.
    pub(super) fn answer(&mut self, id: i64, result: Result<Value, Error>) -> Option<Command> {
        let Question { approval, always } = self.open.remove(&id)?;
        let deny = |approval, reason: &str| Command::Deny { approval, reason: Some(reason.into()) };
        let response = result.map(serde_json::from_value::<RequestPermissionResponse>);
        let outcome = match response {
            Ok(Ok(response)) => response.outcome,
            Ok(Err(_)) => return Some(deny(approval, "The editor's answer made no sense.")),
            Err(error) => {
                let words = title(&plain(&error.message));
                return Some(deny(approval, &format!("The editor could not ask: {words}.")));
            }
        };
        let RequestPermissionOutcome::Selected(selected) = outcome else {
            // The prompt was cancelled.
            return Some(Command::Interrupt);
        };
        let approve = |scope, rule| Command::Approve { approval: approval.clone(), scope, rule };
        Some(match (selected.option_id.0.as_ref(), always) {
            (ONCE, _) => approve(ApprovalScope::Once, None),
            (SESSION, Some(rule)) => approve(ApprovalScope::Session, Some(rule)),
            (ALWAYS, Some(rule)) => approve(ApprovalScope::Project, Some(rule)),
            (REJECT, _) => Command::Deny { approval, reason: None },
            (other, _) => {
                deny(approval, &format!("The editor chose {other}, which was no choice."))
            }
        })
    }

    /// The request was decided, or nobody waits for it any more.
    pub(super) fn settle(&mut self, approval: &ApprovalId) {
        self.open.retain(|_, question| question.approval != *approval);
    }
}

/// True if the session itself asks, and not a child of it: the id of a child's request has its name
/// in front of turn, step and call.
pub(super) fn is_own(approval: &ApprovalId) -> bool {
    approval.as_str().split('/').count() <= 3
}

/// The call the request is about. Items of children are numbered apart from those of the session.
pub(super) fn call_id(approval: &Approval) -> ToolCallId {
    let id = if is_own(&approval.id) { approval.item.as_str() } else { approval.id.as_str() };
    ToolCallId::new(id)
}

/// What a person decides on.
pub(super) fn fields(approval: &Approval, cwd: &Path) -> ToolCallUpdateFields {
    let first = approval.detail.lines().next().unwrap_or_default();
    let about = match approval.arguments["path"].as_str() {
        Some(path) => path,
        None => first,
    };
    let reasons: Vec<String> =
        approval.reasons.iter().map(|reason| format!("- {}", plain(reason))).collect();
    let mut content = detail(&approval.detail, cwd);
    if !reasons.is_empty() {
        content.push(ToolCallContent::from(reasons.join("\n")));
    }
    ToolCallUpdateFields::new()
        .title(title(&plain(&format!("{} {about}", approval.tool))))
        .name(approval.tool.clone())
        .kind(kind(&approval.tool))
        .status(ToolCallStatus::Pending)
        .content(content)
        .locations(named_paths(&approval.arguments, cwd))
        .raw_input(raw_input(&approval.arguments))
}

fn options(approval: &Approval) -> Vec<PermissionOption> {
    let option = |id: &str, name: String, kind| PermissionOption::new(id.to_owned(), name, kind);
    let mut options =
        vec![option(ONCE, "Allow this once".to_owned(), PermissionOptionKind::AllowOnce)];
    if let Some(rule) = &approval.always {
        let rule = title(&plain(&rule_words(rule)));
        let always = PermissionOptionKind::AllowAlways;
        options.push(option(SESSION, format!("Allow {rule} in this session"), always));
        options.push(option(ALWAYS, format!("Always allow {rule} in this project"), always));
    }
    options.push(option(REJECT, "Reject".to_owned(), PermissionOptionKind::RejectOnce));
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use loon_api::ItemId;
    use serde_json::json;

    fn rule() -> PermissionRule {
        PermissionRule {
            tool: "bash".to_owned(),
            path_prefix: None,
            command_prefix: Some("cargo test".to_owned()),
            host: None,
        }
    }

    fn approval(id: &str, always: Option<PermissionRule>) -> Approval {
        Approval {
            id: ApprovalId::new(id),
            item: ItemId::call(1, 0, 0),
            tool: "bash".to_owned(),
            arguments: json!({"command": "cargo test -q"}),
            detail: "cargo test -q".to_owned(),
            reasons: vec!["mode default: shell asks".to_owned()],
            cwd: "/work".to_owned(),
            always,
        }
    }

    fn asked(approval: &Approval) -> (Questions, Value) {
        let mut questions = Questions::of(3);
        let line = questions.ask(&SessionId::new("s"), approval, Path::new("/work"));
        (questions, serde_json::from_str(&line).unwrap())
    }

    fn chosen(option: &str) -> Value {
        json!({"outcome": {"outcome": "selected", "optionId": option}})
    }

    #[test]
    fn the_person_sees_the_call_the_reasons_and_the_rule() {
        let (_, request) = asked(&approval("t1/s0/c0", Some(rule())));
        assert_eq!(request["method"], "session/request_permission");
        assert_eq!(session_of(request["id"].as_i64().unwrap()), 3);
        let call = &request["params"]["toolCall"];
        assert_eq!(call["toolCallId"], "1.0.c0");
        assert_eq!(call["title"], "bash cargo test -q");
        assert_eq!(call["content"][0]["content"]["text"], "```\ncargo test -q\n```");
        assert_eq!(call["content"][1]["content"]["text"], "- mode default: shell asks");
        let options = request["params"]["options"].as_array().unwrap();
        let told: Vec<_> =
            options.iter().map(|option| (&option["optionId"], &option["kind"])).collect();
        assert_eq!(
            told,
            [
                (&json!("allow_once"), &json!("allow_once")),
                (&json!("allow_for_session"), &json!("allow_always")),
                (&json!("allow_always"), &json!("allow_always")),
                (&json!("reject_once"), &json!("reject_once")),
            ]
        );
        assert_eq!(options[2]["name"], "Always allow bash \"cargo test\" in this project");
        let (_, request) = asked(&approval("t1/s0/c0", None));
        assert_eq!(request["params"]["options"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_child_asks_under_an_id_of_its_own() {
        let (_, request) = asked(&approval("a1/t1/s0/c0", None));
        assert_eq!(request["params"]["toolCall"]["toolCallId"], "a1/t1/s0/c0");
    }

    #[test]
    fn answers_become_commands_and_only_once() {
        let own = ApprovalId::new("t1/s0/c0");
        let answer = |result| {
            let (mut questions, request) = asked(&approval("t1/s0/c0", Some(rule())));
            let id = request["id"].as_i64().unwrap();
            let command = questions.answer(id, result);
            assert_eq!(questions.answer(id, Ok(chosen("allow_once"))), None);
            command.unwrap()
        };
        let approve = |scope, rule| Command::Approve { approval: own.clone(), scope, rule };
        assert_eq!(answer(Ok(chosen("allow_once"))), approve(ApprovalScope::Once, None));
        assert_eq!(
            answer(Ok(chosen("allow_for_session"))),
            approve(ApprovalScope::Session, Some(rule()))
        );
        assert_eq!(
            answer(Ok(chosen("allow_always"))),
            approve(ApprovalScope::Project, Some(rule()))
        );
        let deny = Command::Deny { approval: own.clone(), reason: None };
        assert_eq!(answer(Ok(chosen("reject_once"))), deny);
        assert_eq!(answer(Ok(json!({"outcome": {"outcome": "cancelled"}}))), Command::Interrupt);
        for odd in [Ok(chosen("sudo")), Ok(Value::Null), Err(Error::new(-1, "no window"))] {
            let Command::Deny { reason: Some(_), .. } = answer(odd) else { panic!("not denied") };
        }
    }

    #[test]
    fn no_rule_is_kept_that_was_not_on_offer() {
        let (mut questions, request) = asked(&approval("t1/s0/c0", None));
        let command = questions.answer(request["id"].as_i64().unwrap(), Ok(chosen("allow_always")));
        assert!(matches!(command, Some(Command::Deny { .. })), "{command:?}");
    }

    #[test]
    fn an_answer_that_comes_too_late_is_passed_over() {
        let (mut questions, request) = asked(&approval("t1/s0/c0", None));
        questions.settle(&ApprovalId::new("t1/s0/c0"));
        assert_eq!(
            questions.answer(request["id"].as_i64().unwrap(), Ok(chosen("allow_once"))),
            None
        );
    }
}

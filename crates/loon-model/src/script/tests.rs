//! Tests of scripts.

use loon_api::ToolResult;
use serde_json::json;

use super::*;
use crate::testing::{assistant, called, context, request, said, user};

const SCRIPT: &str = r#"
# A failing test, mended.
{"thinking": "First look.", "text": "Let me run it.", "calls": [{"name": "bash", "arguments": {"command": "test"}}]}
{"when": {"result": "ok"}, "text": "They pass."}
{"when": {"user": "carefully", "result": "FAILED"}, "text": "Slowly.", "stop": "length"}
{"text": "They fail.", "calls": [{"name": "edit", "arguments": "{\"path\":"}, {"name": "ls"}]}
{"when": {"result": "edited"}, "text": "Mended."}
"#;

fn script(text: &str) -> Script {
    Script::load(Some(&ScriptSource::Text(text.into()))).unwrap()
}

async fn answer(script: &Script, messages: Vec<Message>) -> Result<Answer, ModelError> {
    let (cx, _told) = context();
    script.answer("script/demo", &request(messages), &cx).await
}

fn ran(result: &str) -> Message {
    assistant(vec![called(0, json!({}), ToolResult::ok(result))])
}

fn text(answer: &Answer) -> &str {
    let text = answer.parts.iter().find_map(|part| match part {
        AnswerPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    text.unwrap()
}

#[tokio::test]
async fn the_place_in_the_conversation_chooses_the_step() {
    let script = script(SCRIPT);
    let first = answer(&script, vec![user("fix")]).await.unwrap();
    assert_eq!(
        first,
        Answer {
            parts: vec![
                AnswerPart::Thinking(Thinking {
                    text: "First look.".into(),
                    model: "script/demo".into(),
                    opaque: None,
                }),
                AnswerPart::Text("Let me run it.".into()),
                AnswerPart::Call { name: "bash".into(), arguments: json!({"command": "test"}) },
            ],
            stop: StopReason::ToolCalls,
            usage: Usage::default(),
        }
    );
    let passed = answer(&script, vec![user("fix"), ran("test result: ok")]).await.unwrap();
    assert_eq!((text(&passed), passed.stop), ("They pass.", StopReason::End));
    let failed = answer(&script, vec![user("fix"), ran("FAILED")]).await.unwrap();
    assert_eq!(
        failed.parts[1..],
        [
            AnswerPart::Call { name: "edit".into(), arguments: json!("{\"path\":") },
            AnswerPart::Call { name: "ls".into(), arguments: json!({}) },
        ]
    );
    let careful = answer(&script, vec![user("fix carefully"), ran("FAILED")]).await.unwrap();
    assert_eq!((text(&careful), careful.stop), ("Slowly.", StopReason::Length));
    let mended = answer(&script, vec![user("fix"), ran("FAILED"), ran("edited")]).await.unwrap();
    assert_eq!(text(&mended), "Mended.");
}

#[tokio::test]
async fn every_prompt_begins_at_the_first_place() {
    let script = script(SCRIPT);
    let messages = vec![user("fix"), ran("ok"), assistant(vec![said("They pass.")]), user("again")];
    assert_eq!(text(&answer(&script, messages).await.unwrap()), "Let me run it.");
}

#[tokio::test]
async fn past_its_end_a_script_says_so() {
    let script = script(SCRIPT);
    let no_step_counts = vec![user("fix"), ran("FAILED"), ran("nothing")];
    for messages in [no_step_counts, vec![user("fix"), ran("a"), ran("edited"), ran("b")]] {
        let answer = answer(&script, messages).await.unwrap();
        assert_eq!((text(&answer), answer.stop), (ENDED, StopReason::End));
    }
}

#[tokio::test]
async fn an_answer_is_told_word_by_word() {
    let (cx, mut told) = context();
    let request = request(vec![user("fix")]);
    script(SCRIPT).answer("script/demo", &request, &cx).await.unwrap();
    drop(cx);
    let mut pieces = Vec::new();
    while let Some(piece) = told.recv().await {
        pieces.push(piece);
    }
    let texts = ["Let ", "me ", "run ", "it."].map(|word| Progress::Text(word.into()));
    assert_eq!(pieces[..2], ["First ", "look."].map(|word| Progress::Thinking(word.into())));
    assert_eq!(pieces[2..6], texts);
    assert_eq!(
        pieces[6..],
        [Progress::Arguments {
            index: 0,
            name: Some("bash".into()),
            fragment: r#"{"command":"test"}"#.into(),
        }]
    );
}

#[tokio::test]
async fn a_step_may_fail_some_times_before_it_answers() {
    let script = script(
        r#"{"text": "Hello", "error": {"kind": "rate_limited", "message": "slow", "retry_after_ms": 1500, "times": 2}}"#,
    );
    for _ in 0..2 {
        let error = answer(&script, vec![user("a")]).await.unwrap_err();
        assert_eq!((error.kind, error.streamed), (ModelErrorKind::RateLimited, false));
        assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    }
    assert_eq!(text(&answer(&script, vec![user("a")]).await.unwrap()), "Hello");
}

#[tokio::test]
async fn a_failure_may_come_after_some_of_the_answer() {
    let script = script(
        r#"{"text": "Hel", "calls": [{"name": "f"}], "error": {"kind": "overloaded", "message": "busy", "streamed": true}}"#,
    );
    let (cx, mut told) = context();
    let error = script.answer("script/demo", &request(vec![user("a")]), &cx).await.unwrap_err();
    assert_eq!((error.kind, error.streamed), (ModelErrorKind::Overloaded, true));
    drop(cx);
    assert_eq!(told.recv().await, Some(Progress::Text("Hel".into())));
    assert_eq!(told.recv().await, None);
}

#[tokio::test]
async fn a_cancel_ends_a_slow_step() {
    let script = script(r#"{"text": "one two three", "delay_ms": 3600000}"#);
    let (cx, _told) = context();
    let request = request(vec![user("a")]);
    let cancel = async { cx.cancel.cancel() };
    let (answer, ()) = tokio::join!(script.answer("script/demo", &request, &cx), cancel);
    assert!(!answer.unwrap_err().streamed);
}

#[test]
fn a_line_that_is_no_step_is_named() {
    let load =
        |text: &str| Script::load(Some(&ScriptSource::Text(text.into()))).unwrap_err().to_string();
    assert_eq!(
        load("\n{\"txt\": \"a\"}"),
        "line 2 of the script is no step: unknown field `txt`, expected one of `text`, `thinking`, `calls`, `stop`, `delay_ms`, `when`, `error` at line 1 column 6"
    );
    assert!(load("{").starts_with("line 1 of the script is no step: EOF"));
    assert_eq!(
        Script::load(None).unwrap_err().to_string(),
        "a provider of kind `script` needs a script"
    );
    let missing = Script::load(Some(&ScriptSource::Path("/nonexistent/steps".into())));
    assert!(
        missing.unwrap_err().to_string().starts_with("cannot read the script /nonexistent/steps: ")
    );
}

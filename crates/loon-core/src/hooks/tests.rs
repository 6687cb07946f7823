//! What hooks say, and what comes of it.

use std::sync::Mutex;
use std::time::Duration;

use loon_api::{BoxFuture, ExecutionId, HookEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer::HookAnswer;
use super::fire::Firing;
use super::occurrence::{Occurrence, Place};
use super::*;

/// No hooks.
pub(crate) fn none() -> Hooks {
    Hooks {
        definitions: watch::channel(Arc::from([])).1,
        spawner: Spawner::default(),
        poster: Arc::new(Answering::default()),
    }
}

/// Answers in place of an address, and keeps what it was sent.
#[derive(Default)]
struct Answering {
    bodies: Mutex<Vec<Vec<u8>>>,
}

impl HookPoster for Answering {
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> BoxFuture<'a, Result<Posted, String>> {
        self.bodies.lock().unwrap().push(body);
        Box::pin(async move {
            let (status, body) = url.rsplit_once('/').unwrap_or_default();
            let status = status.rsplit_once('/').unwrap_or_default().1;
            status
                .parse()
                .map(|status| Posted { status, body: body.as_bytes().to_vec() })
                .map_err(|_| "cannot be reached".to_owned())
        })
    }
}

fn read(event: HookEvent, output: &str) -> Result<HookAnswer, String> {
    HookAnswer::read(event, output).map_err(|error| error.to_string())
}

fn before_tool(output: &str) -> Result<HookAnswer, String> {
    read(HookEvent::PreToolUse, output)
}

fn block(reason: &str) -> HookVerdict {
    HookVerdict::Block { reason: reason.to_owned() }
}

#[test]
fn h199_an_answer_that_may_be_a_no_is_never_taken_for_words() {
    for output in [
        "\u{FEFF}{\"decision\":\"deny\"}",
        r#"[{"decision":"block"}]"#,
        r#""deny""#,
        "null",
        r#"log: {"decision":"block"}"#,
        r#"{"decision":"block","decision":"approve"}"#,
        r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecision":"allow"}}"#,
    ] {
        assert!(before_tool(output).is_err(), "{output}");
    }
    let marked = "\u{FEFF}{\"decision\":\"block\",\"reason\":\"no\"}";
    assert_eq!(before_tool(marked).unwrap().verdict, block("no"));
}

#[test]
fn h196_a_denial_brings_its_reason_and_context() {
    let output = r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"Use the API.","additionalContext":"See docs."}}"#;
    let answer = before_tool(output).unwrap();
    assert_eq!(answer.verdict, block("Use the API."));
    assert_eq!(answer.context.as_deref(), Some("See docs."));
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(output).unwrap());
    assert_eq!(before_tool(&pretty.unwrap()), Ok(answer.clone()));
    // Log lines before it do not hide it.
    let answer = before_tool(&format!("checking 3 files\n{output}\n")).unwrap();
    assert_eq!(answer.verdict, block("Use the API."));
    assert_eq!(answer.context.as_deref(), Some("checking 3 files\nSee docs."));
}

#[test]
fn h197_a_block_brings_its_reason() {
    let answer = read(HookEvent::Stop, r#"{"decision":"block","reason":"Tests fail"}"#).unwrap();
    assert_eq!(answer.verdict, block("Tests fail"));
    let answer = read(HookEvent::Stop, r#"{"decision":"block"}"#).unwrap();
    assert_eq!(answer.verdict, block("It gave no reason."));
}

#[test]
fn h198_plain_output_is_context() {
    let said = |output| before_tool(output).unwrap();
    assert_eq!(said(" two lines\nof words \n").context.as_deref(), Some("two lines\nof words"));
    assert_eq!(said("").context, None);
    assert_eq!(said("{}"), HookAnswer::default());
    let source = "fn main()\n{\n    println!(\"hi\");\n}";
    assert_eq!(said(source).context.as_deref(), Some(source));
    let data = "settings:\n{\"a\": 1}";
    assert_eq!(said(data).context.as_deref(), Some(data));
}

#[test]
fn h199_what_looks_like_an_answer_and_is_none_is_an_error() {
    for output in [
        "{",
        "{\"decision\":\"block\"",
        "{\"descision\":\"block\"}",
        "{\"decision\":\"no\"}",
        "{\"decision\":\"block\"}\n{}",
        "log\n{\"decision\":\"block\"}\n{}",
        "log {\"hookSpecificOutput\":{\"permissionDecision\":\"deny\"}}",
        "{\"hookSpecificOutput\":{\"permissionDecision\":\"forbid\"}}",
        "{\"hookSpecificOutput\":\"deny\"}",
        "{\"continue\":false}",
    ] {
        assert!(before_tool(output).is_err(), "{output}");
    }
    let asks =
        r#"{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"?"}}"#;
    assert_eq!(before_tool(asks).unwrap().verdict, HookVerdict::Ask { reason: "?".into() });
    assert!(read(HookEvent::UserPromptSubmit, asks).is_err());
}

#[test]
fn h201_no_word_allows_anything() {
    for output in [
        r#"{"hookSpecificOutput":{"permissionDecision":"allow"}}"#,
        r#"{"decision":"approve"}"#,
        r#"{"systemMessage":"fine","suppressOutput":true}"#,
    ] {
        assert_eq!(before_tool(output).unwrap().verdict, HookVerdict::Go, "{output}");
    }
    let both = r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}"#;
    assert!(matches!(before_tool(both).unwrap().verdict, HookVerdict::Block { .. }));
}

#[test]
fn long_words_are_cut_and_say_so() {
    let answer = before_tool(&"word ".repeat(10_000)).unwrap();
    let context = answer.context.unwrap();
    assert!(context.len() <= 16 * 1024 && context.contains("bytes are left out"));
}

fn place() -> Place {
    Place { session: ExecutionId::generate(), cwd: "/srv/repo".into(), agent: None }
}

fn input(occurrence: &Occurrence, place: &Place) -> Value {
    serde_json::from_slice(&occurrence.input(place, &loon_kernel::Redactor::new(true))).unwrap()
}

#[test]
fn h190_a_hook_reads_the_event_its_place_and_its_own_members_twice() {
    let place = place();
    let read = input(&Occurrence::prompt("do it", false), &place);
    assert_eq!(
        read,
        json!({
            "hook_event_name": "UserPromptSubmit",
            "session_id": place.session,
            "cwd": "/srv/repo",
            "prompt": "do it",
            "steer": false,
            "data": {"prompt": "do it", "steer": false},
        })
    );
    let child = Place { agent: Some("reviewer".into()), ..place };
    assert_eq!(input(&Occurrence::session_end("close"), &child)["agent"], "reviewer");
}

#[test]
fn what_a_hook_reads_has_masks_for_secrets() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let read = input(&Occurrence::prompt(&format!("use {token}"), false), &place()).to_string();
    assert!(!read.contains(&token) && read.contains("[secret: "), "{read}");
}

fn hooks(definitions: Vec<HookDefinition>) -> (Hooks, Arc<Answering>) {
    let poster = Arc::new(Answering::default());
    let hooks = Hooks {
        definitions: watch::channel(definitions.into()).1,
        poster: Arc::clone(&poster) as Arc<dyn HookPoster>,
        ..none()
    };
    (hooks, poster)
}

fn hook(event: HookEvent, matcher: &str, url: &str) -> HookDefinition {
    HookDefinition {
        event,
        matcher: matcher.parse().unwrap(),
        action: loon_api::HookAction::Url(url.to_owned()),
        timeout: Duration::from_secs(5),
        origin: "test".into(),
    }
}

#[test]
fn hooks_are_chosen_by_event_and_tool_in_their_order() {
    let (hooks, _) = hooks(vec![
        hook(HookEvent::PreToolUse, "bash", "a"),
        hook(HookEvent::PostToolUse, "*", "b"),
        hook(HookEvent::PreToolUse, "*", "c"),
        hook(HookEvent::Stop, "bash", "d"),
    ]);
    let call = |tool: &str| {
        let id = loon_api::CallId::of(1, 0, 0);
        loon_api::ToolCallItem::waiting(id, tool, json!({}))
    };
    let urls = |occurrence: &Occurrence| -> Vec<String> {
        hooks.of(occurrence).iter().map(|hook| hook.action.to_string()).collect()
    };
    assert_eq!(urls(&Occurrence::before_call(&call("bash"))), ["a", "c"]);
    assert_eq!(urls(&Occurrence::before_call(&call("read"))), ["c"]);
    // An event about no tool has nothing that a matcher could look at.
    assert_eq!(urls(&Occurrence::stop(false, None)), ["d"]);
    assert!(hooks.has(HookEvent::Stop) && !hooks.has(HookEvent::PreCompact));
}

struct NoPrices;

impl loon_kernel::Pricing for NoPrices {
    fn price(&self, _: &str, _: &loon_api::Usage) -> Option<loon_api::Money> {
        None
    }
}

async fn gate() -> loon_kernel::Gate {
    let start = loon_kernel::StartOptions {
        exec: None,
        kind: loon_api::ExecutionKind::Session,
        cwd: "/".into(),
        parent: None,
        deadline: None,
    };
    let execution = loon_kernel::Execution::start(
        Arc::new(loon_kernel::MemoryStore::default()),
        Arc::new(loon_kernel::SystemClock),
        loon_kernel::Redactor::default(),
        start,
        tokio::sync::mpsc::channel(1).0,
    );
    let options = loon_kernel::GateOptions {
        tools: Vec::new(),
        authorities: Vec::new(),
        approver: Arc::new(crate::approval::ApprovalDesk::new(true)),
        pricing: Arc::new(NoPrices),
        retry: loon_kernel::RetryPolicy::default(),
        tool_timeout: None,
        approval_prefix: String::new(),
        tree: loon_kernel::Tree::default(),
        circuits: loon_kernel::Circuits::new(Arc::new(loon_kernel::SystemClock)),
        remote: Arc::new(loon_kernel::NoRemoteTools),
    };
    loon_kernel::Gate::new(&execution.await.unwrap(), options)
}

async fn fire(definitions: Vec<HookDefinition>, within: Option<Duration>) -> Outcome {
    let (hooks, _) = hooks(definitions);
    let event = hooks.definitions.borrow()[0].event;
    let occurrence = match event {
        HookEvent::Stop => Occurrence::stop(false, None),
        HookEvent::UserPromptSubmit => Occurrence::prompt("x", false),
        _ => Occurrence::session_end("close"),
    };
    let (gate, place, redactor) = (gate().await, place(), loon_kernel::Redactor::default());
    let place = Place { cwd: "/".into(), ..place };
    let clock = &loon_kernel::SystemClock;
    let firing = Firing { hooks: &hooks, redactor: &redactor, place: &place, clock, gate: &gate };
    let cancel = tokio_util::sync::CancellationToken::new();
    let moment = Moment { turn: None, of: "x".into(), cancel, within };
    let chosen = hooks.of(&occurrence);
    firing.fire(&moment, &occurrence, &chosen).await
}

fn command(event: HookEvent, line: &str) -> HookDefinition {
    HookDefinition {
        action: loon_api::HookAction::Command(line.to_owned()),
        ..hook(event, "*", "")
    }
}

#[tokio::test]
async fn h194_hooks_that_share_a_bound_get_what_is_left_of_it() {
    let slow = || command(HookEvent::SessionEnd, "sleep 1000");
    let outcome = fire(vec![slow(), slow()], Some(Duration::from_millis(200))).await;
    let [first, second] = outcome.failures.as_slice() else { panic!("{outcome:?}") };
    assert!(first.contains("the time limit of"), "{first}");
    assert!(second.ends_with("was not run: no time is left."), "{second}");
    assert_eq!(outcome.block, None);
}

#[tokio::test]
async fn the_first_no_ends_the_asking_where_something_is_held_up() {
    let refuses = |line| command(HookEvent::UserPromptSubmit, line);
    let outcome = fire(vec![refuses("echo one"), refuses("exit 2"), refuses("exit 1")], None).await;
    assert_eq!(outcome.context, ["one"]);
    let reason = outcome.block.unwrap();
    assert!(reason.contains("`exit 2`") && reason.ends_with("It gave no reason."), "{reason}");
    assert!(outcome.failures.is_empty());
    // Where nothing is, all are heard.
    let says = |line| command(HookEvent::SessionEnd, line);
    let outcome = fire(vec![says("exit 2"), says("echo two")], None).await;
    assert_eq!((outcome.block, outcome.context.as_slice()), (None, ["two".to_owned()].as_slice()));
    assert_eq!(outcome.failures.len(), 1);
}

#[tokio::test]
async fn a_stop_hook_that_fails_keeps_nobody() {
    let outcome = fire(vec![command(HookEvent::Stop, "echo so >&2; exit 7")], None).await;
    assert_eq!(outcome.block, None);
    assert!(outcome.failures[0].ends_with("failed: exit status 7: so."), "{outcome:?}");
}

proptest! {
    #[test]
    fn no_output_makes_the_parser_panic(output in ".{0,200}") {
        for event in HookEvent::ALL {
            let _ = read(event, &output);
            let _ = read(event, &format!("{{\"decision\":{output}"));
        }
    }

    /// Whatever stands before it and however it is spaced, a denial stays one.
    #[test]
    fn a_denial_is_never_lost(
        log in prop::collection::vec("[a-z ]{0,20}", 0..4), reason in "[^\\x00]{0,40}",
        spaces in "[ \n]{0,3}", pretty: bool,
    ) {
        let denial = json!({"hookSpecificOutput": {
            "permissionDecision": "deny", "permissionDecisionReason": reason,
        }});
        let denial = if pretty {
            serde_json::to_string_pretty(&denial).unwrap()
        } else {
            denial.to_string()
        };
        let lines = log.join("\n") + "\n";
        let answer = before_tool(&format!("{lines}{denial}{spaces}"));
        prop_assert!(
            matches!(answer, Ok(HookAnswer { verdict: HookVerdict::Block { .. }, .. })),
            "{answer:?}"
        );
    }

    /// No output with the word of a denial in it is ever read as a yes.
    #[test]
    fn a_garbled_denial_is_never_a_yes(cut in 1usize..60, junk in "[^{}\"]{1,5}") {
        let whole = r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#;
        let cut = cut.min(whole.len() - 1);
        let garbled = format!("{}{junk}{}", &whole[..cut], &whole[cut..]);
        let answer = before_tool(&garbled);
        let is_yes = matches!(&answer, Ok(answer) if answer.verdict == HookVerdict::Go);
        prop_assert!(!is_yes, "{garbled:?}: {answer:?}");
    }
}

//! What is masked, what is left alone, and that no cut of a text changes that.

use loon_api::event::{ItemCompleted, Notice, NoticeLevel};
use loon_api::{
    AgentEvent, At, CallId, Envelope, ExecutionId, Item, ItemBody, ItemId, Thinking, ToolCallItem,
    ToolCallStatus, ToolResult, VERSION,
};
use proptest::prelude::*;
use serde_json::json;

use super::Redactor;

const SECRETS: &str = include_str!("tests/secrets.txt");
const HARMLESS: &str = include_str!("tests/harmless.txt");

/// Lines of a corpus as they are meant.
fn lines(corpus: &str) -> impl Iterator<Item = String> {
    let lines = corpus.lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| line.replace('¦', "").replace('⏎', "\n"))
}

fn positives() -> Vec<(String, String)> {
    let split = |line: String| {
        let (label, text) = line.split_once('\t').expect("a label and a text");
        (label.to_owned(), text.to_owned())
    };
    lines(SECRETS).map(split).collect()
}

fn knowing(values: &[(&str, &str)]) -> Redactor {
    let redactor = Redactor::default();
    redactor.learn(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    redactor
}

fn masked(event: impl Into<AgentEvent>, redactor: &Redactor) -> AgentEvent {
    let (exec, at, event) = (ExecutionId::generate(), At::from_unix_ms(0), event.into());
    redactor.envelope(Envelope { v: VERSION, seq: None, at, exec, turn: None, event }).event
}

fn item(body: ItemBody) -> ItemCompleted {
    ItemCompleted { item: Item { id: ItemId::new("1.0.c0"), turn: 1, body } }
}

#[test]
fn the_corpus_has_the_misses_and_false_alarms_that_are_known() {
    let redactor = Redactor::default();
    let cases = positives();
    let missed: Vec<&(String, String)> = cases
        .iter()
        .filter(|(label, text)| {
            !redactor.text(text.clone()).contains(&format!("[secret: {label}]"))
        })
        .collect();
    let harmless: Vec<String> = lines(HARMLESS).collect();
    let alarms: Vec<(String, String)> = harmless
        .iter()
        .map(|text| (text.clone(), redactor.text(text.clone())))
        .filter(|(text, masked)| text != masked)
        .collect();
    assert_eq!(
        (cases.len(), missed.len(), harmless.len(), alarms.len()),
        (152, 12, 217, 6),
        "missed {missed:#?}\nalarms {alarms:#?}"
    );
}

#[test]
fn nothing_of_a_private_key_is_left() {
    let redactor = Redactor::default();
    for (label, text) in positives().iter().filter(|(label, _)| label == "private key") {
        let shown = redactor.text(text.clone());
        let rest = shown.replace(&format!("[secret: {label}]"), "");
        let longest = rest.split(|c: char| !c.is_ascii_alphanumeric()).map(str::len).max();
        assert!(longest.unwrap_or(0) < 16, "{text}\n{shown}");
    }
}

#[test]
fn masking_twice_changes_nothing() {
    let redactor = Redactor::default();
    for text in positives().into_iter().map(|(_, text)| text).chain(lines(HARMLESS)) {
        let once = redactor.text(text);
        assert_eq!(redactor.text(once.clone()), once);
    }
}

#[test]
fn known_values_are_found_in_the_forms_that_texts_give_them() {
    let value = "pa\"ss/w\\ord 42";
    let redactor = knowing(&[("LAB_KEY", value)]);
    let in_json = serde_json::to_string(value).unwrap();
    let twice = serde_json::to_string(&in_json).unwrap();
    for (text, shown) in [
        (format!("a{value}b"), "a[secret: LAB_KEY]b".to_owned()),
        (format!("{{\"k\":{in_json}}}"), "{\"k\":\"[secret: LAB_KEY]\"}".to_owned()),
        (twice, "\"\\\"[secret: LAB_KEY]\\\"\"".to_owned()),
        ("q=pa%22ss%2Fw%5Cord%2042&x".to_owned(), "q=[secret: LAB_KEY]&x".to_owned()),
        ("q=pa%22ss%2fw%5cord%2042&x".to_owned(), "q=[secret: LAB_KEY]&x".to_owned()),
        ("pa\"ss/w\\ord 4".to_owned(), "pa\"ss/w\\ord 4".to_owned()),
    ] {
        assert_eq!(redactor.text(text), shown);
    }
}

#[test]
fn the_longest_known_value_is_masked_and_short_ones_are_named() {
    let redactor = Redactor::new(false);
    let values =
        [("A", "lab-secret"), ("B", "lab-secret-2"), ("C", "x"), ("D", " "), ("E", "1234567")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(redactor.learn(values), ["C", "E"]);
    let text = "lab-secret-2 lab-secret-3 x 1234567 ghp_".to_owned() + &"a1B2c3D4e5".repeat(4);
    let shown = redactor.text(text);
    let rest = "ghp_".to_owned() + &"a1B2c3D4e5".repeat(4);
    assert_eq!(shown, format!("[secret: B] [secret: A]-3 x 1234567 {rest}"));
    redactor.look_for_shapes(true);
    assert_eq!(redactor.text(rest), "[secret: github token]");
    // What was learned once stays masked, also under a new set of values.
    redactor.learn([("F".to_owned(), "another-value".to_owned())]);
    assert_eq!(redactor.text("lab-secret".into()), "[secret: A]");
}

#[test]
fn every_string_of_an_event_is_masked_and_nothing_else_changes() {
    let key = "lab \"secret\" 42";
    let redactor = knowing(&[("LAB_KEY", key)]);
    let call = ToolCallItem {
        title: format!("echo {key}"),
        summary: key.into(),
        status: ToolCallStatus::Done,
        result: Some(ToolResult::ok(format!("{key}\nrest"))),
        ..ToolCallItem::waiting(
            CallId::of(1, 0, 0),
            "bash",
            json!({"command": format!("echo {key}"), "deep": [{key: 1.5}], "n": 3}),
        )
    };
    let expected = ToolCallItem {
        title: "echo [secret: LAB_KEY]".into(),
        summary: "[secret: LAB_KEY]".into(),
        result: Some(ToolResult::ok("[secret: LAB_KEY]\nrest")),
        arguments: json!({
            "command": "echo [secret: LAB_KEY]", "deep": [{"[secret: LAB_KEY]": 1.5}], "n": 3
        }),
        ..call.clone()
    };
    assert_eq!(
        masked(item(ItemBody::ToolCall(call)), &redactor),
        item(ItemBody::ToolCall(expected)).into()
    );
}

#[test]
fn a_known_value_that_is_a_word_of_the_vocabulary_leaves_the_event_readable() {
    let redactor = knowing(&[("LAB_KEY", "tool_call"), ("OTHER", "cancelled")]);
    let call = ToolCallItem {
        status: ToolCallStatus::Cancelled,
        title: "a tool_call was cancelled".into(),
        ..ToolCallItem::waiting(CallId::of(1, 0, 0), "bash", json!({"kind": "tool_call"}))
    };
    let expected = ToolCallItem {
        title: "a [secret: LAB_KEY] was [secret: OTHER]".into(),
        arguments: json!({"kind": "[secret: LAB_KEY]"}),
        ..call.clone()
    };
    assert_eq!(
        masked(item(ItemBody::ToolCall(call)), &redactor),
        item(ItemBody::ToolCall(expected)).into()
    );
}

#[test]
fn names_of_arguments_are_masked_also_where_a_word_of_the_vocabulary_is_known() {
    let redactor = knowing(&[("LAB_KEY", "tool_call"), ("OTHER", "lab-secret")]);
    let arguments = json!({"lab-secret": {"text": "a lab-secret"}});
    let call = ToolCallItem::waiting(CallId::of(1, 0, 0), "bash", arguments);
    let arguments = json!({"[secret: OTHER]": {"text": "a [secret: OTHER]"}});
    let expected = ToolCallItem::waiting(CallId::of(1, 0, 0), "bash", arguments);
    assert_eq!(
        masked(item(ItemBody::ToolCall(call)), &redactor),
        item(ItemBody::ToolCall(expected)).into()
    );
}

#[test]
fn what_a_provider_wants_back_is_left_alone_unless_it_is_text() {
    let redactor = Redactor::default();
    let token = positives()[0].1.clone();
    let encoded = format!("{}-sk-{}", "a".repeat(200), "a1B2c3D4e5".repeat(4));
    let opaque = json!({"encrypted": encoded, "summary": format!("It says {token}.")});
    let thinking = |opaque| Thinking { text: String::new(), model: "lab/m".into(), opaque };
    let AgentEvent::ItemCompleted(done) =
        masked(item(ItemBody::Thinking(thinking(Some(opaque)))), &redactor)
    else {
        panic!("another event")
    };
    let ItemBody::Thinking(Thinking { opaque: Some(opaque), .. }) = done.item.body else {
        panic!("another item")
    };
    assert_eq!(opaque["encrypted"], encoded);
    assert_eq!(opaque["summary"], "It says AWS_ACCESS_KEY_ID=[secret: aws access key id].");
}

#[test]
fn a_long_argument_is_masked_whatever_its_name() {
    let redactor = Redactor::default();
    redactor.learn([("LAB_KEY".to_owned(), "zz9Plural4Alpha".to_owned())]);
    let long = format!("{}zz9Plural4Alpha", "A".repeat(300));
    for arguments in [json!({"opaque": long}), json!({"x": {"opaque": {"y": long}}})] {
        let call = ToolCallItem::waiting(CallId::of(1, 0, 0), "bash", arguments);
        let told = format!("{:?}", masked(item(ItemBody::ToolCall(call)), &redactor));
        assert!(told.contains("[secret: LAB_KEY]") && !told.contains("zz9Plural4Alpha"), "{told}");
    }
}

#[test]
fn masks_are_told_from_texts_that_only_look_like_one() {
    let redactor = knowing(&[("LAB_KEY", "lab-secret")]);
    assert_eq!(redactor.masks_in("a = [secret: LAB_KEY]"), ["[secret: LAB_KEY]"]);
    assert_eq!(redactor.masks_in("[secret: x] [secret: github token]"), ["[secret: github token]"]);
    assert!(redactor.masks_in("[secret: OTHER_KEY] [secret: ...] [secret: LAB_KEY").is_empty());
}

#[test]
fn a_mask_stands_for_a_secret_once_it_took_the_place_of_one() {
    let redactor = knowing(&[("LAB_KEY", "lab-secret")]);
    let mask = "[secret: LAB_KEY]";
    assert_eq!(redactor.text(format!("see {mask}")), format!("see {mask}"));
    assert!(!redactor.has_placed(mask), "a quotation is none");
    assert_eq!(redactor.text("a lab-secret".into()), format!("a {mask}"));
    assert!(redactor.has_placed(mask) && !redactor.has_placed("[secret: github token]"));
    // What is learned later changes nothing about it.
    redactor.learn([("OTHER".to_owned(), "another-secret".to_owned())]);
    assert!(redactor.has_placed(mask));
}

#[test]
fn text_without_a_beginning_of_a_secret_is_never_held_back() {
    let mut stream = Redactor::default().stream();
    for piece in ["This is ", "the words", " of a model", ", as they come", "."] {
        assert_eq!(stream.push(piece.to_owned()), piece);
    }
    assert_eq!(stream.push("key: gh".to_owned()), "key: ");
    assert_eq!(stream.push("ost".to_owned()), "ghost");
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_private_key_is_masked_at_once_and_swallowed_as_it_comes() {
    let mut stream = Redactor::default().stream();
    assert_eq!(stream.push("-----BEGIN PRIVATE KEY-----\n".to_owned()), "");
    assert_eq!(
        stream.push("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKc".to_owned()),
        "[secret: private key]"
    );
    assert_eq!(stream.push("wggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIV".to_owned()), "");
    assert_eq!(stream.push("ATE KEY-----\ndone".to_owned()), "\ndone");
}

#[test]
fn notices_are_masked_too() {
    let redactor = knowing(&[("LAB_KEY", "lab-secret")]);
    let notice = |words: &str| Notice {
        level: NoticeLevel::Warning,
        message: words.to_owned(),
        hints: vec![words.to_owned()],
    };
    assert_eq!(
        masked(notice("no lab-secret here"), &redactor),
        notice("no [secret: LAB_KEY] here").into()
    );
}

/// Texts that are full of secrets, beginnings of secrets and other things.
fn text() -> impl Strategy<Value = String> {
    let pieces: Vec<String> =
        positives().into_iter().map(|(_, text)| text).chain(lines(HARMLESS)).collect();
    let piece = prop_oneof![
        4 => prop::sample::select(pieces.clone()),
        2 => (prop::sample::select(pieces), 0usize..40).prop_map(|(text, end)| {
            text[..text.floor_char_boundary(end)].to_owned()
        }),
        2 => prop::sample::select(vec!["lab-secret", "lab-secr", " ", "\n", "\\n", "\"", "-----END", "é", "=", "x"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_cut_of_a_text_changes_how_it_is_masked(text in text(), cuts in prop::collection::vec(0usize..2000, 0..24)) {
        let redactor = knowing(&[("LAB_KEY", "lab-secret")]);
        let whole = redactor.text(text.clone());
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
        cuts.sort_unstable();
        let mut stream = redactor.stream();
        let (mut shown, mut done) = (String::new(), 0);
        for cut in cuts {
            shown += &stream.push(text[done..cut].to_owned());
            done = cut;
        }
        shown += &stream.push(text[done..].to_owned());
        shown += &stream.finish();
        prop_assert_eq!(&shown, &whole);
        prop_assert!(!shown.contains("lab-secret"));
    }

    #[test]
    fn an_event_holds_what_its_texts_hold(text in text()) {
        let redactor = knowing(&[("LAB_KEY", "lab-secret")]);
        let words = |text: String| item(ItemBody::UserMessage { text, steer: false });
        prop_assert_eq!(masked(words(text.clone()), &redactor), words(redactor.text(text)).into());
    }
}

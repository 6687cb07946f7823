//! Streams that were written once stay readable. `golden.jsonl` only ever grows: a line that no
//! longer reads back as itself is a broken promise to every program that parses the stream.

use std::collections::BTreeSet;

use loon_api::{AgentEvent, Envelope};

const GOLDEN: &str = include_str!("golden.jsonl");

#[test]
fn every_line_reads_back_as_itself() {
    for (index, line) in GOLDEN.lines().enumerate() {
        let envelope =
            Envelope::parse(line).unwrap_or_else(|error| panic!("line {}: {error}", index + 1));
        assert_eq!(serde_json::to_string(&envelope).unwrap(), line, "line {}", index + 1);
    }
}

#[test]
fn every_event_occurs() {
    let found: BTreeSet<String> =
        GOLDEN.lines().map(|line| Envelope::parse(line).unwrap().event.kind().to_owned()).collect();
    let known: BTreeSet<String> = AgentEvent::KINDS.iter().map(|kind| (*kind).to_owned()).collect();
    assert_eq!(found, known);
}

#[test]
fn only_the_last_event_has_an_outcome() {
    for line in GOLDEN.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value.get("outcome").is_some(), value["type"] == "stream.finished", "{line}");
    }
}

#[test]
fn what_a_newer_version_adds_is_passed_over() {
    let line = GOLDEN.lines().next().unwrap();
    let more = line.replacen("\"loon\":", "\"colour\":{\"deep\":[1]},\"loon\":", 1);
    assert_eq!(Envelope::parse(&more).unwrap(), Envelope::parse(line).unwrap());
    let other = line.replacen("execution.started", "execution.dreamt", 1);
    let event = Envelope::parse(&other).unwrap().event;
    assert_eq!(event, AgentEvent::Unknown { kind: "execution.dreamt".into() });
}

//! Commands the model runs: their input, their children, their output, their end.

use loon_testkit::{Finished, Input, Loon, ModelServer, Wire, text};
use serde_json::{Value, json};

use crate::headless::is_alive;
use crate::scripts::{ask, bash, chat_setup};

/// Runs these calls one after another in bypass mode; gives what the model read of each.
fn run(calls: impl IntoIterator<Item = (&'static str, Value)>) -> (Vec<String>, Finished) {
    let server = ModelServer::by_step(calls.into_iter().map(ask).chain([text("done")]));
    let (home, repo) = chat_setup(&server);
    let finished =
        Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).input(Input::Open).run();
    assert_eq!(finished.terminal()["outcome"], "completed");
    let answers = server.last_request().tool_answers();
    (answers.into_iter().map(|answer| answer.text).collect(), finished)
}

#[test]
fn commands_find_the_end_on_standard_input() {
    let lines = ["cat; echo rc=$?", "read q; echo rc=$?", "head -c 1 | wc -c; echo rc=$?"];
    let (told, _) = run(lines.map(bash));
    assert!(told[0].contains("rc=0"), "{told:?}");
    assert!(told[1].contains("rc=1"), "{told:?}");
    assert!(told[2].contains("rc=0"), "{told:?}");
}

#[test]
fn a_command_ends_with_its_shell_and_leaves_no_child() {
    let (told, finished) = run([
        bash("( while :; do echo tick; sleep 1; done ) & echo pid=$!; echo done"),
        bash("nohup sleep 300 & echo pid=$!; echo started"),
    ]);
    assert!(told[0].contains("done") && told[1].contains("started"), "{told:?}");
    for answer in &told {
        let pid = answer.split("pid=").nth(1).and_then(|rest| rest.split_whitespace().next());
        assert!(!is_alive(pid.expect("a process id")), "{answer}");
    }
    let exits: Vec<Value> = finished
        .items("tool_call")
        .into_iter()
        .filter(|item| item["status"] == "done")
        .map(|item| item["exit_code"].clone())
        .collect();
    assert_eq!(exits, [json!(0), json!(0)]);
}

#[test]
fn a_flood_of_output_is_bounded_and_says_what_is_missing() {
    let line = "yes 0123456789 | head -c 60000000; echo; echo THE-END";
    let (told, finished) = run([bash(line)]);
    let answer = &told[0];
    assert!(answer.len() < 200_000, "{} bytes", answer.len());
    assert!(answer.contains("0123456789\n0123456789"), "no head");
    assert!(answer.contains("THE-END"), "no tail");
    assert!(answer.contains("omitted"), "no word on what is missing");
    assert!(finished.stdout.len() < 4_000_000, "{} bytes of events", finished.stdout.len());
}

#[test]
fn any_bytes_make_a_valid_request() {
    let line = r"printf 'a\0b\377c\355\240\200d\033[31mred\033[0m\rEND\n'";
    for wire in Wire::ALL {
        let server = ModelServer::by_step([ask(bash(line)), ask(bash(line)), text("done")]);
        let (home, repo) =
            (loon_testkit::Home::with_server(&server, wire), crate::scripts::small_repo());
        let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
        assert_eq!(finished.terminal()["outcome"], "completed", "{wire:?}");
        let answer = server.last_request().last_answer();
        let mut rest = answer.as_str();
        for piece in ["a", "b", "c", "d", "red", "END"] {
            let at = rest.find(piece).unwrap_or_else(|| panic!("{piece} is missing in {answer:?}"));
            rest = &rest[at + piece.len()..];
        }
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let slow = ("bash", json!({"command": "echo begun; sleep 300", "timeout_ms": 700}));
    let (told, _) = run([slow]);
    assert!(told[0].contains("begun"), "{told:?}");
    assert!(told[0].contains("timed out") || told[0].contains("time"), "{told:?}");
}

#[test]
fn a_failing_command_shows_its_status_and_both_outputs() {
    let (told, finished) = run([bash("echo out; echo err >&2; exit 7")]);
    assert!(
        told[0].contains("out") && told[0].contains("err") && told[0].contains('7'),
        "{told:?}"
    );
    let item = finished.items("tool_call").pop().expect("the call");
    assert_eq!(item["exit_code"], 7);
}

#[test]
fn a_lost_folder_does_not_end_the_session() {
    let (told, _) = run([
        bash("mkdir -p d/e && cd d/e && rm -rf ../../d; pwd; true"),
        bash("pwd; echo alive"),
        crate::scripts::read("a.txt"),
    ]);
    assert!(told[1].contains("alive"), "{told:?}");
    assert!(told[2].contains("three"), "{told:?}");
}

#[test]
fn live_output_is_shown_while_the_command_runs() {
    let (_, finished) = run([bash("echo early; cat")]);
    let shown: String = finished
        .of_type("item.delta")
        .iter()
        .filter(|event| event["of"] == "output")
        .filter_map(|event| event["text"].as_str().map(str::to_owned))
        .collect();
    assert!(shown.contains("early"), "{shown:?}");
}

//! Files change byte for byte as asked, together or not at all.

use loon_testkit::{Finished, Loon, ModelServer, Repo, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, edit, patch, read, write};

struct Case {
    repo: Repo,
    told: Vec<String>,
    finished: Finished,
}

fn run(files: &[(&str, &[u8])], calls: impl IntoIterator<Item = (&'static str, Value)>) -> Case {
    let server = ModelServer::by_step(calls.into_iter().map(ask).chain([text("done")]));
    let (home, repo) = chat_setup(&server);
    for (path, bytes) in files {
        repo.write(path, bytes);
    }
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
    assert_eq!(finished.terminal()["outcome"], "completed");
    let told = server.last_request().tool_answers().into_iter().map(|answer| answer.text).collect();
    Case { repo, told, finished }
}

#[test]
fn line_ends_marks_and_missing_last_line_ends_survive() {
    let case = run(
        &[
            ("crlf.txt", b"one\r\ntwo\r\nthree\r\n"),
            ("bom.txt", b"\xef\xbb\xbfone\ntwo"),
            ("mixed.txt", b"one\r\ntwo\nthree\r\n"),
        ],
        [
            read("crlf.txt"),
            read("bom.txt"),
            read("mixed.txt"),
            edit("crlf.txt", "one\ntwo", "eins\nzwei"),
            edit("bom.txt", "two", "zwei"),
            edit("mixed.txt", "three", "drei"),
        ],
    );
    assert_eq!(case.repo.bytes("crlf.txt"), b"eins\r\nzwei\r\nthree\r\n", "{:?}", case.told);
    assert_eq!(case.repo.bytes("bom.txt"), b"\xef\xbb\xbfone\nzwei");
    assert_eq!(case.repo.bytes("mixed.txt"), b"one\r\ntwo\ndrei\r\n");
}

#[test]
fn foreign_bytes_beside_an_edit_survive() {
    let case = run(
        &[("latin.txt", b"caf\xe9\nname\nend\n")],
        [read("latin.txt"), edit("latin.txt", "name", "Name")],
    );
    assert_eq!(case.repo.bytes("latin.txt"), b"caf\xe9\nName\nend\n", "{:?}", case.told);
}

#[test]
fn an_edit_of_a_file_that_was_not_read_or_has_changed_is_refused() {
    let case = run(
        &[],
        [
            edit("a.txt", "two", "zwei"),
            read("b.txt"),
            bash("echo gamma >> b.txt"),
            edit("b.txt", "beta", "BETA"),
        ],
    );
    assert_eq!(case.repo.read("a.txt"), "one\ntwo\nthree\n", "{:?}", case.told);
    assert_eq!(case.repo.read("b.txt"), "alpha\nbeta\ngamma\n");
    assert!(case.told[0].contains("read"), "{:?}", case.told);
    assert!(case.told[3].contains("changed"), "{:?}", case.told);
}

#[test]
fn a_text_that_is_not_there_or_there_twice_is_named_and_changes_nothing() {
    let case = run(
        &[
            ("twice.txt", b"x = 1\ny\nx = 1\n"),
            ("sum.rs", b"let count = 4;\nlet total = count + 1;\n"),
        ],
        [
            read("twice.txt"),
            edit("twice.txt", "x = 1", "x = 2"),
            read("sum.rs"),
            edit("sum.rs", "let total = count + 2;", "let total = count;"),
        ],
    );
    assert_eq!(case.repo.read("twice.txt"), "x = 1\ny\nx = 1\n");
    assert_eq!(case.repo.read("sum.rs"), "let count = 4;\nlet total = count + 1;\n");
    assert!(case.told[1].contains('2') || case.told[1].contains("twice"), "{:?}", case.told);
    assert!(
        case.told[3].contains("let total = count + 1;"),
        "the nearest text is shown: {:?}",
        case.told
    );
}

#[test]
fn a_patch_changes_all_its_files_or_none() {
    let good = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+zwei\n three\n\
                *** Add File: new/c.txt\n+gamma\n*** Delete File: b.txt\n*** End Patch\n";
    let case = run(&[], [read("a.txt"), read("b.txt"), patch(good)]);
    assert_eq!(case.repo.read("a.txt"), "one\nzwei\nthree\n", "{:?}", case.told);
    assert_eq!(case.repo.read("new/c.txt"), "gamma\n");
    assert!(!case.repo.has("b.txt"));
    let items = case.finished.items("tool_call");
    let changes =
        items.last().and_then(|item| item["changes"].as_array().cloned()).expect("changes");
    let paths: Vec<&Value> = changes.iter().map(|change| &change["path"]).collect();
    assert_eq!(paths, ["a.txt", "new/c.txt", "b.txt"]);

    let bad = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+zwei\n three\n\
               *** Update File: b.txt\n@@\n-not there\n+x\n*** End Patch\n";
    let case = run(&[], [read("a.txt"), read("b.txt"), patch(bad)]);
    assert_eq!(case.repo.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(case.repo.read("b.txt"), "alpha\nbeta\n");
    assert!(case.told[2].contains("b.txt"), "{:?}", case.told);
}

#[test]
fn modes_and_links_survive() {
    let case = run(
        &[("run.sh", b"#!/bin/sh\necho one\n")],
        [
            bash("chmod 755 run.sh; ln -s run.sh link.sh"),
            read("link.sh"),
            edit("link.sh", "one", "two"),
            bash("stat -c %a run.sh; test -L link.sh && echo still-a-link; ./run.sh"),
        ],
    );
    assert!(
        case.told[3].contains("755") && case.told[3].contains("still-a-link"),
        "{:?}",
        case.told
    );
    assert!(case.told[3].contains("two"), "{:?}", case.told);
}

#[test]
fn a_changed_file_is_shown_as_a_diff_with_both_hashes() {
    let case = run(&[], [read("a.txt"), edit("a.txt", "two", "zwei"), write("n.txt", "new\n")]);
    let items: Vec<Value> = case
        .finished
        .items("tool_call")
        .into_iter()
        .filter(|item| item["status"] == "done" && item["tool"] != "read")
        .collect();
    let change = &items[0]["changes"][0];
    assert_eq!(
        (&change["path"], &change["added"], &change["removed"]),
        (&json!("a.txt"), &json!(1), &json!(1))
    );
    let diff = change["diff"].as_str().expect("a diff");
    assert!(diff.contains("-two\n+zwei"), "{diff}");
    assert_eq!(change["before"].as_str().map(str::len), Some(64));
    assert_eq!(items[1]["changes"][0].get("before"), None);
}

#[test]
fn what_was_read_before_a_resume_needs_no_second_look() {
    let server = ModelServer::queue([
        ask(read("a.txt")),
        ask(read("b.txt")),
        text("read both"),
        ask(edit("a.txt", "two", "zwei")),
        ask(edit("b.txt", "beta", "gamma")),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    let first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "look"]).run();
    assert_eq!(first.code, Some(0));
    let done = first.items("tool_call").into_iter().find(|item| item["status"] == "done");
    let read = &done.expect("a read")["reads"][0];
    assert_eq!(read["sha256"].as_str().map(str::len), Some(64));
    // One of them is not any more as it was seen.
    repo.write("b.txt", "alpha\nbeta!\n");
    let again =
        Loon::exec(&home, repo.path(), ["--continue", "--mode", "bypass", "now edit"]).run();
    assert_eq!(again.code, Some(0));
    assert_eq!(repo.read("a.txt"), "one\nzwei\nthree\n");
    assert_eq!(repo.read("b.txt"), "alpha\nbeta!\n");
    let told = again.items("tool_call").pop().expect("a call");
    let told = told["result"]["text"].as_str().expect("a result").to_owned();
    assert!(told.contains("changed"), "{told}");
}

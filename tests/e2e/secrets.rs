//! Secrets: masked wherever anything is recorded, shown or sent on, and real where a tool works.

use std::path::Path;

use loon_testkit::{Finished, Home, Loon, ModelServer, Repo, status, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, edit, read, write};

/// The key of the provider `lab` in these homes.
const KEY: &str = "lab-secret";

/// A token that is told by its form.
fn token() -> String {
    ["gh", "p_"].concat() + &"a1B2c3D4e5F6".repeat(3)
}

/// Files below a folder that hold a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

fn assert_hidden(home: &Home, finished: &Finished, secrets: &[&str]) {
    for secret in secrets {
        assert_eq!(holding(&home.data_dir(), secret), Vec::<String>::new(), "{secret}");
        assert!(!finished.text().contains(secret), "{}", finished.text());
        assert!(!finished.stderr.contains(secret), "{}", finished.stderr);
    }
}

fn run(home: &Home, repo: &Repo, more: &[&str]) -> Finished {
    let arguments = ["--mode", "bypass"].iter().chain(more).copied();
    Loon::exec(home, repo.path(), arguments).run()
}

#[test]
fn what_tools_print_is_masked_for_everybody() {
    let token = token();
    let server = ModelServer::by_step([
        ask(bash("printf 'LAB=lab-se'; printf 'cret\\n'; cat token.txt; env | grep DEPLOY")),
        ask(read("token.txt")),
        text(format!("The token is {token}, the key {KEY}.")),
    ]);
    let (home, repo) = chat_setup(&server);
    repo.write("token.txt", format!("{token}\n"));
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", &format!("use {KEY}")])
        .env("DEPLOY_TOKEN", "deploy-value-1")
        .run();
    assert_eq!(finished.terminal()["outcome"], "completed");
    assert_eq!(
        finished.terminal()["message"],
        "The token is [secret: github token], the key [secret: LAB_KEY]."
    );
    let request = server.last_request();
    assert_eq!(request.user_texts(), ["use [secret: LAB_KEY]"]);
    let told: Vec<String> = request.tool_answers().into_iter().map(|answer| answer.text).collect();
    assert!(
        told[0].starts_with(
            "LAB=[secret: LAB_KEY]\n[secret: github token]\nDEPLOY_TOKEN=[secret: DEPLOY_TOKEN]\n"
        ),
        "{told:?}"
    );
    assert!(told[1].contains("[secret: github token]"), "{told:?}");
    assert_hidden(&home, &finished, &[KEY, &token, "deploy-value-1"]);
    for request in server.requests() {
        let sent = request.body.to_string();
        assert!(!sent.contains(&token) && !sent.contains(KEY), "{sent}");
    }
}

#[test]
fn text_output_is_masked_too() {
    let server = ModelServer::by_step([ask(bash("echo lab-secret")), text("It is lab-secret.")]);
    let (home, repo) = chat_setup(&server);
    let finished =
        Loon::new(&home, repo.path()).args(["exec", "--mode", "bypass", "show lab-secret"]).run();
    assert!(finished.text().contains("It is [secret: LAB_KEY]."), "{}", finished.text());
    assert_hidden(&home, &finished, &[KEY]);
}

#[test]
fn an_error_that_repeats_the_key_is_masked() {
    let server = ModelServer::answering(|_| {
        status(401).message("Incorrect API key provided: lab-secret (Bearer lab-secret).")
    });
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["go"]);
    assert_eq!(finished.code, Some(1));
    assert_hidden(&home, &finished, &[KEY]);
}

#[test]
fn large_payloads_are_masked_before_they_become_blobs() {
    let server = ModelServer::by_step([
        ask(write("big.txt", &format!("{}\n{KEY}\n", "x".repeat(100_000)))),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["go"]);
    assert_eq!(finished.terminal()["outcome"], "completed");
    assert!(repo.read("big.txt").ends_with(&format!("\n{KEY}\n")));
    assert_hidden(&home, &finished, &[KEY]);
}

#[test]
fn tools_get_real_arguments_and_the_file_goes_on_being_editable_and_undoable() {
    let token = token();
    let server = ModelServer::by_step([
        ask(write("conf.ini", &format!("token = {token}\nmode = a\n"))),
        ask(read("conf.ini")),
        ask(edit("conf.ini", "mode = a", "mode = b")),
        ask(("undo", json!({}))),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["go"]);
    assert_eq!(repo.read("conf.ini"), format!("token = {token}\nmode = a\n"));
    assert!(!finished.text().contains(&token), "{}", finished.text());
    let journal = std::fs::read_to_string(home.journal(&finished.exec())).expect("a journal");
    assert!(journal.contains("[secret: credential]") && !journal.contains(&token), "{journal}");
}

#[test]
fn a_mask_is_not_written_into_a_file() {
    let server = ModelServer::by_step([
        ask(read("a.txt")),
        ask(write("a.txt", "key = [secret: LAB_KEY]\n")),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    repo.write("a.txt", "key = lab-secret\n");
    let finished = run(&home, &repo, &["go"]);
    let told = server.last_request().tool_answers().pop().map(|answer| answer.text);
    assert!(told.as_deref().is_some_and(|told| told.contains("kept from you")), "{told:?}");
    assert_eq!(repo.read("a.txt"), "key = lab-secret\n");
    assert_eq!(finished.terminal()["outcome"], "completed");
}

#[test]
fn a_document_that_speaks_of_masks_is_written_and_edited() {
    let server = ModelServer::by_step([
        ask(write("doc.md", "A key shows as [secret: LAB_KEY].\n")),
        ask(read("doc.md")),
        ask(edit("doc.md", "as [secret: LAB_KEY]", "as [secret: LAB_KEY] in logs")),
        text("done"),
        ask(edit("doc.md", "[secret: LAB_KEY] in logs", "[secret: LAB_KEY] anywhere")),
        text("done"),
    ]);
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["go"]);
    assert_eq!(finished.terminal()["outcome"], "completed");
    assert_eq!(repo.read("doc.md"), "A key shows as [secret: LAB_KEY] in logs.\n");
    // Nobody knows any more whether the mask that was read stood for a secret.
    run(&home, &repo, &["--resume", &finished.exec(), "on"]);
    assert_eq!(repo.read("doc.md"), "A key shows as [secret: LAB_KEY] in logs.\n");
}

#[test]
fn what_was_kept_until_a_change_is_recorded_is_gone_then() {
    let server = ModelServer::by_step([ask(write("a-name-to-keep-out.txt", "x\n")), text("done")]);
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["go"]);
    assert_eq!(repo.read("a-name-to-keep-out.txt"), "x\n");
    let folder = home.journal(&finished.exec()).parent().expect("a folder").to_owned();
    let holding = holding(&folder, "a-name-to-keep-out");
    assert!(holding.iter().all(|path| path.ends_with("journal.jsonl")), "{holding:?}");
}

#[test]
fn shapes_can_be_switched_off_and_known_values_cannot() {
    let token = token();
    let server = ModelServer::answering({
        let token = token.clone();
        move |_| text(format!("{token} {KEY}"))
    });
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["--set", "secrets.shapes=false", "go"]);
    assert_eq!(finished.terminal()["message"], format!("{token} [secret: LAB_KEY]"));
}

#[test]
fn deltas_add_up_to_the_masked_text() {
    let token = token();
    let words = format!("See {token} and {KEY}; the rest is plain.");
    let (first, rest) = words.split_at(9);
    let (second, third) = rest.split_at(30);
    let server = ModelServer::queue([text(first).text(second).text(third)]);
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, &["go"]);
    let deltas: String = finished
        .of_type("item.delta")
        .iter()
        .filter_map(|delta| delta["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(deltas, "See [secret: github token] and [secret: LAB_KEY]; the rest is plain.");
}

#[test]
fn a_key_too_short_to_mask_is_named_at_the_start() {
    let server = ModelServer::answering(|_| text("an x"));
    let (home, repo) = chat_setup(&server);
    let finished = Loon::exec(&home, repo.path(), ["go"]).env("CONTEXT7_API_KEY", "x").run();
    let notices = finished.of_type("notice");
    let told = |notice: &&Value| {
        notice["message"].as_str().is_some_and(|words| {
            words.contains("CONTEXT7_API_KEY") && words.contains("fewer than 8 characters")
        })
    };
    assert_eq!(notices.iter().filter(told).count(), 1, "{notices:?}");
    assert_eq!(finished.terminal()["message"], "an x");
}

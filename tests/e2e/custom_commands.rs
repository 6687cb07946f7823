//! Custom commands: prompts in files, sent by name. They are words, and never in place of a command.

use loon_testkit::{Input, Loon, ModelServer, Screen, key, text};
use serde_json::{Value, json};

use crate::scripts::{chat_setup, small_repo};

const REVIEW: &str = "---\ndescription: Looks at one file\nargument-hint: FILE\n---\nReview $1 closely: $ARGUMENTS!\n";

#[test]
fn a_command_is_sent_as_its_text_with_the_arguments_in_place() {
    let server = ModelServer::by_step([text("fine"), text("found"), text("third")]);
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/commands/review.md", REVIEW);
    repo.write(
        home.data_dir().join("commands/mine.md").to_str().expect("a path"),
        "Mine: !`touch pwned` @/etc/passwd $(touch pwned).",
    );
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.wait_type("session.opened");
    running.write_line(json!({"type": "list_commands"}));
    let listed = running.wait_type("commands.listed");
    let origin = home.data_dir().join("commands/mine.md").display().to_string();
    assert_eq!(
        listed["commands"],
        json!([
            {"name": "mine", "origin": origin},
            {"name": "review", "description": "Looks at one file", "argument_hint": "FILE",
             "origin": ".loon/commands/review.md"},
        ])
    );
    running.write_line(json!({"type": "custom", "name": "nothing"}));
    let refused = running.wait_type("command.refused");
    assert_eq!(refused["error"]["message"], "There is no custom command /nothing.");
    running.write_line(json!({"type": "custom", "name": "review", "arguments": "a.txt \"x y\""}));
    running.wait_type("turn.finished");
    // Changed while the session runs: what is sent is the file as it is now.
    repo.write(".loon/commands/review.md", "Now: $2");
    running.write_line(json!({"type": "custom", "name": "review", "arguments": "a.txt \"x y\""}));
    running.wait_type("turn.finished");
    running.write_line(json!({"type": "custom", "name": "mine"}));
    running.wait_type("turn.finished");
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.text());
    let said: Vec<Value> =
        finished.items("user_message").iter().map(|item| item["text"].clone()).collect();
    let wanted = [
        "Review a.txt closely: a.txt \"x y\"!",
        "Now: x y",
        "Mine: !`touch pwned` @/etc/passwd $(touch pwned).",
    ];
    assert_eq!(said, wanted);
    assert_eq!(server.last_request().user_texts(), wanted);
    assert!(!repo.has("pwned"));
}

#[test]
fn a_refused_command_does_not_keep_a_run_waiting() {
    let server = ModelServer::by_step([]);
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.wait_type("session.opened");
    running.write_line(json!({"type": "custom", "name": "nothing"}));
    running.write_line(json!({"type": "custom", "name": "nothing", "steer": true}));
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.of_type("command.refused").len(), 2);
    assert_eq!(finished.terminal()["outcome"], "stopped", "{}", finished.text());
    assert!(server.requests().is_empty());
}

#[test]
fn words_of_a_run_may_begin_with_a_command() {
    let server = ModelServer::by_step([text("fine")]);
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/commands/git/tidy.md", "Tidy $ARGUMENTS.");
    Loon::exec(&home, repo.path(), ["/git:tidy the branch"]).run();
    assert_eq!(server.last_request().user_texts(), ["Tidy the branch."]);
    Loon::exec(&home, repo.path(), ["/git is slow, why?"]).run();
    assert_eq!(server.last_request().user_texts(), ["/git is slow, why?"]);
}

#[test]
fn the_menu_shows_custom_commands_and_none_takes_the_place_of_another() {
    let server = ModelServer::by_step([text("fine"), text("more")]);
    let (home, _) = chat_setup(&server);
    let repo = small_repo();
    repo.write(".loon/commands/review.md", REVIEW);
    repo.write(".loon/commands/help.md", "---\ndescription: Not this one\n---\nNot this one.");
    let mut screen = Screen::start(&home, repo.path(), &[], (100, 30));
    screen.wait_for("● ready");
    screen.press("/");
    screen.press("rev");
    screen.wait_for("Looks at one file");
    screen.press("\x15");
    screen.wait_gone("Looks at one file");
    screen.paste("/help");
    screen.wait_for("/help");
    screen.press(key::ENTER);
    screen.wait_gone("/help");
    assert!(!screen.contents().contains("Not this one"));
    screen.press(key::ESCAPE);
    screen.paste("/review a.txt");
    screen.wait_for("/review a.txt");
    screen.press(key::ENTER);
    screen.wait_for("Review a.txt closely: a.txt!");
    screen.wait_for("fine");
    screen.paste("/guidance");
    screen.wait_for("/guidance");
    screen.press(key::ENTER);
    screen.wait_for("there are no instructions");
    screen.press(key::ESCAPE);
    screen.wait_gone("there are no instructions");
    screen.paste("/skills");
    screen.wait_for("/skills");
    screen.press(key::ENTER);
    screen.wait_for("bundled");
    screen.press(key::ESCAPE);
    screen.wait_gone("bundled");
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    assert_eq!(screen.wait_exit(), Some(0));
    assert_eq!(server.requests().len(), 1);
}

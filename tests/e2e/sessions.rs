//! `loon sessions ...`: a life of sessions from list to trash, and two processes on one of them.

use std::fs;

use loon_testkit::{Finished, Home, Latch, Loon, ModelServer, Repo, Screen, Wire, key, text};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, edit, read, small_repo};

fn sessions(home: &Home, repo: &Repo, arguments: &[&str]) -> Finished {
    Loon::new(home, repo.path()).args(["sessions"]).args(arguments.iter().copied()).run()
}

/// The lines of JSON that a subcommand prints.
fn objects(home: &Home, repo: &Repo, arguments: &[&str]) -> Vec<Value> {
    let finished = sessions(home, repo, arguments);
    let told = finished.text() + &finished.stderr;
    let lines = finished.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap_or_else(|_| panic!("{told}"))).collect()
}

fn listed(home: &Home, repo: &Repo, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["list", "--json"], arguments].concat();
    let text = |value: Value| value["exec"].as_str().expect("an id").to_owned();
    objects(home, repo, &arguments).into_iter().map(text).collect()
}

/// A server whose tool results and answers say what the prompt says.
fn echo() -> ModelServer {
    ModelServer::answering(|request| {
        if request.answers() == 0 {
            ask(bash("echo the result speaks of bananas; cat a.txt"))
        } else {
            text("The answer speaks of cherries.")
        }
    })
}

fn run(home: &Home, repo: &Repo, prompt: &str) -> String {
    let finished = Loon::exec(home, repo.path(), ["--mode", "bypass", prompt]).run();
    assert_eq!(finished.terminal()["outcome"], "completed", "{}", finished.stderr);
    finished.exec()
}

fn verifies(home: &Home, repo: &Repo, exec: &str) -> Value {
    let found = objects(home, repo, &["verify", exec, "--json"]).remove(0);
    assert_eq!((&found["holds"], &found["damage"]), (&json!(true), &Value::Null), "{found}");
    found
}

#[test]
fn what_was_said_is_listed_and_found_again() {
    let server = echo();
    let (home, repo) = chat_setup(&server);
    let (one, two) = (run(&home, &repo, "count the pears"), run(&home, &repo, "and the quinces"));
    assert_eq!(listed(&home, &repo, &[]), [two.as_str(), one.as_str()]);
    assert_eq!(listed(&home, &repo, &["--limit", "1"]), [two.as_str()]);
    let first = &objects(&home, &repo, &["list", "--json"])[1];
    assert_eq!((&first["title"], &first["turns"]), (&json!("count the pears"), &json!(1)));
    let plain = sessions(&home, &repo, &["list"]).text();
    assert!(plain.lines().nth(1).is_some_and(|line| line.contains("open")), "{plain}");

    let hits = objects(&home, &repo, &["search", "bananas", "--json"]);
    assert_eq!(hits.len(), 2);
    let hit = hits.iter().find(|hit| hit["exec"] == *one).expect("the first session");
    assert_eq!(
        (&hit["item"], &hit["turn"], &hit["kind"]),
        (&json!("1.0.c0"), &json!(1), &json!("tool"))
    );
    assert!(hit["snippet"].as_str().is_some_and(|words| words.contains("bananas")), "{hit}");
    assert_eq!(objects(&home, &repo, &["search", "quinc", "--json"])[0]["exec"], *two);
    assert_eq!(objects(&home, &repo, &["search", "cherries", "--limit", "1", "--json"]).len(), 1);
    let nothing = sessions(&home, &repo, &["search", "no such words"]);
    assert_eq!(
        (nothing.code, nothing.text().as_str()),
        (Some(1), "Nothing matches no such words.\n")
    );
    let other = Repo::new(&[]);
    assert_eq!(sessions(&home, &other, &["search", "bananas", "--cwd"]).code, Some(1));
    assert_eq!(listed(&home, &other, &[]), [""; 0]);
    assert_eq!(listed(&home, &other, &["--all"]).len(), 2);

    // Ids by their beginning, as long as only one has it.
    let same = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!(sessions(&home, &repo, &["show", &one[..=same]]).code, Some(0));
    let many = sessions(&home, &repo, &["show", &one[..4]]);
    assert_eq!(many.code, Some(2));
    assert!(many.stderr.contains("More than one session begins with"), "{}", many.stderr);
    let none = sessions(&home, &repo, &["archive", "ffff"]);
    assert!(none.stderr.contains("There is no session ffff."), "{}", none.stderr);
}

#[test]
fn an_index_that_is_gone_broken_or_nowhere_to_keep_costs_nothing_but_time() {
    let server = echo();
    let (home, repo) = chat_setup(&server);
    let exec = run(&home, &repo, "count the pears");
    let finds = || {
        let hits = objects(&home, &repo, &["search", "bananas", "--json"]);
        assert_eq!(hits.iter().map(|hit| &hit["exec"]).collect::<Vec<_>>(), [&json!(exec)]);
        assert_eq!(listed(&home, &repo, &[]), [exec.as_str()]);
    };
    finds();
    let folder = home.data_dir().join("index");
    fs::remove_dir_all(&folder).expect("an index");
    finds();
    for file in fs::read_dir(&folder).expect("an index").flatten() {
        write(&file.path(), b"garbage, not a database");
    }
    finds();
    // A file where its folder should be: no index can be kept.
    fs::remove_dir_all(&folder).expect("an index");
    write(&folder, b"");
    finds();
}

#[expect(clippy::disallowed_methods, reason = "a fixture, not a user's file")]
fn write(path: &std::path::Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
}

#[test]
fn death_while_the_index_is_made_leaves_it_whole() {
    let server = echo();
    let (home, repo) = chat_setup(&server);
    let exec = run(&home, &repo, "count the pears");
    let archive = repo.path().join("archive");
    let archive = archive.to_str().expect("a path");
    assert_eq!(
        sessions(&home, &repo, &["export", &exec, "--archive", "-o", archive]).code,
        Some(0)
    );
    for _ in 0..15 {
        assert_eq!(sessions(&home, &repo, &["import", archive]).code, Some(0));
    }
    let index = home.data_dir().join("index");
    for round in 0..8_u32 {
        let _ = fs::remove_dir_all(&index);
        let running = Loon::new(&home, repo.path()).args(["sessions", "list", "--all"]).start();
        // Another moment of its work each time.
        let grown = |files: usize| fs::read_dir(&index).is_ok_and(|found| found.count() >= files);
        while !grown((round % 4) as usize) && is_running(&running) {
            std::thread::yield_now();
        }
        running.signal(Signal::SIGKILL);
        running.finish();
        assert_eq!(listed(&home, &repo, &["--all"]).len(), 16, "round {round}");
        assert_eq!(objects(&home, &repo, &["search", "bananas", "--json"]).len(), 16);
    }
}

fn is_running(running: &loon_testkit::Running) -> bool {
    crate::headless::is_alive(&running.pid().to_string())
}

#[test]
fn a_fork_and_its_origin_go_on_apart() {
    let server =
        ModelServer::answering(|request| text(format!("{} messages", request.user_texts().len())));
    let (home, repo) = chat_setup(&server);
    let exec = run(&home, &repo, "first");
    let go_on = |exec: &str, words: &str| {
        let finished = Loon::exec(&home, repo.path(), ["--resume", exec, words]).run();
        finished.terminal()["message"].as_str().expect("words").to_owned()
    };
    assert_eq!(go_on(&exec, "second"), "2 messages");
    let early = objects(&home, &repo, &["fork", &exec, "--at", "1.u0", "--json"]).remove(0);
    let early = early["exec"].as_str().expect("an id");
    let late = objects(&home, &repo, &["fork", &exec, "--json"]).remove(0);
    let late = late["exec"].as_str().expect("an id");
    assert_eq!(go_on(early, "other second"), "2 messages");
    assert_eq!(go_on(late, "third"), "3 messages");
    assert_eq!(go_on(&exec, "third here"), "3 messages");
    for exec in [exec.as_str(), early, late] {
        verifies(&home, &repo, exec);
    }
    let shown = sessions(&home, &repo, &["show", early]).text();
    assert!(shown.contains("other second") && !shown.contains("> second"), "{shown}");
    let said = home.records(early).into_iter().find(|it| it["type"] == "session.forked");
    assert_eq!(said.expect("the record")["from"], exec);
    let list = objects(&home, &repo, &["list", "--json"]);
    let fork = list.iter().find(|it| it["exec"] == early).expect("the fork");
    assert_eq!(fork["forked_from"], exec);
    let wrong = sessions(&home, &repo, &["fork", &exec, "--at", "9"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("has no turn 9 that has ended; its last is 3"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn undo_in_a_fork_takes_back_what_was_edited_before_it() {
    let server =
        ModelServer::by_step([ask(read("a.txt")), ask(edit("a.txt", "two", "zwei")), text("done")]);
    let (home, repo) = chat_setup(&server);
    let exec = run(&home, &repo, "change it");
    let fork = objects(&home, &repo, &["fork", &exec, "--json"]).remove(0);
    let fork = fork["exec"].as_str().expect("an id").to_owned();
    let commands = "{\"type\":\"undo\"}\n{\"type\":\"close\"}\n".as_bytes().to_vec();
    Loon::exec(&home, repo.path(), ["--resume", &fork, "--input", "jsonl"])
        .input(loon_testkit::Input::Bytes(commands))
        .run();
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn sessions_are_put_away_thrown_away_and_brought_back() {
    let server = echo();
    let (home, repo) = chat_setup(&server);
    let (one, two) = (run(&home, &repo, "count the pears"), run(&home, &repo, "and more"));
    assert_eq!(sessions(&home, &repo, &["archive", &two]).code, Some(0));
    assert_eq!(listed(&home, &repo, &[]), [one.as_str()]);
    assert_eq!(listed(&home, &repo, &["--archived"]).len(), 2);
    let newest = Loon::exec(&home, repo.path(), ["--continue", "--mode", "bypass", "go on"]).run();
    assert_eq!(newest.exec(), one, "what was put away is not continued by chance");
    assert_eq!(sessions(&home, &repo, &["unarchive", &two]).code, Some(0));
    assert_eq!(listed(&home, &repo, &[]).len(), 2);

    let unasked = sessions(&home, &repo, &["delete", &one]);
    assert_eq!(unasked.code, Some(2));
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert_eq!(sessions(&home, &repo, &["delete", &one, "--yes"]).code, Some(0));
    assert_eq!(listed(&home, &repo, &["--all"]), [two.as_str()]);
    assert_eq!(sessions(&home, &repo, &["undelete", &one]).code, Some(0));
    verifies(&home, &repo, &one);

    assert_eq!(sessions(&home, &repo, &["prune"]).code, Some(2));
    let shown = sessions(&home, &repo, &["prune", "--keep-count", "1"]).text();
    assert!(shown.contains("1 sessions would go to the trash"), "{shown}");
    assert_eq!(listed(&home, &repo, &[]).len(), 2, "nothing goes by being shown");
    let gone = objects(&home, &repo, &["prune", "--keep-count", "1", "--yes", "--json"]);
    let gone = gone[0]["exec"].as_str().expect("an id").to_owned();
    assert_eq!(listed(&home, &repo, &[]).len(), 1);
    sessions(&home, &repo, &["prune", "--empty-trash"]);
    assert!(home.data_dir().join("trash").join(&gone).exists());
    sessions(&home, &repo, &["prune", "--empty-trash", "--yes"]);
    assert!(!home.data_dir().join("trash").join(&gone).exists());
}

#[test]
fn an_archive_is_the_same_session_elsewhere() {
    let big = "one line of a long file\n".repeat(9000);
    let server = ModelServer::by_step([ask(read("big.txt")), text("ok"), text("again")]);
    let (home, repo) = chat_setup(&server);
    repo.write("big.txt", &big);
    let exec = run(&home, &repo, "look");
    let file = repo.path().join("archive");
    let file = file.to_str().expect("a path");
    assert_eq!(sessions(&home, &repo, &["export", &exec, "--archive", "-o", file]).code, Some(0));
    let there = Home::with_server(&server, Wire::Chat);
    let came = objects(&there, &repo, &["import", file, "--json"]).remove(0);
    assert_eq!(came["exec"], exec);
    assert_eq!(verifies(&home, &repo, &exec), verifies(&there, &repo, &exec));
    let went_on = Loon::exec(&there, repo.path(), ["--resume", &exec, "again"]).run();
    assert_eq!(went_on.terminal()["outcome"], "completed");
    let again = sessions(&there, &repo, &["import", file]).text();
    assert!(again.contains("already, so it has a new id."), "{again}");

    let page = sessions(&home, &repo, &["export", &exec, "--html"]).text();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("one line of a long file"));
    let changed = fs::read_to_string(file).expect("the archive").replace("\"look\"", "\"lock\"");
    write(std::path::Path::new(file), changed.as_bytes());
    let fresh = Home::with_server(&server, Wire::Chat);
    let refused = sessions(&fresh, &repo, &["import", file]);
    assert_eq!((refused.code, listed(&fresh, &repo, &["--all"]).len()), (Some(1), 0));
    assert!(refused.stderr.contains("was changed"), "{}", refused.stderr);
}

#[test]
fn the_second_process_is_told_who_works_in_the_session() {
    let latch = Latch::new();
    let server = ModelServer::queue([text("words").hold(&latch)]);
    let (home, repo) = chat_setup(&server);
    let mut first = Loon::exec(&home, repo.path(), ["go"]).start();
    let exec = first.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    let second = Loon::exec(&home, repo.path(), ["--resume", &exec, "too"]).run();
    let error = &second.terminal()["error"];
    assert_eq!((second.code, &error["code"]), (Some(1), &json!("BUSY")));
    let message = error["message"].as_str().expect("words");
    assert!(message.contains(&format!("in use by process {} since 2", first.pid())), "{message}");
    let hints = error["hints"].to_string();
    assert!(hints.contains("sessions watch") && hints.contains("--take-over"), "{hints}");
    let live = &objects(&home, &repo, &["list", "--json"])[0];
    assert_eq!((&live["live"], &live["pid"]), (&json!(true), &json!(first.pid())));
    let refused = sessions(&home, &repo, &["delete", &exec, "--yes"]);
    assert!(refused.stderr.contains(&format!("process {}", first.pid())), "{}", refused.stderr);
    latch.wait_reached(1);
    latch.release();
    assert_eq!(first.finish().code, Some(0));
    verifies(&home, &repo, &exec);
}

#[test]
fn who_watches_sees_each_item_and_the_end() {
    let latch = Latch::new();
    let server = ModelServer::by_step([
        ask(bash("echo the first step")),
        text("The last words.").hold(&latch),
    ]);
    let (home, repo) = chat_setup(&server);
    let mut first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let exec = first.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    latch.wait_reached(1);
    let mut watching =
        Loon::new(&home, repo.path()).args(["sessions", "watch", &exec, "--json"]).start();
    let opened = watching.wait_type("session.opened");
    assert_eq!(opened["session"]["watched"]["pid"], first.pid());
    let items = opened["session"]["items"].to_string();
    assert!(items.contains("the first step"), "{items}");
    latch.release();
    let last = watching.wait_event("the answer", |event| {
        event["type"] == "item.completed" && event["item"]["kind"] == "assistant_message"
    });
    assert_eq!(last["item"]["text"], "The last words.");
    assert_eq!(first.finish().code, Some(0));
    let seen = watching.finish();
    assert_eq!(seen.code, Some(0));
    let used = seen.of_type("resources.updated").pop().expect("what was used");
    assert_eq!((&used["requests"], &used["count"]), (&json!(2), &json!(3)));
    assert_eq!(seen.of_type("session.released").len(), 1);
    assert_eq!(seen.of_type("turn.finished").len(), 1);
    let last = home.records(&exec).pop().expect("records");
    assert_eq!(last["type"], "turn.finished", "who watches writes nothing");
}

#[test]
fn a_session_is_taken_over_from_a_process_that_works_in_it() {
    let server = ModelServer::answering(|request| match request.user_texts().len() {
        1 => ask(bash("echo once >> log; echo up; exec sleep 300")),
        _ => text("I go on from here."),
    });
    let (home, repo) = chat_setup(&server);
    let mut first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let exec = first.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    first.wait_event("output", |event| event["type"] == "item.delta" && event["of"] == "output");
    let second =
        Loon::exec(&home, repo.path(), ["--resume", &exec, "--take-over", "go on"]).start();
    let first_pid = first.pid();
    let ended = first.finish();
    assert_eq!((ended.code, &ended.terminal()["outcome"]), (Some(143), &json!("terminated")));
    let error = &ended.terminal()["error"];
    assert_eq!(error["code"], "FENCED");
    assert!(error["message"].as_str().is_some_and(|it| it.contains("was taken over")), "{error}");
    let second = second.finish();
    let words = error["message"].to_string();
    assert!(words.contains(&format!("from this process ({first_pid}) by process ")), "{words}");
    let told = |notice: &Value| {
        let wanted = format!("was taken over from process {first_pid} since ");
        notice["message"].as_str().is_some_and(|words| words.contains(&wanted))
    };
    assert!(second.of_type("notice").iter().any(told), "{}", second.text());
    assert_eq!(second.terminal()["message"], "I go on from here.");
    assert_eq!(second.of_type("execution.resumed")[0]["unknown"], json!(["t1/s0/c0"]));
    assert_eq!(repo.read("log"), "once\n");
    verifies(&home, &repo, &exec);
}

#[test]
fn a_conflict_names_the_other_session() {
    let latch = Latch::new();
    let held = latch.clone();
    let server = ModelServer::answering(move |request| {
        let is_first = request.user_texts().first().is_some_and(|text| text == "first");
        match (is_first, request.answers()) {
            (_, 0) => ask(read("a.txt")),
            (true, 1) => ask(edit("a.txt", "two", "zwei")).hold(&held),
            (false, 1) => ask(edit("a.txt", "two", "deux")),
            _ => text("done"),
        }
    });
    let (home, repo) = chat_setup(&server);
    let mut first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "first"]).start();
    let exec = first.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    latch.wait_reached(1);
    let second = Loon::exec(&home, repo.path(), ["--mode", "bypass", "the other one"]).run();
    assert_eq!(second.terminal()["outcome"], "completed");
    let notices: Vec<String> =
        second.of_type("notice").iter().map(|notice| notice["message"].to_string()).collect();
    let told = |notice: &String| notice.contains("works in this folder") && notice.contains(&exec);
    assert!(notices.iter().any(told), "{notices:?}");
    latch.release();
    let first = first.finish();
    let edits = first.items("tool_call").into_iter().rfind(|call| call["tool"] == "edit");
    let said = edits.expect("the edit")["result"]["text"].to_string();
    assert!(said.contains("changed on disk since it was read"), "{said}");
    let wanted = format!("Another session wrote what it holds now: {}", second.exec());
    assert!(said.contains(&wanted) && said.contains("the other one"), "{said}");
    assert_eq!(repo.read("a.txt"), "one\ndeux\nthree\n");
}

fn screen(home: &Home, repo: &Repo, arguments: &[&str]) -> Screen {
    Screen::start(home, repo.path(), arguments, (100, 30))
}

fn leave(mut screen: Screen) {
    screen.press(key::CTRL_C);
    screen.press(key::CTRL_C);
    screen.wait_exit();
}

#[test]
fn the_screen_searches_all_sessions_and_goes_on_in_what_it_finds() {
    let server = echo();
    let (home, repo) = chat_setup(&server);
    run(&home, &repo, "count the pears");
    let elsewhere = small_repo();
    let screen = screen(&home, &elsewhere, &[]);
    screen.wait_for("● ready");
    screen.paste("/sessions");
    screen.wait_for("/sessions");
    screen.press(key::ENTER);
    screen.wait_for("count the pears");
    screen.paste("bananas");
    screen.wait_for("speaks of bananas");
    screen.press(key::ENTER);
    screen.wait_for("The answer speaks of cherries.");
    leave(screen);
}

#[test]
fn a_session_that_is_over_is_not_opened_and_the_screen_says_why() {
    let server = ModelServer::answering(|request| text(format!("Re: {}", request.user_texts()[0])));
    let (home, repo) = chat_setup(&server);
    let over = run(&home, &repo, "count the pears");
    let cancelled =
        Loon::new(&home, repo.path()).args(["cancel", &over, "--reason", "enough pears"]).run();
    assert_eq!(cancelled.code, Some(0));
    let screen = screen(&home, &repo, &[]);
    screen.wait_for("● ready");
    screen.paste("stay here");
    screen.wait_for("stay here");
    screen.press(key::ENTER);
    screen.wait_for("Re: stay here");
    screen.paste("/resume");
    screen.wait_for("/resume");
    screen.press(key::ENTER);
    screen.wait_for("cancelled");
    screen.press(key::ENTER);
    let shown = screen.wait_for("was cancelled: enough pears");
    assert!(shown.contains("Re: stay here"), "the present session stays: {shown}");
    leave(screen);
}

#[test]
fn the_screen_watches_a_session_and_takes_it_over() {
    let latch = Latch::new();
    let held = latch.clone();
    let server = ModelServer::answering(move |request| match request.user_texts().len() {
        1 if request.answers() == 0 => ask(bash("echo the first step")),
        1 => text("never heard").hold(&held),
        _ => text("It goes on here."),
    });
    let (home, repo) = chat_setup(&server);
    let mut first = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let exec = first.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    latch.wait_reached(1);
    let screen = screen(&home, &repo, &[]);
    screen.wait_for("Another session works in this folder");
    screen.paste("/resume");
    screen.wait_for("/resume");
    screen.press(key::ENTER);
    screen.wait_for(&format!("open in process {}", first.pid()));
    screen.press(key::ENTER);
    screen.wait_for("in use by another process");
    screen.press(key::ENTER);
    screen.wait_for(&format!("watching process {}", first.pid()));
    screen.wait_for("echo the first step");
    screen.wait_for("only watched: nothing is sent");
    screen.paste("/takeover");
    screen.wait_for("/takeover");
    screen.press(key::ENTER);
    screen.wait_for("● ready");
    assert_eq!(first.finish().terminal()["error"]["code"], "FENCED");
    latch.release();
    screen.paste("go on");
    screen.wait_for("go on");
    screen.press(key::ENTER);
    screen.wait_for("It goes on here.");
    leave(screen);
    verifies(&home, &repo, &exec);
}

//! Agents in the background: three in worktrees finish a real change while their parent works, and a
//! person watches, steers and stops one on the screen.

use std::path::Path;

use loon_testkit::{Latch, Loon, ModelServer, Reply, Request, Screen, calls, key, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, write};

fn is_child(request: &Request) -> bool {
    request.system().contains("You work for another agent")
}

/// The number at the end of a child's task.
fn task_of(request: &Request) -> Option<usize> {
    request.user_texts().first()?.rsplit(' ').next()?.parse().ok()
}

const AS_SOMEBODY: &str = "git -c user.name=A -c user.email=a@example.org";

/// What child `number` does: writes a file, looks at it, commits it, reports.
fn work(number: usize, start: &Latch) -> Vec<Reply> {
    let file = format!("part{number}.txt");
    let commit = format!("git add {file} && {AS_SOMEBODY} commit -qm 'part {number}'");
    vec![
        ask(write(&file, &format!("part {number}\n"))).hold(start),
        ask(bash(&format!("grep -c part {file}"))),
        ask(bash(&commit)),
        text(format!("Part {number} is committed.")),
    ]
}

#[test]
fn h163_h164_h165_h172_three_agents_in_worktrees_finish_a_change_while_their_parent_works() {
    let (start, finish) = (Latch::new(), Latch::new());
    let pick = format!(
        "for tree in $(git worktree list --porcelain | sed -n 's/^worktree //p' | tail -n +2); do \
         {AS_SOMEBODY} cherry-pick $(git -C $tree rev-parse HEAD) || exit 1; done"
    );
    let orders = (1..=3).map(|number| {
        ("background_spawn", json!({"agent": "apart", "task": format!("make part {number}")}))
    });
    let parent = vec![
        calls(orders),
        ask(write("own.txt", "the parent's\n")),
        ask(read("own.txt")).hold(&finish),
        ask(bash(&pick)),
        text("All parts are here."),
    ];
    let begin = start.clone();
    let server = ModelServer::answering(move |request| {
        let script = match task_of(request).filter(|_| is_child(request)) {
            Some(number) => work(number, &begin),
            None => parent.clone(),
        };
        script.get(request.answers()).cloned().unwrap_or_else(|| text("nothing more"))
    });
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/agents/apart.md", "---\nisolation: worktree\n---\n");
    repo.write("b.txt", "not committed\n");
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    start.wait_reached(3);
    running.wait_event("the parent's own change", |event| {
        event["type"] == "item.completed" && event["item"]["tool"] == "write"
    });
    (0..3).for_each(|_| start.release());
    let ends: Vec<Value> = (0..3).map(|_| running.wait_type("subagent.finished")).collect();
    finish.release();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    for end in &ends {
        assert_eq!(end["status"], "completed");
        let tree = &end["worktree"];
        assert_eq!(
            (&tree["dirty"], &tree["ahead"], &tree["unmerged"]),
            (&json!(false), &json!(1), &json!(1))
        );
        let path = tree["path"].as_str().expect("a path");
        assert!(Path::new(path).is_dir(), "{path} is kept");
        let b = std::fs::read_to_string(Path::new(path).join("b.txt")).expect("a file");
        assert_eq!(b, "alpha\nbeta\n", "what was not committed is not there");
    }
    for number in 1..=3 {
        assert_eq!(repo.read(&format!("part{number}.txt")), format!("part {number}\n"));
    }
    let words = server.last_request().user_texts().concat();
    for end in &ends {
        let child = end["child"].as_str().expect("an id");
        let path = end["worktree"]["path"].as_str().expect("a path");
        let facts = format!("worktree {path}, which is kept, nothing uncommitted, 1 commit since ");
        assert!(words.contains(&format!("session {child}")) && words.contains(&facts), "{words}");
    }
    let exec = finished.exec();
    assert!(finished.events().iter().all(|event| event["exec"] == json!(exec)));
    let progressed = finished.of_type("subagent.progressed");
    assert!(progressed.iter().any(|event| {
        event["agent"]["call"].as_str().is_some_and(|call| call.starts_with("bash grep -c part"))
            && event["agent"]["model"] == "lab/coder"
    }));
}

#[test]
fn a_person_watches_steers_and_stops_an_agent_on_the_screen() {
    let (first, second) = (Latch::new(), Latch::new());
    let child = vec![
        ask(read("a.txt")).hold(&first),
        ask(read("b.txt")).hold(&second),
        text("never asked for"),
    ];
    let parent = vec![
        calls([("background_spawn", json!({"agent": "general", "task": "look around"}))]),
        text("It is on its way."),
    ];
    let server = ModelServer::answering(move |request| {
        let script = if is_child(request) { &child } else { &parent };
        script.get(request.answers()).cloned().unwrap_or_else(|| text("nothing more"))
    });
    let (home, repo) = chat_setup(&server);
    let screen = Screen::start(&home, repo.path(), &[], (110, 30));
    screen.wait_for("● ready");
    let send = |words: &str| {
        screen.paste(words);
        screen.wait_for(words);
        screen.press(key::ENTER);
    };
    send("hand it over");
    screen.wait_for("It is on its way.");
    screen.wait_for("1 agent");
    send("/agents");
    let listed = screen.wait_for("s steer");
    assert!(listed.contains("a1 general"), "{listed}");
    screen.press(key::ENTER);
    let watched = screen.wait_for("Esc goes back");
    assert!(!watched.contains("It is on its way."), "{watched}");
    screen.wait_for("look around");
    first.wait_reached(1);
    send("look left");
    screen.wait_for("reads it at its next step");
    // What is asked after it is answered after it: the words have arrived.
    screen.press(key::ESCAPE);
    screen.wait_for("It is on its way.");
    send("/agents");
    screen.wait_for("s steer");
    screen.press(key::ENTER);
    screen.wait_for("Esc goes back");
    screen.wait_for("▌ look around");
    first.release();
    screen.wait_for("while it was working");
    second.wait_reached(1);
    screen.press(key::ESCAPE);
    screen.wait_for("It is on its way.");
    send("/agents");
    screen.wait_for("s steer");
    screen.press("x");
    // The row says so once the order has arrived.
    screen.wait_for("stops at its next step, ");
    second.release();
    screen.press(key::ESCAPE);
    screen.wait_for("agent a1 (general) cancelled");
    let asked: Vec<Request> = server.requests().into_iter().filter(is_child).collect();
    assert_eq!(asked[1].user_texts(), ["look around", "look left"]);
    assert_eq!(asked.len(), 2);
}

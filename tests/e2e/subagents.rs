//! Subagents: the built `loon` hands tasks to children, waits for them, works beside them, and ends
//! with them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use loon_testkit::{Finished, Home, Input, Latch, Loon, ModelServer, Reply, Repo, Request, text};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, read, small_repo, write};

/// A server that answers the session and its children from scripts of their own, each by the number
/// of answers the conversation holds.
fn cast(parent: Vec<Reply>, child: Vec<Reply>) -> ModelServer {
    ModelServer::answering(move |request| {
        let script = if is_child(request) { &child } else { &parent };
        script.get(request.answers()).cloned().unwrap_or_else(|| text("nothing more"))
    })
}

fn is_child(request: &Request) -> bool {
    request.system().contains("You work for another agent")
}

fn order(tool: &'static str, agent: &str, task: &str) -> (&'static str, Value) {
    (tool, json!({"agent": agent, "task": task}))
}

fn about(tool: &'static str, arguments: Value) -> (&'static str, Value) {
    (tool, arguments)
}

fn run(home: &Home, repo: &Repo, mode: &str) -> Finished {
    Loon::exec(home, repo.path(), ["--mode", mode, "go"]).run()
}

fn child_of(events: &[Value]) -> String {
    let started = events.iter().find(|event| event["type"] == "subagent.started");
    let child = started.and_then(|event| event["child"].as_str());
    child.expect("a child that began").to_owned()
}

fn last_kind(home: &Home, exec: &str) -> String {
    let last = home.records(exec).pop().expect("records");
    last["type"].as_str().expect("a type").to_owned()
}

fn ended(finished: &Finished) -> Value {
    finished.of_type("subagent.finished").pop().expect("a child that ended")
}

#[test]
fn a_delegated_task_is_done_by_a_child_with_a_journal_of_its_own() {
    let server = cast(
        vec![ask(order("delegate", "general", "what is in a.txt?")), text("thanks")],
        vec![ask(read("a.txt")), text("Three lines.").usage(100, 0, 7)],
    );
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, "default");
    assert_eq!(finished.code, Some(0));
    let child = child_of(&finished.events());
    let answer = server.last_request().last_answer();
    assert!(answer.starts_with("Three lines.\n\n[agent a1; session "), "{answer}");
    assert!(answer.contains(&child), "{answer}");
    let records = home.records(&child);
    assert_eq!(records[0]["kind"], "subagent");
    assert_eq!(records[0]["parent"], finished.exec());
    let asked: Vec<Request> = server.requests().into_iter().filter(is_child).collect();
    assert_eq!(asked[0].user_texts(), ["what is in a.txt?"]);
    assert!(!asked[0].tool_names().iter().any(|name| name == "delegate"));
    let listed = Loon::new(&home, repo.path()).args(["sessions", "list", "--all"]).run().text();
    assert!(listed.contains(&finished.exec()[..8]) && !listed.contains(&child), "{listed}");
}

#[test]
fn an_unknown_agent_is_refused_with_the_names_there_are() {
    let calls = ["delegate", "background_spawn"].map(|tool| ask(order(tool, "ghost", "boo")));
    let server = ModelServer::by_step(calls.into_iter().chain([text("ok")]));
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/agents/reviewer.md", "---\ndescription: Reads diffs.\n---\nBe strict.");
    let finished = run(&home, &repo, "default");
    for answer in server.last_request().tool_answers() {
        let known = "There is no agent called \"ghost\". There are: general, reviewer.";
        assert_eq!(answer.text, known);
    }
    assert!(server.last_request().system().contains("- reviewer: Reads diffs."));
    assert!(finished.of_type("subagent.started").is_empty());
}

#[test]
fn a_background_report_reaches_the_running_turn() {
    let latch = Latch::new();
    let server = cast(
        vec![
            ask(order("background_spawn", "general", "look around")),
            ask(read("a.txt")).hold(&latch),
            text("seen"),
        ],
        vec![text("All is well.")],
    );
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["go"]).start();
    let end = running.wait_type("subagent.finished");
    assert_eq!((&end["status"], &end["report"]), (&json!("completed"), &json!("All is well.")));
    latch.release();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0));
    let words = server.last_request().user_texts();
    assert!(words.last().expect("words").contains("All is well."), "{words:?}");
    let notices = finished.items("notice");
    assert_eq!(notices.len(), 1);
}

#[test]
fn a_background_report_after_the_turn_reaches_the_next_one() {
    let latch = Latch::new();
    let server = cast(
        vec![ask(order("background_spawn", "general", "look around")), text("bye"), text("seen")],
        vec![text("All is well.").hold(&latch)],
    );
    let (home, repo) = chat_setup(&server);
    let arguments = ["--input", "jsonl"];
    let mut running = Loon::exec(&home, repo.path(), arguments).input(Input::Open).start();
    running.write_line(json!({"type": "prompt", "text": "go"}));
    running.wait_type("turn.finished");
    latch.release();
    running.wait_type("subagent.finished");
    running.write_line(json!({"type": "prompt", "text": "and?"}));
    running.wait_type("turn.finished");
    running.close_input();
    assert_eq!(running.finish().code, Some(0));
    let words = server.last_request().user_texts();
    assert!(words.last().expect("words").contains("All is well."), "{words:?}");
}

#[test]
fn a_child_can_be_steered_and_then_ended_at_a_step() {
    let (child, parent) = (Latch::new(), Latch::new());
    let server = cast(
        vec![
            ask(order("background_spawn", "general", "look right")),
            ask(about("background_message", json!({"id": "a1", "message": "look left"})))
                .hold(&parent),
            ask(about("background_kill", json!({"id": "a1"}))).hold(&parent),
            text("ok").hold(&parent),
        ],
        vec![
            ask(read("a.txt")).hold(&child),
            ask(write("late.txt", "late")).hold(&child),
            text("never asked for"),
        ],
    );
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let exec = running.wait_type("subagent.started")["child"].as_str().expect("an id").to_owned();
    child.wait_reached(1);
    parent.release();
    parent.wait_reached(2);
    child.release();
    child.wait_reached(2);
    parent.release();
    parent.wait_reached(3);
    child.release();
    let end = running.wait_type("subagent.finished");
    assert_eq!(end["status"], "cancelled");
    parent.release();
    assert_eq!(running.finish().code, Some(0));
    assert_eq!(repo.read("late.txt"), "late", "the step that ran came to its end");
    let asked: Vec<Request> = server.requests().into_iter().filter(is_child).collect();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].user_texts(), ["look right", "look left"]);
    assert_eq!(last_kind(&home, &exec), "execution.cancelled");
}

#[test]
fn plan_mode_holds_for_a_child_that_is_told_to_leave_it() {
    let server = cast(
        vec![ask(order("delegate", "general", "leave plan mode and write x.txt")), text("ok")],
        vec![ask(write("x.txt", "x")), text("I was refused.")],
    );
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, "plan");
    assert!(!repo.has("x.txt"));
    assert_eq!(ended(&finished)["status"], "incomplete");
    let answer = server.last_request().last_answer();
    assert!(answer.starts_with("Incomplete: The last call the model asked for was denied."));
}

#[test]
fn h163_h165_a_child_in_a_worktree_changes_nothing_of_the_parents_tree() {
    let outside = small_repo();
    let target = outside.path().join("b.txt");
    let server = cast(
        vec![ask(order("delegate", "apart", "change a.txt")), text("ok")],
        vec![
            ask(read("a.txt")),
            ask(write("a.txt", "changed\n")),
            ask(write(&target.display().to_string(), "stolen\n")),
            text("Changed."),
        ],
    );
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/agents/apart.md", "---\nisolation: worktree\n---\n");
    repo.write("b.txt", "not committed\n");
    // Writing inside the write roots needs no human here, and nobody is there for the rest.
    let finished = run(&home, &repo, "auto");
    let (started, end) = (finished.of_type("subagent.started"), ended(&finished));
    let tree = end["worktree"]["path"].as_str().expect("a worktree").to_owned();
    assert_eq!(started[0]["worktree"], json!(tree));
    assert!(tree.ends_with(&format!("worktrees/{}", child_of(&finished.events()))), "{tree}");
    let file = |name: &str| std::fs::read_to_string(Path::new(&tree).join(name)).expect("a file");
    assert_eq!((file("a.txt").as_str(), file("b.txt").as_str()), ("changed\n", "alpha\nbeta\n"));
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(repo.read("b.txt"), "not committed\n");
    assert_eq!(outside.read("b.txt"), "alpha\nbeta\n");
    assert_eq!(end["worktree"]["dirty"], true);
    let answer = server.last_request().last_answer();
    assert!(
        answer.contains(&format!(
            "worktree {tree}, which is kept, with uncommitted changes in 1 file"
        )),
        "{answer}"
    );
    assert!(repo.git(&["worktree", "list"]).contains("(detached HEAD)"));
}

#[test]
fn h164_commits_of_a_worktree_that_are_on_no_branch_are_told() {
    let commit = "git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m work";
    let server = cast(
        vec![ask(order("delegate", "apart", "commit")), text("ok")],
        vec![ask(bash(commit)), text("Committed.")],
    );
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/agents/apart.md", "---\nisolation: worktree\n---\n");
    let finished = run(&home, &repo, "bypass");
    let worktree = &ended(&finished)["worktree"];
    assert_eq!((&worktree["dirty"], &worktree["unmerged"]), (&json!(false), &json!(1)));
    assert_eq!((&worktree["ahead"], &worktree["dirty_files"]), (&json!(1), &json!(0)));
    let answer = server.last_request().last_answer();
    assert!(answer.contains(", nothing uncommitted, 1 commit since "), "{answer}");
}

#[test]
fn a_worktree_outside_a_repository_is_refused() {
    let server = ModelServer::by_step([ask(order("delegate", "apart", "x")), text("ok")]);
    let (home, repo) = chat_setup(&server);
    repo.write(".loon/agents/apart.md", "---\nisolation: worktree\n---\n");
    std::fs::remove_dir_all(repo.path().join(".git")).expect("a repository");
    let finished = run(&home, &repo, "bypass");
    assert!(finished.of_type("subagent.started").is_empty());
    let answer = server.last_request().last_answer();
    assert!(answer.starts_with("A worktree needs a Git repository, and "), "{answer}");
}

#[test]
fn h170_a_cancelled_parent_takes_its_children_and_their_processes_with_it() {
    let parent = Latch::new();
    let server = cast(
        vec![ask(order("background_spawn", "general", "wait")), text("never sent").hold(&parent)],
        vec![ask(bash("echo $$ > pid; sleep 600"))],
    );
    let (home, repo) = chat_setup(&server);
    let pipe = repo.path().join("pid");
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe with a name");
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let started = running.wait_type("subagent.started");
    let exec = started["exec"].as_str().expect("an id").to_owned();
    let child = started["child"].as_str().expect("an id").to_owned();
    let mut pid = String::new();
    File::open(&pipe).and_then(|mut pipe| pipe.read_to_string(&mut pid)).expect("a process id");
    let cancelled = Loon::new(&home, repo.path()).args(["cancel", &exec]).run();
    assert_eq!(cancelled.code, Some(0));
    assert_eq!(running.finish().code, Some(143));
    assert_eq!(last_kind(&home, &child), "execution.cancelled");
    assert_eq!(last_kind(&home, &exec), "execution.cancelled");
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "process {pid} lives on");
}

#[test]
fn a_run_that_ends_cancels_what_works_in_its_background() {
    let server = cast(
        vec![ask(order("background_spawn", "general", "wait")), text("bye")],
        vec![text("words").stall()],
    );
    let (home, repo) = chat_setup(&server);
    let finished = run(&home, &repo, "default");
    assert_eq!(finished.code, Some(0));
    assert_eq!(ended(&finished)["status"], "cancelled");
    assert_eq!(last_kind(&home, &child_of(&finished.events())), "execution.cancelled");
}

#[test]
fn a_child_of_a_killed_process_is_settled_when_the_session_is_resumed() {
    let server = ModelServer::answering(|request| match (is_child(request), request.answers()) {
        (true, _) => text("words").stall(),
        (false, 0) => ask(order("background_spawn", "general", "wait")),
        (false, 1) if request.user_texts().len() == 1 => text("more").stall(),
        (false, _) => text("I see"),
    });
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["go"]).start();
    let exec = running.wait_type("subagent.started")["exec"].as_str().expect("an id").to_owned();
    server.wait_for_requests(3);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.finish().code, None);
    let resumed = Loon::exec(&home, repo.path(), ["--resume", &exec, "what of it?"]).run();
    assert_eq!(resumed.code, Some(0));
    assert_eq!(ended(&resumed)["status"], "unknown");
    let words = server.last_request().user_texts();
    let told = words.iter().filter(|text| text.contains("Outcome unknown: The process ended"));
    assert_eq!(told.count(), 1);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test fixture, not a project's file")]
fn h160_profiles_of_the_folder_and_of_other_programs_are_found() {
    let server = ModelServer::by_step([ask(order("delegate", "tester", "x")), text("ok")]);
    let (home, repo) = chat_setup(&server);
    let own = home.data_dir().join("agents");
    std::fs::create_dir_all(&own).expect("a folder");
    std::fs::write(own.join("mine.md"), "---\ndescription: Mine.\n---\n").expect("a file");
    repo.write(
        ".claude/agents/tester.md",
        "---\nname: tester\ndescription: Foreign.\nmodel: sonnet\ntools: Read, Grep\n---\nTest.",
    );
    repo.write(".claude/agents/both.md", "---\ndescription: Weaker.\n---\n");
    repo.write(".loon/agents/both.md", "---\ndescription: Stronger.\n---\n");
    let finished = run(&home, &repo, "default");
    let told = server.last_request().system();
    for line in ["- mine: Mine.", "- tester: Foreign.", "- both: Stronger."] {
        assert!(told.contains(line), "{line}");
    }
    assert_eq!(finished.of_type("subagent.started")[0]["model"], "lab/coder");
    let child = server.requests().into_iter().find(is_child).expect("a child");
    assert_eq!(child.tool_names(), ["read", "grep"]);
}

//! The working record: what the model writes down, and what later requests show of it.

use loon_testkit::{Finished, Home, Loon, ModelServer, Reply, Repo, call, text};
use serde_json::{Value, json};

use crate::scripts::{bash, chat_setup};

/// The five tools that keep the record.
const TOOLS: [&str; 5] = ["todo_read", "todo_write", "update_plan", "task", "note"];

struct Case {
    server: ModelServer,
    home: Home,
    repo: Repo,
}

impl Case {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = ModelServer::queue(replies);
        let (home, repo) = chat_setup(&server);
        Self { server, home, repo }
    }

    fn exec(&self, arguments: &[&str]) -> Finished {
        let finished = Loon::exec(&self.home, self.repo.path(), arguments.iter().copied()).run();
        assert_eq!(finished.code, Some(0), "{}\n{}", finished.text(), finished.stderr);
        finished
    }

    /// The texts of the last results of tools, one for each call of the last turn's answers.
    fn results(&self) -> Vec<String> {
        let answers = self.server.last_request().tool_answers();
        answers.into_iter().map(|answer| answer.text).collect()
    }
}

/// One call in an answer of its own.
fn one(name: &str, arguments: Value) -> Reply {
    call(name, arguments)
}

#[test]
fn what_is_written_down_is_shown_and_read_after_a_resume() {
    let todos = json!([
        {"content": "measure", "status": "completed"},
        {"content": "change the bound", "status": "in-progress"},
    ]);
    let plan = json!([
        {"step": "measure", "status": "completed"},
        {"step": "change the bound", "status": "completed"},
        {"step": "measure again"},
    ]);
    let case = Case::new([
        one("todo_read", json!({})),
        one("todo_write", json!({ "todos": todos })),
        one("task", json!({"op": "create", "title": "ask Ada", "description": "about the bound"})),
        one("task", json!({"op": "create", "title": "write it up", "blocked_by": [1]})),
        one("note", json!({"text": "the bound is in a.txt"})),
        one("update_plan", json!({"plan": plan, "explanation": "the bound was easy"})),
        text("done"),
        one("todo_read", json!({})),
        text("still known"),
    ]);
    let first = case.exec(&["go"]);
    assert_eq!(
        case.results(),
        [
            "Nothing is written down yet.",
            "1 of 2 done; now: change the bound",
            "Created [ ] 1: ask Ada\n0 of 1 done; ready: 1",
            "Created [ ] 2: write it up (after 1)\n0 of 2 done; ready: 1",
            "Noted; 1 note kept.",
            "2 of 3 done; next: measure again\nthe bound was easy",
        ]
    );
    let second = case.exec(&["--continue", "go on"]);
    let opened = &second.of_type("session.opened")[0]["session"];
    assert_eq!(opened["record"]["steps"][2], json!({"step": "measure again", "status": "pending"}));
    assert_eq!(opened["record"]["notes"], json!(["the bound is in a.txt"]));
    let requests = case.server.requests();
    assert_eq!(
        requests[7].user_texts(),
        [
            "go",
            "Working record:\nChecklist, 2 of 3 done:\n[x] measure\n[x] change the bound\n\
             [ ] measure again\nTasks, 0 of 2 done:\n[ ] 1: ask Ada\n[ ] 2: write it up (after 1)\n\
             Notes kept: 1\n\ngo on",
        ]
    );
    // The request after the call begins with the one before it, byte for byte.
    assert!(requests[8].messages().starts_with(requests[7].messages()));
    let read = case.results().pop().expect("a result");
    for part in
        ["2 of 3 done; next: measure again", "    about the bound", "1. the bound is in a.txt"]
    {
        assert!(read.contains(part), "{part} is not in {read}");
    }
    // The text is built for requests alone: no record and no event holds it.
    assert!(!first.text().contains("Working record") && !second.text().contains("Working record"));
    assert!(
        !std::fs::read_to_string(case.home.journal(&second.exec()))
            .expect("the journal")
            .contains("Working record")
    );
}

#[test]
fn a_step_that_cannot_be_is_refused_and_changes_nothing() {
    let case = Case::new([
        one("task", json!({"op": "create", "title": "a"})),
        one("task", json!({"op": "create", "title": "b", "blocked_by": [1]})),
        one("task", json!({"op": "update", "id": 1, "blocked_by": [2]})),
        one("task", json!({"op": "update", "id": 2, "status": "in_progress"})),
        one("task", json!({"op": "remove", "id": 1})),
        one("task", json!({"op": "list"})),
        text("done"),
    ]);
    let finished = case.exec(&["go"]);
    let results = case.results();
    assert!(results[2].contains("a cycle: 1 is blocked by 2 is blocked by 1"), "{results:?}");
    assert!(results[3].contains("before its dependency is completed: 1"), "{results:?}");
    assert!(results[4].contains("Others are blocked by task 1: 2"), "{results:?}");
    assert_eq!(results[5], "0 of 2 done; ready: 1\n[ ] 1: a\n[ ] 2: b (after 1)");
    let failed =
        finished.items("tool_call").iter().filter(|item| item["status"] == "failed").count();
    assert_eq!(failed, 3);
}

#[test]
fn plan_mode_keeps_the_record_and_the_system_text_speaks_of_what_is_offered() {
    let script = || {
        [
            one("todo_write", json!({"todos": [{"content": "look", "status": "doing"}]})),
            text("done"),
        ]
    };
    let case = Case::new(script());
    case.exec(&["--mode", "plan", "go"]);
    let request = case.server.last_request();
    for tool in TOOLS {
        assert!(request.tool_names().iter().any(|name| name == tool), "{tool}");
    }
    assert_eq!(case.results(), ["0 of 1 done; now: look"]);
    assert!(request.system().contains("todo_write"));

    let server = ModelServer::queue([text("done")]);
    let rules = "[permissions]\ndeny_rules = [{ tool = \"todo_write\" }]\n";
    let home = Home::with_server_and(&server, loon_testkit::Wire::Chat, "", rules);
    let repo = Repo::new(&[("a.txt", "x")]);
    assert_eq!(Loon::exec(&home, repo.path(), ["go"]).run().code, Some(0));
    assert!(!server.last_request().system().contains("todo_"));
}

#[test]
fn a_person_sees_the_checklist_beside_the_calls() {
    let todos = json!([{"content": "look", "status": "done"}, {"content": "change\u{1b}[2J it"}]);
    let (name, arguments) = bash("true");
    let case = Case::new([
        one("todo_write", json!({ "todos": todos })),
        one(name, arguments),
        text("done"),
    ]);
    let finished =
        Loon::new(&case.home, case.repo.path()).args(["exec", "--mode", "bypass", "go"]).run();
    assert_eq!(finished.text(), "done\n");
    assert!(
        finished.stderr.contains(
            "todo_write 2 steps  1 of 2 done\n    [x] look\n    [ ] change\u{241b}[2J it\n"
        ),
        "{}",
        finished.stderr
    );
    assert_eq!(finished.stderr.matches("[x] look").count(), 1);
}

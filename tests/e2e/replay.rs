//! `loon replay`: the same records give the same requests, and a session runs again as a script.

use loon_testkit::{Home, Loon, ModelServer, Repo, text};
use serde_json::{Value, json};

use crate::scripts::{ask, bash, chat_setup, edit, read, small_repo};

/// A session of two prompts with calls; gives its id.
fn session(home: &Home, repo: &Repo) -> String {
    let first = Loon::exec(home, repo.path(), ["--mode", "bypass", "change it"]).run();
    assert_eq!(first.terminal()["outcome"], "completed");
    let exec = first.exec();
    let more = ["--mode", "bypass", "--resume", &exec, "and look"];
    let second = Loon::exec(home, repo.path(), more).run();
    assert_eq!(second.terminal()["outcome"], "completed");
    exec
}

fn server() -> ModelServer {
    ModelServer::queue([
        ask(read("a.txt")),
        ask(edit("a.txt", "one", "uno")),
        text("Changed."),
        ask(bash("cat a.txt")),
        text("It says uno."),
    ])
}

fn replay(home: &Home, repo: &Repo, arguments: &[&str]) -> (Option<i32>, String) {
    let words = ["replay"].iter().chain(arguments).copied();
    let finished = Loon::new(home, repo.path()).args(words).run();
    (finished.code, finished.text())
}

#[test]
fn a_session_gives_the_same_requests_again() {
    let server = server();
    let (home, repo) = chat_setup(&server);
    let exec = session(&home, &repo);
    let (code, told) = replay(&home, &repo, &[&exec]);
    assert_eq!(told, "5 requests and 2 receipts are what they were.\n");
    assert_eq!(code, Some(0));
    let (code, told) = replay(&home, &repo, &[&exec, "--turn", "2", "--json"]);
    let found: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((code, &found["requests"], &found["receipts"]), (Some(0), &json!(2), &json!(1)));
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn the_first_difference_is_reported() {
    let server = server();
    let (home, repo) = chat_setup(&server);
    let exec = session(&home, &repo);
    let path = home.journal(&exec);
    let journal = std::fs::read_to_string(&path).expect("a journal");
    let changed = journal.replacen("change it", "change that", 1);
    #[expect(clippy::disallowed_methods, reason = "a journal that was tampered with")]
    std::fs::write(&path, changed).expect("the changed journal");
    let (code, told) = replay(&home, &repo, &[&exec, "--json"]);
    let found: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(code, Some(1));
    assert_eq!(found["difference"]["what"], "request t1/s0/model");
    assert_eq!(found["requests"], 0);
}

#[test]
fn a_session_runs_again_as_a_script() {
    let server = server();
    let (home, repo) = chat_setup(&server);
    let exec = session(&home, &repo);
    let again = small_repo();
    let script = home.path().join("session.jsonl");
    let name = script.display().to_string();
    assert_eq!(replay(&home, &repo, &[&exec, "--as-script", &name]).0, Some(0));
    home.set_settings(&format!(
        "[providers.lab]\nkind = \"script\"\nscript = \"{name}\"\n[session]\nmodel = \"lab/coder\"\n"
    ));
    let calls = |exec: &str| -> Vec<(Value, Value)> {
        let records = home.records(exec);
        let items = records.iter().map(|record| &record["item"]);
        let done = items.filter(|item| item["kind"] == "tool_call" && item["status"] == "done");
        done.map(|item| (item["tool"].clone(), item["result"].clone())).collect()
    };
    let second = session(&home, &again);
    assert_eq!(again.read("a.txt"), repo.read("a.txt"));
    assert_eq!(calls(&second), calls(&exec));
    assert_eq!(server.requests().len(), 5);
    assert_eq!(replay(&home, &again, &[&second]).0, Some(0));
}

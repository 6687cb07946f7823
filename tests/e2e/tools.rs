//! Every native tool, called by a scripted model through the real `loon`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use loon_testkit::{Home, Loon, ModelServer, Repo, Wire, calls, text};
use serde_json::{Value, json};

/// A call and words that its result must hold.
type Case = (&'static str, Value, &'static str);

const NOTEBOOK: &str = r#"{
 "cells": [
  {"cell_type": "code", "execution_count": 1, "id": "a1", "metadata": {}, "outputs": [], "source": ["x = 1"]}
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

fn repository() -> Repo {
    let repo = Repo::new(&[
        ("src/lib.rs", "pub fn answer() -> u32 {\n    42\n}\n"),
        ("data.json", "{\n  \"size\": 1.50,\n  \"names\": [\"a\"]\n}\n"),
        ("book.ipynb", NOTEBOOK),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"echo 3 passing\", \"build\": \"echo built\"}}\n",
        ),
        ("old.txt", "one\n"),
    ]);
    repo.commit("begin");
    repo
}

/// Answers every request with a page, and with library data where that is asked for.
fn web_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or_default();
            let head = String::from_utf8_lossy(&request[..read]).into_owned();
            let (kind, body) = if head.contains("/libs/search") {
                let body =
                    r#"{"results":[{"id":"/o/lib","title":"Lib","description":"A library"}]}"#;
                ("application/json", body)
            } else if head.contains("/context") {
                ("text/plain", "How to use the library.")
            } else {
                ("text/html", "<h1>Hello</h1><p>from the page</p>")
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

fn looks(web: &str) -> Vec<Case> {
    vec![
        ("project_info", json!({}), "package.json"),
        ("list_directory", json!({}), "src/"),
        ("tree", json!({}), "lib.rs"),
        ("glob", json!({"pattern": "*.rs"}), "src/lib.rs"),
        ("grep", json!({"pattern": "answer"}), "src/lib.rs"),
        ("file_info", json!({"path": "old.txt"}), "LF"),
        ("find_symbol", json!({"name": "answer"}), "src/lib.rs:1"),
        ("read", json!({"path": "src/lib.rs"}), "42"),
        ("read_many", json!({"paths": ["old.txt", "package.json"]}), "echo built"),
        ("read_json", json!({"path": "data.json", "pointer": "/size"}), "1.50"),
        ("notebook_read", json!({"path": "book.ipynb"}), "x = 1"),
        ("git_status", json!({}), "Nothing differs"),
        ("git_log", json!({}), "begin"),
        ("git_show", json!({"revision": "HEAD", "path": "old.txt"}), "one"),
        ("git_blame", json!({"path": "old.txt"}), "one"),
        ("git_branches", json!({}), "main"),
        ("fetch", json!({"url": format!("{web}/page")}), "# Hello"),
        ("context7_search", json!({"query": "lib"}), "/o/lib"),
        ("context7_resolve_library", json!({"name": "lib"}), "/o/lib"),
        (
            "context7_query_docs",
            json!({"library_id": "/o/lib", "topic": "use"}),
            "How to use the library.",
        ),
    ]
}

fn works() -> Vec<Case> {
    vec![
        ("todo_read", json!({}), ""),
        (
            "todo_write",
            json!({"todos": [{"content": "change", "status": "in_progress"}]}),
            "0 of 1",
        ),
        ("update_plan", json!({"plan": [{"step": "change", "status": "completed"}]}), "1 of 1"),
        ("task", json!({"op": "create", "title": "verify"}), "1"),
        ("note", json!({"text": "looked around"}), ""),
        ("edit", json!({"path": "src/lib.rs", "old": "42", "new": "43"}), "1 replacement"),
        ("write", json!({"path": "new.txt", "content": "new\n"}), "new.txt"),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: old.txt\n@@\n-one\n+two\n*** End Patch"}),
            "old.txt",
        ),
        (
            "json_edit",
            json!({"path": "data.json", "edits": [{"op": "add", "pointer": "/names/-", "value": "b"}]}),
            "data.json",
        ),
        (
            "notebook_edit",
            json!({"path": "book.ipynb", "op": "replace", "cell": "a1", "source": "x = 2"}),
            "book.ipynb",
        ),
        ("make_directory", json!({"path": "made/deep"}), "made/deep"),
        ("copy_path", json!({"from": "new.txt", "to": "made/copy.txt"}), "made/copy.txt"),
        ("move_path", json!({"from": "new.txt", "to": "made/moved.txt"}), "made/moved.txt"),
        ("file_compare", json!({"old": "made/copy.txt", "new": "made/moved.txt"}), "identical"),
        ("git_diff", json!({}), "+    43"),
        ("delete_path", json!({"path": "made/copy.txt"}), "made/copy.txt"),
        ("undo", json!({}), "made/copy.txt"),
        ("bash", json!({"command": "cat made/copy.txt"}), "new"),
        ("process_start", json!({"command": "cat", "name": "echo"}), "p1"),
        ("process_write", json!({"id": "p1", "input": "hello"}), "hello"),
        ("process_list", json!({}), "p1"),
        ("process_stop", json!({"id": "p1"}), "p1"),
        ("process_start", json!({"command": "sleep 300"}), "p2"),
        ("process_poll", json!({"id": "p2", "wait_secs": 1}), "p2"),
        ("tool_search", json!({"query": ""}), "no tools beyond"),
    ]
}

fn runs() -> Vec<Case> {
    vec![
        ("run_tests", json!({}), "3 passing"),
        ("run_build", json!({}), "built"),
        // There is no such script: the tool says so instead of making one up.
        ("run_lint", json!({}), "lint"),
    ]
}

/// `npm` that does what the scripts of the package say, so that no toolchain is needed.
fn with_npm(home: &Home) -> String {
    let folder = home.path().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    let npm = folder.join("npm");
    let mut file = std::fs::File::create(&npm).expect("a file");
    let script = "#!/bin/sh\nfor word in \"$@\"; do case $word in test) echo '3 passing';; build) echo built;; esac; done\n";
    file.write_all(script.as_bytes()).expect("written");
    let mut mode = file.metadata().expect("metadata").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    file.set_permissions(mode).expect("a mode");
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", folder.display())
}

#[test]
fn every_tool_does_its_work_in_one_session_that_verifies_and_resumes() {
    let web = web_server();
    let cases: Vec<Case> = looks(&web).into_iter().chain(works()).chain(runs()).collect();
    let one_by_one = cases.iter().map(|(tool, arguments, _)| calls([(*tool, arguments.clone())]));
    let server = ModelServer::by_step(one_by_one.chain([text("all done"), text("still here")]));
    let settings = format!("[context7]\nbase_url = \"{web}\"\napi_key_env = \"C7\"\n");
    let home = Home::with_server_and(&server, Wire::Chat, "", &settings);
    let repo = repository();
    let path = with_npm(&home);
    let finished = Loon::exec(&home, repo.path(), ["--mode", "bypass", "use them all"])
        .env("PATH", &path)
        .env("C7", "secret-key")
        .run();
    assert_eq!(finished.code, Some(0), "{}", finished.terminal());
    let done: Vec<Value> = finished
        .items("tool_call")
        .into_iter()
        .filter(|item| !matches!(item["status"].as_str(), Some("waiting" | "running")))
        .collect();
    assert_eq!(done.len(), cases.len());
    for ((tool, arguments, words), item) in cases.iter().zip(&done) {
        let told = item["result"]["text"].as_str().unwrap_or_default();
        assert_eq!(item["tool"], *tool);
        let expected = if *tool == "run_lint" { "failed" } else { "done" };
        assert_eq!(item["status"], expected, "{tool} {arguments}: {told}");
        assert!(told.contains(words), "{tool} {arguments}: {told}");
    }
    assert_eq!(repo.read("src/lib.rs"), "pub fn answer() -> u32 {\n    43\n}\n");
    assert_eq!(repo.read("data.json"), "{\n  \"size\": 1.50,\n  \"names\": [\"a\", \"b\"]\n}\n");
    assert_eq!(repo.read("made/copy.txt"), "new\n");
    assert!(!finished.text().contains("secret-key"));

    let exec = finished.exec();
    let verified = Loon::new(&home, repo.path()).args(["sessions", "verify", &exec]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.text());
    let again = Loon::exec(&home, repo.path(), ["--resume", &exec, "go on"]).run();
    assert_eq!(again.code, Some(0), "{}", again.terminal());
}

#[test]
fn every_offered_tool_has_a_case() {
    let server = ModelServer::answering(|_| text("ok"));
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    assert_eq!(Loon::exec(&home, repo.path(), ["hello"]).run().code, Some(0));
    let request = server.last_request();
    let offered = request.tool_names();
    let cases = looks("http://x").into_iter().chain(works()).chain(runs());
    let called: Vec<&str> = cases.map(|(tool, ..)| tool).chain(ELSEWHERE.iter().copied()).collect();
    let missing: Vec<&String> =
        offered.iter().filter(|tool| !called.contains(&tool.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Tools with end-to-end tests in files of their own.
const ELSEWHERE: &[&str] = &[
    "load_skill",
    "delegate",
    "background_spawn",
    "background_list",
    "background_message",
    "background_kill",
];

#[test]
fn the_first_request_stays_small() {
    let server = ModelServer::answering(|_| text("ok"));
    let home = Home::with_server(&server, Wire::Chat);
    let repo = repository();
    for (set, limit) in [("full", 24_000), ("lean", 5_300)] {
        let finished = Loon::exec(&home, repo.path(), ["--tools", set, "hello"]).run();
        assert_eq!(finished.code, Some(0));
        let bytes = server.last_request().bytes.len();
        assert!(bytes < limit, "{set}: {bytes} bytes");
    }
}

//! Hooks that are addresses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use loon_testkit::{ModelServer, text};
use serde_json::Value;

use super::{go, hook_ends, last_call, setup};
use crate::scripts::{ask, bash};

/// A loopback address that answers every request with the same bytes.
struct Address {
    url: String,
    /// Path and body of each request.
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Address {
    fn answering(head: &str, body: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let (seen, head, body) = (Arc::clone(&got), head.to_owned(), body.into());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                        break;
                    }
                    lines.push(line.trim().to_owned());
                }
                let length = lines.iter().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse().ok())?
                });
                let mut bytes = vec![0; length.unwrap_or(0)];
                let _ = reader.read_exact(&mut bytes);
                let first = lines.first().cloned().unwrap_or_default();
                let read = serde_json::from_slice(&bytes).unwrap_or_default();
                seen.lock().expect("a lock").push((first, read));
                let answer = format!(
                    "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<(String, Value)> {
        self.got.lock().expect("a lock").clone()
    }

    fn hook(&self, event: &str) -> String {
        format!("[[hooks.{event}]]\nurl = \"{}\"\n", self.url)
    }
}

fn touching() -> ModelServer {
    ModelServer::by_step([ask(bash("touch ran")), text("done")])
}

#[test]
fn h189_an_address_gets_the_same_json_and_its_answer_counts() {
    let deny = r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"Policy 7."}}"#;
    let (server, address) = (touching(), Address::answering("200 OK", deny));
    let (home, repo) = setup(&server, &address.hook("PreToolUse"));
    let finished = go(&home, &repo);
    assert!(!repo.has("ran"));
    assert!(server.last_request().last_answer().contains("Policy 7."));
    let got = address.got();
    assert_eq!((got.len(), got[0].0.as_str()), (1, "POST /hook HTTP/1.1"));
    assert_eq!(got[0].1["hook_event_name"], "PreToolUse");
    assert_eq!(got[0].1["session_id"], finished.exec());
    assert_eq!(got[0].1["tool_input"]["command"], "touch ran");

    let (server, address) = (touching(), Address::answering("204 No Content", ""));
    let (home, repo) = setup(&server, &address.hook("PreToolUse"));
    assert_eq!(last_call(&go(&home, &repo))["status"], "done");
    assert!(repo.has("ran"));
}

#[test]
fn h191_a_redirect_is_not_followed_and_is_no_answer() {
    let other = Address::answering("200 OK", "");
    let head = format!("302 Found\r\nlocation: {}", other.url);
    let (server, address) = (touching(), Address::answering(&head, ""));
    let (home, repo) = setup(&server, &address.hook("PreToolUse"));
    let finished = go(&home, &repo);
    assert!(!repo.has("ran"));
    assert_eq!((address.got().len(), other.got().len()), (1, 0));
    let told = server.last_request().last_answer();
    assert!(told.contains("status 302, and redirects are not followed"), "{told}");
    assert_eq!(hook_ends(&finished)[0]["status"], "failed");
}

#[test]
fn h199_an_address_that_fails_blocks() {
    let long = "x".repeat(100_000);
    let addresses = [
        (Address::answering("500 Oops", ""), "status 500"),
        (Address::answering("200 OK", "{"), "its JSON cannot be read"),
        (Address::answering("200 OK", long), "longer than 64 KiB"),
    ];
    for (address, why) in addresses {
        let server = touching();
        let (home, repo) = setup(&server, &address.hook("PreToolUse"));
        go(&home, &repo);
        assert!(!repo.has("ran"), "{why}");
        let told = server.last_request().last_answer();
        assert!(told.contains(why), "{told}");
    }
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let server = touching();
    let (home, repo) = setup(&server, &format!("[[hooks.PreToolUse]]\nurl = \"http://{gone}/\"\n"));
    go(&home, &repo);
    assert!(!repo.has("ran"));
}

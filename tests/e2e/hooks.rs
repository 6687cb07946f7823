//! Lifecycle hooks: real commands and addresses that hear of what the built `loon` does, add words to
//! it, and hold it up.

mod address;
mod commands;
mod ends;
mod guards;
mod stops;
mod words;

use loon_testkit::{Finished, Home, Loon, ModelServer, Repo, Wire};
use serde_json::Value;

use crate::scripts::small_repo;

/// A hook that is a shell line.
fn hook(event: &str, line: &str) -> String {
    more_of(event, line, "")
}

/// The same with more members.
fn more_of(event: &str, line: &str, more: &str) -> String {
    format!("[[hooks.{event}]]\ncommand = '''{line}'''\n{more}\n")
}

fn setup(server: &ModelServer, hooks: &str) -> (Home, Repo) {
    (Home::with_server_and(server, Wire::Chat, "", hooks), small_repo())
}

fn go(home: &Home, repo: &Repo) -> Finished {
    Loon::exec(home, repo.path(), ["--mode", "bypass", "go"]).run()
}

/// What a hook that did `cat > NAME` read.
fn seen(repo: &Repo, name: &str) -> Value {
    serde_json::from_str(&repo.read(name)).expect("what a hook reads is JSON")
}

fn last_call(finished: &Finished) -> Value {
    finished.items("tool_call").pop().expect("a call")
}

/// Texts of the notices, in order.
fn notices(finished: &Finished) -> Vec<String> {
    let items = finished.items("notice");
    items.iter().filter_map(|item| Some(item["text"].as_str()?.to_owned())).collect()
}

/// Ends of the effects that were hooks.
fn hook_ends(finished: &Finished) -> Vec<Value> {
    let ends = finished.of_type("effect.finished");
    ends.into_iter().filter(|end| end["key"].to_string().contains("/hook/")).collect()
}

//! Words the scripts of several tests share: calls of the native tools, and homes for one server.

use loon_testkit::{Home, ModelServer, Reply, Repo, Wire, call};
use serde_json::{Value, json};

/// A read of a whole file.
pub(crate) fn read(path: &str) -> (&'static str, Value) {
    ("read", json!({"path": path}))
}

/// One exact replacement.
pub(crate) fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"path": path, "old": old, "new": new}))
}

/// A whole file.
pub(crate) fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

/// A patch over several files.
pub(crate) fn patch(text: &str) -> (&'static str, Value) {
    ("apply_patch", json!({"patch": text}))
}

/// A shell line.
pub(crate) fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

/// An answer with one call.
pub(crate) fn ask((name, arguments): (&str, Value)) -> Reply {
    call(name, arguments)
}

/// A home for this server that speaks chat completions, and a small repository.
pub(crate) fn chat_setup(server: &ModelServer) -> (Home, Repo) {
    (Home::with_server(server, Wire::Chat), small_repo())
}

/// A repository with two text files.
pub(crate) fn small_repo() -> Repo {
    Repo::new(&[("a.txt", "one\ntwo\nthree\n"), ("b.txt", "alpha\nbeta\n")])
}

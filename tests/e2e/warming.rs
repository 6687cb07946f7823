//! Getting ready ahead of a request.

use loon_testkit::{Input, Loon, ModelServer, text};
use serde_json::json;

use crate::scripts::chat_setup;

#[test]
fn k065_a_connection_opened_ahead_leaves_no_trace() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    for _ in 0..3 {
        running.write_line(json!({"type": "warm"}));
    }
    server.wait_for_warmed(1);
    running.write_line(json!({"type": "prompt", "text": "go"}));
    running.close_input();
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!((server.warmed().len(), server.requests().len()), (1, 1));
    let kinds: Vec<String> = home
        .records(&finished.exec())
        .iter()
        .map(|record| record["type"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds[..2], ["execution.started", "turn.started"]);
    assert!(!finished.text().contains("warm"));
}

#[test]
fn k066_a_server_that_is_not_there_is_no_matter_until_it_is_asked() {
    let server = ModelServer::answering(|_| text("never"));
    let (home, repo) = chat_setup(&server);
    drop(server);
    let mut running =
        Loon::exec(&home, repo.path(), ["--input", "jsonl"]).input(Input::Open).start();
    running.write_line(json!({"type": "warm"}));
    running.close_input();
    let finished = running.finish();
    let said = finished.events();
    assert!(said.iter().all(|event| event["type"] != "notice"), "{}", finished.text());
}

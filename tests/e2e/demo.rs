//! The demonstration, as a newcomer runs it: no key, no network, a real repair.

use loon_testkit::{Home, Loon};

#[test]
fn the_demonstration_repairs_a_real_repository_and_leaves_a_whole_session() {
    let home = Home::new();
    let finished = Loon::new(&home, home.path()).args(["demo", "--headless", "--json"]).run();
    assert_eq!(finished.terminal()["outcome"], "completed", "{}", finished.stderr);
    let done: Vec<_> = finished
        .items("tool_call")
        .into_iter()
        .filter(|item| item["status"] == "done" || item["status"] == "failed")
        .collect();
    let exits: Vec<_> = done
        .iter()
        .filter(|item| item["tool"] == "bash")
        .filter_map(|item| item["exit_code"].as_i64())
        .collect();
    assert!(exits.len() >= 2, "tests run before and after: {exits:?}");
    assert_ne!(exits.first(), Some(&0), "the tests fail at first");
    assert_eq!(exits.last(), Some(&0), "the tests pass at last");
    let changed =
        done.iter().any(|item| item["changes"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(changed, "a file was edited");
    let exec = finished.exec();
    let verified = Loon::new(&home, home.path()).args(["sessions", "verify", exec.as_str()]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

#[test]
fn the_demonstration_reads_well_without_a_terminal() {
    let home = Home::new();
    let finished = Loon::new(&home, home.path()).args(["demo"]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.text().trim().is_empty());
    assert!(!finished.stdout.contains(&0x1b));
}

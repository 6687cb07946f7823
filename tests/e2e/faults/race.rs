//! Processes that want the same session at the same time.

use loon_testkit::{Loon, ModelServer, text};

use crate::scripts::chat_setup;

#[test]
fn of_several_writers_at_once_each_is_served_or_refused_and_none_mixes_in() {
    let server = ModelServer::answering(|_| text("ok"));
    let (home, repo) = chat_setup(&server);
    let exec = Loon::exec(&home, repo.path(), ["go"]).run().exec();
    let mut served = 0;
    for round in 0..4 {
        let racing: Vec<_> = (0..4)
            .map(|_| Loon::exec(&home, repo.path(), ["--resume", &exec, "me"]).start())
            .collect();
        let before = served;
        for run in racing {
            let run = run.finish();
            match run.code {
                Some(0) => served += 1,
                Some(1) => assert_eq!(run.terminal()["error"]["code"], "BUSY", "{}", run.text()),
                other => panic!("round {round}: {other:?}: {}", run.text()),
            }
        }
        assert!(served > before, "round {round}: nobody was served");
    }
    let records = home.records(&exec);
    let numbers: Vec<u64> = records.iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=records.len() as u64).collect::<Vec<_>>());
    let turns = records.iter().filter(|record| record["type"] == "turn.started").count();
    assert_eq!(turns, served + 1);
    let verified = Loon::new(&home, repo.path()).args(["sessions", "verify", &exec]).run();
    assert_eq!(verified.code, Some(0), "{}{}", verified.text(), verified.stderr);
}

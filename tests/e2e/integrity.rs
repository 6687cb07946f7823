//! Journals that were torn, touched, written by a newer version, or held by another process.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use loon_testkit::{Finished, Home, Latch, Loon, ModelServer, Repo, Wire, text};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::scripts::{ask, read, small_repo};

struct Session {
    _server: ModelServer,
    home: Home,
    repo: Repo,
    exec: String,
}

impl Session {
    /// A finished session of one turn.
    fn new() -> Self {
        let server = ModelServer::answering(|request| {
            if request.answers() == 0 { ask(read("a.txt")) } else { text("ok") }
        });
        let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
        let exec = Loon::exec(&home, repo.path(), ["go"]).run().exec();
        Self { _server: server, home, repo, exec }
    }

    fn path(&self) -> PathBuf {
        self.home.journal(&self.exec)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("the journal")
    }

    #[expect(clippy::disallowed_methods, reason = "the test plays the damage")]
    fn set(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).expect("the journal");
    }

    fn resume(&self) -> Finished {
        Loon::exec(&self.home, self.repo.path(), ["--resume", &self.exec, "go on"]).run()
    }

    fn list(&self) -> String {
        Loon::new(&self.home, self.repo.path()).args(["sessions", "list"]).run().text()
    }

    fn sessions(&self, command: &str) -> Finished {
        Loon::new(&self.home, self.repo.path()).args(["sessions", command, &self.exec]).run()
    }
}

#[test]
fn a_torn_last_line_is_moved_aside_before_the_next_record() {
    let whole = Session::new().bytes();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    let line = &whole[last..];
    let umlaut = "{\"v\":1,\"text\":\"ä".as_bytes();
    let tails: [&[u8]; 4] =
        [&line[..line.len() / 2], &umlaut[..umlaut.len() - 1], b"{", &line[..line.len() / 2]];
    for (at, tail) in tails.into_iter().enumerate() {
        let session = Session::new();
        let mut torn = session.bytes();
        torn.extend_from_slice(tail);
        if at == 3 {
            torn.extend_from_slice(b"\n\n");
        }
        session.set(&torn);
        // A write that a crash cut off is no damage: nobody was told of it.
        let verified = session.sessions("verify");
        assert_eq!(verified.code, Some(0), "tail {at}: {}", verified.text());
        assert!(verified.text().contains("cut off"), "tail {at}: {}", verified.text());
        for told in [true, false] {
            let resumed = session.resume();
            assert_eq!(resumed.terminal()["outcome"], "completed", "tail {at}: {}", resumed.text());
            assert_eq!(resumed.text().contains("moved aside"), told, "tail {at}");
        }
        let records = session.home.records(&session.exec);
        let numbers: Vec<u64> =
            records.iter().filter_map(|record| record["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=records.len() as u64).collect::<Vec<_>>(), "tail {at}");
        let repaired: Vec<&Value> =
            records.iter().filter(|record| record.get("repaired_bytes").is_some()).collect();
        assert_eq!(repaired.len(), 1, "tail {at}: said once");
        assert_eq!(session.sessions("verify").code, Some(0), "tail {at}");
    }
}

#[test]
fn a_record_that_only_lacks_its_line_end_is_kept() {
    let session = Session::new();
    let before = session.home.records(&session.exec).len();
    let mut bytes = session.bytes();
    bytes.pop();
    session.set(&bytes);
    assert_eq!(session.resume().terminal()["outcome"], "completed");
    let records = session.home.records(&session.exec);
    assert_eq!(records[before - 1]["seq"].as_u64(), Some(before as u64));
    assert_eq!(records[before]["type"], "execution.resumed");
    assert_eq!(session.sessions("verify").code, Some(0));
}

#[test]
fn records_of_a_newer_version_stay_and_are_passed_over() {
    let session = Session::new();
    let mut bytes = session.bytes();
    let last = bytes.strip_suffix(b"\n").expect("a line end");
    let start = last.iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    let former: Value = serde_json::from_slice(&last[start..]).expect("a record");
    let prev = Sha256::digest(&last[start..]).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let hologram = json!({
        "v": 99, "seq": former["seq"].as_u64().map(|seq| seq + 1), "at": former["at"],
        "exec": session.exec, "type": "hologram.shown", "payload": {"x": 1},
        "fence": former["fence"], "prev": prev,
    });
    let line = format!("{hologram}\n");
    bytes.extend_from_slice(line.as_bytes());
    session.set(&bytes);

    assert_eq!(session.sessions("verify").code, Some(0), "{}", session.sessions("verify").stderr);
    for _ in 0..2 {
        let resumed = session.resume();
        assert_eq!(resumed.terminal()["outcome"], "completed");
        assert_eq!(resumed.text().matches("1 of type hologram.shown").count(), 1);
    }
    let kept = String::from_utf8(session.bytes()).expect("text");
    assert_eq!(kept.matches(&line).count(), 1);
    assert_eq!(session.sessions("verify").code, Some(0));
}

#[test]
fn any_touched_line_is_found_and_no_turn_is_added_to_it() {
    let session = Session::new();
    let good = session.bytes();
    let lines: Vec<&[u8]> = good.split_inclusive(|byte| *byte == b'\n').collect();
    let middle = lines.len() / 2;
    assert_eq!(session.sessions("verify").code, Some(0));

    let changed = String::from_utf8(good.clone()).expect("text").replacen("\"go\"", "\"no\"", 1);
    let mut removed = lines.clone();
    removed.remove(middle);
    let mut swapped = lines.clone();
    swapped.swap(middle, middle + 1);
    let mut foreign = lines.clone();
    foreign.insert(middle, b"not a record\n");
    for bad in [changed.into_bytes(), removed.concat(), swapped.concat(), foreign.concat()] {
        session.set(&bad);
        let verified = session.sessions("verify");
        assert_eq!(verified.code, Some(1), "{}", verified.text());
        let told = verified.text() + &verified.stderr;
        assert!(told.contains("line"), "{told}");
    }
}

#[test]
fn a_damaged_journal_is_called_so_wherever_it_is_shown_and_no_archive_is_made_of_it() {
    let session = Session::new();
    let state = || {
        let list = session.list();
        list.split_whitespace().nth(6).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(state(), "open");
    let good = session.bytes();
    // The same length, and a line that can be read.
    let bad = String::from_utf8(good.clone()).expect("text").replacen("\"go\"", "\"no\"", 1);
    session.set(bad.as_bytes());
    assert_eq!(state(), "damaged");
    let archive = session.repo.path().join("archive");
    let refused = Loon::new(&session.home, session.repo.path())
        .args(["sessions", "export", &session.exec, "--archive", "-o"])
        .args([archive.as_os_str()])
        .run();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("line ") && refused.stderr.contains("repair"));
    assert!(!archive.exists());
    for command in ["show", "export"] {
        let shown = session.sessions(command);
        assert_eq!(shown.code, Some(0));
        assert!(shown.stderr.contains("may not be what happened"), "{}", shown.stderr);
    }
    // Put right again, it is an ordinary one.
    session.set(&good);
    assert_eq!(state(), "open");
    assert_eq!(session.sessions("show").stderr, "");
}

#[test]
fn a_session_has_one_writer_and_the_second_is_told_who() {
    let latch = Latch::new();
    let server = ModelServer::queue([text("slow").hold(&latch), text("next")]);
    let (home, repo) = (Home::with_server(&server, Wire::Chat), small_repo());
    let mut first = Loon::exec(&home, repo.path(), ["go"]).start();
    let exec = first.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    latch.wait_reached(1);
    let before = fs::read(home.journal(&exec)).expect("the journal");

    let second = Loon::exec(&home, repo.path(), ["--resume", &exec, "me too"]).run();
    assert_eq!(second.code, Some(1), "{}", second.text());
    let told = second.text() + &second.stderr;
    assert!(told.contains(&first.pid().to_string()), "{told}");
    assert_eq!(fs::read(home.journal(&exec)).expect("the journal"), before);

    // The lock goes with its process, whatever became of it.
    first.signal(Signal::SIGKILL);
    first.finish();
    let third = Loon::exec(&home, repo.path(), ["--resume", &exec, "me now"]).run();
    assert_eq!(third.terminal()["outcome"], "completed", "{}", third.text());
}

#[test]
fn a_session_is_listed_shown_and_exported() {
    let session = Session::new();
    let list =
        Loon::new(&session.home, session.repo.path()).args(["sessions", "list", "--json"]).run();
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    assert!(list.text().contains(&session.exec), "{}", list.text());
    assert!(list.text().contains("\"go\""), "{}", list.text());
    let plain = Loon::new(&session.home, session.repo.path()).args(["sessions", "list"]).run();
    assert!(plain.text().contains("go"), "{}", plain.text());

    let shown = session.sessions("show");
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.text().contains("go") && shown.text().contains("ok"), "{}", shown.text());
    let exported = session.sessions("export");
    assert!(exported.text().contains("ok"), "{}", exported.text());
    let events = Loon::new(&session.home, session.repo.path())
        .args(["sessions", "export", &session.exec, "--json"])
        .run()
        .events();
    assert_eq!(events.len(), session.home.records(&session.exec).len());
}

#[test]
fn a_damaged_session_is_saved_into_a_new_one() {
    let session = Session::new();
    let good = String::from_utf8(session.bytes()).expect("text");
    session.set(good.replacen("\"ok\"", "\"no\"", 1).as_bytes());
    assert_eq!(session.sessions("verify").code, Some(1));
    let repaired = session.sessions("repair");
    assert_eq!(repaired.code, Some(0), "{}", repaired.stderr);
    let all =
        Loon::new(&session.home, session.repo.path()).args(["sessions", "list", "--json"]).run();
    let saved: Vec<String> = session
        .home
        .journals()
        .iter()
        .filter_map(|path| path.parent()?.file_name()?.to_str().map(str::to_owned))
        .filter(|exec| *exec != session.exec)
        .collect();
    assert_eq!(saved.len(), 1, "{}", all.text());
    let verified =
        Loon::new(&session.home, session.repo.path()).args(["sessions", "verify", &saved[0]]).run();
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
}

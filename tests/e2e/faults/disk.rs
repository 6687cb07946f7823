//! Disks that are full or read-only, and folders that go away under a running session.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use loon_testkit::{Finished, Home, Latch, Loon, ModelServer, Repo, text};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::scripts::{ask, bash, chat_setup};

/// A job of several steps with output.
fn job() -> ModelServer {
    ModelServer::answering(|request| match request.answers() {
        step @ 0..6 => ask(bash(&format!("seq {step} 900"))),
        _ => text("done"),
    })
}

fn verify(home: &Home, repo: &Repo, exec: &str) -> Finished {
    Loon::new(home, repo.path()).args(["sessions", "verify", exec]).run()
}

/// Every record that was shown is in the journal, which is as it was written and can be continued.
fn nothing_is_lost(home: &Home, repo: &Repo, ended: &Finished) {
    let shown: HashSet<u64> = ended.events().iter().filter_map(|it| it["seq"].as_u64()).collect();
    if shown.is_empty() {
        return;
    }
    let exec = ended.exec();
    let text = fs::read_to_string(home.journal(&exec)).expect("the journal");
    let kept: HashSet<u64> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?["seq"].as_u64())
        .collect();
    assert!(shown.is_subset(&kept), "shown and lost: {:?}", shown.difference(&kept));
    let verified = verify(home, repo, &exec);
    assert_eq!(verified.code, Some(0), "{}{}", verified.text(), verified.stderr);
}

/// It says what was tried with which file, and what the system said.
fn says_why(ended: &Finished, words: &[&str]) {
    let end = ended.terminal();
    let message = end["error"]["message"].as_str().unwrap_or_default();
    assert!(words.iter().any(|word| message.contains(word)), "{end}");
    assert_eq!(end["outcome"], "failed", "{end}");
}

#[test]
fn a_journal_that_may_not_grow_ends_the_run_and_keeps_what_was_shown() {
    let mut failed = 0;
    // In blocks of 512 bytes; the last is enough for the whole job.
    for blocks in [1, 3, 5, 9, 14, 20, 27, 40, 4000] {
        let server = job();
        let (home, repo) = chat_setup(&server);
        let limit = format!("trap '' XFSZ; ulimit -f {blocks};");
        let run = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).after(&limit).run();
        nothing_is_lost(&home, &repo, &run);
        if run.code == Some(0) {
            continue;
        }
        failed += 1;
        says_why(&run, &["File too large"]);
        if run.events().iter().any(|event| event["seq"].is_u64()) {
            let exec = run.exec();
            let arguments = ["--resume", &exec, "--mode", "bypass", "go on"];
            let resumed = Loon::exec(&home, repo.path(), arguments).run();
            assert_eq!(resumed.terminal()["outcome"], "completed", "{blocks}: {}", resumed.text());
            assert_eq!(verify(&home, &repo, &exec).code, Some(0), "{blocks}");
        }
    }
    assert!((1..9).contains(&failed), "{failed} of 9 runs ended early");
}

/// A small file system of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Nothing, said aloud, where this process may not mount.
    #[expect(clippy::print_stdout, reason = "what was not tested must not pass for tested")]
    fn at(path: &Path, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=700");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        match mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options.as_str())) {
            Ok(()) => Some(Self(path.to_owned())),
            Err(error) => {
                let other = "a limit on the size of files stands in for it in another test";
                println!("NOT TESTED with a real full disk: cannot mount one ({error}); {other}");
                None
            }
        }
    }

    fn change(&self, flags: MsFlags, options: &str) {
        let flags = MsFlags::MS_REMOUNT | flags;
        mount(None::<&str>, &self.0, Some("tmpfs"), flags, Some(options)).expect("a remount");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_disk_that_is_full_ends_the_run_and_keeps_what_was_shown() {
    for size in ["16k", "24k", "32k"] {
        let server = job();
        let (home, repo) = chat_setup(&server);
        let Some(disk) = SmallDisk::at(&home.data_dir(), size) else { return };
        let run = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run();
        assert_eq!(run.code, Some(1), "{size}: {}", run.text());
        says_why(&run, &["No space left"]);
        nothing_is_lost(&home, &repo, &run);
        disk.change(MsFlags::empty(), "size=8m");
        if run.events().iter().any(|event| event["seq"].is_u64()) {
            let exec = run.exec();
            let arguments = ["--resume", &exec, "--mode", "bypass", "go on"];
            let resumed = Loon::exec(&home, repo.path(), arguments).run();
            assert_eq!(resumed.terminal()["outcome"], "completed", "{size}: {}", resumed.text());
        }
    }
}

#[test]
fn a_disk_that_is_read_only_is_said_before_anything_runs() {
    let server = job();
    let (home, repo) = chat_setup(&server);
    let Some(disk) = SmallDisk::at(&home.data_dir(), "8m") else { return };
    let exec = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).run().exec();
    let requests = server.requests().len();
    disk.change(MsFlags::MS_RDONLY, "size=8m");
    for arguments in [vec!["go"], vec!["--resume", &exec, "go on"]] {
        let run = Loon::exec(&home, repo.path(), arguments).run();
        says_why(&run, &["Read-only file system"]);
    }
    assert_eq!(server.requests().len(), requests, "nobody was asked");
    assert_eq!(verify(&home, &repo, &exec).code, Some(0), "reading needs no writing");
    disk.change(MsFlags::empty(), "size=8m");
    let run = Loon::exec(&home, repo.path(), ["--resume", &exec, "go on"]).run();
    assert_eq!(run.terminal()["outcome"], "completed", "{}", run.text());
}

#[test]
fn a_folder_that_goes_away_ends_the_run_and_is_whole_when_it_is_back() {
    let latch = Latch::new();
    let server =
        ModelServer::by_step([ask(bash("echo ran >> log.txt")).hold(&latch), text("never told")]);
    let (home, repo) = chat_setup(&server);
    let mut running = Loon::exec(&home, repo.path(), ["--mode", "bypass", "go"]).start();
    let exec = running.wait_type("turn.started")["exec"].as_str().expect("an id").to_owned();
    latch.wait_reached(1);
    let away = home.path().join("away");
    fs::rename(home.data_dir(), &away).expect("a rename");
    latch.release();
    let run = running.finish();
    assert_eq!(run.code, Some(1), "{}", run.text());
    says_why(&run, &["fence"]);
    assert!(!repo.has("log.txt"), "nothing runs whose intent cannot be written");
    if home.data_dir().exists() {
        fs::remove_dir_all(home.data_dir()).expect("what was made in its place");
    }
    fs::rename(&away, home.data_dir()).expect("a rename");
    nothing_is_lost(&home, &repo, &run);
    latch.release();
    let arguments = ["--resume", &exec, "--mode", "bypass", "go on"];
    let resumed = Loon::exec(&home, repo.path(), arguments).run();
    assert_eq!(resumed.terminal()["outcome"], "completed", "{}", resumed.text());
}

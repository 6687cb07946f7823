//! Tests of processes that go on: what they say, hear, and leave behind.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::*;
use crate::spawn::Spawner;

const SIZE: WindowSize = WindowSize { rows: 30, columns: 100 };
const ENDED: Exit =
    Exit { code: Some(0), signal: None, cause: Cause::Ended, leftovers_ended: 0, survivors: 0 };

fn start(line: &str) -> Process {
    Spawner::default().bash(line, Path::new("/")).start_process(Console::Pipes).unwrap()
}

fn start_on_terminal(line: &str) -> Process {
    let spawn = Spawner::default().bash(line, Path::new("/"));
    spawn.start_process(Console::Terminal(SIZE)).unwrap()
}

fn text(process: &Process) -> String {
    String::from_utf8(process.output_since(0).bytes).unwrap()
}

/// Waits until the output holds `words`.
async fn heard(process: &Process, words: &str) {
    let mut offset = 0;
    while !text(process).contains(words) {
        assert_eq!(process.exit(), None, "it ended before it said {words:?}: {:?}", text(process));
        process.output_after(offset).await;
        offset = process.written();
    }
}

/// Numbers that a shell printed, one a line.
async fn pids(process: &Process, count: usize) -> Vec<Pid> {
    let mut offset = 0;
    while text(process).lines().count() < count {
        process.output_after(offset).await;
        offset = process.written();
    }
    text(process).lines().map(|line| Pid::from_raw(line.parse().unwrap())).collect()
}

/// True if it runs; who has ended and was not collected does not.
fn runs(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

#[tokio::test]
async fn it_says_hears_and_ends() {
    let process = start("cat; exit 3");
    assert_eq!(process.write(b"one\n").await.unwrap(), 4);
    heard(&process, "one\n").await;
    let offset = process.written();
    process.write(b"two\n").await.unwrap();
    process.output_after(offset).await;
    assert_eq!(
        process.output_since(offset),
        Piece { skipped: 0, bytes: b"two\n".to_vec(), end: 8 }
    );
    assert_eq!(process.exit(), None);
    process.end_input().await.unwrap();
    assert_eq!(process.ended().await, Some(Exit { code: Some(3), ..ENDED }));
    assert_eq!(process.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    // What has ended needs no end.
    assert_eq!(process.stop().await, Some(Exit { code: Some(3), ..ENDED }));
}

#[tokio::test]
async fn the_signal_that_ended_it_is_told() {
    let process = start("echo up; kill -SEGV $$");
    let exit = process.ended().await.unwrap();
    assert_eq!(exit, Exit { code: None, signal: Some(11), ..ENDED });
    assert_eq!(text(&process), "up\n");
}

#[tokio::test]
async fn of_a_flood_the_newest_bytes_are_kept() {
    let process = start("head -c 3000000 /dev/zero | tr '\\0' x; echo END");
    process.ended().await;
    let piece = process.output_since(10);
    assert_eq!(piece.end, 3_000_004);
    assert_eq!(piece.bytes.len(), KEEP);
    assert_eq!(piece.skipped, 3_000_004 - 10 - KEEP as u64);
    assert!(piece.bytes.ends_with(b"xEND\n"));
}

#[tokio::test]
async fn a_stop_ends_the_whole_tree() {
    let process = start("echo $$; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait");
    let pids = pids(&process, 3).await;
    assert!(pids.iter().all(|pid| runs(*pid)));
    let exit = process.stop().await.unwrap();
    let stopped = Exit { code: None, signal: Some(15), cause: Cause::Cancelled, ..ENDED };
    assert_eq!(exit, stopped);
    assert_eq!(pids.into_iter().filter(|pid| runs(*pid)).collect::<Vec<_>>(), []);
}

#[tokio::test]
async fn who_hides_but_holds_the_output_is_ended_too() {
    let line = "env -i setsid -f bash -c 'echo $$; exec sleep 1000'; sleep 1000";
    for process in [start(line), start_on_terminal(line)] {
        let pids = pids(&process, 1).await;
        assert!(runs(pids[0]));
        assert_eq!(process.stop().await.unwrap().survivors, 0);
        assert!(!runs(pids[0]), "{:?}", process.console());
    }
}

#[tokio::test]
async fn who_does_not_listen_is_killed() {
    let process = start("trap '' TERM; echo up; while :; do sleep 1000; done");
    heard(&process, "up").await;
    assert_eq!(process.stop().await.unwrap().signal, Some(9));
}

#[tokio::test]
async fn a_leader_that_leaves_children_behind_is_told() {
    let process = start("sleep 1000 & echo $!");
    let exit = process.ended().await.unwrap();
    assert_eq!(exit, Exit { leftovers_ended: 1, ..ENDED });
    assert!(!runs(pids(&process, 1).await[0]));
}

#[tokio::test]
async fn a_drop_kills_all_of_it() {
    let process = start("echo $$; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait");
    let pids = pids(&process, 3).await;
    drop(process);
    // The signals are sent before the drop returns; the kernel then needs a moment.
    for pid in pids {
        while runs(pid) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_terminal_is_one() {
    let process = start_on_terminal(
        "test -t 0 && test -t 1 && test -t 2 && stty size; : < /dev/tty && echo own",
    );
    assert_eq!(process.ended().await, Some(ENDED));
    assert_eq!(text(&process), "30 100\r\nown\r\n");
}

#[tokio::test]
async fn keys_of_a_terminal_are_felt() {
    let process = start_on_terminal("echo up; cat");
    heard(&process, "up").await;
    process.write(b"echoed\n").await.unwrap();
    heard(&process, "echoed\r\nechoed\r\n").await;
    process.write(b"\x03").await.unwrap();
    let exit = process.ended().await.unwrap();
    assert_eq!(exit, Exit { code: None, signal: Some(Signal::SIGINT as i32), ..ENDED });
}

#[tokio::test]
async fn a_terminal_can_end_input() {
    let process = start_on_terminal("echo up; cat; exit 4");
    heard(&process, "up").await;
    process.end_input().await.unwrap();
    assert_eq!(process.ended().await.unwrap().code, Some(4));
}

#[tokio::test]
async fn a_dropped_terminal_takes_its_processes_along() {
    let process = start_on_terminal("set -m; sleep 1000 & echo up; wait");
    heard(&process, "up").await;
    let leader = Pid::from_raw(process.id() as i32);
    drop(process);
    while kill(leader, None).is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_cannot_start_is_told() {
    let missing = Spawner::default().program("no-such-program-x", Path::new("/"));
    let error = missing.start_process(Console::Pipes).unwrap_err();
    assert!(matches!(error, SpawnError::NoProgram { .. }), "{error}");
    let lost = Spawner::default().bash("true", Path::new("/no/such/folder"));
    let error = lost.start_process(Console::Terminal(SIZE)).unwrap_err();
    assert!(matches!(error, SpawnError::NoFolder { .. }), "{error}");
}

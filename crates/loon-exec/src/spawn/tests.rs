//! Tests of whole runs: output, input, ends, and what must not outlive them.

use std::sync::Mutex;
use std::time::Instant;

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::*;

fn bash(line: &str) -> Spawn {
    Spawner::default().bash(line, Path::new("/"))
}

fn text(captured: &Captured) -> String {
    String::from_utf8([&captured.head[..], &captured.tail].concat()).unwrap()
}

/// How long leftovers sleep: a number that no other test and no other run of the tests uses.
fn mark(test: char) -> String {
    format!("31.{:010}{test}", std::process::id())
}

/// No process whose command line holds `mark` is running.
fn assert_gone(mark: &str) {
    let still: Vec<String> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(mark))
        .collect();
    assert_eq!(still, Vec::<String>::new());
}

const ENDED: Exit =
    Exit { code: Some(0), signal: None, cause: Cause::Ended, leftovers_ended: 0, survivors: 0 };

#[tokio::test]
async fn both_streams_arrive_in_order() {
    let finished = bash("echo a; echo b >&2; echo c; exit 3").run().await.unwrap();
    assert_eq!(text(&finished.output), "a\nb\nc\n");
    assert_eq!(finished.errors, Captured::default());
    assert_eq!(finished.exit, Exit { code: Some(3), ..ENDED });
    assert!(!finished.exit.is_success());
}

#[tokio::test]
async fn errors_can_be_kept_apart() {
    let finished = bash("echo a; echo b >&2; echo c").separate_errors().run().await.unwrap();
    assert_eq!(text(&finished.output), "a\nc\n");
    assert_eq!(text(&finished.errors), "b\n");
}

#[tokio::test]
async fn standard_input_ends_at_once_unless_bytes_are_given() {
    for (line, code) in [("cat; exit $?", 0), ("read q; exit $?", 1)] {
        assert_eq!(bash(line).run().await.unwrap().exit, Exit { code: Some(code), ..ENDED });
    }
    let much = vec![b'x'; 300_000];
    let finished = bash("cat").input(much.clone()).keep(400_000, 0).run().await.unwrap();
    assert_eq!(finished.output.head, much);
    let finished = bash("exec 0<&-; echo deaf").input(much).run().await.unwrap();
    assert_eq!(text(&finished.output), "deaf\n");
}

#[tokio::test]
async fn a_child_leads_its_own_session_without_a_terminal() {
    let finished =
        bash("read -a f < /proc/self/stat; echo $(( f[5] == $$ )) $(( f[4] == $$ )); : < /dev/tty")
            .run()
            .await
            .unwrap();
    assert!(text(&finished.output).starts_with("1 1\n"));
    assert_eq!(finished.exit.code, Some(1));
}

#[tokio::test]
async fn a_line_that_begins_with_a_dash_is_a_line() {
    let finished = bash("-n").run().await.unwrap();
    assert_eq!(finished.exit.code, Some(127));
}

#[tokio::test]
async fn hidden_variables_are_not_seen_and_added_ones_are() {
    let spawner = Spawner::new(["PATH_LIKE_SECRET".to_owned(), "HOME".to_owned()]);
    let finished = spawner
        .bash("echo ${HOME-none} $ADDED $TERM $PAGER ${BASH_ENV-none}", Path::new("/"))
        .env("ADDED", "a b")
        .unattended()
        .run()
        .await
        .unwrap();
    assert_eq!(text(&finished.output), "none a b dumb cat none\n");
}

#[tokio::test]
async fn a_flood_is_bounded_and_counted() {
    let finished = bash("head -c 50000000 /dev/zero | tr '\\0' x; echo END").run().await.unwrap();
    assert_eq!(finished.output.total(), 50_000_004);
    assert_eq!(finished.output.head.len(), 32 * 1024);
    assert_eq!(finished.output.tail.len(), 32 * 1024);
    assert!(finished.output.tail.ends_with(b"xEND\n"));
}

#[tokio::test]
async fn the_listener_hears_everything() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&heard);
    let finished = bash("for i in 1 2 3; do echo $i; done; seq 100000 | tail -n 20000 >&2")
        .on_output(move |bytes| copy.lock().unwrap().extend_from_slice(bytes))
        .keep(1 << 20, 0)
        .run()
        .await
        .unwrap();
    assert_eq!(*heard.lock().unwrap(), finished.output.head);
    assert!(finished.output.head.ends_with(b"\n100000\n"));
}

#[tokio::test]
async fn an_endless_flood_is_stopped_by_the_timeout() {
    let finished = bash("yes").timeout(Duration::from_millis(200)).run().await.unwrap();
    assert_eq!(finished.exit.cause, Cause::TimedOut);
    assert_eq!(finished.exit.signal, Some(15));
    assert_eq!(finished.exit.survivors, 0);
    assert!(finished.output.omitted > 0);
}

#[tokio::test]
async fn a_background_child_holds_up_nothing_and_is_ended() {
    let line = "( while :; do echo tick; sleep 0.01; done ) & sleep 0.1; echo done";
    let finished = bash(line).timeout(Duration::from_mins(1)).run().await.unwrap();
    assert!(text(&finished.output).contains("done\n"));
    assert_eq!(finished.exit.cause, Cause::Ended);
    assert_eq!(finished.exit.code, Some(0));
    assert!(finished.exit.leftovers_ended >= 1);
    assert_eq!(finished.exit.survivors, 0);

    let mark = mark('1');
    let finished = bash(&format!("nohup sleep {mark} & echo started")).run().await.unwrap();
    assert!(text(&finished.output).contains("started\n"));
    assert_eq!(finished.exit, Exit { leftovers_ended: 1, ..ENDED });
    assert_gone(&mark);
}

#[tokio::test]
async fn jobs_in_groups_of_their_own_are_found() {
    let mark = mark('2');
    let line = format!("set -m; sleep {mark} & sleep {mark} & echo x");
    let finished = bash(&line).run().await.unwrap();
    assert_eq!(finished.exit, Exit { leftovers_ended: 2, ..ENDED });
    assert_gone(&mark);
}

#[tokio::test]
async fn who_begins_a_session_of_its_own_is_found() {
    let (mark, folder) = (mark('3'), tempfile::tempdir().unwrap());
    for line in [
        format!("setsid sleep {mark} & echo x"),
        format!("setsid bash -c 'sleep {mark} & sleep {mark}' & echo x"),
        // What marks it is gone, and so is its parent.
        format!(
            "mkfifo gone; env -i setsid -f bash -c 'echo > gone; exec sleep {mark}'; read < gone"
        ),
        // Nothing of it holds the pipe, so that the run could seem to be over.
        format!(
            "mkfifo up; (setsid bash -c 'echo > up; exec sleep {mark}' > /dev/null 2>&1 &); read < up"
        ),
    ] {
        let spawn = Spawner::default().bash(&line, folder.path());
        let finished = spawn.timeout(Duration::from_mins(1)).run().await.unwrap();
        assert_eq!(finished.exit.code, Some(0));
        assert!(finished.exit.leftovers_ended >= 1, "{line}");
        assert_eq!(finished.exit.survivors, 0);
        assert_gone(&mark);
    }
}

#[tokio::test]
async fn a_straggler_that_ends_by_itself_is_heard() {
    let finished =
        bash("echo one > >(while read line; do echo $line; done); echo two").run().await.unwrap();
    let heard = text(&finished.output);
    assert!(heard.contains("one\n") && heard.contains("two\n"), "{heard}");
    assert_eq!(finished.exit, ENDED);
}

#[tokio::test]
async fn a_cancel_ends_the_whole_group_even_if_it_will_not_listen() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let mark = mark('4');
    let line = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep {mark}; done) & echo up; while :; do sleep {mark}; done"
    );
    let finished =
        bash(&line).on_output(move |_| stop.cancel()).cancel(cancel).run().await.unwrap();
    assert_eq!(
        finished.exit,
        Exit {
            code: None,
            signal: Some(9),
            cause: Cause::Cancelled,
            leftovers_ended: 0,
            survivors: 0
        }
    );
    assert_gone(&mark);
}

#[tokio::test]
async fn last_words_after_a_cancel_are_kept() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let finished = bash("trap 'head -c 200000 /dev/zero; echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done")
        .on_output(move |_| stop.cancel())
        .cancel(cancel)
        .run()
        .await
        .unwrap();
    assert_eq!(finished.exit.code, Some(7));
    assert!(finished.output.tail.ends_with(b"bye\n"));
}

#[tokio::test]
async fn a_stopped_process_is_ended_too() {
    let finished = bash("kill -STOP $$").timeout(Duration::from_millis(50)).run().await.unwrap();
    assert_eq!(finished.exit.cause, Cause::TimedOut);
    assert_eq!(finished.exit.survivors, 0);
}

#[tokio::test]
async fn a_drop_kills_and_collects() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let run = bash("echo $$; sleep 31 & sleep 31")
        .on_output(move |bytes| {
            let _ = tell.send(String::from_utf8_lossy(bytes).trim().parse::<i32>().unwrap());
        })
        .run();
    let mut run = Box::pin(run);
    let pid = tokio::select! {
        _ = &mut run => panic!("it ended"),
        pid = told.recv() => Pid::from_raw(pid.unwrap()),
    };
    drop(run);
    // The signals are sent before the drop returns; the kernel then needs a moment.
    let begun = Instant::now();
    while kill(pid, None).is_ok() && begun.elapsed() < Duration::from_secs(5) {
        tokio::task::yield_now().await;
    }
    assert_eq!(kill(pid, None), Err(nix::errno::Errno::ESRCH));
}

#[tokio::test]
async fn signals_are_named() {
    let finished = bash("kill -9 $$").run().await.unwrap();
    assert_eq!(finished.exit, Exit { code: None, signal: Some(9), ..ENDED });
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let error =
        Spawner::default().program("no-such-program-x", Path::new("/")).run().await.unwrap_err();
    assert!(matches!(error, SpawnError::NoProgram { .. }), "{error}");
    let error =
        Spawner::default().bash("true", Path::new("/no/such/folder")).run().await.unwrap_err();
    assert!(matches!(error, SpawnError::NoFolder { .. }), "{error}");
}

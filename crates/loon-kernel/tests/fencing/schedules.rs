//! The stores themselves, driven through every order of the calls that processes make.

use loon_api::event::{ExecutionCancelled, ExecutionStarted, Notice, NoticeLevel};
use loon_api::{AgentEvent, At, Envelope, ErrorCode, ExecutionId, ExecutionKind, Seq, VERSION};
use loon_kernel::{FileStore, JournalStore, JournalWriter, MemoryStore, StoreError};

/// One call of one process.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Appends a record to what it has open.
    Append,
    /// Lets go of the journal, as a death does.
    Drop,
    /// Takes the journal over.
    TakeOver,
    /// Reads, and appends the cancel unless there is one.
    End,
}

/// A process: the calls it makes, in order.
const PROCESSES: [&[Call]; 4] = [
    &[Call::Append, Call::Drop],
    &[Call::TakeOver, Call::Append],
    &[Call::TakeOver, Call::End],
    &[Call::TakeOver, Call::End],
];

/// Calls `each` with every order in which the first `count` processes can make their calls.
fn schedules(count: usize, each: &mut dyn FnMut(&[usize])) {
    fn go(left: &mut [usize], so_far: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
        if left.iter().all(|left| *left == 0) {
            return each(so_far);
        }
        for process in 0..left.len() {
            if left[process] > 0 {
                left[process] -= 1;
                so_far.push(process);
                go(left, so_far, each);
                so_far.pop();
                left[process] += 1;
            }
        }
    }
    let mut left: Vec<usize> = PROCESSES[..count].iter().map(|calls| calls.len()).collect();
    go(&mut left, &mut Vec::new(), each);
}

struct Process {
    writer: Option<Box<dyn JournalWriter>>,
    next: Seq,
    made: usize,
}

fn record(exec: ExecutionId, seq: Seq, event: impl Into<AgentEvent>) -> Envelope {
    let at = At::from_unix_ms(1_796_040_000_000);
    Envelope { v: VERSION, seq: Some(seq), at, exec, turn: None, event: event.into() }
}

fn note(exec: ExecutionId, seq: Seq, message: String) -> Envelope {
    record(exec, seq, Notice { level: NoticeLevel::Info, message, hints: vec![] })
}

fn play(store: &dyn JournalStore, schedule: &[usize]) {
    let exec = ExecutionId::generate();
    let mut first = store.create(exec).unwrap();
    let started = ExecutionStarted {
        kind: ExecutionKind::Session,
        cwd: "/w".to_owned(),
        parent: None,
        deadline_ms: None,
        loon: "0".to_owned(),
    };
    let mut acknowledged = vec![record(exec, 1, started)];
    first.append(&acknowledged).unwrap();
    let mut processes: Vec<Process> =
        PROCESSES.iter().map(|_| Process { writer: None, next: 0, made: 0 }).collect();
    processes[0] = Process { writer: Some(first), next: 2, made: 0 };
    // Who took over last; only that one may write.
    let mut newest = 0;

    for (step, index) in schedule.iter().enumerate() {
        let process = &mut processes[*index];
        let call = PROCESSES[*index][process.made];
        process.made += 1;
        let read = || -> Vec<Envelope> { store.read(exec).unwrap().map(Result::unwrap).collect() };
        let next = match call {
            Call::Drop => {
                process.writer = None;
                continue;
            }
            Call::TakeOver => {
                process.writer = Some(store.take_over(exec).unwrap().writer);
                process.next = read().len() as u64 + 1;
                newest = *index;
                continue;
            }
            Call::End if read().iter().any(|it| it.event.kind() == "execution.cancelled") => {
                continue;
            }
            Call::End => record(exec, process.next, ExecutionCancelled { reason: None }),
            // Who reads the end of an execution writes nothing after it.
            Call::Append
                if *index > 0
                    && read().iter().any(|it| it.event.kind() == "execution.cancelled") =>
            {
                continue;
            }
            Call::Append => note(exec, process.next, format!("{index} at {step}")),
        };
        let Some(writer) = &mut process.writer else { continue };
        match writer.append(std::slice::from_ref(&next)) {
            Ok(()) => {
                assert_eq!(newest, *index, "{schedule:?}: an old fence wrote");
                process.next += 1;
                acknowledged.push(next);
            }
            Err(StoreError::Fenced { .. }) => {
                assert_ne!(newest, *index, "{schedule:?}: the newest fence was refused");
                assert_eq!(writer.check().unwrap_err().code(), ErrorCode::Fenced);
            }
            Err(error) => panic!("{schedule:?}: {error}"),
        }
    }
    let journal: Vec<Envelope> = store.read(exec).unwrap().map(Result::unwrap).collect();
    assert_eq!(journal, acknowledged, "{schedule:?}");
    assert!(store.verify(exec).unwrap().is_sound(), "{schedule:?}");
    let ends = journal.iter().filter(|it| it.event.kind() == "execution.cancelled").count();
    assert!(ends <= 1, "{schedule:?}");
}

#[test]
fn k029_every_order_of_calls_keeps_the_promises_in_memory() {
    let mut count = 0;
    schedules(4, &mut |schedule| {
        count += 1;
        // A new store each time: one that kept them all would only grow.
        play(&MemoryStore::default(), schedule);
    });
    assert_eq!(count, 2520);
}

#[test]
fn k029_every_order_of_calls_keeps_the_promises_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let mut count = 0;
    schedules(3, &mut |schedule| {
        count += 1;
        play(&store, schedule);
    });
    assert_eq!(count, 90);
}

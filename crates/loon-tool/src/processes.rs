//! The processes that one execution started and that go on between calls.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loon_api::ProgramRun;
use loon_exec::{Captured, Cause, Console, Exit, Piece, Process, Spawn, SpawnError};
use loon_kernel::ToolOutput;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::project::Kind;
use crate::runner::counts::Counter;
use crate::status::{status, tell_leftovers};
use crate::text::{self, Terminal};

/// Most processes that run at once.
const RUNNING: usize = 16;
/// Most ended processes that are kept until their end is told.
const ENDED: usize = 16;
/// Most bytes of output in one report.
const SHOWN: usize = 32 * 1024;
/// Output comes in bursts: a report waits until this long nothing came,
const QUIET: Duration = Duration::from_millis(100);
/// but not longer than this.
pub(crate) const BURST: Duration = Duration::from_secs(1);

/// The processes of one execution. Dropped, it ends them all.
#[derive(Debug, Default)]
pub struct Processes {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Ids given out so far.
    started: usize,
    /// In order of their start.
    entries: Vec<Arc<Entry>>,
}

/// One process.
#[derive(Debug)]
pub(crate) struct Entry {
    id: String,
    /// The command as the shell was given it.
    line: String,
    /// What it is, one safe line.
    title: String,
    cwd: PathBuf,
    process: Process,
    started: Instant,
    told: Mutex<Told>,
    /// What was typed since the last line end.
    typed: Mutex<Vec<u8>>,
}

/// How far the output was told.
#[derive(Debug, Default)]
struct Told {
    offset: u64,
    terminal: Terminal,
    /// Counts what it prints, if its command is one that counts and no output was lost.
    counter: Option<Counter>,
}

impl Processes {
    /// Starts one. The error is what the model reads.
    pub(crate) fn start(
        &self,
        spawn: Spawn,
        console: Console,
        line: String,
        title: String,
        cwd: PathBuf,
    ) -> Result<Arc<Entry>, String> {
        let mut table = self.table();
        let running = table.entries.iter().filter(|entry| entry.exit().is_none()).count();
        if running >= RUNNING {
            return Err(format!(
                "{running} processes run already, which is the most there may be. End one with process_stop first."
            ));
        }
        let process = spawn.start_process(console).map_err(|error| refusal(&error))?;
        table.started += 1;
        let id = format!("p{}", table.started);
        let entry = Arc::new(Entry {
            id,
            title,
            cwd,
            process,
            started: Instant::now(),
            told: Mutex::new(Told {
                counter: Kind::of_line(&line).map(Counter::new),
                ..Told::default()
            }),
            line,
            typed: Mutex::default(),
        });
        table.entries.push(Arc::clone(&entry));
        table.forget_oldest_ended();
        Ok(entry)
    }

    /// The process with this id. The error is what the model reads.
    pub(crate) fn find(&self, id: &str) -> Result<Arc<Entry>, String> {
        let table = self.table();
        if let Some(entry) = table.entries.iter().find(|entry| entry.id == id) {
            return Ok(Arc::clone(entry));
        }
        let number = id.strip_prefix('p').and_then(|number| number.parse::<usize>().ok());
        if number.is_some_and(|number| (1..=table.started).contains(&number)) {
            return Err(format!("{id} has ended and is not kept any more."));
        }
        let ids: Vec<&str> = table.entries.iter().map(|entry| entry.id.as_str()).collect();
        let id = text::visible_line(id);
        Err(match ids.as_slice() {
            [] => format!("There is no process {id}. Start one with process_start."),
            _ => format!("There is no process {id}. There are: {}.", ids.join(", ")),
        })
    }

    /// All that are kept, in order of their start.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.table().entries.clone()
    }

    /// What was not told of a process before: new output, and whether it still runs. Once its end
    /// is told it is forgotten.
    pub(crate) fn report(&self, entry: &Entry) -> ToolOutput {
        // In this order: at the end all output is there.
        let exit = entry.exit();
        let mut text = entry.untold(exit.is_some());
        let silent = text.is_empty();
        if !silent && !text.ends_with('\n') {
            text.push('\n');
        }
        let Some(exit) = exit else {
            text.push_str(&running(&entry.id, entry.started.elapsed(), silent));
            return ToolOutput::ok(text, "running");
        };
        self.table().entries.retain(|other| other.id != entry.id);
        let status = status(exit);
        let end = match exit.cause {
            Cause::Ended => status,
            Cause::Cancelled | Cause::TimedOut => format!("stopped: {status}"),
        };
        let _ = write!(text, "[{} {end}]", entry.id);
        tell_leftovers(exit, "start it without &", &mut text);
        let mut output = ToolOutput::ok(text, end);
        output.exit_code = exit.code.filter(|_| exit.cause == Cause::Ended);
        output.runs.push(ProgramRun {
            line: entry.line.clone(),
            exit_code: output.exit_code,
            check: None,
            counts: entry
                .told()
                .counter
                .take()
                .map(|counter| counter.finish().1)
                .unwrap_or_default(),
            unclear: false,
        });
        output
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_oldest_ended(&mut self) {
        let ended = self.entries.iter().filter(|entry| entry.exit().is_some()).count();
        let mut surplus = ended.saturating_sub(ENDED);
        self.entries.retain(|entry| {
            let forget = surplus > 0 && entry.exit().is_some();
            surplus -= usize::from(forget);
            !forget
        });
    }
}

impl Entry {
    /// Short name by which the model knows it.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Folder it was started in.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.process.exit()
    }

    /// Waits for output that was not told, or for the end. False if it was cancelled.
    pub(crate) async fn news(&self, wait: Duration, cancel: &CancellationToken) -> bool {
        let offset = self.told().offset;
        let news = async {
            if timeout(wait, self.process.output_after(offset)).await.is_ok() {
                // Whether the burst ends or its time is up: there is something to tell.
                let _ = timeout(BURST.min(wait), self.quiet()).await;
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = news => true,
        }
    }

    /// Waits until no more output comes for a moment, or for the end.
    async fn quiet(&self) {
        while self.exit().is_none() {
            let written = self.process.written();
            if timeout(QUIET, self.process.output_after(written)).await.is_err() {
                return;
            }
        }
    }

    /// The text of the output that was not told before, with what is left of the last line if no
    /// more can come.
    fn untold(&self, is_last: bool) -> String {
        let mut told = self.told();
        let piece = self.process.output_since(told.offset);
        told.offset = piece.end;
        if piece.skipped > 0 {
            told.counter = None;
        }
        if let Some(counter) = &mut told.counter {
            counter.push(&piece.bytes);
        }
        let mut text = if piece.skipped == 0 && piece.bytes.len() <= SHOWN {
            told.terminal.push(&piece.bytes);
            told.terminal.take()
        } else {
            let mut text = std::mem::take(&mut told.terminal).finish();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&text::output(&shorten(piece)));
            text
        };
        if is_last {
            text.push_str(&std::mem::take(&mut told.terminal).finish());
        }
        text
    }

    /// The line that was begun by what was typed, still without its end.
    pub(crate) fn begun_line(&self) -> String {
        String::from_utf8_lossy(&self.typed()).into_owned()
    }

    /// Remembers what the process took.
    pub(crate) fn note_typed(&self, bytes: &[u8]) {
        let console = self.process.console();
        let mut typed = self.typed();
        typed.extend_from_slice(bytes);
        if let Some(end) = last_line_end(&typed, console) {
            typed.drain(..=end);
        }
    }

    fn typed(&self) -> MutexGuard<'_, Vec<u8>> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line about it for a list.
    pub(crate) fn line(&self) -> String {
        let state = self.exit().map_or_else(|| "running".to_owned(), status);
        let unread = self.process.written() - self.told().offset;
        let mut line = format!("{} [{state}] {}", self.id, self.title);
        if unread > 0 {
            let _ = write!(line, " ({} unread)", text::size(unread));
        }
        line
    }
}

/// Where the last line ends that is whole. A shell goes on with a line whose end is escaped; on a
/// terminal ctrl-c throws away what was typed.
fn last_line_end(typed: &[u8], console: Console) -> Option<usize> {
    let terminal = matches!(console, Console::Terminal(_));
    (0..typed.len()).rev().find(|at| {
        let before = typed[..*at].iter().rev();
        let escaped = !before.take_while(|byte| **byte == b'\\').count().is_multiple_of(2);
        match typed[*at] {
            b'\n' => !escaped,
            b'\r' => terminal && !escaped,
            b'\x03' => terminal,
            _ => false,
        }
    })
}

/// That it runs. The time tells one look at a silent process from the next.
fn running(id: &str, time: Duration, silent: bool) -> String {
    let note = if silent { ", no new output" } else { "" };
    format!("[{id} running for {} s{note}]", time.as_secs())
}

/// The beginning and the end of what is too much to tell; the end only where the beginning is
/// lost.
fn shorten(piece: Piece) -> Captured {
    let Piece { skipped, mut bytes, .. } = piece;
    let head = if skipped == 0 { SHOWN / 2 } else { 0 };
    let tail = bytes.split_off(bytes.len().saturating_sub(SHOWN - head).max(head));
    let omitted = skipped + (bytes.len() - head) as u64;
    bytes.truncate(head);
    Captured { head: bytes, omitted, tail }
}

fn refusal(error: &SpawnError) -> String {
    let text = match error {
        SpawnError::NoFolder { cwd, .. } => {
            format!("The folder {} does not exist, so nothing was started in it.", cwd.display())
        }
        _ => format!("Nothing was started: {error}."),
    };
    text::visible_line(&text)
}

#[cfg(test)]
mod tests;

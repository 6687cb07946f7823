//! `process_write`: types into a process.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{Subject, ToolClass};
use loon_exec::Console;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;

use crate::bash;
use crate::processes::{BURST, Entry, Processes};
use crate::text;

/// How long a process may take to read what it is given.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes to processes.
pub struct ProcessWrite {
    processes: Arc<Processes>,
}

impl ProcessWrite {
    pub(crate) fn new(processes: &Arc<Processes>) -> Self {
        Self { processes: Arc::clone(processes) }
    }
}

/// Arguments of `process_write`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    id: String,
    /// \u0003 is ctrl-c on a pty.
    #[serde(default)]
    input: String,
    /// Default true.
    newline: Option<bool>,
    #[serde(default)]
    eof: bool,
}

impl Args {
    /// What goes to a process with such a console.
    fn bytes(&self, console: Console) -> Vec<u8> {
        let mut bytes = self.input.clone().into_bytes();
        let enter = self.newline.unwrap_or(!(self.input.is_empty() && self.eof));
        if enter && !self.input.ends_with('\n') {
            bytes.push(match console {
                Console::Pipes => b'\n',
                // What the key sends; a terminal that reads lines makes it a line end.
                Console::Terminal(_) => b'\r',
            });
        }
        bytes
    }
}

impl NativeTool for ProcessWrite {
    type Args = Args;

    const NAME: &'static str = "process_write";
    const DESCRIPTION: &'static str = "Write to the input of a process; shows what it answers.";
    const CLASS: ToolClass = ToolClass::Executes;

    fn title(&self, args: &Args) -> String {
        let input = bash::headline(&args.input);
        format!("{} < {input}", text::visible_line(&args.id)).trim_end().to_owned()
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        let entry = self.processes.find(&args.id)?;
        let lines = entry.lines_with(&args.input);
        if lines.trim().is_empty() {
            return Ok(Vec::new());
        }
        // A shell that reads it may have gone elsewhere: only its text can be judged.
        let line = text::visible(&lines).into_owned();
        Ok(vec![Subject::Command { line, cwd: entry.cwd().to_owned() }])
    }

    fn preview(&self, args: &Args) -> Option<String> {
        let entry = self.processes.find(&args.id).ok()?;
        let end = if args.eof { "\n(end of input)" } else { "" };
        Some(format!("to {}:\n{}{end}", entry.line(), text::visible(&args.input)))
    }

    fn timeout(&self, _: &Args) -> Option<Duration> {
        Some(PATIENCE + BURST + Duration::from_secs(5))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        let entry = match self.processes.find(&args.id) {
            Ok(entry) => entry,
            Err(text) => return ToolOutput::error(text),
        };
        let given = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err("Cancelled; it may have read a part.".to_owned()),
            given = give(&entry, &args) => given,
        };
        // Its last words tell why it did not read.
        let answered = given.is_ok() || entry.exit().is_some();
        let is_awaited = answered && entry.news(BURST, &cx.cancel).await;
        match (given, is_awaited) {
            (Ok(()), _) => self.processes.report(&entry),
            (Err(text), true) => {
                let report = self.processes.report(&entry);
                ToolOutput::error(format!("{text}\n{}", report.result.text))
            }
            (Err(text), false) => ToolOutput::error(text),
        }
    }
}

/// Gives the process all of it. The error is what the model reads.
async fn give(entry: &Entry, args: &Args) -> Result<(), String> {
    let process = entry.process();
    let bytes = args.bytes(process.console());
    let mut taken = 0;
    let all = async {
        while taken < bytes.len() {
            let piece = process.write(&bytes[taken..]).await?;
            entry.wrote(&bytes[taken..taken + piece]);
            taken += piece;
        }
        if args.eof { process.end_input().await } else { Ok(()) }
    };
    match timeout(PATIENCE, all).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("{} does not read its input: {error}.", entry.id())),
        Err(_) => Err(format!(
            "{} took {taken} of {} bytes in {} s and reads no more for now.",
            entry.id(),
            bytes.len(),
            PATIENCE.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_is_pressed_once_and_where_it_makes_sense() {
        let bytes = |input: &str, newline, eof, console| {
            let args = Args { id: "p1".to_owned(), input: input.to_owned(), newline, eof };
            String::from_utf8(args.bytes(console)).unwrap()
        };
        let pty = Console::Terminal(loon_exec::WindowSize { rows: 1, columns: 1 });
        assert_eq!(bytes("ls", None, false, Console::Pipes), "ls\n");
        assert_eq!(bytes("ls\n", None, false, Console::Pipes), "ls\n");
        assert_eq!(bytes("ls", None, false, pty), "ls\r");
        assert_eq!(bytes("ls", Some(false), false, pty), "ls");
        assert_eq!(bytes("last", None, true, Console::Pipes), "last\n");
        assert_eq!(bytes("", None, false, Console::Pipes), "\n");
        assert_eq!(bytes("", None, true, Console::Pipes), "");
    }
}

//! A worker that is a child process: it runs what its parent sends over standard input, and ends.

use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::Arc;

use loon_kernel::placement::MAX_LINE;
use loon_kernel::{CancelRequest, Dispatcher as _, FromWorker, Settled, ToWorker};
use tokio::sync::mpsc;

use super::Prompts;
use crate::failure::Failure;

/// Serves one dispatch. Gives the exit status.
pub(crate) async fn serve_parent(prompts: Prompts) -> Result<u8, Failure> {
    let prompts = Arc::new(prompts);
    let mut messages = read_messages();
    let Some(first) = messages.recv().await else { return Ok(0) };
    let ToWorker::Run(dispatch) = first? else {
        return Err(Failure::usage("The first message must be what to run."));
    };
    let (events, mut arriving) = mpsc::channel(64);
    let mut run = prompts.dispatch(dispatch, events);
    let mut settled = None;
    let mut listening = true;
    loop {
        tokio::select! {
            biased;
            Some(event) = arriving.recv() => write(&FromWorker::Event(event))?,
            done = &mut run, if settled.is_none() => settled = Some(done),
            message = messages.recv(), if listening => match message {
                Some(Ok(ToWorker::Cancel(CancelRequest { execution_id, reason }))) => {
                    let cancelled = prompts.cancel(execution_id, reason).await;
                    write(&FromWorker::Cancelled(cancelled))?;
                }
                Some(Ok(ToWorker::Run(_))) => {
                    return Err(Failure::usage("This process runs one execution only."));
                }
                Some(Err(failure)) => return Err(failure),
                // The parent is gone, or has nothing more to say; the work goes on.
                None => listening = false,
            },
            else => break,
        }
        if settled.is_some() && arriving.is_empty() {
            break;
        }
    }
    let settled = match settled {
        Some(Ok(settled)) => settled,
        Some(Err(error)) => Settled::Failed { error: error.info() },
        None => return Err(Failure::other("The work was cut off.")),
    };
    write(&FromWorker::Settled(settled))?;
    Ok(0)
}

/// Reads messages on a thread of its own: standard input cannot be read without blocking one.
fn read_messages() -> mpsc::Receiver<Result<ToWorker, Failure>> {
    let (sender, messages) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
            let message = match read {
                Ok(0) => return,
                Ok(_) => serde_json::from_slice(&line)
                    .map_err(|error| Failure::usage(format!("No message of a parent: {error}"))),
                Err(error) => Err(error.into()),
            };
            if sender.blocking_send(message).is_err() {
                return;
            }
        }
    });
    messages
}

/// Writes one message. It may wait for the parent, and everything with it.
fn write(message: &FromWorker) -> Result<(), Failure> {
    let mut line = message.line().map_err(|error| Failure::other(error.to_string()))?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(Failure::from)
}

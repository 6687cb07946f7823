//! What can happen to the screen, and what it can ask for in return.

use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};
use loon_api::{Command, Envelope, ErrorInfo};

use crate::highlight::{CodeId, Highlight};
use crate::markdown::CodeBlock;
use crate::transcript::Key;

/// Everything the screen reacts to.
#[derive(Debug)]
pub(crate) enum Event {
    /// The user did something.
    Input(Input),
    /// The runtime told something.
    Runtime(Arc<Envelope>),
    /// The terminal has another size: columns, rows.
    Resize(u16, u16),
    /// A second passed while something runs.
    Tick,
    /// A background job ended.
    JobDone(JobDone),
}

/// What the user did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse was clicked or its wheel turned.
    Mouse(MouseEvent),
}

/// What a background job gave.
#[derive(Debug)]
pub(crate) struct JobDone {
    /// The entry it was for.
    pub(crate) owner: Key,
    /// The code.
    pub(crate) id: CodeId,
    /// Its highlighting.
    pub(crate) highlight: Highlight,
}

/// What the screen asks the outside to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Send a command to the runtime.
    Send(Command),
    /// Put text on the clipboard.
    Copy(String),
    /// Highlight a code block.
    Highlight(Key, CodeBlock),
    /// Stop as a shell job.
    Suspend,
    /// Leave.
    Exit(Exit),
}

/// Why the screen was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The stream of events ended, and the user had not asked for it.
    Finished {
        /// Exit status the runtime gave.
        exit_code: u8,
        /// Why, unless it completed.
        error: Option<ErrorInfo>,
    },
    /// The user left.
    Quit,
    /// The runtime went away without ending its stream.
    Lost,
    /// SIGINT.
    Interrupted,
    /// SIGQUIT.
    Aborted,
    /// SIGTERM.
    Terminated,
    /// SIGHUP, or the terminal is gone.
    HungUp,
    /// A thread panicked; its message is on standard error.
    Panicked,
}

impl Exit {
    /// The exit status that goes with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Finished { exit_code, .. } => *exit_code,
            Self::Quit => 0,
            Self::Lost => 1,
            Self::Interrupted => 130,
            Self::Aborted => 131,
            Self::Terminated => 143,
            Self::HungUp => 129,
            Self::Panicked => 101,
        }
    }
}

//! How the end of a program is told.

use std::fmt::Write as _;

use loon_exec::Exit;
use nix::sys::signal::Signal;

use crate::text;

/// The status of the leader: `exit 3`, `killed by SIGTERM`.
pub(crate) fn status(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => match Signal::try_from(signal) {
            Ok(named) => format!("killed by {}", named.as_str()),
            Err(_) => format!("killed by signal {signal}"),
        },
        (None, None) => "ended without a status".to_owned(),
    }
}

/// Adds lines about processes that did not end with the leader.
pub(crate) fn tell_leftovers(exit: Exit, hint: &str, text: &mut String) {
    if exit.leftovers_ended > 0 {
        let processes = text::count(exit.leftovers_ended, "background process");
        let _ = write!(text, "\n[{processes} still ran and had to be ended; {hint}]");
    }
    if exit.survivors > 0 {
        let processes = text::count(exit.survivors, "process");
        let _ = write!(text, "\n[{processes} could not be ended and may still run]");
    }
}

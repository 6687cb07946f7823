//! Where a session can be branched off, and doing it.

use std::collections::BTreeMap;

use loon_api::{AgentEvent, At, ErrorCode, ErrorInfo, ExecutionId, ExecutionKind, Seq, TurnNumber};
use loon_kernel::{JournalStore, StoreError};

/// Why a session cannot be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Only sessions of people and programs are forked.
    #[error("{exec} is the work of a subagent, which cannot be forked")]
    NoSession {
        /// The execution.
        exec: ExecutionId,
    },
    /// There is nothing to branch off from.
    #[error("no turn of session {exec} has ended yet")]
    NoTurn {
        /// The session.
        exec: ExecutionId,
    },
    /// The turn is not there, or has not ended.
    #[error("session {exec} has no turn {turn} that has ended; its last is {last}")]
    NoSuchTurn {
        /// The session.
        exec: ExecutionId,
        /// The turn asked for.
        turn: TurnNumber,
        /// The last that has ended.
        last: TurnNumber,
    },
}

impl ForkError {
    /// The error as events carry it.
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::Store(error) => error.info(),
            Self::NoSession { .. } => ErrorInfo::new(ErrorCode::Invalid, self.to_string())
                .hint("fork the session that started it"),
            Self::NoTurn { .. } | Self::NoSuchTurn { .. } => {
                ErrorInfo::new(ErrorCode::Invalid, self.to_string())
            }
        }
    }
}

/// The turn that words of a person name: its number, or any item of it.
pub fn turn_of(words: &str) -> Option<TurnNumber> {
    let number = words.split_once('.').map_or(words, |(turn, _)| turn);
    number.parse().ok().filter(|turn| *turn > 0)
}

/// Begins a session with the records of another one up to the end of a turn, the last that has ended
/// if none is named. The other one may be at work meanwhile, and stays as it is.
pub fn fork_session(
    store: &dyn JournalStore,
    now: At,
    exec: ExecutionId,
    at: Option<TurnNumber>,
) -> Result<ExecutionId, ForkError> {
    let upto = Ends::of(store, exec)?.place(exec, at)?;
    Ok(store.fork(exec, upto, now)?)
}

/// Where the turns of a journal end.
struct Ends {
    turns: BTreeMap<TurnNumber, Seq>,
    /// The last record, if no turn is under way there.
    quiet: Option<Seq>,
}

impl Ends {
    fn of(store: &dyn JournalStore, exec: ExecutionId) -> Result<Self, ForkError> {
        let mut ends = Self { turns: BTreeMap::new(), quiet: None };
        let mut open = false;
        for record in store.read(exec)? {
            let record = record?;
            let Some(seq) = record.seq else { continue };
            match &record.event {
                AgentEvent::ExecutionStarted(started) if started.kind != ExecutionKind::Session => {
                    return Err(ForkError::NoSession { exec });
                }
                AgentEvent::TurnStarted(_) => open = true,
                AgentEvent::TurnFinished(_) => {
                    open = false;
                    ends.turns.insert(record.turn.unwrap_or_default(), seq);
                }
                _ => {}
            }
            ends.quiet = (!open).then_some(seq);
        }
        Ok(ends)
    }

    fn place(&self, exec: ExecutionId, at: Option<TurnNumber>) -> Result<Seq, ForkError> {
        let Some((&last, &end)) = self.turns.last_key_value() else {
            return Err(ForkError::NoTurn { exec });
        };
        match at {
            None => Ok(self.quiet.unwrap_or(end)),
            Some(turn) => {
                self.turns.get(&turn).copied().ok_or(ForkError::NoSuchTurn { exec, turn, last })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_named_by_its_number_or_by_an_item() {
        assert_eq!(
            (turn_of("3"), turn_of("3.0.c1"), turn_of("12.u0")),
            (Some(3), Some(3), Some(12))
        );
        assert_eq!(
            (turn_of("0"), turn_of("x"), turn_of(""), turn_of("-1")),
            (None, None, None, None)
        );
    }
}

//! Supervision of what can fail: runs that are begun again after a fault of the infrastructure, and
//! circuits that leave a target alone which keeps failing. Knows nothing of models.

mod circuit;

use std::time::Duration;

use loon_api::event::CircuitChanged;
use loon_api::{ErrorCode, ErrorInfo};
use tokio_util::sync::CancellationToken;

pub use circuit::{CallEnd, CircuitOpen, CircuitPolicy, Circuits, Permit};

/// How a run that failed is begun again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisionPolicy {
    /// How often at most.
    pub max_restarts: u32,
    /// The wait before the first restart; each later one waits twice as long as the one before.
    pub backoff: Duration,
    /// When a target is left alone.
    pub circuit: CircuitPolicy,
}

impl Default for SupervisionPolicy {
    fn default() -> Self {
        Self {
            max_restarts: 2,
            backoff: Duration::from_millis(200),
            circuit: CircuitPolicy::default(),
        }
    }
}

impl SupervisionPolicy {
    /// The wait before a restart, counted from 0.
    fn wait(&self, restart: u32) -> Duration {
        self.backoff.saturating_mul(2_u32.saturating_pow(restart))
    }
}

/// Runs `dispatch` against `target`, and again after a fault of the infrastructure, as `policy` says.
///
/// Whatever it gives back as `Ok` is the end, a result that says it was cancelled included. Of the
/// errors only those of the infrastructure lead to a restart; a cancel, a denial, a spent budget or
/// a wrong request is final. `dispatch` listens to `cancel` itself; here it ends the waits and
/// forbids further restarts. `tell` hears how the circuit of the target changes.
///
/// # Errors
///
/// The last error of `dispatch`; `CIRCUIT_OPEN` if the target is left alone, in which case
/// `dispatch` was not called.
pub async fn supervised<T, F>(
    circuits: &Circuits,
    target: &str,
    policy: &SupervisionPolicy,
    cancel: &CancellationToken,
    mut tell: impl FnMut(CircuitChanged),
    mut dispatch: impl FnMut() -> F,
) -> Result<T, ErrorInfo>
where
    F: Future<Output = Result<T, ErrorInfo>>,
{
    let mut restarts = 0;
    let mut former: Option<ErrorInfo> = None;
    loop {
        let permit = match circuits.enter(target, &policy.circuit) {
            Ok((permit, change)) => {
                change.into_iter().for_each(&mut tell);
                permit
            }
            Err(open) => return Err(open.after(former)),
        };
        let error = match dispatch().await {
            Ok(value) => {
                permit.end(CallEnd::Success).into_iter().for_each(&mut tell);
                return Ok(value);
            }
            Err(error) => error,
        };
        // What fails because it is being stopped says nothing about the target.
        let outcome = CallEnd::of(error.code).filter(|_| !cancel.is_cancelled());
        if outcome.is_some() {
            permit.fail(&error).into_iter().for_each(&mut tell);
        }
        if outcome != Some(CallEnd::Failure) || restarts == policy.max_restarts {
            return Err(error);
        }
        if let Some(open) = circuits.refusal(target) {
            return Err(open.after(Some(error)));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(error),
            () = circuits.clock().sleep(policy.wait(restarts)) => {}
        }
        restarts += 1;
        former = Some(error);
    }
}

impl CallEnd {
    /// What an error says of the target it came from; nothing if it came from somewhere else.
    pub fn of(code: ErrorCode) -> Option<Self> {
        match code {
            ErrorCode::Overloaded | ErrorCode::Network | ErrorCode::Protocol => Some(Self::Failure),
            ErrorCode::RateLimited
            | ErrorCode::Auth
            | ErrorCode::Invalid
            | ErrorCode::Refused
            | ErrorCode::ContextOverflow
            | ErrorCode::OutputLimit => Some(Self::Neutral),
            ErrorCode::CircuitOpen
            | ErrorCode::QuotaExceeded
            | ErrorCode::DeadlineExceeded
            | ErrorCode::Cancelled
            | ErrorCode::Denied
            | ErrorCode::TurnLimit
            | ErrorCode::RepeatedCall
            | ErrorCode::NotAccepted
            | ErrorCode::OutcomeUnknown
            | ErrorCode::Busy
            | ErrorCode::Fenced
            | ErrorCode::Corrupt
            | ErrorCode::NotFound
            | ErrorCode::Conflict
            | ErrorCode::Io
            | ErrorCode::Internal => None,
        }
    }
}

#[cfg(test)]
mod tests;

//! How a turn of the model ends for a client: with a stop reason, or as an error.

use agent_client_protocol_schema::v1::StopReason;
use loon_api::event::TurnFinished;
use loon_api::{ErrorCode, ErrorInfo, TurnStatus};

/// What a client is told of the end of its prompt.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    /// A stop reason, and words where it does not say all.
    Stopped(StopReason, Option<ErrorInfo>),
    /// Nothing came of it.
    Failed(ErrorInfo),
}

/// The end of a turn. The protocol has few reasons: every bound that is not one of tokens counts as
/// one of requests, and the words say which.
pub(super) fn of_turn(turn: &TurnFinished) -> End {
    let error = turn.error.clone();
    let code = error.as_ref().map(|error| error.code);
    let reason = match (turn.status, code) {
        (TurnStatus::Completed, _) | (TurnStatus::Stopped, Some(ErrorCode::Denied)) => {
            StopReason::EndTurn
        }
        (TurnStatus::Interrupted, _) => return End::Stopped(StopReason::Cancelled, None),
        (TurnStatus::Failed | TurnStatus::Stopped, Some(ErrorCode::Refused)) => StopReason::Refusal,
        (TurnStatus::Failed | TurnStatus::Stopped, Some(ErrorCode::OutputLimit)) => {
            StopReason::MaxTokens
        }
        (TurnStatus::Stopped | TurnStatus::DeadlineExceeded, _) => StopReason::MaxTurnRequests,
        (TurnStatus::Failed, _) => {
            let unknown = || ErrorInfo::new(ErrorCode::Internal, "The turn failed.");
            return End::Failed(error.unwrap_or_else(unknown));
        }
    };
    End::Stopped(reason, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loon_api::{Cost, Usage};

    fn end(status: TurnStatus, code: Option<ErrorCode>) -> End {
        of_turn(&TurnFinished {
            status,
            error: code.map(|code| ErrorInfo::new(code, "why")),
            steps: 1,
            usage: Usage::default(),
            cost: Cost::default(),
            models: Vec::new(),
            receipt: None,
            review: None,
        })
    }

    #[test]
    fn each_end_has_its_reason() {
        let why = |code| Some(ErrorInfo::new(code, "why"));
        assert_eq!(end(TurnStatus::Completed, None), End::Stopped(StopReason::EndTurn, None));
        assert_eq!(
            end(TurnStatus::Interrupted, Some(ErrorCode::Cancelled)),
            End::Stopped(StopReason::Cancelled, None)
        );
        for (status, code, reason) in [
            (TurnStatus::Failed, ErrorCode::Refused, StopReason::Refusal),
            (TurnStatus::Stopped, ErrorCode::OutputLimit, StopReason::MaxTokens),
            (TurnStatus::Stopped, ErrorCode::TurnLimit, StopReason::MaxTurnRequests),
            (TurnStatus::Stopped, ErrorCode::QuotaExceeded, StopReason::MaxTurnRequests),
            (TurnStatus::Stopped, ErrorCode::RepeatedCall, StopReason::MaxTurnRequests),
            (TurnStatus::Stopped, ErrorCode::Denied, StopReason::EndTurn),
            (
                TurnStatus::DeadlineExceeded,
                ErrorCode::DeadlineExceeded,
                StopReason::MaxTurnRequests,
            ),
        ] {
            assert_eq!(end(status, Some(code)), End::Stopped(reason, why(code)), "{code:?}");
        }
        let failed = end(TurnStatus::Failed, Some(ErrorCode::Auth));
        assert_eq!(failed, End::Failed(ErrorInfo::new(ErrorCode::Auth, "why")));
    }
}

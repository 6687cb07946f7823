//! From a model that cannot answer to the next one of the route.

use loon_api::event::{CircuitChanged, EffectRerouted, EffectStatus};
use loon_api::{AgentEvent, ErrorCode, ErrorInfo};

use super::Spent;
use crate::error::KernelError;
use crate::gate::{Gate, ModelEffect};
use crate::route::{Member, Route};
use crate::supervision::{CircuitPolicy, Permit};

/// A member that may be asked.
pub(super) struct Found<'r> {
    pub(super) member: &'r Member,
    pub(super) permit: Permit,
    /// How letting the request pass changed the circuit.
    pub(super) change: Option<CircuitChanged>,
}

/// The members that did not answer, in order.
#[derive(Default)]
pub(super) struct Tried<'r> {
    members: Vec<(&'r Member, ErrorInfo, Spent)>,
    /// So many of them are in records.
    noted: usize,
}

impl<'r> Tried<'r> {
    pub(super) fn add(&mut self, member: &'r Member, error: ErrorInfo, spent: Spent) {
        self.members.push((member, error, spent));
    }

    /// What all of them say together. What a server said counts for more than a closed door.
    pub(super) fn error(mut self, route: &Route) -> ErrorInfo {
        if self.members.len() == 1
            && let Some((_, error, _)) = self.members.pop()
        {
            return error;
        }
        let errors = || self.members.iter().map(|(_, error, _)| error);
        let mut codes = errors().map(|error| error.code);
        let code = codes.rfind(|code| *code != ErrorCode::CircuitOpen);
        let code = code.unwrap_or(ErrorCode::CircuitOpen);
        let words: Vec<String> = self
            .members
            .iter()
            .map(|(member, error, _)| format!("{}: {}", member.name(), error.message))
            .collect();
        let message = format!("no model of {} answered. {}", route.name(), words.join("; "));
        let mut info = ErrorInfo::new(code, message);
        for hint in errors().flat_map(|error| &error.hints) {
            if !info.hints.contains(hint) {
                info.hints.push(hint.clone());
            }
        }
        info
    }
}

/// Which members may be asked in place of another.
#[derive(Clone, Copy)]
pub(super) enum Heirs<'r> {
    All,
    /// Those whose window is known to be larger.
    LargerThan(&'r Member),
}

impl<'r> Heirs<'r> {
    /// Those of `from` after such a failure; nothing if it is final. What is refused, wrong or
    /// stopped here would be no better elsewhere, and an answer that began to arrive is not sent for
    /// twice behind the reader's back.
    pub(super) fn of(
        from: &'r Member,
        status: EffectStatus,
        error: &ErrorInfo,
        streamed: bool,
    ) -> Option<Self> {
        if status != EffectStatus::Failed || streamed {
            return None;
        }
        match error.code {
            ErrorCode::Overloaded
            | ErrorCode::Network
            | ErrorCode::Protocol
            | ErrorCode::RateLimited
            | ErrorCode::Auth
            | ErrorCode::NotFound
            | ErrorCode::CircuitOpen => Some(Self::All),
            ErrorCode::ContextOverflow => Some(Self::LargerThan(from)),
            _ => None,
        }
    }

    pub(super) fn include(self, member: &Member) -> bool {
        match self {
            Self::All => true,
            Self::LargerThan(other) => member.holds_more_than(other),
        }
    }
}

impl Gate {
    /// True if a request to the member would pass its circuit now.
    pub(super) fn is_open_to(&self, member: &Member) -> bool {
        self.circuits.refusal(&member.target()).is_none()
    }

    /// The next of these members whose circuit lets a request pass. Those that it does not are
    /// noted on the way.
    pub(super) fn next_open<'r>(
        &self,
        rest: &mut impl Iterator<Item = &'r Member>,
        tried: &mut Tried<'r>,
        heirs: Heirs<'_>,
    ) -> Option<Found<'r>> {
        for member in rest.filter(|member| heirs.include(member)) {
            match self.circuits.enter(&member.target(), &CircuitPolicy::default()) {
                Ok((permit, change)) => return Some(Found { member, permit, change }),
                Err(open) => tried.add(member, open.info(), Spent::default()),
            }
        }
        None
    }

    /// Records who gave way to whom since the last time.
    pub(super) async fn note_reroutes(
        &self,
        effect: &ModelEffect<'_>,
        tried: &mut Tried<'_>,
        to: &Member,
    ) -> Result<(), KernelError> {
        let new = &tried.members[tried.noted..];
        let heirs = new.iter().skip(1).map(|(member, ..)| *member).chain([to]);
        let records: Vec<AgentEvent> = new
            .iter()
            .zip(heirs)
            .map(|((from, error, spent), to)| {
                EffectRerouted {
                    key: effect.key.clone(),
                    from: from.name().to_owned(),
                    to: to.name().to_owned(),
                    error: error.clone(),
                    usage: spent.usage,
                    cost: spent.cost,
                }
                .into()
            })
            .collect();
        tried.noted = tried.members.len();
        if !records.is_empty() {
            self.execution.recorder().record_all(Some(effect.turn), records).await?;
        }
        Ok(())
    }
}

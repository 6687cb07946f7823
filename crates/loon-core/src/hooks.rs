//! Lifecycle hooks: programs and addresses of a person that hear of what a session does, add words to
//! it, and can hold it up. They can never allow anything.
//!
//! Each hook that fires is an effect of the session's gate. What one says is read strictly: a guard
//! whose answer cannot be understood says no.

mod answer;
mod fire;
mod occurrence;
mod run;
mod session;
mod trial;

use std::sync::Arc;

use loon_api::{BoxFuture, HookDefinition, HookEvent};
use loon_exec::Spawner;
use tokio::sync::watch;

pub use self::answer::{HookAnswer, HookVerdict};
pub(crate) use self::fire::{Moment, Outcome};
pub(crate) use self::occurrence::{Occurrence, Trigger};
pub(crate) use self::session::SessionHooks;
pub use self::trial::{Trial, Tried, try_hooks};

/// Most bytes of what a hook may answer.
pub const MAX_ANSWER: usize = 64 * 1024;

/// The hooks in force. They can change between two events.
pub type LiveHooks = watch::Receiver<Arc<[HookDefinition]>>;

/// Brings the input of a hook to its address.
pub trait HookPoster: Send + Sync {
    /// Sends `body`, JSON, with POST. No redirect is followed, and at most [`MAX_ANSWER`] bytes of the
    /// answer and one more are read. The error says what went wrong, for people.
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> BoxFuture<'a, Result<Posted, String>>;
}

/// What an address answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Status of HTTP.
    pub status: u16,
    /// The body as far as it was read.
    pub body: Vec<u8>,
}

/// Everything hooks are run with. Clones share it.
#[derive(Clone)]
pub struct Hooks {
    /// The hooks in force.
    pub definitions: LiveHooks,
    /// Starts those that are commands.
    pub spawner: Spawner,
    /// Reaches those that are addresses.
    pub poster: Arc<dyn HookPoster>,
}

impl Hooks {
    /// True if one is there for the event.
    pub fn has(&self, event: HookEvent) -> bool {
        self.definitions.borrow().iter().any(|hook| hook.event == event)
    }

    /// Those for an event, of a tool if it is about one, in the order in which they run.
    fn of(&self, occurrence: &Occurrence) -> Vec<HookDefinition> {
        let definitions = self.definitions.borrow();
        let fits = |hook: &&HookDefinition| {
            hook.event == occurrence.event
                && occurrence.tool.as_ref().is_none_or(|tool| hook.matcher.matches(tool))
        };
        definitions.iter().filter(fits).cloned().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;

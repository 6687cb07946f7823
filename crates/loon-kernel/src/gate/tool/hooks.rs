//! What is asked and told around a call: hooks stand between the authorities and a human, and hear of
//! the outcome once it is recorded.

use loon_api::{BoxFuture, EffectKey, Item, ItemBody, ToolCallItem, TurnNumber};
use tokio_util::sync::CancellationToken;

use super::super::{Gate, ToolEffect, Verdict};
use super::Ended;

/// What stands around the calls of the model. Whatever it does to the world is an effect of the gate it
/// is handed.
pub trait CallHooks: Send + Sync {
    /// A call that the authorities did not deny is about to be made.
    fn before<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, HooksSay>;

    /// A call ran, and its end is recorded.
    fn after<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, ()>;
}

/// The call that hooks are about, as it is recorded: with masks for secrets.
#[derive(Clone, Copy)]
pub struct HookedCall<'a> {
    /// The gate it passes.
    pub gate: &'a Gate,
    /// Its turn.
    pub turn: TurnNumber,
    /// Its durable name.
    pub key: &'a EffectKey,
    /// The call.
    pub call: &'a ToolCallItem,
    /// Stops it.
    pub cancel: &'a CancellationToken,
}

/// What hooks say of a call. There is no word for a yes: they cannot allow anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HooksSay {
    /// Nothing against it.
    Nothing,
    /// A human must decide, for these reasons.
    Ask(Vec<String>),
    /// It must not run; the text is what the model reads.
    Deny(String),
}

impl Gate {
    /// The verdict after hooks were asked. They can make it stricter, and are not asked about a call
    /// that is denied, or that the user makes.
    pub(super) async fn ask_hooks(
        &self,
        effect: &ToolEffect<'_>,
        call: &ToolCallItem,
        verdict: Verdict,
    ) -> Result<Verdict, Ended> {
        let Some(hooks) = self.hooks.as_ref().filter(|_| !effect.by_user) else {
            return Ok(verdict);
        };
        if let Verdict::Deny { .. } = verdict {
            return Ok(verdict);
        }
        let said = hooks.before(self.hooked_call(effect, call)).await;
        self.may_begin(&effect.cancel)?;
        match (said, verdict) {
            (HooksSay::Nothing, verdict) => Ok(verdict),
            (HooksSay::Deny(text), _) => Err(Ended::denied(text)),
            // No rule would keep the hook from asking again.
            (HooksSay::Ask(asked), Verdict::Ask { mut reasons, .. }) => {
                reasons.extend(asked);
                Ok(Verdict::Ask { reasons, always: None })
            }
            (HooksSay::Ask(reasons), _) => Ok(Verdict::Ask { reasons, always: None }),
        }
    }

    /// Tells hooks how a call ended that ran.
    pub(super) async fn tell_hooks(&self, effect: &ToolEffect<'_>, item: &Item) {
        let ItemBody::ToolCall(call) = &item.body else { return };
        if let Some(hooks) = self.hooks.as_ref().filter(|_| !effect.by_user) {
            hooks.after(self.hooked_call(effect, call)).await;
        }
    }

    fn hooked_call<'a>(
        &'a self,
        effect: &'a ToolEffect<'_>,
        call: &'a ToolCallItem,
    ) -> HookedCall<'a> {
        HookedCall { gate: self, turn: effect.turn, key: &effect.key, call, cancel: &effect.cancel }
    }
}

//! Ultra Loop: whether what the model claims to have completed is reviewed, and by whom.

use loon_api::event::UltraLoopChanged;

use crate::deps::Given;
use crate::runtime::RuntimeError;
use crate::session::Session;

/// What settings and command line say of Ultra Loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UltraLoop {
    /// Sessions begin with it switched on. From the settings, it gives way to what a resumed session
    /// chose.
    pub enabled: Given<bool>,
    /// `provider/model` of the reviewer; absent uses the session's own.
    pub model: Option<String>,
    /// Most reviews of one turn.
    pub max_reviews: u32,
}

impl Default for UltraLoop {
    fn default() -> Self {
        Self { enabled: Given { value: false, explicit: false }, model: None, max_reviews: 3 }
    }
}

impl UltraLoop {
    /// Takes over changed settings. What was asked for on the command line stays.
    pub(crate) fn renew(&mut self, new: &Self) {
        let enabled = if self.enabled.explicit { self.enabled } else { new.enabled };
        *self = Self { enabled, ..new.clone() };
    }

    /// Whether a session begins with it, given what it chose in its past.
    pub(crate) fn starting(&self, former: Option<bool>) -> bool {
        match former {
            Some(former) if !self.enabled.explicit => former,
            _ => self.enabled.value,
        }
    }
}

impl Session {
    /// Records that it is on where the journal does not say so yet.
    pub(crate) async fn begin_ultra_loop(&mut self) -> Result<(), RuntimeError> {
        if self.conversation.ultra_loop().unwrap_or(false) == self.ultra {
            return Ok(());
        }
        self.record(None, UltraLoopChanged { on: self.ultra }).await
    }

    /// Switches it, as a person asked. The running turn goes by it too.
    pub(crate) async fn set_ultra_loop(&mut self, on: bool) -> Result<(), RuntimeError> {
        if self.ultra == on {
            return Ok(());
        }
        self.ultra = on;
        self.record(self.turn_number(), UltraLoopChanged { on }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ultra(value: bool, explicit: bool) -> UltraLoop {
        UltraLoop { enabled: Given { value, explicit }, ..UltraLoop::default() }
    }

    #[test]
    fn a_session_keeps_its_choice_unless_another_is_named_for_the_run() {
        assert!(ultra(true, false).starting(None));
        assert!(!ultra(true, false).starting(Some(false)));
        assert!(ultra(false, false).starting(Some(true)));
        assert!(ultra(true, true).starting(Some(false)));
    }

    #[test]
    fn changed_settings_do_not_switch_off_what_the_command_line_asked_for() {
        let new = UltraLoop { model: Some("lab/judge".into()), ..ultra(false, false) };
        let mut asked = ultra(true, true);
        asked.renew(&new);
        assert_eq!((asked.enabled.value, asked.model.as_deref()), (true, Some("lab/judge")));
        let mut plain = ultra(true, false);
        plain.renew(&new);
        assert!(!plain.enabled.value);
    }
}

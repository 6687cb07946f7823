//! Children of which nothing is heard: they are reported, to the person and to the model, and go on.

use std::sync::Arc;
use std::time::Duration;

use loon_api::SubagentState;
use loon_api::event::{Notice, NoticeLevel};

use super::agent::Agent;
use super::{Children, Subagents};
use crate::runtime::RuntimeError;
use crate::session::Session;

/// How long nothing may be heard of a child before it is reported. A model may think for minutes
/// before its first word, and so may a build.
pub(super) const QUIET: Duration = Duration::from_mins(5);

impl Subagents {
    /// How long until a child may have to be reported; nothing if there is none to look after. Whoever
    /// waits for a person is not stalled.
    pub(super) fn next_look(&self) -> Option<Duration> {
        if self.budget.desk.is_asking() {
            return None;
        }
        let table = self.table();
        table.agents.iter().filter_map(|agent| agent.until_stalled()).min()
    }

    /// A child that has to be reported now. It counts as reported until it is heard of again.
    pub(super) fn newly_stalled(&self) -> Option<Arc<Agent>> {
        let table = self.table();
        let stalled =
            table.agents.iter().find(|agent| agent.until_stalled() == Some(Duration::ZERO));
        let agent = stalled.cloned()?;
        agent.progress.send_modify(|progress| progress.stalled = true);
        Some(agent)
    }

    /// The time that a person took to decide is nobody's silence.
    pub(super) fn count_anew(&self) {
        for agent in &self.table().agents {
            let now = agent.clock.steady();
            agent.progress.send_modify(|progress| progress.heard = now);
        }
    }
}

impl Session {
    /// Tells the person of a child without a sign of life. The model reads of it at its next step.
    pub(super) async fn report_stalled(&mut self, agent: &Agent) {
        let turn = self.turn_number();
        self.recorder.pass(turn, agent.summary().progressed()).await;
        let message = silence(agent);
        let hints = vec!["/agents shows what it does, steers it and stops it.".to_owned()];
        self.recorder.pass(turn, Notice { level: NoticeLevel::Warning, message, hints }).await;
        if let Some(children) = self.children.as_mut().filter(|_| agent.background) {
            children.stalled.push(agent.id.clone());
        }
    }

    /// Tells the model of children that were reported and were not heard of since.
    pub(super) async fn deliver_silence(&mut self) -> Result<(), RuntimeError> {
        let Some(children) = &mut self.children else { return Ok(()) };
        for id in std::mem::take(&mut children.stalled) {
            let subagents = self.children.as_ref().map(Children::subagents);
            let Some(agent) = subagents.and_then(|subagents| subagents.find(&id)) else { continue };
            if agent.summary().state == SubagentState::Stalled {
                let text = format!(
                    "{} background_list shows it, background_message reaches it once its step has \
                     ended, background_kill ends it then.",
                    silence(&agent)
                );
                self.add_notice(text).await?;
            }
        }
        Ok(())
    }
}

fn silence(agent: &Agent) -> String {
    let progress = agent.progress.borrow();
    let minutes = agent.quiet(&progress).as_secs() / 60;
    let last = if progress.call.is_empty() {
        "It made no call yet".to_owned()
    } else {
        format!("Its last call: {}", progress.call)
    };
    format!(
        "Agent {} ({}) gave no sign of life for {minutes} min. {last}. It goes on.",
        agent.id, agent.profile
    )
}

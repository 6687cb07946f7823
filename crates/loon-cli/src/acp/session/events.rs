//! What each event of the runtime means for the session's client.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{ConfigOptionUpdate, CurrentModeUpdate, SessionUpdate};
use loon_api::event::{Notice, NoticeLevel};
use loon_api::{AgentEvent, Command, Envelope, ErrorCode, ErrorInfo, ItemBody};

use super::super::options::mode_name;
use super::Session;

impl Session {
    /// Takes the next event.
    pub(super) fn take(&mut self, envelope: Arc<Envelope>) {
        match &envelope.event {
            AgentEvent::SessionOpened(opened) => return self.opened(&opened.session),
            AgentEvent::HistoryPage(page) => return self.read_page(page),
            AgentEvent::StreamFinished(finished) => return self.finish(finished.error.as_ref()),
            _ if self.is_entering() => return self.held.push_back(envelope),
            _ => {}
        }
        if !self.is_known_to_client(&envelope) {
            let updates = self.narrator.tell(&envelope.event);
            self.tell(updates);
        }
        match &envelope.event {
            AgentEvent::TurnStarted(_) => self.turn_started(envelope.turn),
            AgentEvent::TurnFinished(turn) => self.turn_finished(envelope.turn, turn),
            AgentEvent::ContextCompacted(compacted) => {
                self.compaction_ended(compacted.compaction.automatic);
            }
            AgentEvent::CompactionFailed(failed) => self.compaction_ended(failed.automatic),
            AgentEvent::ApprovalRequested(asked) => {
                let line = self.questions.ask(&self.id, &asked.approval, &self.cwd);
                self.outbox.push(line);
            }
            AgentEvent::ApprovalResolved(resolved) => self.questions.settle(&resolved.approval),
            // The protocol has no such question. Programs that allow whatever is asked would raise a
            // bound without end, so nobody is asked: the turn ends, and says how to go on.
            AgentEvent::BudgetReached(_) => {
                self.send(Command::RefuseBudget);
            }
            AgentEvent::ModeChanged(changed) => {
                self.options.mode = changed.mode;
                let mode = CurrentModeUpdate::new(mode_name(changed.mode));
                let options = self.options_update();
                self.tell(vec![SessionUpdate::CurrentModeUpdate(mode), options]);
            }
            AgentEvent::ModelChanged(changed) => {
                self.options.model = Some(changed.model.clone());
                let options = self.options_update();
                self.tell(vec![options]);
            }
            AgentEvent::ModelsListed(listed) => {
                self.options.models.clone_from(&listed.models);
                self.answer_choice();
            }
            AgentEvent::Notice(Notice { level: NoticeLevel::Warning, message, hints }) => {
                let mut error = ErrorInfo::new(ErrorCode::Conflict, message.clone());
                error.hints.clone_from(hints);
                self.warning = Some(error);
            }
            _ => {}
        }
    }

    /// The words of the prompt that runs are the client's own.
    fn is_known_to_client(&self, envelope: &Envelope) -> bool {
        let AgentEvent::ItemCompleted(completed) = &envelope.event else { return false };
        matches!(completed.item.body, ItemBody::UserMessage { .. })
            && self.prompt.as_ref().is_some_and(|prompt| prompt.is_turn(envelope.turn))
    }

    fn options_update(&self) -> SessionUpdate {
        SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.options.config()))
    }
}

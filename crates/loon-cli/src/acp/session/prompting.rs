//! A prompt of the client, from its arrival to its answer.

use agent_client_protocol_schema::v1::{ContentBlock, PromptResponse, RequestId, StopReason};
use loon_api::event::TurnFinished;
use loon_api::{Command, ErrorCode, ErrorInfo, TurnNumber};
use loon_core::conversation::title_of;

use super::super::stop::{End, of_turn};
use super::super::{commands, prompt, wire};
use super::entry::title_update;
use super::{Choice, Reply, Session, busy};

/// The prompt that the client waits for.
pub(super) struct Prompt {
    request: RequestId,
    /// The client wants it stopped.
    cancelled: bool,
    work: Work,
}

enum Work {
    /// A turn, which has its number once it began.
    Turn(Option<TurnNumber>),
    /// A compaction that the person asked for.
    Compaction,
    /// A command that is dealt with at once.
    Command,
}

impl Prompt {
    /// True if its turn has this number.
    pub(super) fn is_turn(&self, turn: Option<TurnNumber>) -> bool {
        matches!(self.work, Work::Turn(own) if own.is_some() && own == turn)
    }
}

impl Session {
    pub(super) fn begin_prompt(&mut self, request: RequestId, blocks: &[ContentBlock]) {
        if let Err(error) = self.try_prompt(&request, blocks) {
            self.refuse(request, &error);
        }
    }

    fn try_prompt(
        &mut self,
        request: &RequestId,
        blocks: &[ContentBlock],
    ) -> Result<(), ErrorInfo> {
        if self.is_entering() {
            return Err(ErrorInfo::new(ErrorCode::Conflict, "The session is not open yet."));
        }
        if self.prompt.is_some() {
            let message = "The session works on a prompt; cancel it, or wait for its end.";
            return Err(ErrorInfo::new(ErrorCode::Conflict, message));
        }
        let text = prompt::words(blocks)?;
        let command = commands::parse(&text);
        let work = match &command {
            None => Work::Turn(None),
            Some(Command::Compact { .. }) => Work::Compaction,
            Some(_) => Work::Command,
        };
        let title = matches!(work, Work::Turn(_)).then(|| title_of(&text));
        let command = command.unwrap_or(Command::Prompt { text });
        let is_choice = matches!(work, Work::Command);
        if !self.send(command.clone()) || (is_choice && !self.send(Command::ListModels)) {
            return Err(busy());
        }
        if is_choice {
            let choice = Choice { request: request.clone(), command, reply: Reply::Prompt };
            self.choices.push_back(choice);
        }
        self.prompt = Some(Prompt { request: request.clone(), cancelled: false, work });
        if let Some(title) = title.filter(|_| !self.titled) {
            self.titled = true;
            self.tell(vec![title_update(title)]);
        }
        Ok(())
    }

    /// The client wants the prompt stopped.
    pub(super) fn cancel(&mut self) {
        if let Some(prompt) = &mut self.prompt {
            prompt.cancelled = true;
        }
        // Also a turn that a former process left behind may run.
        self.send(Command::Interrupt);
    }

    pub(super) fn turn_started(&mut self, turn: Option<TurnNumber>) {
        if self.owed_turns > 0 {
            self.owed_turns -= 1;
            return;
        }
        if let Some(prompt) = &mut self.prompt
            && let Work::Turn(number @ None) = &mut prompt.work
        {
            *number = turn;
            if prompt.cancelled {
                // The cancel may have met a turn before this one.
                self.send(Command::Interrupt);
            }
        }
    }

    pub(super) fn turn_finished(&mut self, number: Option<TurnNumber>, turn: &TurnFinished) {
        let end = of_turn(turn);
        match self.prompt.take_if(|prompt| prompt.is_turn(number)) {
            Some(Prompt { request, cancelled: true, .. }) => {
                self.respond(request, StopReason::Cancelled);
            }
            Some(Prompt { request, .. }) => match end {
                End::Stopped(reason, words) => {
                    if let Some(words) = words {
                        let update = self.narrator.error(&words);
                        self.tell(vec![update]);
                    }
                    self.respond(request, reason);
                }
                End::Failed(error) => self.refuse(request, &error),
            },
            None => {
                if let End::Stopped(_, Some(error)) | End::Failed(error) = end {
                    let update = self.narrator.error(&error);
                    self.tell(vec![update]);
                }
            }
        }
    }

    pub(super) fn compaction_ended(&mut self, automatic: bool) {
        let is_meant = |prompt: &mut Prompt| !automatic && matches!(prompt.work, Work::Compaction);
        if let Some(prompt) = self.prompt.take_if(is_meant) {
            self.end_prompt(prompt);
        }
    }

    /// The command that was this prompt was dealt with.
    pub(super) fn end_prompt_of(&mut self, request: &RequestId) {
        if let Some(prompt) = self.prompt.take_if(|prompt| prompt.request == *request) {
            self.end_prompt(prompt);
        }
    }

    fn end_prompt(&mut self, prompt: Prompt) {
        let reason = if prompt.cancelled { StopReason::Cancelled } else { StopReason::EndTurn };
        self.respond(prompt.request, reason);
    }

    /// Nothing more will come of the prompt.
    pub(super) fn fail_prompt(&mut self, error: &ErrorInfo) {
        match self.prompt.take() {
            Some(Prompt { request, cancelled: true, .. }) => {
                self.respond(request, StopReason::Cancelled);
            }
            Some(Prompt { request, .. }) => self.refuse(request, error),
            None => {}
        }
    }

    fn respond(&mut self, request: RequestId, reason: StopReason) {
        self.outbox.push(wire::response(request, Ok(PromptResponse::new(reason))));
    }
}

//! How a client comes into a session: the runtime is started, and the past is told if the client
//! wants it.

use std::collections::VecDeque;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    LoadSessionResponse, NewSessionResponse, RequestId, ResumeSessionResponse, SessionInfoUpdate,
    SessionUpdate,
};
use loon_api::event::{HistoryPage, SessionState};
use loon_api::{ChecklistStep, Command, ExecutionId, Item};
use loon_core::{Models, Runtime, SessionChoice};

use super::super::handshake::Client;
use super::super::narrator::plan;
use super::super::permission::Questions;
use super::super::stdio::Outbox;
use super::super::{commands, wire};
use super::Session;
use crate::args::SessionArgs;
use crate::commands::{check_model, ensure_model};
use crate::failure::Failure;
use crate::wiring::{Following, RunOptions, Setup};

/// Items of the past that are asked for at once.
const PAGE: u32 = 500;

/// How the client comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum How {
    /// The session is new.
    New,
    /// It was there, and its past is to be told.
    Load,
    /// It was there, and the client knows its past.
    Resume,
}

/// All that is needed to open a session.
pub(in super::super) struct Opening {
    pub(in super::super) request: RequestId,
    pub(in super::super) how: How,
    pub(in super::super) exec: ExecutionId,
    /// With the folder it works in.
    pub(in super::super) args: SessionArgs,
    /// What the person should know from the start.
    pub(in super::super) remarks: Vec<String>,
    pub(in super::super) client: Client,
    pub(in super::super) outbox: Outbox,
    pub(in super::super) questions: Questions,
}

/// A runtime, and what it needs to be kept.
pub(super) struct Started {
    pub(super) runtime: Runtime,
    pub(super) models: Arc<dyn Models>,
    /// Held while settings that change should arrive.
    pub(super) _following: Following,
}

/// Starts the runtime.
pub(super) async fn start(opening: &Opening) -> Result<Started, Failure> {
    let Opening { how, exec, args, remarks, .. } = opening;
    let setup = Setup::load(args.cwd.as_deref(), &args.settings())?;
    let (mut deps, follower) = setup.dependencies(RunOptions::attended(args));
    ensure_model(&mut deps).await;
    if *how == How::New {
        check_model(&deps)
            .map_err(|failure| setup.remarks().into_iter().fold(failure, Failure::hint))?;
    }
    deps.options.remarks.extend(remarks.iter().cloned());
    let models = Arc::clone(&deps.models);
    let choice = match how {
        How::New => SessionChoice::NewAs(*exec),
        How::Load | How::Resume => SessionChoice::Resume(*exec),
    };
    let following = follower.start(|_| {});
    Ok(Started { runtime: Runtime::start(deps, choice), models, _following: following })
}

/// What is still to be done before the client may use the session.
pub(super) struct Entry {
    pub(super) request: RequestId,
    how: How,
    stage: Stage,
    title: Option<String>,
    steps: Vec<ChecklistStep>,
}

enum Stage {
    /// The runtime has not opened it.
    Opening,
    /// The past is read, from its end to its beginning.
    Reading(VecDeque<Item>),
    /// It is told, from its beginning to its end.
    Telling(VecDeque<Item>),
}

impl Entry {
    pub(super) fn new(request: RequestId, how: How) -> Self {
        Self { request, how, stage: Stage::Opening, title: None, steps: Vec::new() }
    }
}

impl Session {
    /// The runtime has opened the session.
    pub(super) fn opened(&mut self, state: &SessionState) {
        self.options.mode = state.mode;
        self.options.model.clone_from(&state.model);
        self.options.models = self.models.names();
        self.owed_turns = state.queued.len();
        self.titled = state.title.is_some();
        let Some(entry) = &mut self.entry else { return };
        entry.title.clone_from(&state.title);
        entry.steps.clone_from(&state.record.steps);
        let items = match entry.how {
            How::New | How::Resume => VecDeque::new(),
            How::Load => state.items.iter().cloned().collect(),
        };
        let more = state.more && entry.how == How::Load;
        self.read_on(items, more);
    }

    /// An older part of the past has come.
    pub(super) fn read_page(&mut self, page: &HistoryPage) {
        let Some(Entry { stage: Stage::Reading(newer), .. }) = &mut self.entry else { return };
        let mut items: VecDeque<Item> = page.items.iter().cloned().collect();
        items.append(newer);
        self.read_on(items, page.more && !page.items.is_empty());
    }

    fn read_on(&mut self, items: VecDeque<Item>, more: bool) {
        let oldest = items.front().filter(|_| more).map(|item| item.id.clone());
        let asked = match oldest {
            Some(before) => self.send(Command::History { before, limit: PAGE }),
            None => false,
        };
        if let Some(entry) = &mut self.entry {
            entry.stage = if asked { Stage::Reading(items) } else { Stage::Telling(items) };
        }
    }

    /// Does the next thing that waits for nothing but room to write. False if there is none.
    pub(super) fn go_on(&mut self) -> bool {
        if let Some(entry) = &mut self.entry {
            let Stage::Telling(items) = &mut entry.stage else { return false };
            match items.pop_front() {
                Some(item) => {
                    let updates = self.narrator.item(&item);
                    self.tell(updates);
                }
                None => self.let_in(),
            }
            return true;
        }
        match self.held.pop_front() {
            Some(event) => {
                self.take(event);
                true
            }
            None => false,
        }
    }

    /// The client may use the session from here on.
    fn let_in(&mut self) {
        let Some(Entry { request, how, title, steps, .. }) = self.entry.take() else { return };
        let (modes, options) = (self.options.modes(), self.options.config());
        self.outbox.push(match how {
            How::New => {
                let response = NewSessionResponse::new(self.id.clone());
                wire::response(request, Ok(response.modes(modes).config_options(options)))
            }
            How::Load => {
                let response = LoadSessionResponse::new();
                wire::response(request, Ok(response.modes(modes).config_options(options)))
            }
            How::Resume => {
                let response = ResumeSessionResponse::new();
                wire::response(request, Ok(response.modes(modes).config_options(options)))
            }
        });
        let mut updates = vec![commands::available()];
        if let Some(title) = title {
            updates.push(title_update(title));
        }
        if !steps.is_empty() {
            updates.push(plan(&steps));
        }
        self.tell(updates);
    }

    /// True until the client may use the session.
    pub(super) fn is_entering(&self) -> bool {
        self.entry.is_some()
    }
}

/// The name of the session.
pub(super) fn title_update(title: String) -> SessionUpdate {
    SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title))
}

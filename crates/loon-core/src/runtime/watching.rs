//! Watching a session that another process works in: its records are passed on as they come, and
//! commands that would change it are refused.

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    HistoryPage, McpListed, ModelsListed, Notice, NoticeLevel, ResourcesUpdated, SessionHeld,
    SessionOpened, SessionReleased, SessionState,
};
use loon_api::{
    Command, Envelope, ErrorCode, ErrorInfo, ExecutionId, Mode, SessionHolder, WorkingRecord,
};
use loon_kernel::{ExecutionState, JournalStore, Place, Resources, end_of};
use tokio::sync::mpsc;

use super::{RuntimeError, Server, SessionChoice, end_of_choice, held_by};
use crate::conversation::Conversation;
use crate::looks::Looks;
use crate::session::listing::{commands_listed, skills_listed};
use crate::session::{Leave, OPENING_ITEMS};
use crate::sessions::fork_session;

/// A process that ends closes its files before it gives up their locks, so the lock is looked at once
/// more after this time.
const AFTERMATH: Duration = Duration::from_millis(150);

/// Records that are passed on at once.
const BATCH: usize = 256;

/// A session as it is watched.
struct Watched {
    exec: ExecutionId,
    conversation: Conversation,
    state: ExecutionState,
    place: Place,
    holder: Option<SessionHolder>,
}

impl Watched {
    fn apply(&mut self, record: &Envelope) {
        self.conversation.apply(record.turn, &record.event);
        self.state.apply(record);
    }

    /// Who works in it. Nobody does in a session that is over, whoever still has its lease.
    fn holder_now(&self, store: &dyn JournalStore) -> Option<SessionHolder> {
        if self.state.is_over() { None } else { held_by(store, self.exec) }
    }
}

/// What a reading gave.
struct News {
    records: Vec<Envelope>,
    place: Place,
    /// There are still more.
    more: bool,
}

impl Server {
    /// Follows a session until the front end wants something else.
    pub(super) async fn watch(
        &self,
        exec: ExecutionId,
        refused: Option<ErrorInfo>,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<Leave, RuntimeError> {
        // First, so that nothing is written unseen between the reading and the waiting.
        let mut changes = self.deps.store.changes(exec)?;
        let mut watched = self.begin_watching(exec).await?;
        if let Some(refused) = refused {
            self.warn(exec, refused).await;
        }
        let mut looks = Looks::default();
        let mut looks_again = false;
        loop {
            tokio::select! {
                biased;
                command = commands.recv() => {
                    let Some(command) = command else { return Ok(Leave::Close) };
                    if let Some(leave) = self.obey(command, &watched, &mut looks).await? {
                        return Ok(leave);
                    }
                }
                answer = looks.next() => match answer {
                    Ok(Some(event)) => self.send(exec, event).await,
                    Ok(None) => {}
                    Err(error) => self.warn(exec, error).await,
                },
                changed = changes.seen.changed() => {
                    looks_again = changed.is_ok();
                    while self.pass_on(&mut watched).await? {}
                    self.look_at_holder(&mut watched).await;
                }
                () = self.deps.clock.sleep(AFTERMATH), if looks_again => {
                    looks_again = false;
                    self.look_at_holder(&mut watched).await;
                }
            }
        }
    }

    async fn begin_watching(&self, exec: ExecutionId) -> Result<Watched, RuntimeError> {
        let store = Arc::clone(&self.deps.store);
        let read = move || -> Result<Watched, RuntimeError> {
            let mut watched = Watched {
                exec,
                conversation: Conversation::newest(OPENING_ITEMS),
                state: ExecutionState::default(),
                place: Place(0),
                holder: None,
            };
            for record in store.read_from(exec, Place(0))? {
                let (record, place) = record?;
                watched.apply(&record);
                watched.place = place;
            }
            watched.holder = watched.holder_now(store.as_ref());
            Ok(watched)
        };
        let watched = self.away(read).await?;
        let (items, more) = watched.conversation.page(None, OPENING_ITEMS);
        let conversation = &watched.conversation;
        let session = SessionState {
            cwd: conversation.cwd().display().to_string(),
            model: conversation.model().map(str::to_owned),
            mode: conversation.mode().unwrap_or(Mode::Default),
            branch: None,
            title: conversation.title().map(str::to_owned),
            resumed: true,
            items,
            more,
            queued: conversation.queued().iter().map(|queued| queued.text.clone()).collect(),
            usage: conversation.usage(),
            cost: conversation.cost(),
            record: WorkingRecord::clone(conversation.record()),
            ultra: conversation.ultra_loop().unwrap_or(false),
            watched: Some(watched.holder.clone().unwrap_or_else(nobody)),
        };
        self.send(exec, SessionOpened { session }).await;
        self.tell_used(&watched).await;
        if watched.holder.is_none() {
            self.tell_released(exec).await;
        }
        Ok(watched)
    }

    /// Passes on what was written since. True if there is still more.
    async fn pass_on(&self, watched: &mut Watched) -> Result<bool, RuntimeError> {
        let (store, exec, from) = (Arc::clone(&self.deps.store), watched.exec, watched.place);
        let read = move || -> Result<News, RuntimeError> {
            let mut news = News { records: Vec::new(), place: from, more: false };
            for record in store.read_from(exec, from)? {
                if news.records.len() == BATCH {
                    news.more = true;
                    break;
                }
                let (record, place) = record?;
                news.records.push(record);
                news.place = place;
            }
            Ok(news)
        };
        let news = self.away(read).await?;
        watched.place = news.place;
        let former = watched.state.resources.clone();
        for record in news.records {
            watched.apply(&record);
            let _ = self.events.send(Arc::new(record)).await;
        }
        if watched.state.resources != former {
            self.tell_used(watched).await;
        }
        Ok(news.more)
    }

    /// Tells what its records say was used, as whoever works in it does.
    async fn tell_used(&self, watched: &Watched) {
        let state = &watched.state;
        let Resources { tokens, usage, cost, ms, count, requests, exceeded } =
            state.resources.clone();
        let bounds = state.bounds;
        let updated =
            ResourcesUpdated { tokens, usage, cost, ms, count, requests, exceeded, bounds };
        self.send(watched.exec, updated).await;
    }

    async fn tell_released(&self, exec: ExecutionId) {
        let store = Arc::clone(&self.deps.store);
        let end = self.away(move || Ok(end_of(store.as_ref(), exec))).await.ok().flatten();
        let over = end.map(|end| end.info());
        self.send(exec, SessionReleased { session: exec, over }).await;
    }

    async fn look_at_holder(&self, watched: &mut Watched) {
        let now = watched.holder_now(self.deps.store.as_ref());
        if now == watched.holder {
            return;
        }
        let (session, from) = (watched.exec, watched.holder.take());
        match now.clone() {
            Some(holder) => self.send(session, SessionHeld { session, holder, from }).await,
            None => self.tell_released(session).await,
        }
        watched.holder = now;
    }

    /// Does what a front end may ask of a session that it only watches.
    async fn obey(
        &self,
        command: Command,
        watched: &Watched,
        looks: &mut Looks,
    ) -> Result<Option<Leave>, RuntimeError> {
        let exec = watched.exec;
        match command {
            Command::Close => return Ok(Some(Leave::Close)),
            Command::Terminate => return Ok(Some(Leave::Terminate)),
            Command::ListSessions { all } => looks.list(&self.deps, all),
            Command::SearchSessions { query, all } => looks.search(&self.deps, query, all),
            // Nobody is asked anything from here.
            Command::Warm => {}
            Command::ListModels => {
                let models = self.deps.models.names();
                self.send(exec, ModelsListed { models }).await;
            }
            Command::ListCommands => match commands_listed(&self.deps.options).await {
                Ok(listed) => self.send(exec, listed).await,
                Err(error) => self.warn(exec, error).await,
            },
            Command::ListSkills => match skills_listed(&self.deps.options, Vec::new()).await {
                Ok(listed) => self.send(exec, listed).await,
                Err(error) => self.warn(exec, error).await,
            },
            Command::ListMcp => {
                let servers = self.deps.remote.servers();
                self.send(exec, McpListed { servers }).await;
            }
            Command::History { before, limit } => {
                let store = Arc::clone(&self.deps.store);
                let whole = self.away(move || whole_of(store.as_ref(), exec)).await?;
                let (items, more) = whole.page(Some(&before), limit.min(500) as usize);
                self.send(exec, HistoryPage { items, more }).await;
            }
            Command::OpenSession { exec: other, access } => {
                let choice = SessionChoice::of(other, access);
                if let Some(end) = end_of_choice(&self.deps, choice).await {
                    self.warn(exec, end).await;
                    return Ok(None);
                }
                if let SessionChoice::Resume(other) = choice
                    && let Some(holder) = held_by(self.deps.store.as_ref(), other)
                {
                    self.send(exec, SessionHeld { session: other, holder, from: None }).await;
                    return Ok(None);
                }
                return Ok(Some(Leave::Open(choice)));
            }
            Command::Fork { at } => {
                let (store, now) = (Arc::clone(&self.deps.store), self.deps.clock.now());
                let forked = self.away(move || Ok(fork_session(store.as_ref(), now, exec, at)));
                match forked.await? {
                    Ok(fork) => return Ok(Some(Leave::Open(SessionChoice::Resume(fork)))),
                    Err(error) => self.warn(exec, error.info()).await,
                }
            }
            Command::Prompt { .. }
            | Command::Custom { .. }
            | Command::ListGuidance { .. }
            | Command::Steer { .. }
            | Command::Unqueue
            | Command::Interrupt
            | Command::StopAfterStep
            | Command::Approve { .. }
            | Command::Deny { .. }
            | Command::SetMode { .. }
            | Command::SetModel { .. }
            | Command::LeavePlan
            | Command::Rewind { .. }
            | Command::PreviewRewind { .. }
            | Command::Undo { .. }
            | Command::RaiseBudget(_)
            | Command::Compact { .. }
            | Command::SetUltraLoop { .. }
            | Command::ListSubagents
            | Command::SteerSubagent { .. }
            | Command::StopSubagent { .. }
            | Command::WatchSubagent { .. }
            | Command::MeasureContext
            | Command::RefuseBudget
            | Command::SetGoal { .. } => self.refuse(watched).await,
        }
        Ok(None)
    }

    async fn refuse(&self, watched: &Watched) {
        let message = match &watched.holder {
            Some(holder) => {
                format!("The session is only watched: {} works in it.", holder.words)
            }
            None => "The session is only watched; no process works in it now.".to_owned(),
        };
        let hints = vec!["/takeover continues it here; /fork branches off from it.".to_owned()];
        self.send(watched.exec, Notice { level: NoticeLevel::Warning, message, hints }).await;
    }

    /// Does something that blocks.
    async fn away<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            let message = format!("Reading the session was cut off: {error}");
            RuntimeError::Setup(ErrorInfo::new(ErrorCode::Internal, message))
        })?
    }
}

fn whole_of(store: &dyn JournalStore, exec: ExecutionId) -> Result<Conversation, RuntimeError> {
    let mut whole = Conversation::default();
    for record in store.read(exec)? {
        let record = record?;
        whole.apply(record.turn, &record.event);
    }
    Ok(whole)
}

fn nobody() -> SessionHolder {
    SessionHolder { pid: None, words: "no process".to_owned() }
}

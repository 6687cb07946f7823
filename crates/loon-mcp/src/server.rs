//! One server: started when it is wanted, kept, started again after it ended, left alone when that
//! keeps failing.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use loon_api::event::{Notice, NoticeLevel};
use loon_api::{ErrorCode, ErrorInfo, McpServer, McpState};
use loon_exec::Spawner;
use loon_kernel::{Circuits, Progress, SupervisionPolicy, supervised};
use rmcp::model::ClientRequest;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{ServerConfig, Way};
use crate::connection::{Connection, Fault};
use crate::http;
use crate::listing::{Kind, Listing, list};
use crate::offer::{Offer, Offered};
use crate::results::Results;
use crate::seen::Seen;
use crate::stdio::{EndNote, Stdio};
use crate::tail::Tail;

/// How long a server that failed is left alone unless one of its tools is called.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// What all servers of a pool work with.
pub(crate) struct Means {
    pub(crate) spawner: Spawner,
    pub(crate) circuits: Circuits,
    pub(crate) results: Results,
    pub(crate) seen: Seen,
    pub(crate) news: broadcast::Sender<Notice>,
}

/// Is told when a server offers something else.
pub(crate) trait Publish: Send + Sync {
    fn publish(&self);
}

/// How far a server has come.
#[derive(Clone)]
enum Place {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Failed { error: ErrorInfo, at: Instant },
}

/// One server of the settings. Dropped, it ends.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) means: Arc<Means>,
    publisher: Weak<dyn Publish>,
    place: watch::Sender<Place>,
    offer: RwLock<Arc<Offer>>,
    stderr: Arc<Tail>,
    /// The failure that people were told of last.
    told: Mutex<Option<String>>,
    stop: CancellationToken,
}

impl Server {
    pub(crate) fn new(
        config: ServerConfig,
        means: Arc<Means>,
        publisher: Weak<dyn Publish>,
    ) -> Self {
        Self {
            config,
            means,
            publisher,
            place: watch::Sender::new(Place::Idle),
            offer: RwLock::default(),
            stderr: Arc::default(),
            told: Mutex::default(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is told of it. `tools` are the names that models call its tools by.
    pub(crate) fn describe(&self, tools: Vec<String>) -> McpServer {
        let (state, error) =
            self.config.fixed_state().unwrap_or_else(|| match &*self.place.borrow() {
                Place::Idle => (McpState::Idle, None),
                Place::Starting => (McpState::Starting, None),
                Place::Ready(_) => (McpState::Ready, None),
                Place::Failed { error, .. } => (McpState::Failed, Some(in_words(error))),
            });
        let offer = self.offer();
        McpServer {
            name: self.config.name.clone(),
            state,
            target: self.config.target.clone(),
            implementation: offer.implementation.clone(),
            tools,
            problems: offer.problems.clone(),
            error,
            stderr: self.stderr.text(),
        }
    }

    /// Starts it, unless it is there or on its way. Waits for nothing.
    pub(crate) fn begin(self: &Arc<Self>) {
        if self.config.fixed_state().is_some() || self.stop.is_cancelled() {
            return;
        }
        let is_mine = self.place.send_if_modified(|place| {
            let startable = match place {
                Place::Idle | Place::Failed { .. } => true,
                Place::Starting => false,
                Place::Ready(connection) => connection.is_closed(),
            };
            if startable {
                *place = Place::Starting;
            }
            startable
        });
        if is_mine {
            let (server, stop) = (Arc::clone(self), self.stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = server.start() => {}
                }
            });
        }
    }

    /// Starts it, unless it failed a moment ago.
    pub(crate) fn begin_unless_failing(self: &Arc<Self>) {
        let failing =
            matches!(&*self.place.borrow(), Place::Failed { at, .. } if at.elapsed() < LEFT_ALONE);
        if !failing {
            self.begin();
        }
    }

    /// Waits while it is on its way.
    pub(crate) async fn settled(&self) {
        let mut place = self.place.subscribe();
        // The sender is in `self`.
        let _ = place.wait_for(|place| !matches!(place, Place::Starting)).await;
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(&*self.place.borrow(), Place::Starting)
    }

    /// True once it was wanted.
    pub(crate) fn is_begun(&self) -> bool {
        !matches!(&*self.place.borrow(), Place::Idle)
    }

    /// Ends it, for good.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.place.send_replace(Place::Idle);
    }

    /// The connection, made if there is none. The error is a sentence without its full stop.
    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        if let Some((_, why)) = self.config.fixed_state() {
            return Err(why.unwrap_or_else(|| "it is switched off".to_owned()));
        }
        self.begin();
        let mut place = self.place.subscribe();
        loop {
            match &*place.borrow_and_update() {
                Place::Ready(connection) => return Ok(Arc::clone(connection)),
                Place::Failed { error, .. } => return Err(in_words(error)),
                Place::Idle if self.stop.is_cancelled() => {
                    return Err("its settings changed".to_owned());
                }
                Place::Idle | Place::Starting => {}
            }
            if place.changed().await.is_err() {
                return Err("it was ended".to_owned());
            }
        }
    }

    async fn start(self: &Arc<Self>) {
        let target = format!("mcp:{}", self.config.name);
        let policy = SupervisionPolicy::default();
        let attempt = || self.attempt();
        let started =
            supervised(&self.means.circuits, &target, &policy, &self.stop, |_| {}, attempt).await;
        match started {
            Ok((connection, offer)) => {
                let connection = Arc::new(connection);
                self.take(offer);
                self.watch(&connection);
                self.place.send_replace(Place::Ready(connection));
                self.tell_recovery();
            }
            Err(error) => self.fail(error),
        }
    }

    /// Connects once and asks for everything.
    async fn attempt(&self) -> Result<(Connection, Offer), ErrorInfo> {
        self.stderr.clear();
        let limit = self.config.startup_timeout;
        match tokio::time::timeout(limit, self.open()).await {
            Ok(opened) => opened,
            Err(_) => {
                let words = format!("it was not ready within {} seconds", limit.as_secs());
                let error = ErrorInfo::new(ErrorCode::DeadlineExceeded, self.with_stderr(words));
                Err(error.hint("`startup_timeout_secs` of the server gives it more time."))
            }
        }
    }

    async fn open(&self) -> Result<(Connection, Offer), ErrorInfo> {
        let unusable = |why: String| ErrorInfo::new(ErrorCode::Invalid, why);
        let broken = |why: String| ErrorInfo::new(ErrorCode::Network, self.with_stderr(why));
        let end = Arc::new(EndNote::default());
        let connection = match &self.config.way {
            Way::Stdio { command, env, cwd } => {
                let (tail, note) = (Arc::clone(&self.stderr), Arc::clone(&end));
                let transport = Stdio::start(&self.means.spawner, command, env, cwd, tail, note);
                Connection::open(transport.map_err(unusable)?, end).await
            }
            Way::Http { url, headers } => {
                let transport = http::transport(url, headers).map_err(unusable)?;
                Connection::open(transport, end).await
            }
            Way::Off | Way::Unusable(_) => return Err(unusable("it is not used".to_owned())),
        };
        let connection = connection.map_err(broken)?;
        let offer = Offer::ask(&self.config.name, &connection, &self.stop).await;
        let offer = offer.map_err(|fault| match fault {
            Fault::Answered(why) => unusable(format!("it does not say what it offers: {why}")),
            other => broken(other.to_string()),
        })?;
        Ok((connection, offer))
    }

    /// With the last that the program said, which tells most as a rule.
    fn with_stderr(&self, why: String) -> String {
        match self.stderr.last_line() {
            Some(said) => format!("{why}; it said last: {said}"),
            None => why,
        }
    }

    /// Takes over what it offers now, and says if tools are not what they were.
    fn take(&self, offer: Offer) {
        let former = {
            let mut now = self.offer.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *now, Arc::new(offer))
        };
        let offer = self.offer();
        let changed = offer.changed_since(&former);
        if !changed.is_empty() {
            let message = format!(
                "The MCP server {} describes tools otherwise than before: {}.",
                self.config.name,
                changed.join(", ")
            );
            let hints =
                vec!["Their next call is asked about anew, whatever rules allow.".to_owned()];
            self.tell(NoticeLevel::Warning, message, hints);
        }
        if let Some(publisher) = self.publisher.upgrade() {
            publisher.publish();
        }
    }

    /// Notes when the connection ends.
    fn watch(self: &Arc<Self>, connection: &Arc<Connection>) {
        let (server, ended) = (Arc::downgrade(self), connection.ending());
        let connection = Arc::downgrade(connection);
        tokio::spawn(async move {
            let why = ended.await;
            let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade()) else {
                return;
            };
            if server.leave(&connection, Place::Starting) {
                server.fail(ErrorInfo::new(ErrorCode::Network, server.with_stderr(why)));
            }
        });
    }

    /// Leaves a connection for another place. False if it is not the one in use.
    fn leave(&self, connection: &Arc<Connection>, to: Place) -> bool {
        self.place.send_if_modified(|place| match place {
            Place::Ready(now) if Arc::ptr_eq(now, connection) => {
                *place = to;
                true
            }
            _ => false,
        })
    }

    fn fail(&self, error: ErrorInfo) {
        let why = in_words(&error);
        self.place.send_replace(Place::Failed { error, at: Instant::now() });
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_deref() != Some(why.as_str()) {
            let message = format!("The MCP server {} is not there: {why}.", self.config.name);
            let hints = vec!["`/mcp` shows all servers; `loon mcp test` tries one.".to_owned()];
            *told = Some(why);
            drop(told);
            self.tell(NoticeLevel::Warning, message, hints);
        }
    }

    fn tell_recovery(&self) {
        let former = self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        if former.is_some() {
            let message = format!("The MCP server {} is there again.", self.config.name);
            self.tell(NoticeLevel::Info, message, Vec::new());
        }
    }

    fn tell(&self, level: NoticeLevel, message: String, hints: Vec<String>) {
        // Nobody may listen; the list of servers says it as well.
        let _ = self.means.news.send(Notice { level, message, hints });
    }

    /// Asks the server, which is started if it is not there. Nothing is asked twice, unless the server
    /// says that it did not look at it. The error is what a model reads.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        request: impl Fn() -> ClientRequest,
        tool: Option<&Offered>,
        progress: Option<&mpsc::Sender<Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Value, String> {
        let name = &self.config.name;
        for is_last in [false, true] {
            let connection = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err("Cancelled.".to_owned()),
                connection = self.connection() => connection,
            };
            let connection =
                connection.map_err(|why| format!("The MCP server {name} is not there: {why}."))?;
            if let Some(tool) = tool {
                self.check(tool)?;
            }
            return match connection.ask(request(), progress, cancel).await {
                Ok(answer) => Ok(answer),
                Err(Fault::Expired) if !is_last => {
                    self.leave(&connection, Place::Idle);
                    continue;
                }
                Err(Fault::Cancelled) => Err("Cancelled.".to_owned()),
                Err(Fault::Answered(why)) => {
                    Err(format!("The server answered with an error: {why}."))
                }
                Err(Fault::Expired) => Err(format!(
                    "The MCP server {name} forgets its sessions at once; the call was not made."
                )),
                Err(Fault::Lost(why)) => Err(format!(
                    "The MCP server {name} was lost while the call was under way: {why}. The call may \
                     have had its effect in whole, in part or not at all, and was not repeated. The \
                     next call starts the server again."
                )),
            };
        }
        Err(format!("The MCP server {name} gave no answer."))
    }

    /// Asks the server for a whole list. The error is what a model reads.
    pub(crate) async fn list(
        self: &Arc<Self>,
        kind: Kind,
        cancel: &CancellationToken,
    ) -> Result<Listing, String> {
        let name = &self.config.name;
        for is_last in [false, true] {
            let connection = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err("Cancelled.".to_owned()),
                connection = self.connection() => connection,
            };
            let connection =
                connection.map_err(|why| format!("The MCP server {name} is not there: {why}."))?;
            match list(&connection, kind, cancel).await {
                Err(Fault::Expired) if !is_last => {
                    self.leave(&connection, Place::Idle);
                }
                given => {
                    return given.map_err(|fault| format!("The server gave no list: {fault}."));
                }
            }
        }
        Err(format!("The MCP server {name} gave no list."))
    }

    /// What was allowed must be what is called: a server that came back may offer something else.
    fn check(&self, tool: &Offered) -> Result<(), String> {
        let offer = self.offer();
        let name = &tool.spec.name;
        match offer.tools.iter().find(|now| now.original == tool.original) {
            Some(now) if now.digest == tool.digest => Ok(()),
            Some(_) => Err(format!(
                "Not called: the server describes {name} otherwise since it was started again. Look at \
                 it with tool_search, then call it."
            )),
            None => Err(format!("The server no longer offers {name}.")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The error as a phrase that goes on in a sentence.
fn in_words(error: &ErrorInfo) -> String {
    let why = error.message.trim_end_matches('.');
    match error.hints.first() {
        Some(hint) => format!("{why}. {}", hint.trim_end_matches('.')),
        None => why.to_owned(),
    }
}

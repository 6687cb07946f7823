//! All servers of the settings, for a whole process.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use loon_api::event::Notice;
use loon_api::{BoxFuture, McpServer, ToolSpec};
use loon_exec::Spawner;
use loon_kernel::{Circuits, Redactor, RemoteTools, Tool, ToolList};
use tokio::sync::broadcast;

use crate::adapter::{Adapter, What};
use crate::config::ServerConfig;
use crate::names;
use crate::results::Results;
use crate::seen::Seen;
use crate::server::{Means, Publish, Server};
use crate::tool::RemoteTool;

/// Notices that may wait for a session.
const NEWS: usize = 64;

/// How long a search waits for servers that are on their way.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a pool works with.
pub struct PoolOptions {
    /// Starts the programs.
    pub spawner: Spawner,
    /// Leaves servers alone that keep failing.
    pub circuits: Circuits,
    /// Masks secrets in what is kept in files.
    pub redactor: Redactor,
    /// Folder of the pool's own files, made when it is needed.
    pub folder: PathBuf,
}

/// The servers. Dropped, all of them end.
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    means: Arc<Means>,
    servers: RwLock<Vec<Arc<Server>>>,
    published: RwLock<Published>,
}

/// The tools as they are told of.
#[derive(Clone)]
struct Published {
    all: ToolList,
    called: Arc<[Arc<RemoteTool>]>,
}

impl Default for Published {
    fn default() -> Self {
        Self { all: Arc::new([]), called: Arc::new([]) }
    }
}

impl Pool {
    /// A pool without servers.
    pub fn new(options: PoolOptions) -> Self {
        let PoolOptions { spawner, circuits, redactor, folder } = options;
        let means = Means {
            spawner,
            circuits,
            results: Results::new(Self::results_in(&folder), redactor),
            seen: Seen::open(folder.join("seen.json")),
            news: broadcast::Sender::new(NEWS),
        };
        let (servers, published) = (RwLock::default(), RwLock::default());
        Self { shared: Arc::new(Shared { means: Arc::new(means), servers, published }) }
    }

    /// Where long results lie, below the folder of a pool: models may read there.
    pub fn results_in(folder: &std::path::Path) -> PathBuf {
        folder.join("results")
    }

    /// Uses these servers from now on. Those that stay as they are go on; a changed one that was there
    /// is started anew.
    pub fn apply(&self, configs: Vec<ServerConfig>) {
        let mut begun = Vec::new();
        {
            let mut servers = self.shared.servers.write().unwrap_or_else(PoisonError::into_inner);
            let former = std::mem::take(&mut *servers);
            for config in configs {
                let known = former.iter().find(|server| server.config.name == config.name);
                if let Some(same) = known.filter(|known| known.config == config) {
                    servers.push(Arc::clone(same));
                    continue;
                }
                // What it is now may work where the former one did not.
                self.shared.means.circuits.forget(&format!("mcp:{}", config.name));
                let publisher = Arc::downgrade(&self.shared) as Weak<dyn Publish>;
                let server =
                    Arc::new(Server::new(config, Arc::clone(&self.shared.means), publisher));
                if known.is_some_and(|known| known.is_begun()) {
                    begun.push(Arc::clone(&server));
                }
                servers.push(server);
            }
            for gone in
                former.iter().filter(|gone| !servers.iter().any(|kept| Arc::ptr_eq(gone, kept)))
            {
                gone.end();
            }
        }
        self.shared.publish();
        begun.iter().for_each(Server::begin);
    }

    /// Starts every server that did not fail a moment ago, and waits until each is there or has
    /// failed.
    pub async fn start_all(&self) {
        let servers = self.shared.servers();
        servers.iter().for_each(Server::begin_unless_failing);
        for server in &servers {
            server.settled().await;
        }
    }

    /// Starts one server, waits until it is there or has failed, and gives how it is. `None` if there
    /// is none of that name.
    pub async fn test(&self, name: &str) -> Option<McpServer> {
        let server = self.shared.servers().into_iter().find(|server| server.config.name == name)?;
        server.begin();
        server.settled().await;
        Some(describe(&server))
    }
}

impl Shared {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn published(&self) -> Published {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.published().all.iter().find(|tool| tool.spec().name == name).cloned()
    }
}

/// How a server is, with the names of its tools.
fn describe(server: &Server) -> McpServer {
    let offer = server.offer();
    let own = offer.tools.iter().map(|tool| tool.spec.name.clone());
    let adapters = What::of(&offer);
    let adapters = adapters.iter().map(|what| what.name(&server.config.name, &offer));
    server.describe(own.chain(adapters).collect())
}

impl Publish for Shared {
    fn publish(&self) {
        let (mut all, mut called): (Vec<Arc<dyn Tool>>, Vec<Arc<RemoteTool>>) = Default::default();
        for server in self.servers() {
            let offer = server.offer();
            let reader =
                offer.resources.then(|| What::ReadResource.name(&server.config.name, &offer));
            for offered in &offer.tools {
                let tool = RemoteTool::new(Arc::clone(&server), offered.clone(), reader.clone());
                let tool = Arc::new(tool);
                called.push(Arc::clone(&tool));
                all.push(tool);
            }
            for what in What::of(&offer) {
                all.push(Arc::new(Adapter::new(Arc::clone(&server), what, &offer)));
            }
        }
        let published = Published { all: all.into(), called: called.into() };
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = published;
    }
}

impl RemoteTools for Pool {
    fn now(&self) -> ToolList {
        self.shared.published().all
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        Box::pin(async move {
            if let Some(tool) = self.shared.find(name) {
                return Some(tool);
            }
            let servers = self.shared.servers();
            let own = |server: &&Arc<Server>| name.starts_with(&names::prefix(&server.config.name));
            for server in servers.iter().filter(own) {
                if !server.is_begun() {
                    server.begin();
                }
                if server.is_starting() {
                    server.settled().await;
                }
            }
            self.shared.find(name)
        })
    }

    fn begin(&self, loaded: &[String]) {
        for server in self.shared.servers() {
            let prefix = names::prefix(&server.config.name);
            if server.config.warm || loaded.iter().any(|name| name.starts_with(&prefix)) {
                server.begin_unless_failing();
            }
        }
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Who is slower comes later; nobody waits for it now.
            let _ = tokio::time::timeout(PATIENCE, self.start_all()).await;
        })
    }

    fn servers(&self) -> Vec<McpServer> {
        self.shared.servers().iter().map(|server| describe(server)).collect()
    }

    fn news(&self) -> broadcast::Receiver<Notice> {
        self.shared.means.news.subscribe()
    }

    fn is_changed(&self, tool: &ToolSpec) -> bool {
        let published = self.shared.published();
        let called = published.called.iter().find(|called| called.offered.spec.name == tool.name);
        called.is_some_and(|called| called.is_changed())
    }
}

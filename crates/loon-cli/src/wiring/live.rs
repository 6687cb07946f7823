//! Settings that change while a session runs: from the watched files to whoever goes by them.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use loon_api::event::{Notice, NoticeLevel};
use loon_api::{ErrorInfo, HookDefinition, Money, Usage};
use loon_config::{Settings, SettingsWatch, Snapshot};
use loon_core::{Models, Update, Updates};
use loon_kernel::{Circuits, Pricing, Redactor, Route};
use loon_mcp::Pool;
use loon_model::pricing::PriceTable;
use loon_tool::WebOptions;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::models::is_same_server;
use super::{RunOptions, SettingsModels, Setup, mcp, secrets, web};
use crate::safe::plain;

/// The models of the settings as they are now.
pub(crate) struct LiveModels(RwLock<Arc<SettingsModels>>);

impl LiveModels {
    pub(super) fn new(models: SettingsModels) -> Self {
        Self(RwLock::new(Arc::new(models)))
    }

    fn now(&self) -> Arc<SettingsModels> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, models: SettingsModels) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(models);
    }
}

impl Models for LiveModels {
    fn open(&self, name: &str) -> Result<Arc<Route>, ErrorInfo> {
        self.now().open(name)
    }

    fn names(&self) -> Vec<String> {
        self.now().names()
    }
}

/// The prices of the settings as they are now.
pub(crate) struct LivePrices(RwLock<PriceTable>);

impl LivePrices {
    pub(super) fn new(prices: PriceTable) -> Self {
        Self(RwLock::new(prices))
    }

    fn replace(&self, prices: PriceTable) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = prices;
    }
}

impl Pricing for LivePrices {
    fn price(&self, model: &str, usage: &Usage) -> Option<Money> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).price(model, usage)
    }
}

/// Handles through which parts of a runtime follow the settings.
pub(super) struct Handles {
    pub(super) models: Arc<LiveModels>,
    pub(super) prices: Arc<LivePrices>,
    pub(super) circuits: Circuits,
    pub(super) web: watch::Sender<Arc<WebOptions>>,
    /// Names of variables that no tool's process may see.
    pub(super) secrets: watch::Sender<Arc<[String]>>,
    pub(super) hooks: watch::Sender<Arc<[HookDefinition]>>,
    pub(super) redactor: Redactor,
    pub(super) remote: Arc<Pool>,
}

impl Handles {
    fn renew(&self, former: &Settings, setup: &Setup) {
        let settings = &setup.loaded.settings;
        let models = SettingsModels::new(settings, &setup.root);
        // A new key is masked before anything can use it.
        secrets::renew(&self.redactor, settings);
        self.prices.replace(models.prices());
        self.models.replace(models);
        for (name, provider) in &former.providers {
            let now = settings.providers.get(name);
            if now.is_none_or(|now| !is_same_server(provider, now)) {
                self.circuits.forget(&format!("{}{name}", Route::TARGETS));
            }
        }
        self.web.send_replace(Arc::new(web::options(settings)));
        self.hooks.send_replace(Arc::from(setup.loaded.hooks.as_slice()));
        // A name that was secret once stays hidden.
        let mut names = setup.secret_variables();
        names.extend_from_slice(&self.secrets.borrow());
        names.sort();
        names.dedup();
        self.secrets.send_replace(names.into());
        self.remote.apply(mcp::of_settings(settings, &setup.root));
    }
}

/// What keeps a runtime up to date with the settings, before it has begun.
pub(crate) struct Follower {
    setup: Setup,
    max_steps: Option<u32>,
    handles: Handles,
    updates: watch::Sender<Option<Arc<Update>>>,
    watched: Result<(SettingsWatch, watch::Receiver<Arc<Snapshot>>), ErrorInfo>,
}

impl Follower {
    /// Begins to watch the files.
    pub(super) fn new(setup: Setup, run: &RunOptions, handles: Handles) -> (Self, Updates) {
        let watched = SettingsWatch::start(
            setup.files.clone(),
            setup.inputs.clone(),
            setup.paths.trust_file(),
            setup.loaded.clone(),
            setup.trusted,
        );
        let (updates, receiver) = watch::channel(None);
        (Self { setup, max_steps: run.max_steps, handles, updates, watched }, receiver)
    }

    /// What a person should know if the files cannot be watched.
    pub(super) fn remark(&self) -> Option<String> {
        self.watched.as_ref().err().map(|error| plain(&error.message))
    }

    /// Passes changes on until the guard is dropped. `seen` is shown each of them.
    pub(crate) fn start(self, seen: impl Fn(&Setup) + Send + 'static) -> Following {
        let Self { setup, max_steps, handles, updates, watched } = self;
        let Ok((watch, mut snapshots)) = watched else { return Following(None) };
        let mut current = Current { setup, max_steps, handles };
        let task = tokio::spawn(async move {
            while snapshots.changed().await.is_ok() {
                let snapshot = Arc::clone(&snapshots.borrow_and_update());
                let update = current.take(&snapshot);
                seen(&current.setup);
                updates.send_replace(Some(Arc::new(update)));
            }
        });
        Following(Some((watch, task)))
    }
}

/// Held as long as changes of the settings should arrive.
pub(crate) struct Following(Option<(SettingsWatch, JoinHandle<()>)>);

impl Drop for Following {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.0 {
            task.abort();
        }
    }
}

/// What was passed on last.
struct Current {
    setup: Setup,
    max_steps: Option<u32>,
    handles: Handles,
}

impl Current {
    /// Takes new settings over where they have handles of their own, and gives what the session must be
    /// told.
    fn take(&mut self, snapshot: &Snapshot) -> Update {
        let mut notices = match &snapshot.problem {
            Some(problem) => vec![kept(problem)],
            None => arrived(self.setup.trusted, snapshot),
        };
        let former = self.setup.remarks();
        let loaded = snapshot.loaded.as_ref().clone();
        let former_settings = std::mem::replace(&mut self.setup.loaded, loaded).settings;
        if let Ok(at) = self.setup.at.with_trust_of_now() {
            self.setup.at.changed = at.changed;
        }
        self.setup.at.trusted = snapshot.trusted;
        let remarks = self.setup.remarks();
        let new = remarks.iter().filter(|remark| !former.contains(remark));
        notices.extend(new.map(|remark| notice(NoticeLevel::Warning, remark.clone())));
        if snapshot.problem.is_none() {
            self.handles.renew(&former_settings, &self.setup);
        }
        let settings = &self.setup.loaded.settings;
        Update {
            policy: Arc::new(self.setup.policy()),
            model: settings.session.model.clone(),
            mode: settings.session.mode,
            limits: self.setup.limits(self.max_steps),
            context: self.setup.context(),
            budget: self.setup.budget(),
            tools: settings.session.tools,
            ultra: self.setup.ultra_loop(false),
            remarks,
            notices,
        }
    }
}

fn notice(level: NoticeLevel, message: String) -> Notice {
    Notice { level, message, hints: Vec::new() }
}

/// The files say something that cannot be used.
fn kept(problem: &ErrorInfo) -> Notice {
    Notice {
        level: NoticeLevel::Warning,
        message: format!(
            "The settings stay as they were, because the files cannot be used as they are: {}",
            plain(&problem.message)
        ),
        hints: problem.hints.iter().map(|hint| plain(hint)).collect(),
    }
}

/// The files say something new, and it holds.
fn arrived(was_trusted: bool, snapshot: &Snapshot) -> Vec<Notice> {
    let mut told = Vec::new();
    match (was_trusted, snapshot.trusted) {
        (false, true) => told.push("This folder is trusted now; its settings hold.".to_owned()),
        (true, false) => told.push("This folder is no longer trusted.".to_owned()),
        _ => {}
    }
    if snapshot.recovered {
        told.push("The settings can be read again and hold.".to_owned());
    } else if !snapshot.changed.is_empty() {
        let names: Vec<String> = snapshot
            .changed
            .iter()
            .map(|file: &PathBuf| plain(&file.display().to_string()))
            .collect();
        told.push(format!("The settings changed and hold now: {}.", names.join(", ")));
    }
    told.into_iter().map(|message| notice(NoticeLevel::Info, message)).collect()
}

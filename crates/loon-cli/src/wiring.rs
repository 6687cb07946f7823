//! Puts the crates together: settings, models, tools and rules become the runtime's dependencies.

mod hooks;
mod live;
mod mcp;
mod models;
mod rules;
mod secrets;
mod tools;
mod web;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loon_config::trust::Trust;
use loon_config::{ConfigError, Layer, Loaded, environment, files};
use loon_core::{
    ContextLimits, Dependencies, Given, Hooks, Limits, SessionChoice, SessionIndex, SessionOptions,
    UltraLoop, Worktrees, sessions,
};
use loon_exec::Spawner;
use loon_kernel::{Budget, Circuits, FileStore, Redactor, SystemClock};
use loon_mcp::{Pool, PoolOptions};
use loon_permission::Policy;
use loon_tool::user_tools;
use serde_json::Value;
use tokio::sync::watch;

use self::hooks::HttpPoster;
pub(crate) use self::live::{Follower, Following};
use self::live::{Handles, LiveModels, LivePrices};
pub(crate) use self::models::{DEMO_MODEL, LocalModel, SettingsModels};
use self::rules::LocalRules;
pub(crate) use self::secrets::redactor_here;
use crate::args::SessionArgs;
use crate::commands;
use crate::failure::Failure;
use crate::paths::{Paths, current_folder};
use crate::safe::plain;

/// The settings of one folder, and where everything lives.
#[derive(Clone)]
pub(crate) struct Setup {
    /// Where they lie.
    pub(crate) at: SetupPaths,
    /// The settings in force.
    pub(crate) loaded: Loaded,
}

impl std::ops::Deref for Setup {
    type Target = SetupPaths;

    fn deref(&self) -> &SetupPaths {
        &self.at
    }
}

/// Where the settings of one folder lie, before they are read.
#[derive(Clone)]
pub(crate) struct SetupPaths {
    /// Folders of the user.
    pub(crate) paths: Paths,
    /// Absolute folder to work in.
    pub(crate) root: PathBuf,
    /// Files of the settings.
    pub(crate) files: files::Paths,
    /// What holds besides the files.
    pub(crate) inputs: files::Inputs,
    /// A person trusts the folder's settings.
    pub(crate) trusted: bool,
    /// The project's settings are not those that were trusted.
    pub(crate) changed: bool,
    /// A variable besides those of the settings that no tool's process may see.
    pub(crate) hidden: Option<String>,
}

impl SetupPaths {
    /// Reads the settings as if the folder were trusted, or not.
    pub(crate) fn load_as(&self, trusted: bool) -> Result<Loaded, ConfigError> {
        files::load_files(&self.files, &self.inputs, trusted)
    }

    /// The same with the trust that holds now.
    pub(crate) fn with_trust_of_now(&self) -> Result<Self, ConfigError> {
        let trust = Trust::open(&self.paths.trust_file())?;
        let state = files::project_state(&self.files);
        Ok(Self {
            trusted: trust.is_trusted(&self.root),
            changed: trust.is_changed(&self.root, &state),
            ..self.clone()
        })
    }

    /// Changes one file. A change of the project's settings that a person makes through Loom needs no
    /// new trust.
    pub(crate) fn update(
        &self,
        layer: Layer,
        change: impl Fn(&str) -> Result<String, ConfigError>,
    ) -> Result<Loaded, ConfigError> {
        let former = files::project_state(&self.files);
        let loaded = files::update(&self.files, &self.inputs, self.trusted, layer, change)?;
        if layer.is_project() && self.trusted {
            let state = files::project_state(&self.files);
            Trust::open(&self.paths.trust_file())?.agree(&self.root, &former, &state)?;
        }
        Ok(loaded)
    }
}

impl Setup {
    /// Finds the files without reading them. `overrides` are `key=value` words.
    pub(crate) fn load_paths(
        cwd: Option<&Path>,
        overrides: &[String],
    ) -> Result<SetupPaths, Failure> {
        let paths = Paths::from_environment()?;
        let folder = cwd.map_or_else(current_folder, |cwd| Ok(cwd.to_path_buf()))?;
        let root = folder.canonicalize().map_err(|error| {
            Failure::usage(format!("Cannot work in {}: {error}", folder.display()))
        })?;
        if !root.is_dir() {
            return Err(Failure::usage(format!("{} is no folder.", root.display())));
        }
        let files = files::Paths::usual(&root, paths.home.as_deref(), Some(&paths.config));
        let inputs =
            files::Inputs { environment: settings_variables(), overrides: overrides.to_vec() };
        let found =
            SetupPaths { paths, root, files, inputs, trusted: false, changed: false, hidden: None };
        Ok(found.with_trust_of_now()?)
    }

    /// Reads the settings for a folder, the current one if `cwd` is absent.
    pub(crate) fn load(cwd: Option<&Path>, overrides: &[String]) -> Result<Self, Failure> {
        let at = Self::load_paths(cwd, overrides)?;
        let loaded = at.load_as(at.trusted)?;
        Ok(Self { at, loaded })
    }

    /// The session that the command line chooses, with the settings of its folder. A session named
    /// by its id goes on in its own folder unless another one is given.
    pub(crate) fn for_session(args: &SessionArgs) -> Result<(Self, SessionChoice), Failure> {
        let Some(id) = &args.resume else {
            let setup = Self::load(args.cwd.as_deref(), &args.settings())?;
            let choice = if args.continue_newest { setup.newest()? } else { SessionChoice::New };
            return Ok((setup, choice));
        };
        let store = FileStore::new(Paths::from_environment()?.data);
        let exec = commands::find_session(&store, id)?;
        let own = sessions::folder_of(&store, exec).map(PathBuf::from);
        let setup = Self::load(args.cwd.as_deref().or(own.as_deref()), &args.settings())?;
        let choice = if args.take_over {
            SessionChoice::TakeOver(exec)
        } else {
            SessionChoice::Resume(exec)
        };
        Ok((setup, choice))
    }

    /// What a person should know of the settings: what has no effect, what is unknown.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let warnings = self.loaded.problems.iter().chain(&self.loaded.warnings);
        let mut remarks: Vec<String> =
            warnings.map(|warning| plain(&warning.to_string())).collect();
        if self.changed {
            remarks.push(
                "The .loon settings of this folder changed since you trusted it, and they hold. \
                 Look at them; `loon trust` says that they are fine, `loon trust --revoke` takes \
                 the trust back."
                    .to_owned(),
            );
        }
        let waiting = self.loaded.untrusted.iter().filter(|ignored| ignored.needs_trust).count();
        if waiting > 0 {
            remarks.push(format!(
                "{waiting} settings of this folder have no effect until you run `loon trust` here; \
                 `loon config list` names them."
            ));
        }
        remarks
    }

    /// The journals.
    pub(crate) fn store(&self) -> FileStore {
        FileStore::new(self.paths.data.clone())
    }

    /// The newest session of the folder.
    fn newest(&self) -> Result<SessionChoice, Failure> {
        let cwd = self.root.display().to_string();
        let newest = sessions::newest_session(&self.store(), &cwd)
            .map_err(|error| Failure::from(error.info()))?;
        newest.map(SessionChoice::Resume).ok_or_else(|| {
            Failure::usage(format!("There is no session of {cwd} to continue."))
                .hint("Begin one with `loon`, or see `loon sessions list --all`.")
        })
    }

    /// Names of the variables that hold keys, which no tool's process may see.
    fn secret_variables(&self) -> Vec<String> {
        let providers = self.loaded.settings.providers.values();
        let keys = providers.filter_map(|provider| provider.api_key_env.clone());
        let context7 = self.loaded.settings.context7.api_key_env.clone();
        let settings = self.inputs.environment.iter().map(|(name, _)| name.clone());
        let workers = self.loaded.settings.workers.values();
        keys.chain([context7])
            .chain(workers.filter_map(|worker| worker.token_env.clone()))
            .chain(self.hidden.clone())
            .chain(mcp::header_variables(&self.loaded.settings))
            .chain(settings.filter(|name| environment::holds_secret(name)))
            .collect()
    }

    /// The permission rules in force.
    pub(crate) fn policy(&self) -> Policy {
        Policy::new(self.loaded.rules.clone(), self.paths.home.clone(), self.root.clone())
            .protecting(self.paths.config.clone())
            .protecting(self.paths.data.join("executions"))
            .protecting(self.paths.data.join("trash"))
            .protecting(self.paths.data.join("index"))
            .protecting(self.paths.trust_file())
            .protecting(self.mcp_folder())
            .showing(Pool::results_in(&self.mcp_folder()))
    }

    /// Where the MCP client keeps its own files.
    fn mcp_folder(&self) -> PathBuf {
        self.paths.data.join("mcp")
    }

    /// The MCP servers of the settings. None is started yet.
    pub(crate) fn mcp_pool(
        &self,
        spawner: Spawner,
        circuits: Circuits,
        redactor: Redactor,
    ) -> Pool {
        let pool =
            Pool::new(PoolOptions { spawner, circuits, redactor, folder: self.mcp_folder() });
        pool.apply(mcp::of_settings(&self.loaded.settings, &self.root));
        pool
    }

    /// The same for a command that runs no session.
    pub(crate) fn mcp_pool_alone(&self) -> Pool {
        let circuits = Circuits::new(Arc::new(SystemClock));
        let (redactor, _) = secrets::redactor(&self.loaded.settings);
        self.mcp_pool(Spawner::new(self.secret_variables()), circuits, redactor)
    }

    /// Where skills, agent profiles and custom commands lie, weakest first: the user's own, then the folder's.
    fn definitions(&self) -> Vec<PathBuf> {
        let own = [".claude", ".agents", ".loon"].map(|name| self.root.join(name));
        std::iter::once(self.paths.data.clone()).chain(own).collect()
    }

    /// The user's own guidance, which need not be there.
    pub(crate) fn user_guidance(&self) -> PathBuf {
        self.paths.config.join("AGENTS.md")
    }

    /// Everything the runtime is wired from, and what keeps it up to date.
    pub(crate) fn dependencies(&self, run: RunOptions) -> (Dependencies, Follower) {
        let settings = &self.loaded.settings;
        let models = SettingsModels::new(settings, &self.root);
        let prices = Arc::new(LivePrices::new(models.prices()));
        let models = Arc::new(LiveModels::new(models));
        let circuits = Circuits::new(Arc::new(SystemClock));
        let root = self.root.clone();
        let store = Arc::new(self.store());
        let index = SessionIndex::at(self.paths.index_file());
        let web = watch::Sender::new(Arc::new(web::options(settings)));
        let secrets = watch::Sender::new(Arc::from(self.secret_variables()));
        let hooks = watch::Sender::new(Arc::from(self.loaded.hooks.as_slice()));
        let spawner = Spawner::following(secrets.subscribe());
        let own = tools::of_settings(settings);
        let hook_handles = Hooks {
            definitions: hooks.subscribe(),
            spawner: spawner.clone(),
            poster: Arc::new(HttpPoster),
        };
        let (_, unusable) = user_tools(&own, &root, &spawner);
        let tools = tools::factory(
            Arc::clone(&store),
            spawner.clone(),
            web.subscribe(),
            index.clone(),
            own,
        );
        let (redactor, too_short) = secrets::redactor(settings);
        let remote = Arc::new(self.mcp_pool(spawner.clone(), circuits.clone(), redactor.clone()));
        let (follower, updates) = {
            let redactor = redactor.clone();
            let (models, prices) = (Arc::clone(&models), Arc::clone(&prices));
            let (circuits, remote) = (circuits.clone(), Arc::clone(&remote));
            Follower::new(
                self.clone(),
                &run,
                Handles { models, prices, circuits, web, secrets, hooks, redactor, remote },
            )
        };
        let mut remarks = self.remarks();
        remarks.extend(too_short);
        remarks.extend(follower.remark());
        remarks.extend(unusable);
        let deps = Dependencies {
            tools,
            remote,
            store,
            index,
            clock: Arc::new(SystemClock),
            redactor,
            pricing: prices,
            circuits,
            models,
            policy: Arc::new(self.policy()),
            rules: Arc::new(LocalRules::new(self.at.clone())),
            hooks: hook_handles,
            worktrees: Worktrees::new(spawner, self.paths.data.join("worktrees")),
            branch: Arc::new(move || loon_exec::git::branch(&root)),
            options: SessionOptions {
                cwd: self.root.clone(),
                model: Given {
                    value: run.session.model.clone().or_else(|| settings.session.model.clone()),
                    explicit: run.session.model.is_some(),
                },
                mode: Given {
                    value: run.session.mode.map_or(settings.session.mode, Into::into),
                    explicit: run.session.mode.is_some(),
                },
                limits: self.limits(run.max_steps),
                context: self.context(),
                budget: self.budget(),
                tools: settings.session.tools,
                ultra: self.ultra_loop(run.session.ultra),
                deadline: Given {
                    value: run.deadline.or(settings.budget.deadline),
                    explicit: run.deadline.is_some(),
                },
                unattended: run.unattended,
                answer_schema: run.answer_schema,
                remarks,
                definitions: self.definitions(),
                user_guidance: Some(self.user_guidance()),
            },
            updates,
        };
        (deps, follower)
    }

    /// Limits of a turn; the command line may name the number of requests.
    fn limits(&self, max_steps: Option<u32>) -> Limits {
        let session = &self.loaded.settings.session;
        Limits {
            max_steps: max_steps.unwrap_or(session.max_turns),
            tool_timeout: Duration::from_secs(session.tool_timeout_secs),
        }
    }

    fn context(&self) -> ContextLimits {
        let context = self.loaded.settings.context;
        ContextLimits { max_tokens: context.max_tokens, compact_at: context.compact_at }
    }

    /// Whether claims of completion are reviewed, and by whom; the command line may ask for it.
    fn ultra_loop(&self, asked: bool) -> UltraLoop {
        let supervisor = &self.loaded.settings.supervisor;
        UltraLoop {
            enabled: Given { value: asked || supervisor.enabled, explicit: asked },
            model: supervisor.model.clone(),
            max_reviews: supervisor.max_reviews,
        }
    }

    fn budget(&self) -> Budget {
        let budget = &self.loaded.settings.budget;
        Budget {
            max_usd: budget.max_usd,
            max_tokens: budget.max_tokens,
            max_requests: budget.max_requests,
        }
    }
}

/// The variables that may be settings.
fn settings_variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(environment::PREFIX))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect()
}

/// What the command line says of one run.
pub(crate) struct RunOptions<'a> {
    /// Which session, and how it works.
    pub(crate) session: &'a SessionArgs,
    /// Most model requests of a turn.
    pub(crate) max_steps: Option<u32>,
    /// Most time at work.
    pub(crate) deadline: Option<Duration>,
    /// Nobody is there to ask.
    pub(crate) unattended: bool,
    /// JSON Schema of the answer.
    pub(crate) answer_schema: Option<Value>,
}

impl<'a> RunOptions<'a> {
    /// A session with a person in front of it.
    pub(crate) fn attended(session: &'a SessionArgs) -> Self {
        Self { session, max_steps: None, deadline: None, unattended: false, answer_schema: None }
    }
}

//! Puts the crates together: settings, models, tools and rules become the runtime's dependencies.

mod models;
mod rules;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loon_config::trust::Trust;
use loon_config::{Loaded, files};
use loon_core::{Dependencies, Given, Limits, SessionChoice, SessionOptions, Worktrees, sessions};
use loon_exec::Spawner;
use loon_kernel::{Budget, FileStore, SystemClock};
use loon_permission::Policy;
use serde_json::Value;

pub(crate) use self::models::{DEMO_MODEL, LocalModel, SettingsModels};
use self::rules::LocalRules;
use crate::args::SessionArgs;
use crate::commands;
use crate::failure::Failure;
use crate::paths::{Paths, current_folder};
use crate::safe::plain;

/// The settings of one folder, and where everything lives.
pub(crate) struct Setup {
    /// Folders of the user.
    pub(crate) paths: Paths,
    /// Absolute folder to work in.
    pub(crate) root: PathBuf,
    /// Files of the settings.
    pub(crate) files: files::Paths,
    /// A person trusts the folder's settings.
    pub(crate) trusted: bool,
    /// The settings in force.
    pub(crate) loaded: Loaded,
}

/// Where the settings of one folder lie, before they are read.
pub(crate) struct SetupPaths {
    pub(crate) paths: Paths,
    pub(crate) root: PathBuf,
    pub(crate) files: files::Paths,
    pub(crate) trusted: bool,
}

impl Setup {
    /// Finds the files without reading them.
    pub(crate) fn load_paths(cwd: Option<&Path>) -> Result<SetupPaths, Failure> {
        let paths = Paths::from_environment()?;
        let folder = cwd.map_or_else(current_folder, |cwd| Ok(cwd.to_path_buf()))?;
        let root = folder.canonicalize().map_err(|error| {
            Failure::usage(format!("Cannot work in {}: {error}", folder.display()))
        })?;
        if !root.is_dir() {
            return Err(Failure::usage(format!("{} is no folder.", root.display())));
        }
        let files = files::Paths::usual(&root, paths.home.as_deref(), Some(&paths.config));
        let trust =
            Trust::open(&paths.trust_file()).map_err(|error| Failure::from(error.info()))?;
        let trusted = trust.is_trusted(&root);
        Ok(SetupPaths { paths, root, files, trusted })
    }

    /// Reads the settings for a folder, the current one if `cwd` is absent.
    pub(crate) fn load(cwd: Option<&Path>, overrides: &[String]) -> Result<Self, Failure> {
        let SetupPaths { paths, root, files, trusted } = Self::load_paths(cwd)?;
        let loaded = files::load_files(&files, overrides, trusted)
            .map_err(|error| Failure::from(error.info()))?;
        Ok(Self { paths, root, files, trusted, loaded })
    }

    /// The session that the command line chooses, with the settings of its folder. A session named
    /// by its id goes on in its own folder unless another one is given.
    pub(crate) fn for_session(args: &SessionArgs) -> Result<(Self, SessionChoice), Failure> {
        let Some(id) = &args.resume else {
            let setup = Self::load(args.cwd.as_deref(), &args.overrides)?;
            let choice = if args.continue_newest { setup.newest()? } else { SessionChoice::New };
            return Ok((setup, choice));
        };
        let store = FileStore::new(Paths::from_environment()?.data);
        let exec = commands::find_session(&store, id)?;
        let own = sessions::folder_of(&store, exec).map(PathBuf::from);
        let setup = Self::load(args.cwd.as_deref().or(own.as_deref()), &args.overrides)?;
        Ok((setup, SessionChoice::Resume(exec)))
    }

    /// What a person should know of the settings: what has no effect, what is unknown.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let warnings = self.loaded.warnings.iter().map(|warning| plain(&warning.to_string()));
        let mut remarks: Vec<String> = warnings.collect();
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
        providers.filter_map(|provider| provider.api_key_env.clone()).collect()
    }

    /// The permission rules in force.
    pub(crate) fn policy(&self) -> Policy {
        Policy::new(self.loaded.rules.clone(), self.paths.home.clone(), self.root.clone())
            .protecting(self.paths.config.clone())
            .protecting(self.paths.data.join("executions"))
            .protecting(self.paths.trust_file())
    }

    /// Everything the runtime is wired from.
    pub(crate) fn dependencies(&self, run: RunOptions) -> Dependencies {
        let settings = &self.loaded.settings;
        let args = run.session;
        let models = Arc::new(SettingsModels::new(settings, &self.root));
        let root = self.root.clone();
        let store = Arc::new(self.store());
        Dependencies {
            tools: tools::factory(Arc::clone(&store), self.secret_variables()),
            store,
            clock: Arc::new(SystemClock),
            pricing: Arc::new(models.prices()),
            models,
            policy: Arc::new(self.policy()),
            rules: Arc::new(LocalRules::new(self.files.clone(), self.trusted)),
            worktrees: Worktrees::new(
                Spawner::new(self.secret_variables()),
                self.paths.data.join("worktrees"),
            ),
            branch: Arc::new(move || loon_exec::git::branch(&root)),
            options: SessionOptions {
                cwd: self.root.clone(),
                model: Given {
                    value: args.model.clone().or_else(|| settings.session.model.clone()),
                    explicit: args.model.is_some(),
                },
                mode: Given {
                    value: args.mode.map_or(settings.session.mode, Into::into),
                    explicit: args.mode.is_some(),
                },
                tools: loon_api::ToolSet::Full,
                definitions: vec![self.paths.data.clone(), self.root.join(".loon")],
                limits: Limits {
                    max_steps: run.max_steps.unwrap_or(settings.session.max_turns),
                    tool_timeout: Duration::from_secs(settings.session.tool_timeout_secs),
                },
                budget: Budget {
                    max_usd: settings.budget.max_usd,
                    max_tokens: settings.budget.max_tokens,
                    max_requests: settings.budget.max_requests,
                },
                deadline: Given {
                    value: run.deadline.or(settings.budget.deadline),
                    explicit: run.deadline.is_some(),
                },
                unattended: run.unattended,
                answer_schema: run.answer_schema,
                remarks: self.remarks(),
            },
        }
    }
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

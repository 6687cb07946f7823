//! A private home: settings, data folder and environment of one test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::ModelServer;
use crate::wire::Wire;

/// Everything `loon` reads and keeps outside a project, in a folder of its own.
pub struct Home {
    root: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty home without settings.
    pub fn new() -> Self {
        let root = TempDir::new().expect("a temporary folder");
        for folder in ["home", "config/loon", "data", "cache", "state", "run"] {
            std::fs::create_dir_all(root.path().join(folder)).expect("folders of the home");
        }
        Self { root }
    }

    /// A home whose provider `lab` is this server; the model is `lab/coder`.
    pub fn with_server(server: &ModelServer, wire: Wire) -> Self {
        Self::with_server_and(server, wire, "", "")
    }

    /// The same with more lines in the tables of the provider and of the session.
    pub fn with_server_and(
        server: &ModelServer,
        wire: Wire,
        provider_lines: &str,
        more: &str,
    ) -> Self {
        let home = Self::new();
        home.set_settings(&format!(
            "[providers.lab]\nkind = \"{}\"\nbase_url = \"{}\"\napi_key_env = \"LAB_KEY\"\n\
             {provider_lines}\n[session]\nmodel = \"lab/coder\"\n{more}\n",
            wire.kind(),
            server.base_url(),
        ));
        home
    }

    /// Replaces the user's settings.
    #[expect(clippy::disallowed_methods, reason = "a fixture, not a user's file")]
    pub fn set_settings(&self, toml: &str) {
        std::fs::write(self.settings_path(), toml).expect("settings of the fixture");
    }

    /// The user's settings file.
    pub fn settings_path(&self) -> PathBuf {
        self.root.path().join("config/loon/config.toml")
    }

    /// The folder above all others of this home.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// `LOON_DATA_DIR`.
    pub fn data_dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The whole environment of a process in this home.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("LOON_DATA_DIR", "data"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
        ]
        .map(|(name, folder)| (name.into(), self.root.path().join(folder).into_os_string()))
        .into();
        for (name, value) in [("LAB_KEY", "lab-secret"), ("LANG", "C.UTF-8"), ("TERM", "dumb")] {
            env.push((name.into(), value.into()));
        }
        env.push(("PATH".into(), std::env::var_os("PATH").unwrap_or_default()));
        env
    }

    /// Journals of all executions, oldest first.
    pub fn journals(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.data_dir().join("executions")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.file_name().is_some_and(|name| name == "journal.jsonl") {
                    found.push(path);
                } else if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// The journal of one execution.
    pub fn journal(&self, exec: &str) -> PathBuf {
        let journals = self.journals();
        let found = journals.iter().find(|path| path.parent().is_some_and(|up| up.ends_with(exec)));
        found.unwrap_or_else(|| panic!("no journal of {exec} among {journals:?}")).clone()
    }

    /// The records of one execution.
    pub fn records(&self, exec: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.journal(exec)).expect("a readable journal");
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
    }
}

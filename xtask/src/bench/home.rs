//! A home and a project of their own for measured programs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

const SETTINGS: &str = "\
[providers.bench]
kind = \"openai-chat\"
base_url = \"http://127.0.0.1:1/v1\"

[session]
model = \"bench/model\"
";

/// Folders that vanish with this value.
pub(super) struct Home {
    dir: TempDir,
}

impl Home {
    /// Makes the folders and our settings.
    pub(super) fn new() -> Result<Self> {
        let dir = TempDir::with_prefix("loon-bench-").context("cannot make a temporary folder")?;
        let settings = dir.path().join("config/loon");
        fs::create_dir_all(&settings)?;
        fs::create_dir(dir.path().join("work"))?;
        File::create(settings.join("config.toml"))?.write_all(SETTINGS.as_bytes())?;
        Ok(Self { dir })
    }

    /// Where measured programs work.
    pub(super) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// What to add to the environment. Ours alone gets folders of its own: other programs bring the
    /// settings they have.
    pub(super) fn env(&self, program: &str) -> Vec<(&'static str, PathBuf)> {
        if Path::new(program).file_name().is_none_or(|name| name != "loon") {
            return Vec::new();
        }
        let folder = |name: &str| self.dir.path().join(name);
        vec![
            ("HOME", folder("")),
            ("XDG_CONFIG_HOME", folder("config")),
            ("XDG_DATA_HOME", folder("data")),
            ("XDG_STATE_HOME", folder("state")),
            ("XDG_CACHE_HOME", folder("cache")),
            ("LOON_DATA_DIR", folder("data/loon")),
        ]
    }
}

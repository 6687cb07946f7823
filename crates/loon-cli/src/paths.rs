//! Where things live on this machine, from the environment. The only place that reads it for paths.

use std::path::PathBuf;

use crate::failure::Failure;

/// The folders of one user.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// Journals, trust, logs.
    pub(crate) data: PathBuf,
    /// Folder of the user's settings.
    pub(crate) config: PathBuf,
    /// The home folder, if there is one.
    pub(crate) home: Option<PathBuf>,
}

impl Paths {
    /// Reads `LOON_DATA_DIR`, `XDG_DATA_HOME`, `XDG_CONFIG_HOME` and `HOME`.
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let home = absolute("HOME");
        let under_home = |rest: &str| home.as_ref().map(|home| home.join(rest));
        let data = absolute("LOON_DATA_DIR")
            .or_else(|| absolute("XDG_DATA_HOME").map(|dir| dir.join("loon")))
            .or_else(|| under_home(".local/share/loon"));
        let config = absolute("XDG_CONFIG_HOME")
            .or_else(|| under_home(".config"))
            .map(|dir| dir.join("loon"));
        match (data, config) {
            (Some(data), Some(config)) => Ok(Self { data, config, home }),
            _ => Err(Failure::usage("There is no home folder to keep sessions in.")
                .hint("Set HOME, or LOON_DATA_DIR and XDG_CONFIG_HOME, to absolute paths.")),
        }
    }

    /// The index over all sessions. It can be deleted at any time.
    pub(crate) fn index_file(&self) -> PathBuf {
        self.data.join("index/sessions.db")
    }

    /// The file of trusted folders.
    pub(crate) fn trust_file(&self) -> PathBuf {
        self.data.join("trusted.json")
    }
}

/// The folder this process was started in, without links. It may have been deleted since.
pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().and_then(|folder| folder.canonicalize()).map_err(|error| {
        Failure::usage(format!("Cannot work in the current folder: {error}"))
            .hint("It may have been deleted; change to another one.")
    })
}

/// An environment variable that is an absolute path; anything else counts as unset.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

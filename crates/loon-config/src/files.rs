//! Settings files at paths that the caller names: read together, changed one at a time.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::load::{Loaded, Sources, load};
use crate::origin::Layer;

/// Largest file that is read.
const MOST_BYTES: u64 = 4 << 20;

/// Where the layers lie. A file that is not there is an empty layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Absolute workspace root.
    pub root: PathBuf,
    /// The user's home, for `~`.
    pub home: Option<PathBuf>,
    /// The user's file.
    pub user: Option<PathBuf>,
    /// The project's shared file.
    pub project: Option<PathBuf>,
    /// The project's file for this machine.
    pub local: Option<PathBuf>,
}

impl Paths {
    /// The usual places: `config.toml` in the user's settings folder, and `.loon/config.toml` and
    /// `.loon/config.local.toml` at the workspace root.
    pub fn usual(root: &Path, home: Option<&Path>, settings_dir: Option<&Path>) -> Self {
        Self {
            root: root.to_owned(),
            home: home.map(Path::to_owned),
            user: settings_dir.map(|dir| dir.join("config.toml")),
            project: Some(root.join(".loon/config.toml")),
            local: Some(root.join(".loon/config.local.toml")),
        }
    }

    /// The file of a layer.
    pub fn of(&self, layer: Layer) -> Option<&Path> {
        match layer {
            Layer::User => self.user.as_deref(),
            Layer::Project => self.project.as_deref(),
            Layer::Local => self.local.as_deref(),
            Layer::BuiltIn | Layer::CommandLine => None,
        }
    }
}

/// Reads all files. `overrides` are `key=value` words; `trusted` says that a person trusts the
/// project's files.
pub fn read(paths: &Paths, overrides: &[String], trusted: bool) -> Result<Sources, ConfigError> {
    let layer = |path: &Option<PathBuf>| -> Result<Option<(PathBuf, String)>, ConfigError> {
        let Some(path) = path else { return Ok(None) };
        Ok(read_text(path)?.map(|text| (path.clone(), text)))
    };
    Ok(Sources {
        root: paths.root.clone(),
        home: paths.home.clone(),
        user: layer(&paths.user)?,
        project: layer(&paths.project)?,
        local: layer(&paths.local)?,
        overrides: overrides.to_vec(),
        trusted,
    })
}

/// Reads all files and makes settings of them. Links in write roots that exist are resolved.
pub fn load_files(
    paths: &Paths,
    overrides: &[String],
    trusted: bool,
) -> Result<Loaded, ConfigError> {
    load(&read(paths, overrides, trusted)?).map(with_real_roots)
}

fn with_real_roots(mut loaded: Loaded) -> Loaded {
    for root in &mut loaded.rules.write_roots {
        if let Ok(real) = root.canonicalize() {
            *root = real;
        }
    }
    loaded
}

/// Changes the file of one layer: reads all, edits the one text, checks the whole, and only then
/// writes, if nobody changed the file meanwhile. Gives the settings that hold afterwards.
pub fn update(
    paths: &Paths,
    overrides: &[String],
    trusted: bool,
    layer: Layer,
    edit: impl FnOnce(&str) -> Result<String, ConfigError>,
) -> Result<Loaded, ConfigError> {
    let path = paths.of(layer).ok_or_else(|| ConfigError::Key {
        problem: format!("there is no file for {layer}"),
        fix: "choose the user, project or local settings".into(),
    })?;
    let mut sources = read(paths, overrides, trusted)?;
    let slot = match layer {
        Layer::Project => &mut sources.project,
        Layer::Local => &mut sources.local,
        _ => &mut sources.user,
    };
    let before = slot.take().map(|(_, text)| text);
    let after = edit(before.as_deref().unwrap_or_default())?;
    *slot = Some((path.to_owned(), after.clone()));
    let loaded = load(&sources)?;
    if before.as_ref() != Some(&after) {
        replace(path, before.as_deref(), &after)?;
    }
    Ok(with_real_roots(loaded))
}

/// The text of a file; `None` if there is none. A project can hold a link to anything, so what is no
/// ordinary file of a sensible size is not read.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |error| ConfigError::io("read", path, error);
    match path.metadata() {
        Ok(data) if data.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(data) if !data.is_file() => {
            return Err(failed(io::Error::other("it is no ordinary file")));
        }
        Ok(_) => {}
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(failed(io::Error::other("it has more than 4 MiB")));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// Puts `text` in the place of the file whole or not at all, with mode 0600, if it still holds
/// `before`. A link stays a link: what it points at is replaced.
pub(crate) fn replace(path: &Path, before: Option<&str>, text: &str) -> Result<(), ConfigError> {
    let target = follow(path)?;
    let folder =
        target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_private_folder(folder)
        .map_err(|error| ConfigError::io("make the folder", folder, error))?;
    let failed = |error| ConfigError::io("write", &target, error);
    // tempfile makes its files with mode 0600.
    let mut file = tempfile::Builder::new().prefix(".loon-").tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    if read_text(&target)?.as_deref() != before {
        return Err(ConfigError::Changed { path: target });
    }
    match before {
        Some(_) => file.persist(&target).map_err(|error| failed(error.error))?,
        // A file that appeared meanwhile is somebody else's.
        None => file.persist_noclobber(&target).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => ConfigError::Changed { path: target.clone() },
            _ => failed(error.error),
        })?,
    };
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// The file behind a chain of links, whether it exists or not.
fn follow(path: &Path) -> Result<PathBuf, ConfigError> {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(ConfigError::io("follow the links of", path, io::ErrorKind::InvalidInput.into()))
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests;

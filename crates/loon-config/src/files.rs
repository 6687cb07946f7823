//! Settings files at paths that the caller names: read together, changed one at a time.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::load::{Loaded, Sources, Warning, load};
use crate::lock::FolderLock;
use crate::origin::Layer;

/// Largest file that is read.
const MOST_BYTES: u64 = 4 << 20;

/// How often a change is made anew when another program changes the file at the same time.
const ATTEMPTS: usize = 8;

/// Longest chain of links.
pub(crate) const MOST_LINKS: usize = 40;

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
    /// The file of the project that names MCP servers, which other programs know as well.
    pub servers: Option<PathBuf>,
}

impl Paths {
    /// The usual places: `config.toml` in the user's settings folder, and `.loon/config.toml`,
    /// `.loon/config.local.toml` and `.mcp.json` at the workspace root.
    pub fn usual(root: &Path, home: Option<&Path>, settings_dir: Option<&Path>) -> Self {
        Self {
            root: root.to_owned(),
            home: home.map(Path::to_owned),
            user: settings_dir.map(|dir| dir.join("config.toml")),
            project: Some(root.join(".loon/config.toml")),
            local: Some(root.join(".loon/config.local.toml")),
            servers: Some(root.join(".mcp.json")),
        }
    }

    /// The file of a layer.
    pub fn of(&self, layer: Layer) -> Option<&Path> {
        match layer {
            Layer::User => self.user.as_deref(),
            Layer::Project => self.project.as_deref(),
            Layer::Local => self.local.as_deref(),
            Layer::BuiltIn | Layer::Environment | Layer::CommandLine => None,
        }
    }
}

/// What holds for one run besides the files.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Variables of the environment; those that are no settings are passed over.
    pub environment: Vec<(String, String)>,
    /// `key=value` words of the command line.
    pub overrides: Vec<String>,
}

/// Reads all files. `trusted` says that a person trusts the project's files.
pub fn read(paths: &Paths, inputs: &Inputs, trusted: bool) -> Result<Sources, ConfigError> {
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
        servers: servers(paths.servers.as_deref()),
        environment: inputs.environment.clone(),
        overrides: inputs.overrides.clone(),
        trusted,
    })
}

/// The file that names servers. One that cannot be read costs nothing but what it says.
fn servers(path: Option<&Path>) -> Option<(PathBuf, Result<String, String>)> {
    let path = path?;
    let text = read_text(path).map_err(|error| error.to_string()).transpose()?;
    Some((path.to_owned(), text))
}

/// Reads all files and makes settings of them. Links in write roots that exist are resolved.
pub fn load_files(paths: &Paths, inputs: &Inputs, trusted: bool) -> Result<Loaded, ConfigError> {
    load(&read(paths, inputs, trusted)?).map(with_real_roots)
}

pub(crate) fn with_real_roots(mut loaded: Loaded) -> Loaded {
    for root in &mut loaded.rules.write_roots {
        if let Ok(real) = root.canonicalize() {
            *root = real;
        }
    }
    loaded
}

/// Changes the file of one layer: reads all, edits the one text, checks the whole, and only then
/// writes. Where another program changed the file meanwhile, the edit is made anew on what it wrote.
/// Gives the settings that hold afterwards.
pub fn update(
    paths: &Paths,
    inputs: &Inputs,
    trusted: bool,
    layer: Layer,
    edit: impl Fn(&str) -> Result<String, ConfigError>,
) -> Result<Loaded, ConfigError> {
    let path = paths.of(layer).ok_or_else(|| ConfigError::Key {
        problem: format!("there is no file for {layer}"),
        fix: "choose the user, project or local settings".into(),
    })?;
    let target = writable_target(paths, layer, path)?;
    let folder = folder_of(&target);
    make_private_folder(folder)
        .map_err(|error| ConfigError::io("make the folder", folder, error))?;
    let _lock = FolderLock::take(folder);
    let mut attempt = 1;
    loop {
        match update_once(paths, inputs, trusted, layer, &target, &edit) {
            Err(ConfigError::Changed { .. }) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn update_once(
    paths: &Paths,
    inputs: &Inputs,
    trusted: bool,
    layer: Layer,
    target: &Path,
    edit: &impl Fn(&str) -> Result<String, ConfigError>,
) -> Result<Loaded, ConfigError> {
    let mut sources = read(paths, inputs, trusted)?;
    let former = sources.clone();
    let slot = match layer {
        Layer::Project => &mut sources.project,
        Layer::Local => &mut sources.local,
        _ => &mut sources.user,
    };
    let before = slot.take().map(|(_, text)| text);
    let after = edit(before.as_deref().unwrap_or_default())?;
    *slot = Some((paths.of(layer).unwrap_or(target).to_owned(), after.clone()));
    let loaded = load(&sources)?;
    refuse_new_problem(&former, &sources, layer)?;
    if before.as_ref() != Some(&after) {
        replace(target, before.as_deref(), &after, loaded.holds_secret(layer))?;
    }
    Ok(with_real_roots(loaded))
}

/// A value that would have no effect is not written. What a project's file says is held to the same
/// whether the folder is trusted or not.
fn refuse_new_problem(former: &Sources, edited: &Sources, layer: Layer) -> Result<(), ConfigError> {
    let problems = |sources: &Sources| -> Result<Vec<Warning>, ConfigError> {
        Ok(load(&Sources { trusted: true, ..sources.clone() })?.problems)
    };
    let known: Vec<String> = problems(former)
        .map(|known| known.into_iter().map(|problem| problem.message).collect())
        .unwrap_or_default();
    let new = problems(edited)?
        .into_iter()
        .find(|problem| problem.origin.layer == layer && !known.contains(&problem.message));
    match new {
        None => Ok(()),
        Some(Warning { origin, message }) => Err(ConfigError::Invalid {
            origin,
            problem: message,
            fix: "nothing was written; `loon config schema` has the full description".into(),
        }),
    }
}

/// What the files of the project say, as one hash, to tell whether it is still what was trusted.
pub fn project_state(paths: &Paths) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for file in [&paths.project, &paths.local] {
        let text = file.as_ref().map(|file| read_text(file));
        match text {
            Some(Ok(Some(text))) => {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
            Some(Err(_)) => hash.update(b"unreadable"),
            Some(Ok(None)) | None => hash.update(b"absent"),
        }
    }
    // Absent, it leaves the hash of a folder that was trusted before as it is.
    if let Some((_, text)) = servers(paths.servers.as_deref()) {
        hash.update(b"servers");
        hash.update(text.unwrap_or_default());
    }
    hash.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The file to write for a layer. A link in a project must not lead a write out of the project.
fn writable_target(paths: &Paths, layer: Layer, path: &Path) -> Result<PathBuf, ConfigError> {
    let target = follow(path)?;
    if !layer.is_project() {
        return Ok(target);
    }
    let root = paths.root.canonicalize().unwrap_or_else(|_| paths.root.clone());
    if real(&target).starts_with(&root) {
        return Ok(target);
    }
    Err(ConfigError::Key {
        problem: format!(
            "{} leads out of the project, to {}; nothing was written",
            path.display(),
            target.display()
        ),
        fix: "edit that file by hand, or put a file of the project in the place of the link".into(),
    })
}

/// The real path, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
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

/// Puts `text` in the place of the file whole or not at all, if it still holds `before`. A new file
/// is private; one that was there keeps its mode and owner, except that nobody else can read a secret.
pub(crate) fn replace(
    target: &Path,
    before: Option<&str>,
    text: &str,
    secret: bool,
) -> Result<(), ConfigError> {
    let folder = folder_of(target);
    let failed = |error| ConfigError::io("write", target, error);
    let former = fs::metadata(target).ok();
    if former.as_ref().is_some_and(|data| data.permissions().readonly()) {
        return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only")));
    }
    // tempfile makes its files with mode 0600.
    let mut file = tempfile::Builder::new()
        .prefix(".loon-")
        .tempfile_in(folder)
        .map_err(|error| ConfigError::io("write in the folder", folder, error))?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Some(former) = former {
        let mode = former.permissions().mode() & if secret { 0o700 } else { 0o777 };
        // Only a privileged process can give files away; for others the owner is the same.
        let _ = fchown(file.as_file(), Some(former.uid()), Some(former.gid()));
        file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    if read_text(target)?.as_deref() != before {
        return Err(ConfigError::Changed { path: target.to_owned() });
    }
    match before {
        Some(_) => file.persist(target).map_err(|error| failed(error.error))?,
        // A file that appeared meanwhile is somebody else's.
        None => file.persist_noclobber(target).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => ConfigError::Changed { path: target.to_owned() },
            _ => failed(error.error),
        })?,
    };
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file behind a chain of links, whether it exists or not.
pub(crate) fn follow(path: &Path) -> Result<PathBuf, ConfigError> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(ConfigError::io("follow the links of", path, io::ErrorKind::InvalidInput.into()))
}

pub(crate) fn make_private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests;

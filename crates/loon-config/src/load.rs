//! Layers become settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use loon_api::{HookDefinition, RuleSet};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::document::Parsed;
use crate::environment;
use crate::error::ConfigError;
use crate::key;
use crate::mcp;
use crate::merge::Merge;
use crate::origin::{Layer, Origin};
use crate::schema;
use crate::settings::Settings;

/// The texts that settings are made of. A missing file is `None`.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Absolute workspace root. Relative write roots begin here.
    pub root: PathBuf,
    /// The user's home, for `~`.
    pub home: Option<PathBuf>,
    /// The user's file and its text.
    pub user: Option<(PathBuf, String)>,
    /// The project's shared file and its text.
    pub project: Option<(PathBuf, String)>,
    /// The project's file for this machine and its text.
    pub local: Option<(PathBuf, String)>,
    /// The project's file of MCP servers and its text, or why it cannot be read.
    pub servers: Option<(PathBuf, Result<String, String>)>,
    /// Variables of the environment. Only those of settings are looked at.
    pub environment: Vec<(String, String)>,
    /// `key=value` words of the command line, later ones stronger.
    pub overrides: Vec<String>,
    /// A person trusts the project's files.
    pub trusted: bool,
}

/// Something in a file that a person should know of, and that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub origin: Origin,
    /// What.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// A setting of a project's file that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its key.
    pub key: String,
    /// Where it stands.
    pub origin: Origin,
    /// Trusting the folder would give it effect. False for what no project file can set.
    pub needs_trust: bool,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.needs_trust {
            "has no effect until the folder is trusted"
        } else {
            "never has an effect in a project's file"
        };
        write!(f, "{}: {} {why}", self.origin, self.key)
    }
}

/// One line of a settings list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value, secrets masked; absent if nobody set it and it has no default.
    pub value: Option<Value>,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Settings in force.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The typed tree.
    pub settings: Settings,
    /// All permission rules with their places, and the write roots, the workspace root first.
    pub rules: RuleSet,
    /// All lifecycle hooks with their places, in the order in which they run.
    pub hooks: Vec<HookDefinition>,
    /// Where each value that somebody set was written, by key; of a list of rules the strongest
    /// place. Each rule carries its own.
    pub origins: BTreeMap<String, Origin>,
    /// Unknown keys and other things to know.
    pub warnings: Vec<Warning>,
    /// Values that no setting takes. They have no effect, and nothing else is lost with them.
    pub problems: Vec<Warning>,
    /// What project files set without effect.
    pub untrusted: Vec<Ignored>,
    pub(crate) values: Value,
    /// Hash of the texts it was made of.
    pub(crate) fingerprint: Fingerprint,
}

impl Loaded {
    /// The value in force of one setting or table, secrets masked. `None` if the key is known and
    /// nothing is set; an error if no setting has the key.
    pub fn get(&self, path: &str) -> Result<Option<Value>, ConfigError> {
        let names = key::parse(path)?;
        let field = schema::field(&names).ok_or_else(|| schema::no_such_key(path))?;
        if schema::is_table(field) {
            let prefix = format!("{path}.");
            let mut table = key::find(&self.values, &names)
                .cloned()
                .unwrap_or_else(|| Value::Object(Map::new()));
            for (names, default) in schema::leaves()
                .into_iter()
                .filter_map(|(names, field)| Some((names, field.get("default")?.clone())))
            {
                let leaf = key::path(&names);
                if let Some(rest) = leaf.strip_prefix(&prefix)
                    && let Some(map) = table.as_object_mut()
                    && let Ok([name]) = key::parse(rest).as_deref()
                {
                    map.entry(name.clone()).or_insert(default);
                }
            }
            return Ok(Some(table));
        }
        Ok(key::find(&self.values, &names).or_else(|| field.get("default")).cloned())
    }

    /// True if a secret in force comes from this layer.
    pub(crate) fn holds_secret(&self, layer: Layer) -> bool {
        self.origins.iter().any(|(path, origin)| {
            origin.layer == layer
                && key::parse(path)
                    .is_ok_and(|names| schema::field(&names).is_some_and(schema::is_secret))
        })
    }

    /// Every setting: those with fixed names, set or not, then what the tables of names hold.
    pub fn entries(&self) -> Vec<Entry> {
        let mut set: BTreeMap<String, Value> = BTreeMap::new();
        flatten(&self.values, "", &mut set);
        let origin = |key: &str| self.origins.get(key).cloned().unwrap_or(Origin::BUILT_IN);
        let mut entries: Vec<Entry> = schema::leaves()
            .into_iter()
            .map(|(names, field)| {
                let key = key::path(&names);
                let value = set.remove(&key).or_else(|| field.get("default").cloned());
                Entry { origin: origin(&key), key, value }
            })
            .collect();
        let known = |key: &str| key::parse(key).is_ok_and(|names| schema::field(&names).is_some());
        entries.extend(set.into_iter().filter(|(key, _)| known(key)).map(|(key, value)| Entry {
            origin: origin(&key),
            key,
            value: Some(value),
        }));
        entries
    }
}

/// Makes settings of texts.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let files = [
        (Layer::User, &sources.user),
        (Layer::Project, &sources.project),
        (Layer::Local, &sources.local),
    ];
    let mut layers = Vec::new();
    for (layer, file) in files {
        if let Some((path, text)) = file {
            layers.push(Parsed::file(layer, path, text)?);
        }
    }
    let (environment, warnings) = environment::parse(&sources.environment)?;
    layers.push(environment);
    layers.push(Parsed::overrides(&sources.overrides)?);

    let mut merge = Merge::new(warnings);
    for layer in layers {
        merge.add(layer, sources)?;
    }
    let mut loaded = Loaded { fingerprint: sources.fingerprint(), ..merge.finish(sources)? };
    if let Some((file, text)) = &sources.servers {
        add_servers(&mut loaded, file, text.as_deref(), sources.trusted);
    }
    Ok(loaded)
}

/// Takes in the servers of the project's own file. A server of the settings with the same name goes
/// before.
fn add_servers(loaded: &mut Loaded, file: &Path, text: Result<&str, &String>, trusted: bool) {
    let origin = Origin {
        layer: Layer::Project,
        file: Some(file.to_owned()),
        variable: None,
        line: None,
        column: None,
    };
    if !trusted {
        let key = "mcp".to_owned();
        loaded.untrusted.push(Ignored { key, origin, needs_trust: true });
        return;
    }
    let read = text.map_err(String::clone).and_then(mcp::read_project);
    let wrong = match read {
        Ok((servers, wrong)) => {
            for (name, server) in servers {
                loaded.settings.mcp.entry(name).or_insert(server);
            }
            wrong
        }
        Err(why) => vec![format!("no server of it is used: {why}")],
    };
    let problem = |message| Warning { origin: origin.clone(), message };
    loaded.problems.extend(wrong.into_iter().map(problem));
}

impl Sources {
    /// Hashes of all that settings are made of.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let files = [&self.user, &self.project, &self.local]
            .map(|file| file.as_ref().map(|(_, text)| Sha256::digest(text).into()));
        let servers = self.servers.as_ref().map(|(_, text)| {
            let text = text.as_ref().unwrap_or_else(|why| why);
            Sha256::digest(text).into()
        });
        let [user, project, local] = files;
        Fingerprint { files: [user, project, local, servers], trusted: self.trusted }
    }
}

/// What settings were made of. The environment and the command line stay as they are while Loom runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Hash of the user's, the project's and the local file and of the one that names servers, where
    /// there is one.
    pub(crate) files: [Option<[u8; 32]>; 4],
    trusted: bool,
}

/// Every value that is no table, by its path.
pub(crate) fn flatten(value: &Value, path: &str, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                flatten(value, &key::join(path, name), out);
            }
        }
        Value::Null => {}
        other => {
            out.insert(path.to_owned(), other.clone());
        }
    }
}

#[cfg(test)]
mod tests;

//! Layers become settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use loon_api::{Mode, PermissionRule, RuleEffect, RuleSet};
use serde_json::{Map, Value};

use crate::document::Parsed;
use crate::error::ConfigError;
use crate::key;
use crate::origin::{Layer, Origin};
use crate::rules;
use crate::schema::{self, Finding};
use crate::settings::{ProviderKind, SCHEMA_VERSION, Settings};

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
    /// Where each value that somebody set was written, by key; of a list of rules the strongest
    /// place. Each rule carries its own.
    pub origins: BTreeMap<String, Origin>,
    /// Unknown keys and other things to know.
    pub warnings: Vec<Warning>,
    /// What project files set without effect.
    pub untrusted: Vec<Ignored>,
    values: Value,
}

impl Loaded {
    /// The value in force of one setting or table, secrets masked. `None` if the key is known and
    /// nothing is set; an error if no setting has the key.
    pub fn get(&self, path: &str) -> Result<Option<Value>, ConfigError> {
        let names = key::parse(path)?;
        let field = schema::field(&names).ok_or_else(|| ConfigError::Key {
            problem: format!("no setting is called `{path}`"),
            fix: "`loon config list` shows them all".into(),
        })?;
        if schema::is_table(field) {
            let prefix = format!("{path}.");
            let mut table = key::find(&self.values, &names)
                .cloned()
                .unwrap_or_else(|| Value::Object(Map::new()));
            for (names, default) in schema::leaves()
                .into_iter()
                .filter_map(|(names, field)| Some((names, field.get("default")?.clone())))
            {
                let leaf = names.iter().fold(String::new(), |path, name| key::join(&path, name));
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

    /// Every setting: those with fixed names, set or not, then what the tables of names hold.
    pub fn entries(&self) -> Vec<Entry> {
        let mut set: BTreeMap<String, Value> = BTreeMap::new();
        flatten(&self.values, "", &mut set);
        let origin = |key: &str| self.origins.get(key).cloned().unwrap_or(Origin::BUILT_IN);
        let mut entries: Vec<Entry> = schema::leaves()
            .into_iter()
            .map(|(names, field)| {
                let key = names.iter().fold(String::new(), |path, name| key::join(&path, name));
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
    layers.push(Parsed::overrides(&sources.overrides)?);

    let mut merge = Merge::default();
    for layer in layers {
        merge.add(layer, sources)?;
    }
    merge.finish(sources)
}

#[derive(Default)]
struct Merge {
    value: Value,
    layers: Vec<Parsed>,
    settings: Option<Settings>,
    rules: RuleSet,
    /// The strongest place of each list of rules.
    lists: BTreeMap<String, Origin>,
    warnings: Vec<Warning>,
    untrusted: Vec<Ignored>,
}

impl Merge {
    fn add(&mut self, mut layer: Parsed, sources: &Sources) -> Result<(), ConfigError> {
        self.check(&layer)?;
        self.drop_bypass(&mut layer);
        if layer.layer.is_project() && !sources.trusted {
            self.untrusted.extend(drop_untrusted(&mut layer));
        }
        for (list, _) in rules::LISTS {
            let path = key::join("permissions", list);
            if layer.has(&["permissions".into(), list.into()]) {
                self.lists.insert(path.clone(), layer.origin(&path));
            }
        }
        self.rules.rules.extend(rules::take(&mut layer)?);
        overlay(&mut self.value, &layer.value);
        self.layers.push(layer);
        // Each layer is judged on top of those below it, so that an error names the layer that made it.
        self.settings = Some(self.read()?);
        Ok(())
    }

    fn check(&mut self, layer: &Parsed) -> Result<(), ConfigError> {
        for finding in schema::check(&layer.value) {
            match finding {
                Finding::Range { path, problem } => {
                    return Err(ConfigError::Invalid {
                        origin: layer.origin(&path),
                        problem,
                        fix: "choose a number in the range".into(),
                    });
                }
                Finding::Unknown { path, name, near } => {
                    let message = match &near {
                        Some(near) => {
                            format!("no setting is called {path}; did you mean `{near}`?")
                        }
                        None => format!("no setting is called {path}; it has no effect"),
                    };
                    let origin = layer.origin(&path);
                    // A misspelt list of rules would be a deny that is not there.
                    if path.starts_with("permissions.") || near.as_deref() == Some("permissions") {
                        if !path.contains("_rules[") {
                            return Err(ConfigError::Invalid {
                                origin,
                                problem: message,
                                fix: format!(
                                    "correct or remove `{name}`; unknown keys are refused where permissions are"
                                ),
                            });
                        }
                    } else if layer.layer == Layer::CommandLine {
                        return Err(ConfigError::Key {
                            problem: message,
                            fix: "`loon config list` shows all keys".into(),
                        });
                    } else {
                        self.warnings.push(Warning { origin, message });
                    }
                }
            }
        }
        // Before anything is left out for want of trust: rules that cannot be read are no rules.
        if layer.value.get("permissions").is_some_and(|value| !value.is_object()) {
            return Err(ConfigError::Invalid {
                origin: layer.origin("permissions"),
                problem: "permissions must be a table".into(),
                fix: "write the rules as [[permissions.deny_rules]] and so on".into(),
            });
        }
        let version = layer.value.get("schema_version").and_then(Value::as_u64);
        if version.is_some_and(|version| version > u64::from(SCHEMA_VERSION)) {
            return Err(ConfigError::Invalid {
                origin: layer.origin("schema_version"),
                problem: "the file was written by a newer Loom".into(),
                fix: "update Loom, or keep separate files for the two versions".into(),
            });
        }
        if layer.layer == Layer::Project {
            self.warn_of_shared_keys(layer);
        }
        Ok(())
    }

    fn warn_of_shared_keys(&mut self, layer: &Parsed) {
        let has_key = |table: &Value| table.get("api_key").is_some();
        let providers = layer.value.get("providers").and_then(Value::as_object);
        let mut tables: Vec<String> = providers
            .into_iter()
            .flatten()
            .filter(|(_, provider)| has_key(provider))
            .map(|(name, _)| key::join("providers", name))
            .collect();
        if layer.value.get("context7").is_some_and(has_key) {
            tables.push("context7".to_owned());
        }
        for table in tables {
            let path = key::join(&table, "api_key");
            self.warnings.push(Warning {
                origin: layer.origin(&path),
                message: format!(
                    "{path} is a key in a file that others get; use api_key_env, or the local file"
                ),
            });
        }
    }

    /// No file that comes with a project can switch the questions off.
    fn drop_bypass(&mut self, layer: &mut Parsed) {
        let mode = ["session".to_owned(), "mode".to_owned()];
        if layer.layer.is_project()
            && key::find(&layer.value, &mode).is_some_and(|mode| mode == "bypass")
        {
            layer.take(&mode);
            self.untrusted.push(Ignored {
                key: "session.mode".into(),
                origin: layer.origin("session.mode"),
                needs_trust: false,
            });
        }
    }

    fn read(&self) -> Result<Settings, ConfigError> {
        let value =
            if self.value.is_null() { Value::Object(Map::new()) } else { self.value.clone() };
        let settings: Settings = serde_path_to_error::deserialize(value).map_err(|error| {
            let names: Vec<String> = segments(error.path());
            let problem = if schema::field(&names).is_some_and(schema::is_secret) {
                "the value of a secret must be text".to_owned()
            } else {
                error.inner().to_string()
            };
            self.invalid(
                &names,
                &problem,
                "correct the value; `loon config schema` has the full description",
            )
        })?;
        let scheme = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        for (name, provider) in &settings.providers {
            let at = ["providers".to_owned(), name.clone()];
            match (provider.kind, &provider.base_url) {
                (ProviderKind::Script, _) if provider.script.is_none() => {
                    return Err(self.invalid(
                        &at,
                        "a provider of kind `script` needs `script`",
                        "name the file with its answers",
                    ));
                }
                (ProviderKind::Script, _) => {}
                (_, None) => {
                    return Err(self.invalid(
                        &at,
                        "a provider needs `base_url`",
                        "add it with its version segment, like base_url = \"http://127.0.0.1:8081/v1\"",
                    ));
                }
                (_, Some(url)) if !scheme(url) => {
                    let at = [at[0].clone(), at[1].clone(), "base_url".to_owned()];
                    return Err(self.invalid(
                        &at,
                        "must begin with http:// or https://",
                        "write the full URL",
                    ));
                }
                _ => {}
            }
        }
        if !scheme(&settings.context7.base_url) {
            let at = ["context7".to_owned(), "base_url".to_owned()];
            return Err(self.invalid(
                &at,
                "must begin with http:// or https://",
                "write the full URL",
            ));
        }
        Ok(settings)
    }

    fn invalid(&self, names: &[String], problem: &str, fix: &str) -> ConfigError {
        let path = names.iter().fold(String::new(), |path, name| key::join(&path, name));
        let problem =
            if path.is_empty() { problem.to_owned() } else { format!("{path}: {problem}") };
        ConfigError::Invalid { origin: self.origin(names), problem, fix: fix.to_owned() }
    }

    /// The place of the strongest layer that sets a key.
    fn origin(&self, names: &[String]) -> Origin {
        let path = names.iter().fold(String::new(), |path, name| key::join(&path, name));
        self.layers
            .iter()
            .rev()
            .find(|layer| layer.has(names))
            .map_or(Origin::BUILT_IN, |layer| layer.origin(&path))
    }

    fn finish(mut self, sources: &Sources) -> Result<Loaded, ConfigError> {
        let mut settings = self.settings.take().unwrap_or_default();
        self.rules.write_roots = self.write_roots(&settings.permissions.write_roots, sources)?;
        let of = |effect: RuleEffect| -> Vec<PermissionRule> {
            self.rules
                .rules
                .iter()
                .filter(|rule| rule.0 == effect)
                .map(|rule| rule.1.clone())
                .collect()
        };
        settings.permissions.allow_rules = of(RuleEffect::Allow);
        settings.permissions.ask_rules = of(RuleEffect::Ask);
        settings.permissions.deny_rules = of(RuleEffect::Deny);

        let mut leaves = BTreeMap::new();
        flatten(&self.value, "", &mut leaves);
        let mut origins = std::mem::take(&mut self.lists);
        for path in leaves.into_keys() {
            if let Ok(names) = key::parse(&path) {
                let origin = self.origin(&names);
                origins.insert(path, origin);
            }
        }

        let mut values = std::mem::take(&mut self.value);
        schema::mask(&mut values);
        if !self.rules.rules.is_empty() {
            for (list, effect) in rules::LISTS {
                values["permissions"][list] = serde_json::to_value(of(effect)).unwrap_or_default();
            }
        }
        Ok(Loaded {
            settings,
            origins,
            warnings: self.warnings,
            untrusted: self.untrusted,
            values,
            rules: self.rules,
        })
    }

    fn write_roots(
        &self,
        texts: &[String],
        sources: &Sources,
    ) -> Result<Vec<PathBuf>, ConfigError> {
        let mut roots = vec![sources.root.clone()];
        for text in texts {
            let root = rules::resolve_root(text, &sources.root, sources.home.as_deref()).map_err(
                |problem| {
                    let names = ["permissions".to_owned(), "write_roots".to_owned()];
                    self.invalid(
                        &names,
                        &problem,
                        "name a folder, absolute or relative to the workspace root",
                    )
                },
            )?;
            if root == Path::new("/") {
                let names = ["permissions".to_owned(), "write_roots".to_owned()];
                return Err(self.invalid(
                    &names,
                    "the root of the file system cannot be a write root",
                    "name the folders that are meant",
                ));
            }
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Ok(roots)
    }
}

/// Takes out of a layer what a folder without trust must not set.
fn drop_untrusted(layer: &mut Parsed) -> Vec<Ignored> {
    let mut paths = schema::untrusted(&layer.value);
    let mode = vec!["session".to_owned(), "mode".to_owned()];
    let plan = serde_json::to_value(Mode::Plan).unwrap_or_default();
    if key::find(&layer.value, &mode).is_some_and(|value| *value != plan) {
        paths.push(mode);
    }
    paths
        .into_iter()
        .map(|names| {
            layer.take(&names);
            let key = names.iter().fold(String::new(), |path, name| key::join(&path, name));
            Ignored { origin: layer.origin(&key), key, needs_trust: true }
        })
        .collect()
}

/// Tables merge, everything else replaces.
fn overlay(base: &mut Value, top: &Value) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => {
            for (name, value) in top {
                overlay(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, top) => *base = top.clone(),
    }
}

/// Every value that is no table, by its path.
fn flatten(value: &Value, path: &str, out: &mut BTreeMap<String, Value>) {
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

/// The names of an error's path, as far as the first array.
fn segments(path: &serde_path_to_error::Path) -> Vec<String> {
    path.iter()
        .map_while(|segment| match segment {
            serde_path_to_error::Segment::Map { key } => Some(key.clone()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;

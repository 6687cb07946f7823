//! Layers are laid over each other, weakest first. A value that its setting does not take costs only
//! itself, unless more would be allowed without it than was meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loon_api::{HookDefinition, HookEvent, Mode, PermissionRule, RuleEffect, RuleSet};
use serde_json::{Map, Value};

use crate::document::Parsed;
use crate::error::ConfigError;
use crate::hooks;
use crate::key;
use crate::load::{Fingerprint, Ignored, Loaded, Sources, Warning, flatten};
use crate::origin::{Layer, Origin};
use crate::rules;
use crate::schema::{self, Finding};
use crate::settings::{Hook, Hooks, ProviderKind, SCHEMA_VERSION, Settings};

/// Wrong values after which a layer is refused as a whole.
const MOST_PROBLEMS: usize = 100;

/// Longest wrong text shown whole, in characters.
const MOST_SHOWN: usize = 60;

#[derive(Default)]
pub(crate) struct Merge {
    value: Value,
    layers: Vec<Parsed>,
    settings: Option<Settings>,
    rules: RuleSet,
    hooks: Vec<HookDefinition>,
    /// The same as they were written.
    written_hooks: Hooks,
    /// The strongest place of each list of rules.
    lists: BTreeMap<String, Origin>,
    warnings: Vec<Warning>,
    problems: Vec<Warning>,
    untrusted: Vec<Ignored>,
}

/// A value that a layer sets and its setting does not take.
struct Wrong {
    names: Vec<String>,
    problem: String,
}

impl Merge {
    /// Nothing yet; `warnings` are known already.
    pub(crate) fn new(warnings: Vec<Warning>) -> Self {
        Self { warnings, ..Self::default() }
    }

    pub(crate) fn add(&mut self, mut layer: Parsed, sources: &Sources) -> Result<(), ConfigError> {
        self.check(&mut layer)?;
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
        self.take_hooks(&mut layer)?;
        // Each layer is judged on top of those below it, so that a problem is with the layer that
        // made it.
        let settings = loop {
            let mut value = self.value.clone();
            overlay(&mut value, &layer.value);
            match read(&value) {
                Ok(settings) => {
                    self.value = value;
                    break settings;
                }
                Err(wrong) => self.drop_wrong(&mut layer, wrong)?,
            }
        };
        self.settings = Some(settings);
        self.layers.push(layer);
        Ok(())
    }

    fn take_hooks(&mut self, layer: &mut Parsed) -> Result<(), ConfigError> {
        for hooks::Taken { written, definition } in hooks::take(layer, &mut self.warnings)? {
            let path = key::join(hooks::TABLE, definition.event.name());
            self.lists.insert(path.clone(), layer.origin(&path));
            self.written_hooks.list_mut(definition.event).push(written);
            self.hooks.push(definition);
        }
        Ok(())
    }

    /// Leaves a wrong value out and notes it, or refuses the layer.
    fn drop_wrong(&mut self, layer: &mut Parsed, wrong: Wrong) -> Result<(), ConfigError> {
        let Wrong { mut names, problem } = wrong;
        while !names.is_empty() && !layer.has(&names) {
            names.pop();
        }
        let path = key::path(&names);
        let problem = match problem.as_str() {
            "" => describe(&layer.value, &names, &path),
            _ => problem,
        };
        let origin = layer.origin(&path);
        let of_layer = self.problems.iter().filter(|known| known.origin.layer == layer.layer);
        let refused = if names.is_empty() || schema::is_strict(&names) {
            Some("correct it; without it more would be allowed than was meant")
        } else if layer.layer == Layer::CommandLine {
            Some("correct the value; `loon config schema` has the full description")
        } else if of_layer.count() >= MOST_PROBLEMS {
            Some("correct the file; too much in it is wrong to use the rest")
        } else {
            None
        };
        if let Some(fix) = refused {
            return Err(ConfigError::Invalid { origin, problem, fix: fix.to_owned() });
        }
        // A combo without one of its conditions would be another combo.
        if names.first().is_some_and(|section| section == "combos") {
            names.truncate(2);
        }
        layer.take(&names);
        self.problems.push(Warning { origin, message: format!("{problem}; it has no effect") });
        Ok(())
    }

    fn check(&mut self, layer: &mut Parsed) -> Result<(), ConfigError> {
        let mut out_of_range = Vec::new();
        for finding in schema::check(&layer.value) {
            match finding {
                Finding::Range { names, problem } => out_of_range.push(Wrong { names, problem }),
                Finding::Unknown { path, name, near } => {
                    let message = match &near {
                        Some(near) => {
                            format!("no setting is called {path}; did you mean `{near}`?")
                        }
                        None => format!("no setting is called {path}; it has no effect"),
                    };
                    let origin = layer.origin(&path);
                    // A misspelt list of rules would be a deny that is not there, a misspelt bound
                    // no bound.
                    if hangs_on_safety(&path) || near.as_deref().is_some_and(hangs_on_safety) {
                        if !path.contains("_rules[") {
                            return Err(ConfigError::Invalid {
                                origin,
                                problem: message,
                                fix: format!(
                                    "correct or remove `{name}`; unknown keys are refused where safety hangs on them"
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
        for wrong in out_of_range {
            self.drop_wrong(layer, wrong)?;
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

    fn invalid(&self, names: &[String], problem: &str, fix: &str) -> ConfigError {
        let problem = format!("{}: {problem}", key::path(names));
        ConfigError::Invalid { origin: self.origin(names), problem, fix: fix.to_owned() }
    }

    /// The place of the strongest layer that sets a key.
    fn origin(&self, names: &[String]) -> Origin {
        let layer = self.layers.iter().rev().find(|layer| layer.has(names));
        layer.map_or(Origin::BUILT_IN, |layer| layer.origin(&key::path(names)))
    }

    pub(crate) fn finish(mut self, sources: &Sources) -> Result<Loaded, ConfigError> {
        let mut settings = self.settings.take().unwrap_or_default();
        self.rules.write_roots = self.write_roots(&settings.permissions.write_roots, sources)?;
        let of = |effect: RuleEffect| -> Vec<PermissionRule> {
            let rules = self.rules.rules.iter().filter(|rule| rule.0 == effect);
            rules.map(|rule| rule.1.clone()).collect()
        };
        settings.permissions.allow_rules = of(RuleEffect::Allow);
        settings.permissions.ask_rules = of(RuleEffect::Ask);
        settings.permissions.deny_rules = of(RuleEffect::Deny);

        settings.hooks.clone_from(&self.written_hooks);

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
        for event in HookEvent::ALL {
            let list = self.written_hooks.list_mut(event);
            if !list.is_empty() {
                let shown = list.iter().map(Hook::without_login).collect::<Vec<_>>();
                let list = serde_json::to_value(shown).unwrap_or_default();
                values[hooks::TABLE][event.name()] = list;
            }
        }
        Ok(Loaded {
            settings,
            hooks: self.hooks,
            origins,
            warnings: self.warnings,
            problems: self.problems,
            untrusted: self.untrusted,
            values,
            rules: self.rules,
            fingerprint: Fingerprint::default(),
        })
    }

    fn write_roots(
        &self,
        texts: &[String],
        sources: &Sources,
    ) -> Result<Vec<PathBuf>, ConfigError> {
        let names = ["permissions".to_owned(), "write_roots".to_owned()];
        let mut roots = vec![sources.root.clone()];
        for text in texts {
            let root = rules::resolve_root(text, &sources.root, sources.home.as_deref()).map_err(
                |problem| {
                    let fix = "name a folder, absolute or relative to the workspace root";
                    self.invalid(&names, &problem, fix)
                },
            )?;
            if root == Path::new("/") {
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

/// True if the key lies in a section of which nothing may be passed over.
fn hangs_on_safety(path: &str) -> bool {
    let section = path.split(['.', '[']).next().unwrap_or_default().to_owned();
    schema::is_strict(&[section])
}

/// Reads the merged values; says which one is wrong. The words are empty where the schema has better
/// ones.
fn read(value: &Value) -> Result<Settings, Wrong> {
    let value = if value.is_null() { Value::Object(Map::new()) } else { value.clone() };
    let settings: Settings = serde_path_to_error::deserialize(&value).map_err(|error| {
        let names: Vec<String> = segments(error.path());
        let path = key::path(&names);
        let found = key::find(&value, &names);
        // Something is missing in a table; everything else is told from the schema, without the
        // words of a secret.
        let missing = found.is_some_and(Value::is_object)
            && schema::field(&names).is_some_and(schema::is_table);
        let problem = if missing { format!("{path}: {}", error.inner()) } else { String::new() };
        Wrong { names, problem }
    })?;
    let wrong = |names: Vec<String>, problem: &str| {
        Err(Wrong { problem: format!("{}: {problem}", key::path(&names)), names })
    };
    let is_http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    if !is_http(&settings.context7.base_url) {
        let names = vec!["context7".to_owned(), "base_url".to_owned()];
        return wrong(names, "must begin with http:// or https://");
    }
    for (name, combo) in &settings.combos {
        if combo.members.is_empty() {
            let names = ["combos", name].map(str::to_owned).to_vec();
            return wrong(names, "`members` must name at least one model as `provider/model`");
        }
    }
    for (name, provider) in &settings.providers {
        let at = ["providers".to_owned(), name.clone()];
        if name == "combo" {
            let problem = "no provider may be called `combo`: `combo/name` is the name of a combo";
            return wrong(at.to_vec(), problem);
        }
        match (provider.kind, &provider.base_url) {
            (ProviderKind::Script, _) if provider.script.is_none() => {
                let problem =
                    "a provider of kind `script` needs `script`, the file with its answers";
                return wrong(at.to_vec(), problem);
            }
            (ProviderKind::Script, _) => {}
            (_, None) => {
                let problem = "a provider needs `base_url` with its version segment, like \
                               \"http://127.0.0.1:8081/v1\"";
                return wrong(at.to_vec(), problem);
            }
            (_, Some(url)) if !is_http(url) => {
                let names = at.into_iter().chain(["base_url".to_owned()]).collect();
                return wrong(names, "must begin with http:// or https://");
            }
            _ => {}
        }
    }
    Ok(settings)
}

/// What is wrong with a value, in words. Never shows what might be a secret.
fn describe(root: &Value, names: &[String], path: &str) -> String {
    let Some(field) = schema::field(names) else { return format!("{path} is wrong") };
    if schema::is_secret(field) {
        return format!("{path} must be text");
    }
    let takes = schema::takes(field);
    let shown = match key::find(root, names) {
        Some(Value::String(_)) if schema::is_table(field) => "text".to_owned(),
        Some(Value::String(text)) => {
            let cut: String = text.chars().take(MOST_SHOWN).collect();
            let more = if cut.len() < text.len() { "…" } else { "" };
            format!("{}{more}", Value::String(cut))
        }
        Some(Value::Array(_)) if takes.starts_with("a list") => {
            return format!("{path} must be {takes}");
        }
        Some(Value::Array(_)) => "a list".to_owned(),
        Some(Value::Object(_)) | None => "a table".to_owned(),
        Some(plain) if schema::is_table(field) => match plain {
            Value::Number(_) => "a number".to_owned(),
            _ => "true or false".to_owned(),
        },
        Some(plain) => plain.to_string(),
    };
    format!("{path} is {shown}, and takes {takes}")
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
            let key = key::path(&names);
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

/// The names of an error's path, as far as the first array.
fn segments(path: &serde_path_to_error::Path) -> Vec<String> {
    path.iter()
        .map_while(|segment| match segment {
            serde_path_to_error::Segment::Map { key } => Some(key.clone()),
            _ => None,
        })
        .collect()
}

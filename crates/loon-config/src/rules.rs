//! Permission rules of one layer: each checked, each with its place.

use std::path::{Path, PathBuf};

use loon_api::{PermissionRule, RuleEffect, RuleOrigin};
use serde_json::Value;

use crate::document::Parsed;
use crate::error::ConfigError;
use crate::key;
use crate::origin::Origin;

/// The lists a layer can have, and what their rules say.
pub(crate) const LISTS: [(&str, RuleEffect); 3] = [
    ("allow_rules", RuleEffect::Allow),
    ("ask_rules", RuleEffect::Ask),
    ("deny_rules", RuleEffect::Deny),
];

/// The name of the list that holds rules with this effect.
pub(crate) fn list_of(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Allow => "allow_rules",
        RuleEffect::Ask => "ask_rules",
        RuleEffect::Deny => "deny_rules",
    }
}

type Rules = Vec<(RuleEffect, PermissionRule, RuleOrigin)>;

/// Takes the rules out of a layer. One bad rule refuses the whole layer: a rule that was meant to
/// deny must not vanish, and one that was meant to be narrow must not become wide.
pub(crate) fn take(layer: &mut Parsed) -> Result<Rules, ConfigError> {
    let mut rules = Vec::new();
    for (list, effect) in LISTS {
        let Some(value) = layer.take(&["permissions".into(), list.into()]) else { continue };
        let path = key::join("permissions", list);
        let Value::Array(elements) = value else {
            return Err(invalid(layer.origin(&path), format!("{path} must be a list of rules")));
        };
        for (index, element) in elements.into_iter().enumerate() {
            let path = key::element(&path, index);
            let origin = layer.origin(&path);
            let rule = read(element)
                .map_err(|problem| invalid(origin.clone(), format!("{path}: {problem}")))?;
            rules.push((effect, rule, origin.rule_origin()));
        }
    }
    Ok(rules)
}

fn invalid(origin: Origin, problem: String) -> ConfigError {
    ConfigError::Invalid {
        origin,
        problem,
        fix: "a rule is a `tool` and at most one of `path_prefix`, `command_prefix`, `host`; correct it or take it out"
            .into(),
    }
}

fn read(value: Value) -> Result<PermissionRule, String> {
    const KEYS: [&str; 4] = ["tool", "path_prefix", "command_prefix", "host"];
    if let Some(map) = value.as_object()
        && let Some(name) = map.keys().find(|name| !KEYS.contains(&name.as_str()))
    {
        let near = key::nearest(name, KEYS.into_iter());
        return Err(match near {
            Some(near) => format!("a rule has no `{name}`; did you mean `{near}`?"),
            None => format!("a rule has no `{name}`"),
        });
    }
    let rule: PermissionRule = serde_json::from_value(value).map_err(|error| error.to_string())?;
    check(&rule)?;
    Ok(rule)
}

/// Says what is wrong with a rule.
pub(crate) fn check(rule: &PermissionRule) -> Result<(), String> {
    let matchers = [
        ("path_prefix", &rule.path_prefix),
        ("command_prefix", &rule.command_prefix),
        ("host", &rule.host),
    ];
    if rule.tool.trim().is_empty() {
        return Err("`tool` is empty; name a tool, or `*` for all".into());
    }
    if let Some((name, _)) = matchers
        .iter()
        .find(|(_, matcher)| matcher.as_ref().is_some_and(|text| text.trim().is_empty()))
    {
        return Err(format!(
            "`{name}` is empty and would match everything; leave it out if that is meant"
        ));
    }
    if matchers.iter().filter(|(_, matcher)| matcher.is_some()).count() > 1 {
        return Err("more than one matcher".into());
    }
    if rule
        .host
        .as_ref()
        .is_some_and(|host| host.contains(['/', '@', '*']) || host.contains(char::is_whitespace))
    {
        return Err("`host` must be one exact host name, such as `example.org`".into());
    }
    Ok(())
}

/// A folder of `write_roots` as an absolute path without `.` and `..`.
pub(crate) fn resolve_root(
    text: &str,
    root: &Path,
    home: Option<&Path>,
) -> Result<PathBuf, String> {
    let path = match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        (Some(rest), None) if rest.is_empty() || rest.starts_with('/') => {
            return Err(format!("`{text}` needs a home folder, and none is known"));
        }
        _ if text.trim().is_empty() => return Err("an empty path is no folder".into()),
        _ => root.join(text),
    };
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                clean.pop();
            }
            std::path::Component::CurDir => {}
            other => clean.push(other),
        }
    }
    Ok(clean)
}

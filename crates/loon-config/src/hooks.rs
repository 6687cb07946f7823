//! Hooks of one layer: each checked, each with its place.

use std::time::Duration;

use loon_api::{HookAction, HookDefinition, HookEvent, HookMatcher};
use serde_json::Value;

use crate::document::Parsed;
use crate::error::ConfigError;
use crate::key;
use crate::load::Warning;
use crate::settings::Hook;

/// The table that holds them.
pub(crate) const TABLE: &str = "hooks";

/// One hook as it was written, and as it is run.
pub(crate) struct Taken {
    pub(crate) written: Hook,
    pub(crate) definition: HookDefinition,
}

/// Takes the hooks out of a layer. One bad hook refuses the whole layer: a guard that cannot be read
/// must not vanish.
pub(crate) fn take(
    layer: &mut Parsed,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Taken>, ConfigError> {
    let mut taken = Vec::new();
    if layer.value.get(TABLE).is_some_and(|table| !table.is_object()) {
        let problem = format!("{TABLE} must be a table");
        return Err(invalid(layer, TABLE, problem));
    }
    for event in HookEvent::ALL {
        let path = key::join(TABLE, event.name());
        let Some(value) = layer.take(&[TABLE.into(), event.name().into()]) else { continue };
        let Value::Array(elements) = value else {
            return Err(invalid(layer, &path, format!("{path} must be a list of hooks")));
        };
        for (index, element) in elements.into_iter().enumerate() {
            let path = key::element(&path, index);
            let hook: Hook = serde_json::from_value(element)
                .map_err(|error| invalid(layer, &path, format!("{path}: {error}")))?;
            let origin = layer.origin(&path);
            if hook.matcher.is_some() && !event.is_about_tool() {
                let message = format!("{path}.matcher has no effect: {event} is about no tool");
                warnings.push(Warning { origin: origin.clone(), message });
            }
            let definition = definition(event, &hook, origin.to_string())
                .map_err(|problem| invalid(layer, &path, format!("{path}: {problem}")))?;
            taken.push(Taken { written: hook, definition });
        }
    }
    Ok(taken)
}

fn invalid(layer: &Parsed, path: &str, problem: String) -> ConfigError {
    ConfigError::Invalid {
        origin: layer.origin(path),
        problem,
        fix: "a hook has either `command` or `url`, and may have `matcher` and `timeout_secs`; \
              correct it or take it out"
            .into(),
    }
}

fn definition(event: HookEvent, hook: &Hook, origin: String) -> Result<HookDefinition, String> {
    let action = match (&hook.command, &hook.url) {
        (Some(_), Some(_)) => return Err("both `command` and `url`".to_owned()),
        (None, None) => return Err("neither `command` nor `url`".to_owned()),
        (Some(line), None) if line.trim().is_empty() => return Err("`command` is empty".to_owned()),
        (Some(line), None) => HookAction::Command(line.clone()),
        (None, Some(url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
            return Err("`url` must begin with http:// or https://".to_owned());
        }
        (None, Some(url)) => HookAction::Url(url.clone()),
    };
    let matcher = match &hook.matcher {
        Some(text) => text.parse::<HookMatcher>().map_err(|error| error.to_string())?,
        None => HookMatcher::Any,
    };
    let timeout = Duration::from_secs(hook.timeout_secs);
    Ok(HookDefinition { event, matcher, action, timeout, origin })
}

#[cfg(test)]
mod tests;

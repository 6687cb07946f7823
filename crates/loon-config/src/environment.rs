//! `LOON_` variables as a layer. `LOON_SESSION_MAX_TURNS` is `session.max_turns`; what lies in a table
//! of names is written with two underscores between the names, `LOON_PROVIDERS__LAB__BASE_URL`.

use serde_json::Value;

use crate::document::Parsed;
use crate::error::ConfigError;
use crate::key;
use crate::load::Warning;
use crate::origin::{Layer, Origin};
use crate::schema;

/// How the variables begin.
pub const PREFIX: &str = "LOON_";

/// Variables with that beginning that are no settings.
const OTHERS: [&str; 1] = ["LOON_DATA_DIR"];

/// The variable of a setting with a fixed name.
fn variable_of(names: &[String]) -> String {
    format!("{PREFIX}{}", names.join("_").to_uppercase())
}

/// The key that a variable sets.
fn key_of(variable: &str) -> Option<Vec<String>> {
    let name = variable.strip_prefix(PREFIX)?;
    if name.contains("__") {
        let names: Vec<String> = name.split("__").map(str::to_lowercase).collect();
        let is_whole = names.iter().all(|name| !name.is_empty());
        return schema::field(&names).filter(|_| is_whole).map(|_| names);
    }
    schema::leaves()
        .into_iter()
        .map(|(names, _)| names)
        .find(|names| variable_of(names) == variable)
}

/// True if the variable sets a secret, so that no other program should get it.
pub fn holds_secret(variable: &str) -> bool {
    key_of(variable).is_some_and(|names| {
        (1..=names.len()).any(|depth| {
            schema::field(&names[..depth]).is_some_and(|field| {
                let values = field.get("additionalProperties");
                schema::is_secret(field) || values.is_some_and(schema::is_secret)
            })
        })
    })
}

/// Makes a layer of variables. An empty one counts as unset.
pub(crate) fn parse(variables: &[(String, String)]) -> Result<(Parsed, Vec<Warning>), ConfigError> {
    let mut warnings = Vec::new();
    let mut found = Vec::new();
    let mut sorted: Vec<&(String, String)> = variables
        .iter()
        .filter(|(name, text)| name.starts_with(PREFIX) && !text.is_empty())
        .collect();
    sorted.sort();
    for (variable, text) in sorted {
        match key_of(variable) {
            Some(names) if schema::field(&names).is_some_and(schema::is_read_only) => {}
            Some(names) => found.push((variable.as_str(), names, text.as_str())),
            None => warnings.extend(unknown(variable)?),
        }
    }
    Ok((Parsed::variables(found.into_iter())?, warnings))
}

/// What to say of a variable that sets nothing. Others may have variables with the same beginning, so
/// only those are told of that look like a setting.
fn unknown(variable: &str) -> Result<Option<Warning>, ConfigError> {
    if OTHERS.contains(&variable) {
        return Ok(None);
    }
    let known: Vec<String> = schema::leaves().iter().map(|(names, _)| variable_of(names)).collect();
    let near = key::nearest(variable, known.iter().map(String::as_str));
    let sections = schema::schema().get("properties").and_then(Value::as_object);
    let section = sections.into_iter().flat_map(|sections| sections.keys()).find(|section| {
        let rest = variable.strip_prefix(PREFIX).unwrap_or_default();
        rest.strip_prefix(section.to_uppercase().as_str()).is_some_and(|rest| rest.starts_with('_'))
    });
    let message = match (near, section) {
        (Some(near), _) => format!("no setting has this variable; did you mean {near}?"),
        (None, Some(_)) => "no setting has this variable; it has no effect".to_owned(),
        (None, None) => return Ok(None),
    };
    let origin = Origin {
        layer: Layer::Environment,
        file: None,
        variable: Some(variable.to_owned()),
        line: None,
        column: None,
    };
    if section.is_some_and(|section| schema::is_strict(std::slice::from_ref(section))) {
        return Err(ConfigError::Invalid {
            origin,
            problem: message,
            fix: "correct or unset it; what is unknown is refused where safety hangs on it".into(),
        });
    }
    Ok(Some(Warning { origin, message }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_setting_has_a_variable_of_its_own() {
        let leaves = schema::leaves();
        let variables: BTreeSet<String> =
            leaves.iter().map(|(names, _)| variable_of(names)).collect();
        assert_eq!(variables.len(), leaves.len());
        assert!(!variables.iter().any(|variable| OTHERS.contains(&variable.as_str())));
        for (names, _) in leaves {
            assert_eq!(key_of(&variable_of(&names)).unwrap(), names);
        }
    }

    #[test]
    fn tables_of_names_take_two_underscores() {
        assert_eq!(
            key_of("LOON_PROVIDERS__LAB__BASE_URL").unwrap(),
            ["providers", "lab", "base_url"]
        );
        assert_eq!(key_of("LOON_PROVIDERS__LAB__NOTHING"), None);
        assert_eq!(key_of("LOON_PROVIDERS____LAB"), None);
        assert!(holds_secret("LOON_PROVIDERS__LAB__API_KEY"));
        assert!(holds_secret("LOON_PROVIDERS__LAB__HEADERS__X_TOKEN"));
        assert!(!holds_secret("LOON_PROVIDERS__LAB__BASE_URL"));
    }
}

//! Libraries as the service lists them.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use super::cut;
use crate::text::visible_line;

/// Where libraries are looked for.
pub(crate) const SEARCH: &str = "/api/v2/libs/search";

/// Most characters of a description.
const DESCRIPTION: usize = 200;
/// Most versions named.
const VERSIONS: usize = 6;

/// A library. Whatever the service leaves out is absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Library {
    pub(crate) id: String,
    #[serde(alias = "name")]
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) total_snippets: Option<f64>,
    pub(crate) trust_score: Option<f64>,
    pub(crate) benchmark_score: Option<f64>,
    pub(crate) stars: Option<f64>,
    pub(crate) versions: Option<Vec<String>>,
}

/// The libraries of an answer: those of `results`, or those of the bare list that older servers
/// send. Entries that are none are passed over.
pub(crate) fn libraries(answer: &str) -> Result<Vec<Library>, String> {
    let unreadable = || format!("Context7 sent an answer that cannot be read. {}", super::INSTEAD);
    let answer: Value = serde_json::from_str(answer).map_err(|_| unreadable())?;
    let list = answer.get("results").unwrap_or(&answer).as_array().ok_or_else(unreadable)?;
    let read =
        |entry: &Value| Library::deserialize(entry).ok().filter(|found| !found.id.is_empty());
    Ok(list.iter().filter_map(read).collect())
}

impl Library {
    /// Its id and its name.
    pub(crate) fn heading(&self) -> String {
        let id = visible_line(&self.id);
        match &self.title {
            Some(title) => format!("{id} - {}", cut(&visible_line(title), DESCRIPTION)),
            None => id,
        }
    }

    /// What it is.
    pub(crate) fn about(&self) -> Option<String> {
        let about = self.description.as_deref().unwrap_or_default().trim();
        (!about.is_empty()).then(|| cut(&visible_line(about), DESCRIPTION))
    }

    /// How good the service thinks it is: what is known of snippets, trust, benchmark and stars.
    pub(crate) fn scores(&self) -> String {
        let scores = [
            ("snippets", self.total_snippets),
            ("trust", self.trust_score),
            ("benchmark", self.benchmark_score),
            ("stars", self.stars),
        ];
        // The service writes -1 for what it does not know.
        let known = scores.iter().filter_map(|(name, score)| {
            score.filter(|score| *score >= 0.0).map(|score| format!("{name} {score}"))
        });
        known.collect::<Vec<_>>().join(", ")
    }

    /// Its newest versions, which can follow the id after a slash.
    pub(crate) fn versions(&self) -> Option<String> {
        let versions = self.versions.as_deref().filter(|versions| !versions.is_empty())?;
        let named: Vec<String> =
            versions.iter().take(VERSIONS).map(|version| cut(&visible_line(version), 40)).collect();
        let mut text = named.join(", ");
        if versions.len() > VERSIONS {
            let _ = write!(text, " and {} more", versions.len() - VERSIONS);
        }
        Some(text)
    }
}

//! Which instructions are in force for a path, and why.

use loon_api::event::GuidanceListed;
use loon_api::{GuidanceSource, GuidanceState};

use super::{Kind, Popup, Row, Value};

/// The list before its answer is there.
pub(crate) fn open() -> Popup {
    Popup::new(Kind::Guidance, "guidance", "there are no instructions", Vec::new())
}

/// One row for the path that was asked for and one for each file.
pub(crate) fn rows(listed: &GuidanceListed) -> Vec<Row> {
    let path = listed.path.as_ref().map(|path| Row {
        label: if path.is_empty() {
            "for the whole folder".to_owned()
        } else {
            format!("for {path}")
        },
        note: String::new(),
        about: "What speaks of this path, from the general to the particular.".to_owned(),
        value: Value::Nothing,
    });
    path.into_iter().chain(listed.sources.iter().map(row)).collect()
}

fn row(source: &GuidanceSource) -> Row {
    let size = match source.state {
        GuidanceState::Unused => String::new(),
        _ if source.cut => format!("  {} bytes, cut", source.bytes),
        _ => format!("  {} bytes", source.bytes),
    };
    let about = match &source.reason {
        Some(reason) => format!("{reason}."),
        None => format!("It speaks of {}.", source.scope),
    };
    Row {
        label: source.path.clone(),
        note: format!("{}{size}", source.state.words()),
        about,
        value: Value::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use loon_api::GuidanceScope;

    use super::*;

    #[test]
    fn each_file_says_what_it_speaks_of_and_how_it_came() {
        let source = |path: &str, scope, state, reason: Option<&str>| GuidanceSource {
            path: path.to_owned(),
            scope,
            state,
            bytes: 40,
            cut: false,
            reason: reason.map(str::to_owned),
        };
        let folder = GuidanceScope::Folder { folder: "src".to_owned() };
        let patterns = vec!["*.rs".to_owned()];
        let matched = Some("*.rs".to_owned());
        let rule = GuidanceScope::Paths { patterns, matched };
        let listed = GuidanceListed {
            path: Some("src/a.rs".to_owned()),
            sources: vec![
                source("src/AGENTS.md", folder, GuidanceState::Given, None),
                source(".loon/rules/r.md", rule, GuidanceState::Due, None),
                source(
                    "x.md",
                    GuidanceScope::Project,
                    GuidanceState::Unused,
                    Some("it is no file"),
                ),
            ],
        };
        let shown: Vec<String> = rows(&listed)
            .into_iter()
            .map(|row| format!("{} | {} | {}", row.label, row.note, row.about))
            .collect();
        assert_eq!(
            shown[1..],
            [
                "src/AGENTS.md | given  40 bytes | It speaks of src/.",
                ".loon/rules/r.md | comes with the next touch  40 bytes | It speaks of paths like *.rs.",
                "x.md | not used | it is no file.",
            ]
        );
        assert_eq!(shown[0].split(" | ").next(), Some("for src/a.rs"));
    }
}

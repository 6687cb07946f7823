//! The skills, where each comes from and which it outweighs.

use loon_api::SkillSummary;
use loon_api::event::SkillsListed;

use super::{Kind, Popup, Row, Value};

/// The list before its answer is there.
pub(crate) fn open() -> Popup {
    Popup::new(Kind::Skills, "skills", "reading the skills", Vec::new())
}

/// One row for each skill and for each file that should be one.
pub(crate) fn rows(listed: &SkillsListed) -> Vec<Row> {
    let unusable = listed.unusable.iter().map(|file| {
        let (path, reason) = file.split_once(": ").unwrap_or((file, ""));
        Row {
            label: path.to_owned(),
            note: "not usable".to_owned(),
            about: reason.to_owned(),
            value: Value::Nothing,
        }
    });
    listed.skills.iter().map(row).chain(unusable).collect()
}

fn row(skill: &SkillSummary) -> Row {
    let active = if skill.active { "active  " } else { "" };
    let mut about = skill.description.clone();
    if !skill.overrides.is_empty() {
        about.extend(["\n\nIt outweighs ", &skill.overrides.join(", "), "."]);
    }
    Row {
        label: skill.name.clone(),
        note: format!("{active}{}", skill.origin),
        about,
        value: Value::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_activity_and_what_is_outweighed_are_said() {
        let skill = SkillSummary {
            name: "rust".to_owned(),
            description: "Rust here.".to_owned(),
            origin: ".loon/skills/rust.md".to_owned(),
            overrides: vec!["bundled".to_owned()],
            active: true,
        };
        let unusable = vec![".loon/skills/x.md: it is no file.".to_owned()];
        let rows = rows(&SkillsListed { skills: vec![skill], unusable });
        assert_eq!(
            (rows[0].label.as_str(), rows[0].note.as_str()),
            ("rust", "active  .loon/skills/rust.md")
        );
        assert_eq!(rows[0].about, "Rust here.\n\nIt outweighs bundled.");
        assert_eq!(
            (rows[1].label.as_str(), rows[1].about.as_str()),
            (".loon/skills/x.md", "it is no file.")
        );
    }
}

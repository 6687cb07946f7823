//! The skills that are part of the program: one file each in the `skills` folder at the top.

use std::borrow::Cow;

use super::{Skill, Source};
use crate::frontmatter::Definition;

macro_rules! bundled {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../skills/", $name, ".md")))),*]
    };
}

/// Name and file of each: workflows, then languages, then domains.
pub(super) const BUNDLED: [(&str, &str); 26] = bundled!(
    "implementation" "debugging" "review" "testing" "refactoring" "documentation"
    "rust" "python" "typescript" "javascript" "go" "java" "kotlin" "csharp" "cpp" "shell"
    "frontend" "backend" "apis" "databases" "migrations" "dependencies" "devops" "security"
    "performance" "releases"
);

/// The bundled skills, in the order of the table.
pub(super) fn read() -> Vec<Skill> {
    BUNDLED
        .iter()
        .map(|(name, text)| {
            let found = Definition::parse(text);
            Skill {
                name: (*name).to_owned(),
                description: found.text("description").unwrap_or_default().to_owned(),
                body: Cow::Borrowed(found.body),
                source: Source::Bundled,
                overrides: Vec::new(),
            }
        })
        .collect()
}

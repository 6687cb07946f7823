//! Agent profiles: whom the model can hand a task to.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use loon_api::Effort;

use crate::frontmatter::{Definition, LIMIT};

/// Most model requests of a child whose profile names no limit.
const MAX_STEPS: u32 = 100;

/// Most profiles read from one folder.
const MAX_PROFILES: usize = 100;

/// The profile that is always there.
const GENERAL: &str = "general";

/// Whom a task can be handed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentProfile {
    /// Name the model uses.
    pub(crate) name: String,
    /// When to use it, one line.
    pub(crate) description: String,
    /// `provider/model`; absent uses the parent's.
    pub(crate) model: Option<String>,
    /// How hard its model should think; absent uses what the model's settings say.
    pub(crate) effort: Option<Effort>,
    /// Most model requests.
    pub(crate) max_steps: u32,
    /// Only these tools.
    pub(crate) tools: Option<Vec<String>>,
    /// None of these tools.
    pub(crate) disallowed_tools: Vec<String>,
    /// It works in a Git worktree of its own.
    pub(crate) worktree: bool,
    /// What it is told beyond the task.
    pub(crate) instruction: String,
}

impl AgentProfile {
    fn general() -> Self {
        Self {
            name: GENERAL.to_owned(),
            description: "Works on any task that stands by itself.".to_owned(),
            model: None,
            effort: None,
            max_steps: MAX_STEPS,
            tools: None,
            disallowed_tools: Vec::new(),
            worktree: false,
            instruction: String::new(),
        }
    }

    fn parse(file_name: &str, text: &str) -> Self {
        let found = Definition::parse(text);
        Self {
            name: visible(found.text("name").unwrap_or(file_name)),
            description: visible(found.text("description").unwrap_or_default()),
            model: found.text("model").filter(|model| *model != "inherit").map(visible),
            effort: found.text("effort").and_then(effort),
            max_steps: found
                .text("maxTurns")
                .and_then(|turns| turns.parse().ok())
                .filter(|turns| *turns > 0)
                .unwrap_or(MAX_STEPS),
            tools: tools(&found, "tools").filter(|tools| !tools.iter().any(|tool| tool == "*")),
            disallowed_tools: tools(&found, "disallowedTools").unwrap_or_default(),
            worktree: found.text("isolation") == Some("worktree"),
            instruction: found
                .body
                .chars()
                .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
                .collect(),
        }
    }

    /// True if the child may have the tool.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        // Names here are lower case, but for those of servers, which are what they are.
        let tool = if tool.starts_with("mcp__") { tool.to_owned() } else { tool.to_lowercase() };
        // `mcp__server__*` names all tools of a server.
        let names = |name: &String| match name.strip_suffix('*') {
            Some(stem) if stem.starts_with("mcp__") => tool.starts_with(stem),
            _ => *name == tool,
        };
        let named = |list: &[String]| list.iter().any(names);
        self.tools.as_deref().is_none_or(named) && !named(&self.disallowed_tools)
    }
}

/// One line that shows what it holds.
fn visible(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn effort(word: &str) -> Option<Effort> {
    match word {
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        _ => None,
    }
}

/// Names of tools, as they are here. Elsewhere they are written with capitals, and some are called
/// otherwise; those of servers are what they are.
fn tools(found: &Definition<'_>, field: &str) -> Option<Vec<String>> {
    let own = |name: &String| {
        if name.starts_with("mcp__") {
            return name.clone();
        }
        let name = name.to_lowercase();
        let own = match name.as_str() {
            "ls" => "list_directory",
            "multiedit" => "edit",
            "notebookedit" => "notebook_edit",
            "notebookread" => "notebook_read",
            "todoread" => "todo_read",
            "todowrite" => "todo_write",
            "webfetch" => "fetch",
            _ => return name,
        };
        own.to_owned()
    };
    Some(found.list(field)?.iter().map(own).collect())
}

/// The profiles in the `agents` folders of `places`, of which later ones outweigh earlier ones, and
/// the general one. Sorted by name.
pub(crate) fn read_profiles(places: &[PathBuf]) -> Vec<AgentProfile> {
    let mut found = vec![AgentProfile::general()];
    for place in places {
        for profile in read_folder(&place.join("agents")) {
            found.retain(|other| other.name != profile.name);
            found.push(profile);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn read_folder(folder: &Path) -> Vec<AgentProfile> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.sort();
    paths.truncate(MAX_PROFILES);
    paths
        .iter()
        .filter_map(|path| Some(AgentProfile::parse(path.file_stem()?.to_str()?, &read(path)?)))
        .collect()
}

fn read(path: &Path) -> Option<String> {
    // Before it is opened: opening a pipe would wait for somebody to write to it.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h161_a_profile_has_limits_of_its_own() {
        let text = "---\ndescription: Reads diffs.\nmodel: lab/small\neffort: high\nmaxTurns: 7\n\
                    tools: read, grep, bash\ndisallowedTools: [bash]\nisolation: worktree\n---\nBe brief.";
        let profile = AgentProfile::parse("reviewer", text);
        assert_eq!((profile.name.as_str(), profile.max_steps), ("reviewer", 7));
        assert_eq!(profile.model.as_deref(), Some("lab/small"));
        assert_eq!(profile.effort, Some(Effort::High));
        assert!(profile.worktree && profile.allows("grep"));
        assert!(!profile.allows("bash") && !profile.allows("edit"));
        assert_eq!(profile.instruction, "Be brief.");
        let odd = AgentProfile::parse("x", "---\nname: a\u{1b}b\n---\nStay\u{1b}\n\tcalm.");
        assert_eq!((odd.name.as_str(), odd.instruction.as_str()), ("a b", "Stay\n\tcalm."));
        let bare = AgentProfile::parse("x", "Only words.");
        assert_eq!((bare.max_steps, bare.allows("bash")), (MAX_STEPS, true));
    }

    #[test]
    fn profiles_written_for_other_programs_name_tools_in_their_way() {
        let text =
            "---\nname: tester\nmodel: inherit\ntools: Read, Grep, WebFetch, LS, MultiEdit\n---\n";
        let profile = AgentProfile::parse("x", text);
        assert_eq!(profile.model, None);
        for tool in ["read", "grep", "fetch", "list_directory", "edit"] {
            assert!(profile.allows(tool), "{tool}");
        }
        assert!(!profile.allows("bash") && !profile.allows("write"));
        let text = "---\ntools: mcp__Files__Read\ndisallowedTools: Bash\n---\n";
        let profile = AgentProfile::parse("x", text);
        assert!(profile.allows("mcp__Files__Read") && !profile.allows("bash"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test fixture, not a project's file")]
    fn h160_the_nearer_folder_outweighs() {
        let dir = tempfile::tempdir().unwrap();
        let places = ["global", "project"].map(|name| dir.path().join(name));
        for (place, words) in places.iter().zip(["far", "near"]) {
            std::fs::create_dir_all(place.join("agents")).unwrap();
            std::fs::write(place.join("agents/helper.md"), words).unwrap();
        }
        let found = read_profiles(&places);
        let names: Vec<_> = found.iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(names, ["general", "helper"]);
        assert_eq!(found[1].instruction, "near");
    }
}

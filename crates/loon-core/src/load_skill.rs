//! `load_skill`: gives the text of a skill and makes the skill active.

use loon_api::{RecordChange, Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::skills::{SkillShelf, Skills};

/// Loads skills.
pub(crate) struct LoadSkill {
    shelf: SkillShelf,
}

/// Arguments of `load_skill`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    name: String,
}

impl LoadSkill {
    pub(crate) const NAME: &str = "load_skill";

    pub(crate) fn new(shelf: SkillShelf) -> Self {
        Self { shelf }
    }
}

impl NativeTool for LoadSkill {
    type Args = Args;

    const NAME: &'static str = Self::NAME;
    const DESCRIPTION: &'static str =
        "Read a skill, a short guide for one kind of work, before you begin that work.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        short(&args.name)
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let shelf = self.shelf.clone();
        let loading = tokio::task::spawn_blocking(move || load(&shelf.read(), &args.name));
        loading.await.unwrap_or_else(|error| {
            ToolOutput::error(format!("Reading the skills was cut off: {error}. Try again."))
        })
    }
}

/// A name on one short line without control characters, whatever the model wrote.
fn short(name: &str) -> String {
    name.chars().filter(|ch| !ch.is_control()).take(80).collect()
}

fn load(skills: &Skills, name: &str) -> ToolOutput {
    let failures = skills.failures(name.trim());
    let Some(skill) = skills.find(name) else {
        let near = skills.near(name).join(", ");
        let mut text = format!("There is no skill {:?}. Load one of: {near}.", short(name));
        if !failures.is_empty() {
            text = format!("{text}\nNot usable: {}", failures.join(" "));
        }
        return ToolOutput::error(text);
    };
    let mut text = skill.told();
    if !failures.is_empty() {
        text = format!("{text}\n\n[Not used: {}]", failures.join(" "));
    }
    let record = vec![RecordChange::SkillLoaded { name: skill.name.clone() }];
    ToolOutput { record, ..ToolOutput::ok(text, skill.origin()) }
}

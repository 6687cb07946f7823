//! `update_plan`: the checklist of `todo_write` under the name that other models know.

use loon_api::{Subject, ToolClass};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::checklist::{self, Status};
use crate::text;

/// Most bytes of an explanation that are kept.
const EXPLANATION: usize = 2000;

/// Replaces the checklist and says why.
pub(crate) struct UpdatePlan;

/// Arguments of `update_plan`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    plan: Vec<Step>,
    explanation: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Step {
    #[serde(alias = "content", alias = "text", alias = "title")]
    step: String,
    #[serde(default)]
    status: Status,
}

impl NativeTool for UpdatePlan {
    type Args = Args;

    const NAME: &'static str = "update_plan";
    const DESCRIPTION: &'static str = "Same as todo_write, with a reason for the change.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        checklist::title(args.plan.iter().map(|step| (step.step.as_str(), step.status)))
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let steps = args.plan.into_iter().map(|step| (step.step, step.status));
        match checklist::replace(steps) {
            Ok(mut output) => {
                if let Some(explanation) = &args.explanation {
                    output.result.text.push('\n');
                    output
                        .result
                        .text
                        .push_str(&text::clipped(&text::visible(explanation.trim()), EXPLANATION));
                }
                output
            }
            Err(error) => ToolOutput::error(error),
        }
    }
}

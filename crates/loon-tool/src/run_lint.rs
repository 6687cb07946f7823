//! `run_lint`: runs a project's linter.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::project::{Kind, Purpose, Request};
use crate::runner::{Runner, gate_timeout};
use crate::workspace::Workspace;

/// Lints.
pub struct RunLint {
    runner: Runner,
}

impl RunLint {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { runner: Runner::new(workspace, spawner) }
    }
}

/// Arguments of `run_lint`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    path: Option<String>,
    #[schemars(with = "Option<String>")]
    kind: Option<Kind>,
    #[serde(default)]
    options: Vec<String>,
    timeout_secs: Option<u64>,
}

impl Args {
    fn request(&self) -> Request {
        Request {
            purpose: Purpose::Lint,
            path: self.path.clone().unwrap_or_else(|| ".".to_owned()),
            kind: self.kind,
            filter: None,
            args: self.options.clone(),
        }
    }
}

impl NativeTool for RunLint {
    type Args = Args;

    const NAME: &'static str = "run_lint";
    const DESCRIPTION: &'static str =
        "Lint or type-check a project of kind cargo, node, go or python.";
    const CLASS: ToolClass = ToolClass::Executes;

    fn title(&self, args: &Args) -> String {
        self.runner.title(&args.request())
    }

    fn subjects(&self, args: &Args) -> Result<Vec<Subject>, String> {
        self.runner.subjects(&args.request())
    }

    fn timeout(&self, args: &Args) -> Option<Duration> {
        Some(gate_timeout(args.timeout_secs))
    }

    async fn run(&self, args: Args, cx: &EffectContext) -> ToolOutput {
        self.runner.run(&args.request(), args.timeout_secs, cx).await
    }
}

//! `run_lint`: runs a project's linter.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};

use crate::project::Purpose;
use crate::runner::{ProjectArgs, Runner, gate_timeout};
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

impl NativeTool for RunLint {
    type Args = ProjectArgs;

    const NAME: &'static str = "run_lint";
    const DESCRIPTION: &'static str =
        "Lint or type-check a project of kind cargo, node, go or python.";
    const CLASS: ToolClass = ToolClass::Executes;

    fn title(&self, args: &ProjectArgs) -> String {
        self.runner.title(&args.request(Purpose::Lint))
    }

    fn subjects(&self, args: &ProjectArgs) -> Result<Vec<Subject>, String> {
        self.runner.subjects(&args.request(Purpose::Lint))
    }

    fn timeout(&self, args: &ProjectArgs) -> Option<Duration> {
        Some(gate_timeout(args.timeout_secs))
    }

    async fn run(&self, args: ProjectArgs, cx: &EffectContext) -> ToolOutput {
        self.runner.run(&args.request(Purpose::Lint), args.timeout_secs, cx).await
    }
}

//! `run_build`: builds a project.

use std::sync::Arc;
use std::time::Duration;

use loon_api::{Subject, ToolClass};
use loon_exec::Spawner;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};

use crate::project::Purpose;
use crate::runner::{ProjectArgs, Runner, gate_timeout};
use crate::workspace::Workspace;

/// Builds.
pub struct RunBuild {
    runner: Runner,
}

impl RunBuild {
    pub(crate) fn new(workspace: &Arc<Workspace>, spawner: &Spawner) -> Self {
        Self { runner: Runner::new(workspace, spawner) }
    }
}

impl NativeTool for RunBuild {
    type Args = ProjectArgs;

    const NAME: &'static str = "run_build";
    const DESCRIPTION: &'static str = "Build a project of kind cargo, node, go or python.";
    const CLASS: ToolClass = ToolClass::Executes;

    fn title(&self, args: &ProjectArgs) -> String {
        self.runner.title(&args.request(Purpose::Build))
    }

    fn subjects(&self, args: &ProjectArgs) -> Result<Vec<Subject>, String> {
        self.runner.subjects(&args.request(Purpose::Build))
    }

    fn timeout(&self, args: &ProjectArgs) -> Option<Duration> {
        Some(gate_timeout(args.timeout_secs))
    }

    async fn run(&self, args: ProjectArgs, cx: &EffectContext) -> ToolOutput {
        self.runner.run(&args.request(Purpose::Build), args.timeout_secs, cx).await
    }
}

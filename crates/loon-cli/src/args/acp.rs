//! `loon acp`.

use std::path::PathBuf;

use clap::Args;

use super::{ModeArg, SessionArgs, ToolSetArg};

/// How the sessions of an editor begin.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AcpArgs {
    /// Model of new sessions, as provider/model.
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// What happens to calls that no rule decides, until the editor chooses another mode.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// How many tools the model is offered.
    #[arg(long, value_enum)]
    pub(crate) tools: Option<ToolSetArg>,
    /// Override a setting, for example `--set session.max_turns=20`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
}

impl AcpArgs {
    /// The same for one session in this folder.
    pub(crate) fn session(&self, cwd: PathBuf) -> SessionArgs {
        SessionArgs {
            model: self.model.clone(),
            mode: self.mode,
            tools: self.tools,
            overrides: self.overrides.clone(),
            cwd: Some(cwd),
            ..SessionArgs::default()
        }
    }
}

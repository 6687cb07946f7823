//! The command line.

mod acp;
mod hooks;
mod sessions;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use loon_api::{Mode, ToolSet};
use loon_config::{Layer, parse_period};

pub(crate) use self::acp::AcpArgs;
pub(crate) use self::hooks::{HooksCommand, TestArgs};
pub(crate) use self::sessions::{
    ExportArgs, ListArgs, ManyArgs, PruneArgs, SearchArgs, SessionsCommand,
};

/// Loom, a coding agent for the terminal.
///
/// Without a command it opens the full screen in the current folder.
#[derive(Debug, Parser)]
#[command(name = "loon", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Commands>,
    #[command(flatten)]
    pub(crate) screen: ScreenArgs,
}

/// The full screen.
#[derive(Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Begin with this prompt.
    #[arg(conflicts_with = "watch")]
    pub(crate) prompt: Option<String>,
    /// With --resume: only see what another process does in the session.
    #[arg(long, requires = "resume", conflicts_with = "take_over")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
}

/// Which session, and how it works.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionArgs {
    /// Continue the newest session of this folder.
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    pub(crate) continue_newest: bool,
    /// Continue the session with this id, or the beginning of one, in its own folder.
    #[arg(long, short = 'r', value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// With --resume: although another process works in the session, which can write nothing more then.
    #[arg(long, requires = "resume")]
    pub(crate) take_over: bool,
    /// Model to use, as provider/model.
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// What happens to calls that no rule decides.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// How many tools the model is offered; lean is for small models with little room.
    #[arg(long, value_enum)]
    pub(crate) tools: Option<ToolSetArg>,
    /// Have what the model claims to have completed reviewed before the turn ends.
    #[arg(long)]
    pub(crate) ultra: bool,
    /// Folder to work in.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
    /// Override a setting, for example `--set session.max_turns=20`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
}

impl SessionArgs {
    /// What it overrides in the settings, as `key=value` words.
    pub(crate) fn settings(&self) -> Vec<String> {
        let tools = self.tools.map(|tools| match tools.into() {
            ToolSet::Full => "session.tools=full".to_owned(),
            ToolSet::Lean => "session.tools=lean".to_owned(),
        });
        self.overrides.iter().cloned().chain(tools).collect()
    }
}

/// A tool set on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolSetArg {
    /// All that the session has.
    Full,
    /// The few that most work needs.
    Lean,
}

impl From<ToolSetArg> for ToolSet {
    fn from(tools: ToolSetArg) -> Self {
        match tools {
            ToolSetArg::Full => Self::Full,
            ToolSetArg::Lean => Self::Lean,
        }
    }
}

/// What to print of the tools.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// One JSON object a line, with the schema of the arguments.
    #[arg(long)]
    pub(crate) json: bool,
    /// Which set, instead of that of the settings.
    #[arg(long, value_enum)]
    pub(crate) tools: Option<ToolSetArg>,
}

/// A permission mode on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Reading is allowed, everything else asks.
    Default,
    /// Writing inside the folder is allowed too.
    Auto,
    /// Everything is allowed; deny and ask rules still hold.
    Bypass,
    /// Nothing may change.
    Plan,
}

impl From<Mode> for ModeArg {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Default => Self::Default,
            Mode::Auto => Self::Auto,
            Mode::Bypass => Self::Bypass,
            Mode::Plan => Self::Plan,
        }
    }
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Default => Self::Default,
            ModeArg::Auto => Self::Auto,
            ModeArg::Bypass => Self::Bypass,
            ModeArg::Plan => Self::Plan,
        }
    }
}

/// What `loon` can do besides the full screen.
#[derive(Debug, Subcommand)]
pub(crate) enum Commands {
    /// Run one prompt without a screen.
    ///
    /// Exit status: 0 completed, 1 failed, 2 usage or settings, 3 stopped before completion (denied,
    /// budget, turn limit, nothing to run), 124 deadline, 130 interrupted, 143 terminated, 141 the
    /// reader of standard output went away.
    Exec(ExecArgs),
    /// Serve an editor with the Agent Client Protocol on standard input and output.
    Acp(AcpArgs),
    /// Watch a scripted model repair a real repository; needs no key and no network.
    Demo(DemoArgs),
    /// List, search, show, fork, carry elsewhere, check and mend sessions.
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// End a session's work, wherever it runs. Nothing is written to it after that.
    Cancel {
        /// The session's id, or its beginning.
        id: String,
        /// Why, for the record.
        #[arg(long)]
        reason: Option<String>,
        /// Let the step that runs end first, with all its calls.
        #[arg(long)]
        after_step: bool,
    },
    /// Fold a session again and compare what comes out with what was recorded.
    Replay(ReplayArgs),
    /// Models that the settings name.
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Tools that models have in this folder.
    Tools(ToolsArgs),
    /// Lifecycle hooks.
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// MCP servers of the settings.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Permission rules.
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Instructions in force for a path, and why.
    Guidance(GuidanceArgs),
    /// Settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run prompts that other processes send.
    Worker(WorkerArgs),
    /// Say whether everything needed is in place, and what to do if not.
    Doctor,
    /// Trust the settings of this folder's repository.
    Trust(TrustArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// One prompt without a screen.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The prompt. With `-` or none it is read from standard input, which is not read otherwise.
    pub(crate) prompt: Option<String>,
    /// Print events, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read commands from standard input, one JSON object a line.
    #[arg(long, value_enum)]
    pub(crate) input: Option<InputFormat>,
    /// Most model requests of the turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Most time the run may take, for example 90s, 10m, 1h30m; a bare number is seconds.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
    /// Write the model's last message to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_last_message: Option<PathBuf>,
    /// JSON Schema that the answer must match; retried once, else the run fails.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Run on a worker of the settings, or with `child` in a process of its own. A worker works in
    /// the same folder on its machine, keeps the session there and goes by its own settings.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["input", "continue_newest", "resume", "tools", "ultra", "overrides"])]
    pub(crate) worker: Option<String>,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
}

/// A session to fold again.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The session's id, or its beginning.
    pub(crate) id: String,
    /// Compare this turn alone.
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the session's answers as a script for a provider of kind `script` instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["turn", "json"])]
    pub(crate) as_script: Option<PathBuf>,
}

/// How a worker is reached.
#[derive(Debug, Args)]
#[group(id = "way", required = true, multiple = true)]
pub(crate) struct WorkerArgs {
    /// Listen on this address for requests over HTTP; port 0 takes a free one. The address is
    /// printed.
    #[arg(long, value_name = "ADDRESS", group = "way")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Speak with the parent process over standard input and output.
    #[arg(long, hide = true, group = "way", conflicts_with_all = ["listen", "schedules"])]
    pub(crate) stdio: bool,
    /// Run the schedules of your settings as they fall due.
    #[arg(long, group = "way")]
    pub(crate) schedules: bool,
    /// Environment variable that holds the token which requests must bring. Beyond this machine
    /// there must be one.
    #[arg(long, value_name = "NAME", default_value = "LOON_WORKER_TOKEN")]
    pub(crate) token_env: String,
}

/// What standard input carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Commands as JSON lines.
    Jsonl,
}

/// The demonstration.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print what happens instead of opening the screen. The default without a terminal.
    #[arg(long)]
    pub(crate) headless: bool,
    /// With --headless: print events, one JSON object a line.
    #[arg(long, requires = "headless")]
    pub(crate) json: bool,
}

/// `loon models`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Models of every provider in the settings, and what their servers offer.
    List {
        /// Only what the settings say; ask no server.
        #[arg(long)]
        offline: bool,
    },
    /// Send one short request and say what came back.
    Test {
        /// The model, as provider/model; the session's if missing.
        model: Option<String>,
    },
}

/// `loon mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start every server, and say how each is and what it offers.
    List {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Start one server, and say what it offers, what was left out and why.
    Test {
        /// Its name in the settings.
        name: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// `loon permissions`.
#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Say how a shell line would be judged, by which rules, and what would change it.
    Explain {
        /// The line.
        line: String,
        /// Judge under this mode.
        #[arg(long, value_enum)]
        mode: Option<ModeArg>,
    },
}

/// `loon config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print one setting.
    Get {
        /// Its name, for example session.model.
        key: String,
    },
    /// Change one setting, in the user's file unless another is named.
    Set {
        /// Its name.
        key: String,
        /// Its value, as TOML; bare words are text.
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Take one setting out of a file, so that a weaker one or the default holds.
    Unset {
        /// Its name.
        key: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Print all settings in force.
    List {
        /// Say where each comes from, with file and line.
        #[arg(long)]
        show_origin: bool,
    },
    /// Print the JSON Schema of the settings.
    Schema,
}

/// Which settings file to change.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FileArgs {
    /// Your own file, for every project.
    #[arg(long, conflicts_with_all = ["project", "local"])]
    pub(crate) user: bool,
    /// The project's file, which everyone who works on it gets.
    #[arg(long, conflicts_with = "local")]
    pub(crate) project: bool,
    /// The project's file for this machine.
    #[arg(long)]
    pub(crate) local: bool,
}

impl FileArgs {
    /// The layer of the file.
    pub(crate) fn layer(self) -> Layer {
        match (self.project, self.local) {
            (true, _) => Layer::Project,
            (_, true) => Layer::Local,
            (false, false) => Layer::User,
        }
    }
}

/// `loon guidance`.
#[derive(Debug, Args)]
pub(crate) struct GuidanceArgs {
    /// A file or folder; without one, all instructions there are.
    pub(crate) path: Option<String>,
    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `loon trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Take the trust back.
    #[arg(long)]
    pub(crate) revoke: bool,
}

/// Reads a span of time as settings write it, or a bare number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { parse_period(&format!("{text}s")) } else { parse_period(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units_and_bare_numbers_are_seconds() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert!(duration("soon").is_err() && duration("0").is_err() && duration("").is_err());
    }
}

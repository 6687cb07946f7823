//! `loon hooks` on the command line.

use clap::{Args, Subcommand};
use loon_api::HookEvent;

/// `loon hooks`.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Print the hooks that hold in this folder, how often each fired and what came of it last.
    List {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Run the hooks for an event with a sample of what they read, and print what each said.
    Test(TestArgs),
}

/// What to try hooks with.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Name of the event; a wrong one is answered with all there are.
    pub(crate) event: HookEvent,
    /// The tool, for events about one.
    #[arg(long, value_name = "NAME", default_value = "bash")]
    pub(crate) tool: String,
    /// The tool's arguments, or members of another event's input, as a JSON object.
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
}

//! `loon sessions` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `loon sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Sessions of this folder, newest first.
    List(ListArgs),
    /// Search what people, models and tools said in all sessions.
    Search(SearchArgs),
    /// Print a session's transcript.
    Show {
        /// The session's id, or its beginning.
        id: String,
        /// Print the items of the transcript, one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Open a session on the full screen.
    Resume {
        /// The session's id, or its beginning.
        id: String,
        /// Although another process works in it, which can write nothing more then.
        #[arg(long)]
        take_over: bool,
    },
    /// Follow what another process does in a session, without taking part.
    Watch {
        /// The session's id, or its beginning.
        id: String,
        /// Print events, one JSON object a line, until no process works in it any more. The default
        /// without a terminal.
        #[arg(long)]
        json: bool,
    },
    /// Begin a session with the records of another one, up to the end of a turn.
    Fork {
        /// The session's id, or its beginning.
        id: String,
        /// The turn: its number, or the id of an item in it. The last that has ended if missing.
        #[arg(long, value_name = "TURN|ITEM")]
        at: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take sessions out of lists. Nothing is deleted.
    Archive(ManyArgs),
    /// Put archived sessions back into lists.
    Unarchive(ManyArgs),
    /// Move sessions and those of their subagents to the trash.
    Delete {
        #[command(flatten)]
        which: ManyArgs,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Bring deleted sessions back from the trash.
    Undelete(ManyArgs),
    /// Move sessions that are older or more than wanted to the trash, or empty it.
    Prune(PruneArgs),
    /// Write a session as Markdown, HTML, events, or as an archive to import elsewhere.
    Export(ExportArgs),
    /// Take in sessions from an archive, or from exported events.
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check a session's journal: its chain, its numbers, its blobs.
    Verify {
        /// The session's id, or its beginning.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Check every session.
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Print one JSON object a session.
        #[arg(long)]
        json: bool,
    },
    /// Mend a session's journal, or save what is whole into a new session.
    Repair {
        /// The session's id, or its beginning.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Which sessions to list.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ListArgs {
    /// Sessions of every folder.
    #[arg(long)]
    pub(crate) all: bool,
    /// Those that were archived too.
    #[arg(long)]
    pub(crate) archived: bool,
    /// Those of subagents too.
    #[arg(long)]
    pub(crate) children: bool,
    /// At most so many.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print JSON, one session a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to look for.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words that all occur in one message or result; words in double quotes stand beside each other,
    /// and the last may be the beginning of a word.
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// In sessions of this folder only.
    #[arg(long, short = 'C', value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) cwd: Option<PathBuf>,
    /// At most so many hits, the best.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print JSON, one hit a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Some sessions.
#[derive(Debug, Args)]
pub(crate) struct ManyArgs {
    /// Ids of sessions, or their beginnings.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Print JSON, one session a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What goes.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Keep what was used in so many days; `sessions.keep_days` if missing.
    #[arg(long, value_name = "DAYS")]
    pub(crate) keep_days: Option<u32>,
    /// Keep the newest so many; `sessions.keep_count` if missing.
    #[arg(long, value_name = "N")]
    pub(crate) keep_count: Option<u32>,
    /// Remove what lies in the trash, for good, instead.
    #[arg(long, conflicts_with_all = ["keep_days", "keep_count"])]
    pub(crate) empty_trash: bool,
    /// Do it. Without it, only what would go is shown.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON, one session a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How to write a session.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session's id, or its beginning.
    pub(crate) id: String,
    /// Write the events as JSON lines, large texts in place.
    #[arg(long, conflicts_with_all = ["html", "archive"])]
    pub(crate) json: bool,
    /// Write a page for a browser.
    #[arg(long, conflicts_with = "archive")]
    pub(crate) html: bool,
    /// Write the journals of the session and its subagents as they are, in one file for `import`.
    #[arg(long)]
    pub(crate) archive: bool,
    /// The file; standard output if missing.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

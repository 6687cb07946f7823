//! The commands a person can type or pick: one table for the composer, the palette and the help.

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Choose a model.
    Model,
    /// Choose a permission mode.
    Mode,
    /// Continue another session.
    Resume,
    /// Search all sessions.
    Sessions,
    /// Branch off from this session.
    Fork,
    /// Take over the session that is watched.
    TakeOver,
    /// Begin a new session.
    New,
    /// Stop the turn when its running step has ended.
    Stop,
    /// Go back to an earlier message.
    Rewind,
    /// Take file changes back.
    Undo,
    /// Take that back.
    Redo,
    /// Set, show or take away the goal.
    Goal,
    /// Begin or leave plan mode.
    Plan,
    /// Show what was spent, or set a bound.
    Budget,
    /// List plan, tasks and notes.
    Todo,
    /// Replace the older conversation by a summary.
    Compact,
    /// Show what fills the context window.
    Context,
    /// Show the MCP servers.
    Mcp,
    /// Show or hide the side panel.
    Panel,
    /// Choose a theme.
    Theme,
    /// Copy the last answer.
    Copy,
    /// Open or close the last call or thought.
    Unfold,
    /// Show the keys.
    Help,
    /// Leave.
    Quit,
}

/// A command as lists show it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it does.
    pub(crate) name: Name,
    /// The word behind the slash.
    pub(crate) word: &'static str,
    /// What may follow the word.
    pub(crate) argument: &'static str,
    /// One sentence.
    pub(crate) about: &'static str,
    /// Its key, if it has one.
    pub(crate) key: &'static str,
}

/// Every command.
pub(crate) const ALL: &[Entry] = &[
    Entry {
        name: Name::Model,
        word: "model",
        argument: "[provider/model]",
        about: "Choose the model of the next turn.",
        key: "",
    },
    Entry {
        name: Name::Mode,
        word: "mode",
        argument: "[default|auto|plan|bypass]",
        about: "Choose what happens without asking.",
        key: "Shift+Tab",
    },
    Entry {
        name: Name::Resume,
        word: "resume",
        argument: "",
        about: "Continue another session of this folder.",
        key: "",
    },
    Entry {
        name: Name::Sessions,
        word: "sessions",
        argument: "",
        about: "Search what was said in all sessions, and continue one.",
        key: "",
    },
    Entry {
        name: Name::Fork,
        word: "fork",
        argument: "[turn]",
        about: "Begin a new session with this one's conversation up to a turn; this one stays.",
        key: "",
    },
    Entry {
        name: Name::TakeOver,
        word: "takeover",
        argument: "",
        about: "Go on here in a session that is only watched; the other process ends its turn.",
        key: "",
    },
    Entry {
        name: Name::New,
        word: "new",
        argument: "",
        about: "Begin a new session; this one stays.",
        key: "",
    },
    Entry {
        name: Name::Stop,
        word: "stop",
        argument: "",
        about: "Let the running step end, then stop the turn. Esc stops it at once.",
        key: "",
    },
    Entry {
        name: Name::Rewind,
        word: "rewind",
        argument: "",
        about: "Go back to an earlier message: its text becomes the draft, files go back too if you say so.",
        key: "Esc Esc",
    },
    Entry {
        name: Name::Undo,
        word: "undo",
        argument: "",
        about: "Take back the file changes of the newest call that made some.",
        key: "",
    },
    Entry {
        name: Name::Redo,
        word: "redo",
        argument: "",
        about: "Take back the newest undo.",
        key: "",
    },
    Entry {
        name: Name::Goal,
        word: "goal",
        argument: "[text|off]",
        about: "Set what the whole session is for; alone it shows it, off takes it away.",
        key: "",
    },
    Entry {
        name: Name::Plan,
        word: "plan",
        argument: "[on|off]",
        about: "Begin or leave plan mode, in which nothing changes.",
        key: "",
    },
    Entry {
        name: Name::Budget,
        word: "budget",
        argument: "[5|200k tokens|50 requests|90m]",
        about: "Show what was spent of the budget, or set its bound for this session.",
        key: "",
    },
    Entry {
        name: Name::Todo,
        word: "todo",
        argument: "",
        about: "List plan, tasks, notes and what was spent.",
        key: "",
    },
    Entry {
        name: Name::Compact,
        word: "compact",
        argument: "[what matters]",
        about: "Replace the older conversation by a summary now. The transcript stays; Esc stops it.",
        key: "",
    },
    Entry {
        name: Name::Context,
        word: "context",
        argument: "",
        about: "Show what fills the context window, and when it is compacted.",
        key: "",
    },
    Entry {
        name: Name::Mcp,
        word: "mcp",
        argument: "",
        about: "Show the MCP servers, what they offer and why one is not there.",
        key: "",
    },
    Entry {
        name: Name::Panel,
        word: "panel",
        argument: "",
        about: "Show or hide the side panel with plan, tasks and notes.",
        key: "Ctrl+T",
    },
    Entry {
        name: Name::Theme,
        word: "theme",
        argument: "[name]",
        about: "Choose the colours, for this run.",
        key: "",
    },
    Entry {
        name: Name::Copy,
        word: "copy",
        argument: "",
        about: "Copy the focused item or the last answer.",
        key: "Ctrl+Y",
    },
    Entry {
        name: Name::Unfold,
        word: "unfold",
        argument: "",
        about: "Open or close the last call or thought.",
        key: "Ctrl+O",
    },
    Entry { name: Name::Help, word: "help", argument: "", about: "Show every key.", key: "?" },
    Entry {
        name: Name::Quit,
        word: "quit",
        argument: "",
        about: "Leave; the session stays.",
        key: "Ctrl+D",
    },
];

/// What a draft that may be a command says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// It is no command.
    Text,
    /// A command with its argument.
    Command(Name, &'a str),
    /// It looks like a command, but there is none of that name.
    Unknown(&'a str),
}

/// Reads a draft. A command is a slash and one word of letters; `/usr/bin` is text.
pub(crate) fn parse(draft: &str) -> Parsed<'_> {
    let Some(rest) = draft.trim().strip_prefix('/') else { return Parsed::Text };
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        return Parsed::Text;
    }
    match ALL.iter().find(|entry| entry.word == word) {
        Some(entry) => Parsed::Command(entry.name, argument.trim()),
        None => Parsed::Unknown(word),
    }
}

/// Commands that the beginning of a draft may become.
pub(crate) fn suggestions(draft: &str) -> Vec<&'static Entry> {
    match draft.strip_prefix('/') {
        Some(start) if !draft.contains('\n') => {
            ALL.iter().filter(|entry| entry.word.starts_with(start)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_text_and_unknown_words_are_said() {
        assert_eq!(parse("/usr/bin is full"), Parsed::Text);
        assert_eq!(parse("/"), Parsed::Text);
        assert_eq!(parse("/modle x"), Parsed::Unknown("modle"));
        assert_eq!(parse("/model  a/b "), Parsed::Command(Name::Model, "a/b"));
        assert_eq!(suggestions("/mo").len(), 2);
        assert!(suggestions("mo").is_empty());
    }
}

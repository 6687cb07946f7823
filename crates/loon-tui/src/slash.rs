//! The commands a person can type or pick: one table for the composer, the palette and the help.

use loon_api::CustomCommand;

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
    /// Switch Ultra Loop.
    Ultra,
    /// List the children of the session.
    Agents,
    /// Give a child words.
    Steer,
    /// List plan, tasks and notes.
    Todo,
    /// Replace the older conversation by a summary.
    Compact,
    /// Show what fills the context window.
    Context,
    /// Show what guidance is in force.
    Guidance,
    /// List the skills.
    Skills,
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
        name: Name::Ultra,
        word: "ultra",
        argument: "[on|off]",
        about: "Ultra Loop: have a reviewer judge what the model claims to have completed.",
        key: "",
    },
    Entry {
        name: Name::Agents,
        word: "agents",
        argument: "",
        about: "List the agents of this session; watch, steer or stop one.",
        key: "",
    },
    Entry {
        name: Name::Steer,
        word: "steer",
        argument: "AGENT words",
        about: "Give a running agent words that it reads at its next step.",
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
        name: Name::Guidance,
        word: "guidance",
        argument: "[path]",
        about: "Show which instructions of yours and of the project are in force, and why.",
        key: "",
    },
    Entry {
        name: Name::Skills,
        word: "skills",
        argument: "",
        about: "List the skills, where each comes from and which it outweighs.",
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
    /// A custom command with its arguments.
    Custom(&'a CustomCommand, &'a str),
    /// It looks like a command, but there is none of that name.
    Unknown(&'a str),
}

/// Reads a draft. A command is a slash and one word that begins with a letter; `/usr/bin` is text. No
/// custom command takes the word of another.
pub(crate) fn parse<'a>(draft: &'a str, customs: &'a [CustomCommand]) -> Parsed<'a> {
    let Some(rest) = draft.trim().strip_prefix('/') else { return Parsed::Text };
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'));
    if !is_word {
        return Parsed::Text;
    }
    if let Some(entry) = ALL.iter().find(|entry| entry.word == word) {
        return Parsed::Command(entry.name, argument.trim());
    }
    match customs.iter().find(|custom| custom.name == word) {
        Some(custom) => Parsed::Custom(custom, argument.trim()),
        None => Parsed::Unknown(word),
    }
}

/// True if a custom command cannot be reached, because its name is taken.
pub(crate) fn is_taken(custom: &CustomCommand) -> bool {
    ALL.iter().any(|entry| entry.word == custom.name)
}

/// A command that the beginning of a draft may become.
#[derive(Debug)]
pub(crate) enum Suggestion<'a> {
    /// One of the table.
    Own(&'static Entry),
    /// A custom one.
    Custom(&'a CustomCommand),
}

impl<'a> Suggestion<'a> {
    /// The word behind the slash.
    pub(crate) fn word(&self) -> &'a str {
        match self {
            Self::Own(entry) => entry.word,
            Self::Custom(custom) => &custom.name,
        }
    }

    /// What may follow the word.
    pub(crate) fn argument(&self) -> &'a str {
        match self {
            Self::Own(entry) => entry.argument,
            Self::Custom(custom) => &custom.argument_hint,
        }
    }

    /// One sentence.
    pub(crate) fn about(&self) -> &'a str {
        match self {
            Self::Own(entry) => entry.about,
            Self::Custom(custom) => about(custom),
        }
    }
}

/// What a custom command is for; where it comes from, if it does not say.
pub(crate) fn about(custom: &CustomCommand) -> &str {
    if custom.description.is_empty() { &custom.origin } else { &custom.description }
}

/// Commands that the beginning of a draft may become, custom ones last.
pub(crate) fn suggestions<'a>(draft: &str, customs: &'a [CustomCommand]) -> Vec<Suggestion<'a>> {
    let Some(start) = draft.strip_prefix('/').filter(|_| !draft.contains('\n')) else {
        return Vec::new();
    };
    let own = ALL.iter().filter(|entry| entry.word.starts_with(start)).map(Suggestion::Own);
    let customs = customs.iter().filter(|it| it.name.starts_with(start) && !is_taken(it));
    own.chain(customs.map(Suggestion::Custom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_text_and_unknown_words_are_said() {
        assert_eq!(parse("/usr/bin is full", &[]), Parsed::Text);
        assert_eq!(parse("/", &[]), Parsed::Text);
        assert_eq!(parse("/2.5 of it", &[]), Parsed::Text);
        assert_eq!(parse("/modle x", &[]), Parsed::Unknown("modle"));
        assert_eq!(parse("/model  a/b ", &[]), Parsed::Command(Name::Model, "a/b"));
        assert_eq!(suggestions("/mo", &[]).len(), 2);
        assert!(suggestions("mo", &[]).is_empty());
    }

    #[test]
    fn custom_commands_come_last_and_never_in_place_of_another() {
        let custom = |name: &str, description: &str| CustomCommand {
            name: name.to_owned(),
            description: description.to_owned(),
            argument_hint: String::new(),
            origin: format!(".loon/commands/{name}.md"),
        };
        let customs = [custom("model", "mine"), custom("git:modest", ""), custom("more", "More.")];
        assert_eq!(parse("/model x", &customs), Parsed::Command(Name::Model, "x"));
        assert_eq!(parse("/git:modest  a b", &customs), Parsed::Custom(&customs[1], "a b"));
        let found = suggestions("/mo", &customs);
        let shown: Vec<(&str, &str)> = found.iter().map(|it| (it.word(), it.about())).collect();
        assert_eq!(shown[2..], [("more", "More.")]);
        assert_eq!(suggestions("/git", &customs)[0].about(), ".loon/commands/git:modest.md");
    }
}

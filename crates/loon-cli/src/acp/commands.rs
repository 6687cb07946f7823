//! Commands that a person types into the prompt of an editor.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use loon_api::Command;

/// A command, what may follow it, and what it does.
const ALL: [(&str, &str, &str); 4] = [
    ("compact", "what matters most", "Replace the older conversation by a summary now."),
    ("undo", "", "Take back the file changes of the newest call that made some."),
    ("redo", "", "Take back the newest undo."),
    ("goal", "text, or off", "Set what the whole session is for, or take it away."),
];

/// The commands, for the client's menu.
pub(super) fn available() -> SessionUpdate {
    let commands = ALL.into_iter().map(|(name, hint, about)| {
        let input = (!hint.is_empty())
            .then(|| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
        AvailableCommand::new(name, about).input(input)
    });
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands.collect()))
}

/// The command that a prompt is, if it is one. Other words behind a slash go to the model.
pub(super) fn parse(prompt: &str) -> Option<Command> {
    let rest = prompt.trim().strip_prefix('/')?;
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let argument = argument.trim();
    let given = (!argument.is_empty()).then(|| argument.to_owned());
    match (word, given) {
        ("compact", focus) => Some(Command::Compact { focus }),
        ("undo", None) => Some(Command::Undo { redo: false }),
        ("redo", None) => Some(Command::Undo { redo: true }),
        ("goal", Some(goal)) if goal == "off" => Some(Command::SetGoal { goal: None }),
        ("goal", Some(goal)) => Some(Command::SetGoal { goal: Some(goal) }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_words() {
        let goal = |goal: Option<&str>| Command::SetGoal { goal: goal.map(str::to_owned) };
        let compact = |focus: Option<&str>| Command::Compact { focus: focus.map(str::to_owned) };
        assert_eq!(parse("/compact\n"), Some(compact(None)));
        assert_eq!(parse("/compact the tests"), Some(compact(Some("the tests"))));
        assert_eq!(parse("/undo"), Some(Command::Undo { redo: false }));
        assert_eq!(parse(" /redo "), Some(Command::Undo { redo: true }));
        assert_eq!(parse("/goal ship it"), Some(goal(Some("ship it"))));
        assert_eq!(parse("/goal off"), Some(goal(None)));
        for words in ["undo", "/usr/bin is full", "/undo the last commit", "/goal", "/x"] {
            assert_eq!(parse(words), None, "{words}");
        }
    }

    #[test]
    fn every_command_on_offer_is_one() {
        for (name, hint, _) in ALL {
            let argument = if hint.is_empty() { "" } else { " x" };
            assert!(parse(&format!("/{name}{argument}")).is_some(), "{name}");
        }
    }
}

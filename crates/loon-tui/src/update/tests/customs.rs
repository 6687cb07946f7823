//! Custom commands in the draft, the suggestions and the palette.

use loon_api::event::{CommandRefused, CommandsListed, GuidanceListed};
use loon_api::{CustomCommand, ErrorCode, ErrorInfo};

use super::*;

fn custom(name: &str, hint: &str) -> CustomCommand {
    CustomCommand {
        name: name.to_owned(),
        description: format!("about {name}"),
        argument_hint: hint.to_owned(),
        origin: format!(".loon/commands/{name}.md"),
    }
}

fn screen(commands: Vec<CustomCommand>) -> Screen {
    let mut screen = Screen::new();
    screen.tell(CommandsListed { commands, unusable: Vec::new() });
    screen
}

fn send(name: &str, arguments: &str, steer: bool) -> Vec<Action> {
    let (name, arguments) = (name.to_owned(), arguments.to_owned());
    sent(Command::Custom { name, arguments, steer })
}

#[test]
fn a_slash_asks_for_the_custom_commands_of_now() {
    let mut screen = Screen::new();
    let actions = screen.press(KeyCode::Char('/'));
    assert!(actions.contains(&Action::Send(Command::ListCommands)));
    assert!(!screen.press(KeyCode::Char('r')).contains(&Action::Send(Command::ListCommands)));
    screen.ctrl('u');
    assert_eq!(screen.ctrl('k'), sent(Command::ListCommands));
}

#[test]
fn a_custom_command_is_sent_by_name_to_the_next_turn_or_the_running_one() {
    let mut screen = screen(vec![custom("git:tidy", ""), custom("model", "")]);
    screen.type_text("/git:tidy  the \"main branch\" ");
    assert_eq!(screen.press(KeyCode::Enter), send("git:tidy", "the \"main branch\"", false));
    assert_eq!(screen.draft(), "");
    // A beginning that only one command has will do.
    screen.type_text("/git");
    assert_eq!(screen.press(KeyCode::Enter), send("git:tidy", "", false));
    screen.type_text("/gi");
    screen.press(KeyCode::Tab);
    assert_eq!(screen.draft(), "/git:tidy ");
    let started = TurnStarted { model: "lab/m".to_owned(), mode: Mode::Default, branch: None };
    screen.tell(started);
    screen.type_text("x");
    assert_eq!(screen.press(KeyCode::Enter), send("git:tidy", "x", true));
    screen.type_text("/git:tidy y");
    assert_eq!(screen.press(KeyCode::Tab), send("git:tidy", "y", false));
    // One that is named like another is not reached.
    screen.type_text("/model a/b");
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::SetModel { model: "a/b".to_owned() }));
}

#[test]
fn the_palette_lists_them_and_asks_for_arguments_first() {
    let mut screen = screen(Vec::new());
    screen.ctrl('k');
    let commands = vec![custom("deploy", "ENV"), custom("help", ""), custom("zip", "")];
    let unusable = vec![".loon/commands/x y.md: its name has a blank.".to_owned()];
    screen.tell(CommandsListed { commands, unusable });
    let popup = screen.model.layers.last().unwrap();
    let shown: Vec<(String, String)> = popup
        .shown_rows()
        .skip(crate::slash::ALL.len())
        .map(|row| (row.label.clone(), row.note.clone()))
        .collect();
    let wanted = [
        ("/deploy", "ENV"),
        (".loon/commands/help.md", "not usable"),
        ("/zip", ""),
        (".loon/commands/x y.md", "not usable"),
    ];
    assert_eq!(shown, wanted.map(|(label, note)| (label.to_owned(), note.to_owned())));
    screen.type_text("/deploy");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert_eq!(screen.draft(), "/deploy ");
    screen.ctrl('u');
    screen.ctrl('k');
    screen.type_text("/zip");
    assert_eq!(screen.press(KeyCode::Enter), send("zip", "", false));
}

#[test]
fn a_refusal_is_said_and_guidance_is_asked_for_by_path() {
    let mut screen = Screen::new();
    let error = ErrorInfo::new(ErrorCode::NotFound, "There is no custom command /gone.");
    screen.tell(CommandRefused { name: "gone".to_owned(), steer: false, error });
    assert!(!screen.model.transcript.is_empty());
    screen.type_text("/guidance src/a.rs");
    let path = Some("src/a.rs".to_owned());
    assert_eq!(screen.press(KeyCode::Enter), sent(Command::ListGuidance { path: path.clone() }));
    screen.tell(GuidanceListed { path, sources: Vec::new() });
    let popup = screen.model.layers.last().unwrap();
    assert_eq!((popup.kind, popup.len()), (Kind::Guidance, 1));
}

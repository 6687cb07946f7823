//! The full screen.

use std::io::IsTerminal as _;
use std::time::Duration;

use loon_api::{Command, HookEvent};
use loon_config::{ColorChoice, Settings};
use loon_core::{Runtime, SessionChoice, opening_command};
use loon_tui::{Exit, ScreenOptions, Theme};
use tokio::sync::watch;

use crate::args::{ScreenArgs, SessionArgs};
use crate::failure::{Failure, say_error};
use crate::safe::plain;
use crate::wiring::{RunOptions, Setup};

/// How long a session may take to end after its screen has gone.
const CLOSING: Duration = Duration::from_secs(2);

/// The same where hooks at its end have something to do. They have 15 seconds.
const CLOSING_WITH_HOOKS: Duration = Duration::from_secs(18);

/// Opens the screen as the command line says.
pub(super) fn run(args: ScreenArgs) -> Result<u8, Failure> {
    let (setup, choice) = Setup::for_session(&args.session)?;
    let choice = match choice.exec() {
        Some(exec) if args.watch => SessionChoice::Watch(exec),
        _ => choice,
    };
    open(&setup, &args.session, choice, args.prompt)
}

/// Opens the screen on one session.
pub(super) fn resume(id: &str, take_over: bool) -> Result<u8, Failure> {
    let args = SessionArgs { resume: Some(id.to_owned()), take_over, ..SessionArgs::default() };
    let (setup, choice) = Setup::for_session(&args)?;
    open(&setup, &args, choice, None)
}

/// Opens the screen; `prompt` is sent at once.
pub(super) fn open(
    setup: &Setup,
    args: &SessionArgs,
    choice: SessionChoice,
    prompt: Option<String>,
) -> Result<u8, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("The full screen needs a terminal.")
            .hint("Without one, use `loon exec \"what to do\"`."));
    }
    let (options, remark) = screen_options(&setup.loaded.settings);
    let (looks, options) = watch::channel(options);
    let runtime = super::runtime()?;
    let screen = super::screen_runtime()?;
    let (session, hooks, _following) = runtime.block_on(async {
        let (mut deps, follower) = setup.dependencies(RunOptions::attended(args));
        let hooks = deps.hooks.clone();
        deps.options.remarks.extend(remark);
        let options = &deps.options;
        let opening = prompt.map(|text| opening_command(&options.cwd, &options.definitions, text));
        let following = follower.start(move |setup| {
            // Another setting may have changed; a theme chosen on the screen outlives that.
            let (new, _) = screen_options(&setup.loaded.settings);
            looks.send_if_modified(|shown| {
                let other = *shown != new;
                *shown = new;
                other
            });
        });
        // The search for a local server must not keep the first picture waiting.
        let ready = async move {
            super::ensure_model(&mut deps).await;
            deps
        };
        let session = Runtime::start_when_ready(ready, choice);
        if let Some(opening) = opening {
            // The channel is new and has room; a runtime that is gone tells so by its events.
            let _ = session.commands.send(opening).await;
        }
        (session, hooks, following)
    });
    let commands = session.commands.clone();
    let result = screen.block_on(loon_tui::run(options, session.commands, session.events));
    // Whatever made the screen go, the programs that run for the session go with it.
    let _ = commands.try_send(Command::Terminate);
    drop(commands);
    let closing = if hooks.has(HookEvent::SessionEnd) { CLOSING_WITH_HOOKS } else { CLOSING };
    let _ = runtime.block_on(async { tokio::time::timeout(closing, session.done).await });
    crate::commands::leave(runtime);
    match result {
        Ok(exit) => {
            if let Exit::Finished { error: Some(error), .. } = &exit {
                say_error(error);
            }
            Ok(exit.exit_code())
        }
        Err(error) => Err(Failure::other(error.to_string())),
    }
}

/// How the screen looks, and what to say if it cannot look as the settings want.
fn screen_options(settings: &Settings) -> (ScreenOptions, Option<String>) {
    let color = match settings.appearance.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let (theme, remark) = theme(&settings.appearance.theme);
    let options = ScreenOptions {
        theme,
        ascii: settings.appearance.ascii,
        color,
        mouse: settings.ui.mouse,
        placeholder: settings.ui.placeholder.clone(),
        spinner: settings.ui.spinner.clone(),
    };
    (options, remark)
}

/// The theme of a name; `auto` goes by the background that the terminal tells in `COLORFGBG`, and
/// takes a dark one for granted where it tells nothing. An unknown name is worth a word, no more.
fn theme(name: &str) -> (Theme, Option<String>) {
    let known = match name {
        "auto" if has_light_background() => "loom-light",
        "auto" => "loom-dark",
        other => other,
    };
    if let Some(theme) = Theme::embedded(known) {
        return (theme, None);
    }
    let names: Vec<&str> = Theme::names().collect();
    let remark = format!(
        "There is no theme {}; appearance.theme can be auto, {}.",
        plain(name),
        names.join(", ")
    );
    (Theme::default(), Some(remark))
}

fn has_light_background() -> bool {
    let told = std::env::var("COLORFGBG").unwrap_or_default();
    let background = told.rsplit(';').next().and_then(|colour| colour.parse::<u8>().ok());
    matches!(background, Some(7 | 9..=15))
}

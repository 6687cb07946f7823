//! The full screen: takes events, sends commands, holds no truth of its own.
//!
//! Events change the model in `update`, the model is drawn by `view` into a buffer, and `paint`
//! writes what differs from the picture before. Only `terminal` and `input` touch the terminal.

pub mod theme;

mod agents;
mod app;
mod approval;
mod budget;
mod composer;
mod diff;
mod event;
mod glyphs;
mod highlight;
mod input;
mod line;
mod markdown;
mod model;
mod paint;
mod panel;
mod popup;
mod rewind;
mod safe;
mod session;
mod slash;
mod terminal;
mod transcript;
mod update;
mod view;

use std::sync::Arc;

use loon_api::{Command, Envelope};
use tokio::sync::{mpsc, watch};

pub use self::event::Exit;
pub use self::theme::Theme;

/// How the screen should look and begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenOptions {
    /// Colours.
    pub theme: Theme,
    /// Only ASCII signs.
    pub ascii: bool,
    /// Colours are used; without them, only bold, dim and the like.
    pub color: bool,
    /// Clicks and wheel are taken; Shift leaves them to the terminal.
    pub mouse: bool,
    /// Words in the empty composer.
    pub placeholder: String,
    /// What the state line says while a turn runs.
    pub spinner: String,
}

/// Why the screen could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// Standard output is no terminal, or its modes cannot be set.
    #[error(
        "the terminal cannot be set up for the full screen: {0}; `loon exec` works without one"
    )]
    Terminal(#[source] std::io::Error),
    /// Standard input cannot be read.
    #[error("the keyboard cannot be read: {0}")]
    Input(#[source] std::io::Error),
    /// Signals cannot be caught.
    #[error("signals cannot be caught: {0}")]
    Signals(#[source] std::io::Error),
}

/// Shows the screen until the stream of events ends, the user leaves, or a signal comes. The
/// terminal is as before when it returns, and also if it panics.
///
/// The first picture is shown before the first event is waited for. Leaving sends
/// [`Command::Close`] and waits at most two seconds for the stream to end. New `options` are taken
/// over as they come.
pub async fn run(
    options: watch::Receiver<ScreenOptions>,
    commands: mpsc::Sender<Command>,
    events: mpsc::Receiver<Arc<Envelope>>,
) -> Result<Exit, ScreenError> {
    app::run(options, commands, events).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_may_run_on_any_thread() {
        fn is_send<T: Send>(_: T) {}
        let (commands, _) = mpsc::channel(1);
        let (_, events) = mpsc::channel(1);
        let options = ScreenOptions {
            theme: Theme::default(),
            ascii: false,
            color: false,
            mouse: false,
            placeholder: String::new(),
            spinner: String::new(),
        };
        is_send(run(watch::channel(options).1, commands, events));
    }
}

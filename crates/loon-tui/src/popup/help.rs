//! Every key.

use super::{Kind, Popup, Row, Value};

/// Keys and what they do.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while it works: steer it now"),
    ("Tab", "while it works: send after it; else complete a /command"),
    ("Alt+Enter, Shift+Enter, Ctrl+J", "new line"),
    ("Esc", "stop the running turn; close what is open"),
    ("Esc Esc", "with an empty draft: go back to an earlier message"),
    ("Up, Down", "move; at the edges: earlier prompts"),
    ("Up", "with an empty draft: take waiting prompts back"),
    ("Shift+Tab", "next mode: ask, auto, plan"),
    ("Ctrl+K", "with nothing right of the cursor: commands"),
    ("Ctrl+A, Ctrl+E", "start and end of the line"),
    ("Ctrl+K, Ctrl+U, Ctrl+W", "cut to the end, to the start, the word before"),
    ("Alt+B, Alt+F, Ctrl+Left, Ctrl+Right", "move by words"),
    ("Ctrl+_, Alt+_", "undo, redo"),
    ("PgUp, PgDn, wheel", "scroll"),
    ("Ctrl+Home, Ctrl+End", "start and end of the transcript"),
    ("Alt+Up, Alt+Down", "focus a call or thought; Enter opens it"),
    ("click", "open or close a call or thought"),
    ("Ctrl+O", "open or close the last one"),
    ("Ctrl+T", "side panel with plan, tasks and notes; a list on narrow screens"),
    ("Ctrl+Y", "copy the focused item or the last answer"),
    ("Shift+mouse", "select text with the terminal's own means"),
    ("Ctrl+R", "bring back a request that waits for you"),
    ("Ctrl+C", "clear the draft; stop the turn; twice: leave"),
    ("Ctrl+D", "with an empty draft: leave"),
    ("Ctrl+Z", "suspend; fg comes back"),
    ("Ctrl+L", "draw the screen anew"),
];

/// The list.
pub(crate) fn open() -> Popup {
    let rows = KEYS
        .iter()
        .map(|(key, about)| Row {
            label: (*key).to_owned(),
            note: (*about).to_owned(),
            about: (*about).to_owned(),
            value: Value::Nothing,
        })
        .collect();
    Popup::new(Kind::Help, "keys", "no key matches", rows)
}

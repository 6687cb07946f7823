//! The signs of the screen, in two sets: line-drawing and plain ASCII.

/// One set of signs. All but `ellipsis`, `arrow` and the names of keys are one column wide.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Glyphs {
    /// Beside the user's words and the selected row.
    pub(crate) bar: &'static str,
    /// State: waiting.
    pub(crate) waiting: &'static str,
    /// State: running.
    pub(crate) running: &'static str,
    /// State: done.
    pub(crate) done: &'static str,
    /// State: failed.
    pub(crate) failed: &'static str,
    /// State: denied.
    pub(crate) denied: &'static str,
    /// More can be opened.
    pub(crate) folded: &'static str,
    /// It is open.
    pub(crate) unfolded: &'static str,
    /// List mark.
    pub(crate) bullet: &'static str,
    /// Horizontal line.
    pub(crate) rule: &'static str,
    /// Vertical line.
    pub(crate) column: &'static str,
    /// Where table lines meet.
    pub(crate) cross: &'static str,
    /// Corners of a frame: top left, top right, bottom left, bottom right.
    pub(crate) corners: [&'static str; 4],
    /// Something was cut.
    pub(crate) ellipsis: &'static str,
    /// Between items of a line.
    pub(crate) dot: &'static str,
    /// Enter key.
    pub(crate) enter: &'static str,
    /// Tab key.
    pub(crate) tab: &'static str,
    /// Prefix of a key held with Control.
    pub(crate) ctrl: &'static str,
    /// Text was rewritten from here on.
    pub(crate) down: &'static str,
    /// Piece of a bar.
    pub(crate) block: &'static str,
    /// From one value to another.
    pub(crate) arrow: &'static str,
}

/// The usual set.
pub(crate) static UNICODE: Glyphs = Glyphs {
    bar: "▌",
    waiting: "·",
    running: "◐",
    done: "●",
    failed: "✗",
    denied: "⊘",
    folded: "▸",
    unfolded: "▾",
    bullet: "•",
    rule: "─",
    column: "│",
    cross: "┼",
    corners: ["╭", "╮", "╰", "╯"],
    ellipsis: "…",
    dot: "·",
    enter: "⏎",
    tab: "⇥",
    ctrl: "⌃",
    down: "↓",
    block: "█",
    arrow: "→",
};

/// The set for terminals that have nothing else.
pub(crate) static ASCII: Glyphs = Glyphs {
    bar: ">",
    waiting: ".",
    running: "o",
    done: "*",
    failed: "x",
    denied: "!",
    folded: "+",
    unfolded: "-",
    bullet: "-",
    rule: "-",
    column: "|",
    cross: "+",
    corners: ["+", "+", "+", "+"],
    ellipsis: "...",
    dot: "-",
    enter: "Enter",
    tab: "Tab",
    ctrl: "Ctrl+",
    down: "v",
    block: "#",
    arrow: "->",
};

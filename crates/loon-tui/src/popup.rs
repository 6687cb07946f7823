//! Lists to choose from: one row per item, a filter line, a description, paging.

pub(crate) mod agents;
pub(crate) mod context;
pub(crate) mod fork;
pub(crate) mod guidance;
pub(crate) mod held;
pub(crate) mod help;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod modes;
pub(crate) mod palette;
pub(crate) mod record;
pub(crate) mod rewind;
pub(crate) mod sessions;
pub(crate) mod skills;
pub(crate) mod themes;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fuzzy_matcher::FuzzyMatcher;
use fuzzy_matcher::skim::SkimMatcherV2;
use loon_api::{ExecutionId, ItemId, Mode, SessionAccess, TurnNumber};

use crate::slash::Name;

/// What choosing a row means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Run a command.
    Command(Name),
    /// Send a custom command.
    Custom {
        /// Its name.
        name: String,
        /// It says what to write behind the name.
        takes_arguments: bool,
    },
    /// Use a model.
    Model(String),
    /// Open a session.
    Session(ExecutionId, SessionAccess),
    /// Open a session where this item is.
    Hit(ExecutionId, ItemId),
    /// Branch off after a turn, or here.
    Fork(Option<TurnNumber>),
    /// Go back to a message.
    Message(ItemId),
    /// Show what a child does.
    Agent(String),
    /// Use a mode.
    Mode(Mode),
    /// Use a theme.
    Theme(&'static str),
    /// Nothing: the row only tells something.
    Nothing,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What it is.
    pub(crate) label: String,
    /// Beside it, dim.
    pub(crate) note: String,
    /// Shown while it is selected.
    pub(crate) about: String,
    /// What choosing it means.
    pub(crate) value: Value,
}

/// Which list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commands.
    Palette,
    /// Models.
    Models,
    /// Sessions of this folder.
    Sessions,
    /// Sessions of all folders.
    AllSessions,
    /// What to do about a session in use.
    Held,
    /// Turns to branch off from.
    Fork,
    /// Messages to go back to.
    Rewind,
    /// Modes.
    Modes,
    /// Themes.
    Themes,
    /// Keys.
    Help,
    /// Goal, plan, tasks and notes.
    Record,
    /// What fills the context window.
    Context,
    /// Instructions in force.
    Guidance,
    /// Skills.
    Skills,
    /// Children of the session.
    Agents,
    /// MCP servers.
    Mcp,
}

/// A list on top of the screen.
#[derive(Debug)]
pub(crate) struct Popup {
    /// Which.
    pub(crate) kind: Kind,
    /// What its frame says.
    pub(crate) title: &'static str,
    /// What was typed.
    pub(crate) filter: String,
    /// What it says while it has no rows.
    pub(crate) empty: &'static str,
    /// Rows a page has.
    pub(crate) page: usize,
    rows: Vec<Row>,
    /// Rows from this one on were found for the filter and stand below those that pass it.
    found: usize,
    shown: Vec<usize>,
    selected: usize,
}

/// What became of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The list stays.
    Stay,
    /// The selection moved.
    Moved,
    /// The list closes.
    Close,
    /// The list closes and this was chosen.
    Chosen(Value),
    /// The child in this row is to be given words.
    Steer(String),
    /// The child in this row is to stop.
    Stop(String),
}

impl Popup {
    /// A list.
    pub(crate) fn new(
        kind: Kind,
        title: &'static str,
        empty: &'static str,
        rows: Vec<Row>,
    ) -> Self {
        let mut popup = Self {
            kind,
            title,
            filter: String::new(),
            empty,
            page: 10,
            rows: Vec::new(),
            found: 0,
            shown: Vec::new(),
            selected: 0,
        };
        popup.set_rows(rows);
        popup
    }

    /// Puts other rows in.
    pub(crate) fn set_rows(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.found = self.rows.len();
        self.refilter();
    }

    /// Puts rows in that were found for the filter, in place of those found before. The selection stays.
    pub(crate) fn set_found(&mut self, rows: Vec<Row>) {
        let selected = self.selected;
        self.rows.truncate(self.found);
        self.rows.extend(rows);
        self.refilter();
        self.step(selected.cast_signed());
    }

    /// Puts rows in that only tell the newer state; filter and selection stay.
    pub(crate) fn renew_rows(&mut self, rows: Vec<Row>) {
        let selected = self.selected;
        self.set_rows(rows);
        self.step(selected.cast_signed());
    }

    /// Its rows only tell something.
    pub(crate) fn only_tells(&self) -> bool {
        matches!(
            self.kind,
            Kind::Help | Kind::Record | Kind::Context | Kind::Guidance | Kind::Skills | Kind::Mcp
        )
    }

    /// Selects the row with this value.
    #[must_use]
    pub(crate) fn select(mut self, value: &Value) -> Self {
        let at = self.shown_rows().position(|row| row.value == *value);
        self.selected = at.unwrap_or(0);
        self
    }

    /// How many rows there are without the filter.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rows that pass the filter, best first.
    pub(crate) fn shown_rows(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.shown.iter().map(|at| &self.rows[*at])
    }

    /// Number of the selected row among those shown.
    pub(crate) fn selected(&self) -> usize {
        self.selected
    }

    /// The selected row.
    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.shown.get(self.selected).and_then(|at| self.rows.get(*at))
    }

    /// First shown row of the page with the selection.
    pub(crate) fn page_start(&self) -> usize {
        let page = self.page.max(1);
        self.selected / page * page
    }

    /// Moves the selection; up if negative.
    pub(crate) fn step(&mut self, rows: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(rows).min(last);
    }

    /// A key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.page.max(1).cast_signed();
        match key.code {
            KeyCode::Esc => {
                return if self.filter.is_empty() { Outcome::Close } else { self.set_filter("") };
            }
            KeyCode::Enter => {
                return match self.selected_row().map(|row| row.value.clone()) {
                    None => Outcome::Stay,
                    Some(Value::Nothing) => Outcome::Close,
                    Some(value) => Outcome::Chosen(value),
                };
            }
            KeyCode::Up => self.step(-1),
            KeyCode::Down | KeyCode::Tab => self.step(1),
            KeyCode::Char('p') if ctrl => self.step(-1),
            KeyCode::Char('n') if ctrl => self.step(1),
            KeyCode::PageUp => self.step(-page),
            KeyCode::PageDown => self.step(page),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.step(isize::MAX),
            KeyCode::Char('u') if ctrl => return self.set_filter(""),
            KeyCode::Backspace => {
                let mut filter = self.filter.clone();
                filter.pop();
                return self.set_filter(&filter);
            }
            KeyCode::Char(c) if self.kind == Kind::Agents && !ctrl => return self.order(c),
            KeyCode::Char(c) if !ctrl => {
                let filter = format!("{}{c}", self.filter);
                return self.set_filter(&filter);
            }
            _ => return Outcome::Stay,
        }
        Outcome::Moved
    }

    /// A letter in the list of children, which is too short to be filtered.
    fn order(&self, letter: char) -> Outcome {
        match (letter, self.selected_row().map(|row| &row.value)) {
            ('s', Some(Value::Agent(id))) => Outcome::Steer(id.clone()),
            ('x', Some(Value::Agent(id))) => Outcome::Stop(id.clone()),
            _ => Outcome::Stay,
        }
    }

    fn set_filter(&mut self, filter: &str) -> Outcome {
        filter.clone_into(&mut self.filter);
        self.refilter();
        Outcome::Moved
    }

    fn refilter(&mut self) {
        if self.filter.trim().is_empty() {
            self.rows.truncate(self.found);
        }
        self.shown = if self.filter.trim().is_empty() {
            (0..self.rows.len()).collect()
        } else {
            let matcher = SkimMatcherV2::default();
            let score = |row: &Row| {
                matcher.fuzzy_match(&format!("{} {}", row.label, row.note), self.filter.trim())
            };
            let scores = self.rows.iter().take(self.found).map(score).enumerate();
            let mut found: Vec<(i64, usize)> =
                scores.filter_map(|(at, score)| Some((score?, at))).collect();
            // The best first; among equals the order of the list.
            found.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
            found.into_iter().map(|(_, at)| at).chain(self.found..self.rows.len()).collect()
        };
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(labels: &[&str]) -> Vec<Row> {
        labels
            .iter()
            .map(|label| Row {
                label: (*label).to_owned(),
                note: String::new(),
                about: String::new(),
                value: Value::Model((*label).to_owned()),
            })
            .collect()
    }

    fn press(popup: &mut Popup, code: KeyCode) -> Outcome {
        popup.key(KeyEvent::from(code))
    }

    #[test]
    fn typing_filters_and_escape_goes_back_one_step() {
        let mut popup =
            Popup::new(Kind::Models, "", "", rows(&["lab/coder", "lab/small", "far/coder"]));
        for c in "frcod".chars() {
            press(&mut popup, KeyCode::Char(c));
        }
        assert_eq!(
            popup.shown_rows().map(|row| row.label.as_str()).collect::<Vec<_>>(),
            ["far/coder"]
        );
        assert_eq!(press(&mut popup, KeyCode::Esc), Outcome::Moved);
        assert_eq!(popup.shown_rows().len(), 3);
        assert_eq!(press(&mut popup, KeyCode::Esc), Outcome::Close);
    }

    #[test]
    fn pages_hold_the_selection() {
        let labels: Vec<String> = (0..25).map(|at| format!("m/{at}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let mut popup = Popup::new(Kind::Models, "", "", rows(&labels));
        popup.page = 10;
        press(&mut popup, KeyCode::PageDown);
        press(&mut popup, KeyCode::Down);
        assert_eq!((popup.selected(), popup.page_start()), (11, 10));
        press(&mut popup, KeyCode::End);
        assert_eq!((popup.selected(), popup.page_start()), (24, 20));
        assert_eq!(
            press(&mut popup, KeyCode::Enter),
            Outcome::Chosen(Value::Model("m/24".to_owned()))
        );
    }
}

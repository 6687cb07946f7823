//! Requests for a decision: their queue, and what each key does to the one on top.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use loon_api::command::ApprovalScope;
use loon_api::{Approval, ApprovalId, Command, PermissionRule};

use crate::composer::{Composer, Move};

/// Milliseconds for which a sheet that has just appeared takes no key.
const GUARD_MS: u64 = 333;

/// The choices in the order in which they stand.
pub(crate) const CHOICES: [Choice; 4] = [Choice::Once, Choice::Session, Choice::Always, Choice::No];

/// What can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This call only.
    Once,
    /// Until the session's process ends.
    Session,
    /// Written to the project's settings.
    Always,
    /// Not at all.
    No,
}

/// What the sheet is doing.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    /// Offering the choices.
    #[default]
    Choosing,
    /// The rule's text is being changed.
    EditingRule(Composer),
    /// The reason for a no is being written.
    SayingWhy(Composer),
}

/// One request.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// What is asked.
    pub(crate) approval: Approval,
    /// The rule to keep, as edited.
    pub(crate) rule: Option<PermissionRule>,
    /// Which choice is marked.
    pub(crate) marked: usize,
    /// Rows of the detail above the view.
    pub(crate) scrolled: usize,
    /// What it is doing.
    pub(crate) stage: Stage,
}

/// What became of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// It was used up.
    Taken,
    /// The sheet had just appeared: the key belongs to what was being typed.
    TooEarly,
    /// Send this.
    Send(Command),
    /// The sheet steps aside.
    Hide,
    /// The key does nothing here, for this reason.
    Refused(&'static str),
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    sheets: Vec<Sheet>,
    current: usize,
    hidden: bool,
    ready_at: u64,
}

impl Approvals {
    /// Adds a request.
    pub(crate) fn ask(&mut self, approval: Approval, now: u64) {
        if self.sheets.iter().any(|sheet| sheet.approval.id == approval.id) {
            return;
        }
        if self.sheets.is_empty() {
            self.hidden = false;
            self.ready_at = now + GUARD_MS;
        }
        let rule = approval.always.clone();
        self.sheets.push(Sheet { approval, rule, marked: 0, scrolled: 0, stage: Stage::Choosing });
    }

    /// A request was decided.
    pub(crate) fn resolve(&mut self, id: &ApprovalId, now: u64) {
        let Some(at) = self.sheets.iter().position(|sheet| sheet.approval.id == *id) else {
            return;
        };
        self.sheets.remove(at);
        if at == self.current {
            self.ready_at = now + GUARD_MS;
        }
        if at < self.current || self.current >= self.sheets.len() {
            self.current = self.current.saturating_sub(1);
        }
    }

    /// Forgets all requests.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.sheets.len()
    }

    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.sheets.is_empty()
    }

    /// Number of the request on top, from 1.
    pub(crate) fn number(&self) -> usize {
        self.current + 1
    }

    /// The request on top, if it is not hidden.
    pub(crate) fn shown(&self) -> Option<&Sheet> {
        if self.hidden { None } else { self.sheets.get(self.current) }
    }

    /// Some wait, but were put aside.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden && !self.is_empty()
    }

    /// Brings the requests back.
    pub(crate) fn show(&mut self, now: u64) {
        self.hidden = false;
        self.ready_at = now;
    }

    /// Moves the detail; up if negative.
    pub(crate) fn scroll(&mut self, rows: isize) {
        if let Some(sheet) = self.sheets.get_mut(self.current) {
            sheet.scrolled = sheet.scrolled.saturating_add_signed(rows);
        }
    }

    /// Keeps the detail from being scrolled beyond its end.
    pub(crate) fn limit_scroll(&mut self, most: usize) {
        if let Some(sheet) = self.sheets.get_mut(self.current) {
            sheet.scrolled = sheet.scrolled.min(most);
        }
    }

    /// Text pasted into the field that is being written, if one is.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(sheet) = self.sheets.get_mut(self.current)
            && let Stage::EditingRule(field) | Stage::SayingWhy(field) = &mut sheet.stage
        {
            for c in text.chars() {
                field.type_char(if c.is_control() { ' ' } else { c });
            }
        }
    }

    /// A key while the sheet shows. `typing` says that a draft is being written: then the guard
    /// lasts until the typing pauses.
    pub(crate) fn key(&mut self, key: KeyEvent, now: u64, typing: bool) -> Answer {
        if now < self.ready_at {
            if typing {
                self.ready_at = now + GUARD_MS;
            }
            return Answer::TooEarly;
        }
        let several = self.sheets.len() > 1;
        let Some(sheet) = self.sheets.get_mut(self.current) else { return Answer::Taken };
        if key.code == KeyCode::Tab && several && matches!(sheet.stage, Stage::Choosing) {
            self.current = (self.current + 1) % self.sheets.len();
            return Answer::Taken;
        }
        let answer = sheet.key(key);
        match &answer {
            Answer::Hide => self.hidden = true,
            Answer::Send(_) => {
                let id = sheet.approval.id.clone();
                self.resolve(&id, now);
            }
            _ => {}
        }
        answer
    }
}

impl Sheet {
    fn key(&mut self, key: KeyEvent) -> Answer {
        match &mut self.stage {
            Stage::Choosing => self.choosing_key(key),
            Stage::EditingRule(field) => match key.code {
                KeyCode::Enter => {
                    let text = field.text();
                    if let Some(rule) = &mut self.rule {
                        set_matcher(rule, text.trim());
                    }
                    self.stage = Stage::Choosing;
                    Answer::Taken
                }
                KeyCode::Esc => {
                    self.stage = Stage::Choosing;
                    Answer::Taken
                }
                _ => edit(field, key),
            },
            Stage::SayingWhy(field) => match key.code {
                KeyCode::Enter => {
                    let text = field.text();
                    let reason = Some(text.trim().to_owned()).filter(|reason| !reason.is_empty());
                    Answer::Send(Command::Deny { approval: self.approval.id.clone(), reason })
                }
                KeyCode::Esc => {
                    self.stage = Stage::Choosing;
                    Answer::Taken
                }
                _ => edit(field, key),
            },
        }
    }

    fn choosing_key(&mut self, key: KeyEvent) -> Answer {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Answer::Taken;
        }
        match key.code {
            KeyCode::Char('y') => self.choose(Choice::Once),
            KeyCode::Char('s') => self.choose(Choice::Session),
            KeyCode::Char('a') => self.choose(Choice::Always),
            KeyCode::Char('n') => self.choose(Choice::No),
            KeyCode::Char('e') => self.edit_rule(),
            KeyCode::Enter => self.choose(CHOICES.get(self.marked).copied().unwrap_or(Choice::No)),
            KeyCode::Esc => Answer::Hide,
            KeyCode::Up => self.mark(self.marked.saturating_sub(1)),
            KeyCode::Down => self.mark((self.marked + 1).min(CHOICES.len() - 1)),
            KeyCode::PageUp => self.scroll_by(-5),
            KeyCode::PageDown => self.scroll_by(5),
            _ => Answer::Taken,
        }
    }

    fn choose(&mut self, choice: Choice) -> Answer {
        let scope = match choice {
            Choice::No => {
                self.stage = Stage::SayingWhy(Composer::default());
                return Answer::Taken;
            }
            Choice::Session | Choice::Always if self.rule.is_none() => {
                return Answer::Refused("no rule fits this call alone: allow it once");
            }
            Choice::Once => ApprovalScope::Once,
            Choice::Session => ApprovalScope::Session,
            Choice::Always => ApprovalScope::Project,
        };
        let rule = self.rule.clone().filter(|_| scope != ApprovalScope::Once);
        Answer::Send(Command::Approve { approval: self.approval.id.clone(), scope, rule })
    }

    fn edit_rule(&mut self) -> Answer {
        let Some(text) = self.rule.as_ref().and_then(matcher) else {
            return Answer::Refused("there is no rule text to edit");
        };
        let mut field = Composer::default();
        field.set(text);
        self.stage = Stage::EditingRule(field);
        Answer::Taken
    }

    fn mark(&mut self, at: usize) -> Answer {
        self.marked = at;
        Answer::Taken
    }

    fn scroll_by(&mut self, rows: isize) -> Answer {
        self.scrolled = self.scrolled.saturating_add_signed(rows);
        Answer::Taken
    }
}

/// The one matcher of a rule.
pub(crate) fn matcher(rule: &PermissionRule) -> Option<&str> {
    rule.command_prefix.as_deref().or(rule.path_prefix.as_deref()).or(rule.host.as_deref())
}

fn set_matcher(rule: &mut PermissionRule, text: &str) {
    let slot = [&mut rule.command_prefix, &mut rule.path_prefix, &mut rule.host]
        .into_iter()
        .find(|slot| slot.is_some());
    if let Some(slot) = slot.filter(|_| !text.is_empty()) {
        *slot = Some(text.to_owned());
    }
}

/// A rule in words.
pub(crate) fn rule_words(rule: &PermissionRule) -> String {
    let tool = &rule.tool;
    if let Some(prefix) = &rule.command_prefix {
        format!("allow  {tool} \"{prefix}\"")
    } else if let Some(path) = &rule.path_prefix {
        format!("allow  {tool} in {path}")
    } else if let Some(host) = &rule.host {
        format!("allow  {tool} from {host}")
    } else {
        format!("allow  every {tool}")
    }
}

/// Keys of a field of one line.
pub(crate) fn edit(field: &mut Composer, key: KeyEvent) -> Answer {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('a') if ctrl => field.go(Move::LineStart),
        KeyCode::Char('e') if ctrl => field.go(Move::LineEnd),
        KeyCode::Char('u') if ctrl => drop(field.delete(Move::LineStart)),
        KeyCode::Char('k') if ctrl => drop(field.delete(Move::LineEnd)),
        KeyCode::Char('w') if ctrl => drop(field.delete(Move::WordLeft)),
        KeyCode::Char(c) if !ctrl => field.type_char(c),
        KeyCode::Backspace => drop(field.delete(Move::Left)),
        KeyCode::Delete => drop(field.delete(Move::Right)),
        KeyCode::Left => field.go(Move::Left),
        KeyCode::Right => field.go(Move::Right),
        KeyCode::Home => field.go(Move::LineStart),
        KeyCode::End => field.go(Move::LineEnd),
        _ => {}
    }
    Answer::Taken
}

//! The budget: the sheet that asks whether to raise a bound, and amounts as a person types them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use loon_api::{Bounds, Command, Money, ReachedBound};

use crate::approval::{Answer, edit};
use crate::composer::Composer;

/// Milliseconds for which a sheet that has just appeared takes no key.
const GUARD_MS: u64 = 333;

/// The choices in the order in which they stand.
pub(crate) const CHOICES: [Choice; 3] = [Choice::Double, Choice::Amount, Choice::Stop];

/// What can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Twice the bound.
    Double,
    /// A bound that is typed.
    Amount,
    /// No more: the turn stops.
    Stop,
}

/// The question whether to raise a bound.
#[derive(Debug)]
pub(crate) struct BudgetSheet {
    /// What was reached.
    pub(crate) reached: ReachedBound,
    /// Which choice is marked.
    pub(crate) marked: usize,
    /// The new bound while it is being typed.
    pub(crate) field: Option<Composer>,
    hidden: bool,
    ready_at: u64,
}

impl BudgetSheet {
    /// Asks about a bound.
    pub(crate) fn ask(reached: ReachedBound, now: u64) -> Self {
        Self { reached, marked: 0, field: None, hidden: false, ready_at: now + GUARD_MS }
    }

    /// It was put aside.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Brings it back.
    pub(crate) fn show(&mut self, now: u64) {
        self.hidden = false;
        self.ready_at = now;
    }

    /// Text pasted into the field, if it is open.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.field {
            text.chars().filter(|c| !c.is_control()).for_each(|c| field.type_char(c));
        }
    }

    /// A key while the sheet shows. `typing` says that a draft is being written: then the guard lasts
    /// until the typing pauses. The sheet stays until the runtime says that the question is closed.
    pub(crate) fn key(&mut self, key: KeyEvent, now: u64, typing: bool) -> Answer {
        if now < self.ready_at {
            if typing {
                self.ready_at = now + GUARD_MS;
            }
            return Answer::TooEarly;
        }
        let answer = self.answer(key);
        match &answer {
            Answer::Send(_) => self.ready_at = now + GUARD_MS,
            Answer::Hide => self.hidden = true,
            Answer::Taken | Answer::TooEarly | Answer::Refused(_) => {}
        }
        answer
    }

    fn answer(&mut self, key: KeyEvent) -> Answer {
        match (&mut self.field, key.code) {
            (Some(field), KeyCode::Enter) => match raised(&self.reached, field.text().trim()) {
                Ok(bounds) => {
                    self.field = None;
                    Answer::Send(Command::RaiseBudget(bounds))
                }
                Err(why) => Answer::Refused(why),
            },
            (Some(_), KeyCode::Esc) => {
                self.field = None;
                Answer::Taken
            }
            (Some(field), _) => edit(field, key),
            (None, _) => self.choosing_key(key),
        }
    }

    fn choosing_key(&mut self, key: KeyEvent) -> Answer {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Answer::Taken;
        }
        match key.code {
            KeyCode::Char('d') => self.choose(Choice::Double),
            KeyCode::Char('a') => self.choose(Choice::Amount),
            KeyCode::Char('n') => self.choose(Choice::Stop),
            KeyCode::Enter => {
                self.choose(CHOICES.get(self.marked).copied().unwrap_or(Choice::Stop))
            }
            KeyCode::Esc => Answer::Hide,
            KeyCode::Up => {
                self.marked = self.marked.saturating_sub(1);
                Answer::Taken
            }
            KeyCode::Down => {
                self.marked = (self.marked + 1).min(CHOICES.len() - 1);
                Answer::Taken
            }
            _ => Answer::Taken,
        }
    }

    fn choose(&mut self, choice: Choice) -> Answer {
        match choice {
            Choice::Double => Answer::Send(Command::RaiseBudget(doubled(&self.reached))),
            Choice::Amount => {
                self.field = Some(Composer::default());
                Answer::Taken
            }
            Choice::Stop => Answer::Send(Command::RefuseBudget),
        }
    }
}

/// Twice the bound, and as often again as it takes to be above what is used.
pub(crate) fn doubled(reached: &ReachedBound) -> Bounds {
    let count = |limit: u64, used: u64| {
        let mut count = limit.max(1);
        while count <= used.max(limit) && count < u64::MAX {
            count = count.saturating_mul(2);
        }
        Some(count)
    };
    match *reached {
        ReachedBound::MaxUsd { limit, used } => {
            let mut usd = if limit > Money::ZERO { limit } else { Money::cent() };
            while usd <= used || usd <= limit {
                usd += usd;
            }
            Bounds { max_usd: Some(usd), ..Bounds::default() }
        }
        ReachedBound::MaxTokens { limit, used } => {
            Bounds { max_tokens: count(limit, used), ..Bounds::default() }
        }
        ReachedBound::MaxRequests { limit, used } => {
            Bounds { max_requests: count(limit, used), ..Bounds::default() }
        }
    }
}

/// The amount in words, as `$4` or `200k tokens`.
pub(crate) fn amount_words(bounds: &Bounds) -> String {
    let usd = bounds.max_usd.map(|usd| format!("${usd}"));
    let tokens = bounds.max_tokens.map(|tokens| format!("{tokens} tokens"));
    let requests = bounds.max_requests.map(|requests| format!("{requests} requests"));
    [usd, tokens, requests].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The bound that a typed amount stands for, where one of this sort is reached.
fn raised(reached: &ReachedBound, text: &str) -> Result<Bounds, &'static str> {
    let (bounds, is_above) = match *reached {
        ReachedBound::MaxUsd { used, .. } => {
            let usd = parse_usd(text).ok_or("write an amount such as 5 or 2.50")?;
            (Bounds { max_usd: Some(usd), ..Bounds::default() }, usd > used)
        }
        ReachedBound::MaxTokens { used, .. } => {
            let tokens = parse_count(text).ok_or("write a number such as 200k or 1.5M")?;
            (Bounds { max_tokens: Some(tokens), ..Bounds::default() }, tokens > used)
        }
        ReachedBound::MaxRequests { used, .. } => {
            let requests = parse_count(text).ok_or("write a number such as 50")?;
            (Bounds { max_requests: Some(requests), ..Bounds::default() }, requests > used)
        }
    };
    if is_above { Ok(bounds) } else { Err("that is not above what is used already") }
}

/// What follows `/budget`: `5`, `200k tokens`, `50 requests` or `90m`.
pub(crate) fn parse(text: &str) -> Option<Bounds> {
    let mut words = text.split_whitespace();
    let (amount, unit) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    let none = Bounds::default();
    match unit {
        None => match parse_usd(amount) {
            Some(usd) => Some(Bounds { max_usd: Some(usd), ..none }),
            None => Some(Bounds { deadline_ms: Some(parse_time(amount)?), ..none }),
        },
        Some("tokens" | "token") => Some(Bounds { max_tokens: Some(parse_count(amount)?), ..none }),
        Some("requests" | "request") => {
            Some(Bounds { max_requests: Some(parse_count(amount)?), ..none })
        }
        Some(_) => None,
    }
}

fn parse_usd(text: &str) -> Option<Money> {
    let digits = text.strip_prefix('$').unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.parse().ok().filter(|_| is_plain)
}

/// A whole number, also as `200k` or `1.5M`.
fn parse_count(text: &str) -> Option<u64> {
    let (number, scale) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1_000_000),
            None => (text, 1),
        },
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if part.len() > 6 || !(whole.bytes().chain(part.bytes())).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = part.parse::<u64>().ok()? * scale / 10_u64.pow(u32::try_from(part.len()).ok()?);
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(part)
}

/// A span of time as `90s`, `20m` or `2h`, in milliseconds.
fn parse_time(text: &str) -> Option<u64> {
    let (number, scale) = match text.as_bytes().last()? {
        b's' => (text.strip_suffix('s')?, 1_000),
        b'm' => (text.strip_suffix('m')?, 60_000),
        b'h' => (text.strip_suffix('h')?, 3_600_000),
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests;

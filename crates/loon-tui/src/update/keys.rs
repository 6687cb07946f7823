//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use loon_api::Command;

use super::commands::{self, close, close_layer, copy, say, set_mode};
use crate::approval::Answer;
use crate::composer::Move;
use crate::event::Action;
use crate::model::Model;
use crate::popup::{self, Outcome};
use crate::rewind;
use crate::slash::{self, Parsed, Suggestion};

/// Milliseconds between keys that no person types.
const BURST_GAP_MS: u64 = 5;
/// Characters in such a row before Enter is taken for a part of a paste.
const BURST_KEYS: u32 = 4;
/// Milliseconds within which a second Ctrl+C leaves.
const LEAVE_MS: u64 = 2_000;
/// Milliseconds within which a second Escape goes back to an earlier message.
const ESCAPE_MS: u64 = 1_000;

/// Takes in one key.
pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Action> {
    let in_burst = note_burst(model, key);
    model.hint = None;
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if ctrl => return ctrl_c(model),
        KeyCode::Char('z') if ctrl => return vec![Action::Suspend],
        KeyCode::Char('l') if ctrl => {
            model.repaint = true;
            return Vec::new();
        }
        _ => {}
    }
    if !model.layers.is_empty() {
        return layer_key(model, key);
    }
    if model.approvals.shown().is_some() {
        return approval_key(model, key);
    }
    if model.shown_budget().is_some() {
        return budget_key(model, key);
    }
    if model.shown_rewind().is_some() {
        return rewind_key(model, key);
    }
    if key.code == KeyCode::Enter && key.modifiers.is_empty() && in_burst {
        model.composer.new_line();
        model.hint = Some("taken as a paste: Enter sends".to_owned());
        return Vec::new();
    }
    let begins = model.composer.is_empty();
    let mut actions = main_key(model, key);
    if begins && !model.composer.is_empty() && !model.is_working() {
        // A prompt is being written; by its end the way to the model is open.
        actions.push(Action::Send(Command::Warm));
    }
    if begins && model.composer.raw() == "/" {
        actions.push(Action::Send(Command::ListCommands));
    }
    actions
}

/// True if this key follows others faster than anyone types.
fn note_burst(model: &mut Model, key: KeyEvent) -> bool {
    let (count, last) = model.burst;
    let quick = model.now.saturating_sub(last) <= BURST_GAP_MS;
    let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    let is_text = plain && matches!(key.code, KeyCode::Char(_) | KeyCode::Enter | KeyCode::Tab);
    model.burst = (if quick && is_text { count + 1 } else { u32::from(is_text) }, model.now);
    quick && count >= BURST_KEYS
}

fn layer_key(model: &mut Model, key: KeyEvent) -> Vec<Action> {
    let Some(popup) = model.layers.last_mut() else { return Vec::new() };
    let filter = popup.filter.clone();
    match popup.key(key) {
        Outcome::Stay => Vec::new(),
        Outcome::Moved => {
            let typed = popup.filter != filter;
            commands::preview(model);
            if typed { commands::search(model) } else { Vec::new() }
        }
        Outcome::Close => {
            close_layer(model);
            Vec::new()
        }
        Outcome::Steer(id) => commands::begin_steering(model, &id),
        Outcome::Stop(id) => {
            model.hint = Some(format!("agent {id} stops at its next step"));
            vec![Action::Send(Command::StopSubagent { id })]
        }
        Outcome::Chosen(value) => {
            model.layers.clear();
            commands::choose(model, value)
        }
    }
}

fn approval_key(model: &mut Model, key: KeyEvent) -> Vec<Action> {
    let typing = !model.composer.is_empty();
    let answer = model.approvals.key(key, model.now, typing);
    take_answer(model, key, answer)
}

fn budget_key(model: &mut Model, key: KeyEvent) -> Vec<Action> {
    let typing = !model.composer.is_empty();
    let Some(sheet) = &mut model.budget else { return Vec::new() };
    let answer = sheet.key(key, model.now, typing);
    take_answer(model, key, answer)
}

/// What became of a key while a question of the runtime shows.
fn take_answer(model: &mut Model, key: KeyEvent, answer: Answer) -> Vec<Action> {
    let typing = !model.composer.is_empty();
    match answer {
        Answer::Send(command) => vec![Action::Send(command)],
        Answer::Taken => Vec::new(),
        Answer::Hide => say(model, "put aside: Ctrl+R brings it back".to_owned()),
        Answer::Refused(why) => say(model, why.to_owned()),
        Answer::TooEarly => {
            if let (KeyCode::Char(c), true) = (key.code, typing && is_plain(key)) {
                model.composer.type_char(c);
            }
            Vec::new()
        }
    }
}

fn rewind_key(model: &mut Model, key: KeyEvent) -> Vec<Action> {
    let Some(rewind) = &mut model.rewind else { return Vec::new() };
    match rewind.key(key, model.now) {
        rewind::Answer::Taken => Vec::new(),
        rewind::Answer::Cancel => {
            model.rewind = None;
            say(model, "nothing was taken back".to_owned())
        }
        rewind::Answer::Send(command) => {
            model.rewind = None;
            vec![Action::Send(command)]
        }
    }
}

fn is_plain(key: KeyEvent) -> bool {
    !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER)
}

fn main_key(model: &mut Model, key: KeyEvent) -> Vec<Action> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    match key.code {
        KeyCode::Enter if alt || shift || ctrl => model.composer.new_line(),
        KeyCode::Enter => return enter(model),
        KeyCode::BackTab => {
            let mode = popup::modes::next(model.session.mode);
            return set_mode(model, mode);
        }
        KeyCode::Tab if shift => {
            let mode = popup::modes::next(model.session.mode);
            return set_mode(model, mode);
        }
        KeyCode::Tab => return tab(model),
        KeyCode::Esc => return escape(model),
        KeyCode::PageUp | KeyCode::PageDown => {
            let page = model.page();
            model.shown_transcript_mut().scroll_page(&page, key.code == KeyCode::PageUp);
        }
        KeyCode::Home if ctrl || model.composer.is_empty() => {
            let page = model.page();
            model.shown_transcript_mut().scroll_to_start(&page);
        }
        KeyCode::End if ctrl || model.composer.is_empty() => {
            model.shown_transcript_mut().scroll_to_end();
        }
        KeyCode::Up if alt || ctrl => move_focus(model, true),
        KeyCode::Down if alt || ctrl => move_focus(model, false),
        KeyCode::Up if model.composer.is_empty() && !model.session.queued.is_empty() => {
            return vec![Action::Send(Command::Unqueue)];
        }
        KeyCode::Up => {
            let width = model.composer_width();
            model.composer.up(width);
        }
        KeyCode::Down => {
            let width = model.composer_width();
            model.composer.down(width);
        }
        KeyCode::Char(c) if ctrl => return ctrl_key(model, c),
        KeyCode::Char(c) if alt => alt_key(model, c),
        KeyCode::Char('?') if model.composer.is_empty() => model.layers.push(popup::help::open()),
        KeyCode::Char(c) if is_plain(key) => {
            model.shown_transcript_mut().clear_focus();
            model.composer.type_char(c);
        }
        _ => edit_key(model, key.code, ctrl || alt),
    }
    Vec::new()
}

fn edit_key(model: &mut Model, code: KeyCode, by_word: bool) {
    let composer = &mut model.composer;
    let (left, right) =
        if by_word { (Move::WordLeft, Move::WordRight) } else { (Move::Left, Move::Right) };
    match code {
        KeyCode::Left => composer.go(left),
        KeyCode::Right => composer.go(right),
        KeyCode::Home => composer.go(Move::LineStart),
        KeyCode::End => composer.go(Move::LineEnd),
        KeyCode::Backspace => drop(composer.delete(left)),
        KeyCode::Delete => drop(composer.delete(right)),
        _ => {}
    }
}

fn ctrl_key(model: &mut Model, c: char) -> Vec<Action> {
    match c {
        'a' => model.composer.go(Move::LineStart),
        'e' => model.composer.go(Move::LineEnd),
        'b' => model.composer.go(Move::Left),
        'f' => model.composer.go(Move::Right),
        'u' => drop(model.composer.delete(Move::LineStart)),
        'w' | 'h' => drop(model.composer.delete(Move::WordLeft)),
        'j' => model.composer.new_line(),
        'k' => return cut_or_list_commands(model),
        'd' if model.composer.is_empty() => return close(model),
        'd' => drop(model.composer.delete(Move::Right)),
        'o' => toggle(model),
        'p' => {
            let width = model.composer_width();
            model.composer.up(width);
        }
        'n' => {
            let width = model.composer_width();
            model.composer.down(width);
        }
        'r' if model.approvals.is_hidden() => model.approvals.show(model.now),
        'r' => {
            if let Some(sheet) = &mut model.budget {
                sheet.show(model.now);
            }
        }
        't' => return commands::panel(model),
        'y' => return copy(model),
        // Terminals send these for Ctrl+_ and Ctrl+/.
        '7' | '_' | '/' => model.composer.undo(),
        _ => {}
    }
    Vec::new()
}

/// Cuts what is right of the cursor; with nothing there, lists the commands.
fn cut_or_list_commands(model: &mut Model) -> Vec<Action> {
    if model.composer.delete(Move::LineEnd) {
        return Vec::new();
    }
    model.layers.push(popup::palette::open(&model.customs));
    vec![Action::Send(Command::ListCommands)]
}

/// Opens or closes the focused entry, else the last.
fn toggle(model: &mut Model) {
    if !model.shown_transcript_mut().toggle_focused() {
        model.shown_transcript_mut().toggle_last();
    }
}

fn alt_key(model: &mut Model, c: char) {
    match c {
        'b' => model.composer.go(Move::WordLeft),
        'f' => model.composer.go(Move::WordRight),
        'd' => drop(model.composer.delete(Move::WordRight)),
        '<' => model.composer.go(Move::Start),
        '>' => model.composer.go(Move::End),
        '_' | '/' => model.composer.redo(),
        _ => {}
    }
}

fn move_focus(model: &mut Model, back: bool) {
    let page = model.page();
    model.shown_transcript_mut().move_focus(&page, back);
}

fn enter(model: &mut Model) -> Vec<Action> {
    let text = model.composer.text();
    if text.trim().is_empty() {
        model.shown_transcript_mut().toggle_focused();
        return Vec::new();
    }
    match slash::parse(&text, &model.customs) {
        Parsed::Text => {}
        Parsed::Custom(custom, arguments) => {
            let (name, arguments) = (custom.name.clone(), arguments.to_owned());
            return commands::send_custom(model, name, arguments, true);
        }
        Parsed::Command(name, argument) => {
            let argument = argument.to_owned();
            model.composer.take();
            return commands::run(model, name, &argument);
        }
        Parsed::Unknown(word) => {
            match slash::suggestions(text.trim(), &model.customs).as_slice() {
                [Suggestion::Own(only)] => {
                    model.composer.take();
                    return commands::run(model, only.name, "");
                }
                [Suggestion::Custom(only)] => {
                    let name = only.name.clone();
                    return commands::send_custom(model, name, String::new(), true);
                }
                _ => {}
            }
            let words = format!("there is no command /{word}: Ctrl+K lists them");
            return say(model, words);
        }
    }
    if let Some(shown) = &model.agents.shown {
        let id = shown.id.clone();
        return commands::steer_shown(model, id, &text);
    }
    if let Some(words) = commands::only_watched(model) {
        return say(model, words);
    }
    let text = model.composer.take();
    model.shown_transcript_mut().scroll_to_end();
    let command =
        if model.is_working() { Command::Steer { text } } else { Command::Prompt { text } };
    vec![Action::Send(command)]
}

fn tab(model: &mut Model) -> Vec<Action> {
    if let Some(first) = slash::suggestions(model.composer.raw(), &model.customs).first() {
        let draft = format!("/{} ", first.word());
        model.composer.set(&draft);
        return Vec::new();
    }
    if model.composer.raw().trim().is_empty() || !model.is_working() {
        return Vec::new();
    }
    let text = model.composer.text();
    if let Parsed::Custom(custom, arguments) = slash::parse(&text, &model.customs) {
        let (name, arguments) = (custom.name.clone(), arguments.to_owned());
        return commands::send_custom(model, name, arguments, false);
    }
    let text = model.composer.take();
    vec![Action::Send(Command::Prompt { text })]
}

fn escape(model: &mut Model) -> Vec<Action> {
    if model.shown_transcript_mut().clear_focus() {
        return Vec::new();
    }
    if model.agents.shown.take().is_some() {
        return vec![Action::Send(Command::WatchSubagent { id: None })];
    }
    if model.session.stop() {
        return vec![Action::Send(Command::Interrupt)];
    }
    let again = model.last_escape.is_some_and(|at| model.now.saturating_sub(at) <= ESCAPE_MS);
    model.last_escape = Some(model.now);
    if again && model.composer.is_empty() {
        model.last_escape = None;
        model.layers.push(popup::rewind::open(&model.transcript));
    }
    Vec::new()
}

fn ctrl_c(model: &mut Model) -> Vec<Action> {
    let again = model.last_ctrl_c.is_some_and(|at| model.now.saturating_sub(at) <= LEAVE_MS);
    if again {
        return close(model);
    }
    model.last_ctrl_c = Some(model.now);
    model.hint = Some("Ctrl+C again leaves".to_owned());
    if !model.layers.is_empty() {
        close_layer(model);
        return Vec::new();
    }
    if model.shown_rewind().is_some() {
        model.rewind = None;
        return Vec::new();
    }
    if !model.composer.is_empty() {
        model.composer.take();
        return Vec::new();
    }
    if model.session.stop() { vec![Action::Send(Command::Interrupt)] } else { Vec::new() }
}

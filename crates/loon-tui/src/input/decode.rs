//! Bytes of a terminal into keys, pastes and clicks. A sequence may be cut anywhere between reads,
//! except behind its escape character: that alone is the Escape key.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::event::Input;

/// Bytes a control sequence may have; longer ones are no key.
const SEQUENCE_LIMIT: usize = 64;
/// Bytes of one paste that are kept.
const PASTE_LIMIT: usize = 16 * 1024 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes reads in order.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    rest: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What the first bytes are.
enum Step {
    /// This many bytes mean this.
    Done(usize, Option<Input>),
    /// A paste begins behind this many bytes.
    PasteBegins(usize),
    /// More bytes are needed.
    Incomplete,
}

impl Decoder {
    /// Takes one read in.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut inputs = Vec::new();
        let mut at = 0;
        while let Some(bytes) = rest.get(at..).filter(|bytes| !bytes.is_empty()) {
            if self.paste.is_some() {
                match self.take_paste(bytes, &mut inputs) {
                    Some(used) => at += used,
                    None => break,
                }
                continue;
            }
            match step(bytes) {
                Step::Done(used, input) => {
                    at += used;
                    inputs.extend(input);
                }
                Step::PasteBegins(used) => {
                    at += used;
                    self.paste = Some(Vec::new());
                }
                Step::Incomplete => break,
            }
        }
        self.rest.extend_from_slice(rest.get(at..).unwrap_or_default());
        inputs
    }

    /// Bytes used up; none if the rest may be the beginning of the end mark.
    fn take_paste(&mut self, bytes: &[u8], inputs: &mut Vec<Input>) -> Option<usize> {
        let paste = self.paste.as_mut()?;
        let mut keep = |part: &[u8]| {
            let room = PASTE_LIMIT.saturating_sub(paste.len()).min(part.len());
            paste.extend_from_slice(part.get(..room).unwrap_or_default());
        };
        if let Some(end) = bytes.windows(PASTE_END.len()).position(|window| window == PASTE_END) {
            keep(bytes.get(..end).unwrap_or_default());
            let paste = self.paste.take().unwrap_or_default();
            inputs.push(Input::Paste(String::from_utf8_lossy(&paste).into_owned()));
            return Some(end + PASTE_END.len());
        }
        let safe = (1..PASTE_END.len())
            .rev()
            .find(|length| PASTE_END.get(..*length).is_some_and(|start| bytes.ends_with(start)))
            .map_or(bytes.len(), |length| bytes.len() - length);
        keep(bytes.get(..safe).unwrap_or_default());
        (safe > 0).then_some(safe)
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Key(KeyEvent::new(code, modifiers))
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [0x1b] | [0x1b, 0x1b, ..] => Step::Done(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [0x1b, b'[', rest @ ..] => control_sequence(rest),
        [0x1b, b'O', rest @ ..] => match rest.first() {
            None => Step::Incomplete,
            Some(last) => {
                Step::Done(3, letter_key(*last).map(|code| key(code, KeyModifiers::NONE)))
            }
        },
        [0x1b, rest @ ..] => match character(rest) {
            Step::Done(used, Some(Input::Key(event))) => {
                Step::Done(used + 1, Some(key(event.code, event.modifiers | KeyModifiers::ALT)))
            }
            Step::Done(used, input) => Step::Done(used + 1, input),
            other => other,
        },
        bytes => character(bytes),
    }
}

/// A character or a control character.
fn character(bytes: &[u8]) -> Step {
    let Some(first) = bytes.first().copied() else { return Step::Incomplete };
    let none = KeyModifiers::NONE;
    let ctrl = KeyModifiers::CONTROL;
    let input = match first {
        b'\r' => key(KeyCode::Enter, none),
        b'\t' => key(KeyCode::Tab, none),
        0x7f => key(KeyCode::Backspace, none),
        0 => key(KeyCode::Char(' '), ctrl),
        0x01..=0x1a => key(KeyCode::Char(char::from(first - 1 + b'a')), ctrl),
        0x1c..=0x1f => key(KeyCode::Char(char::from(first - 0x1c + b'4')), ctrl),
        _ => return utf8(bytes, first),
    };
    Step::Done(1, Some(input))
}

fn utf8(bytes: &[u8], first: u8) -> Step {
    let length = match first {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Step::Done(1, None),
    };
    let Some(whole) = bytes.get(..length) else {
        let broken = bytes.iter().skip(1).any(|byte| !(0x80..=0xbf).contains(byte));
        return if broken { Step::Done(1, None) } else { Step::Incomplete };
    };
    match std::str::from_utf8(whole).ok().and_then(|text| text.chars().next()) {
        Some(c) => Step::Done(length, Some(key(KeyCode::Char(c), KeyModifiers::NONE))),
        None => Step::Done(1, None),
    }
}

/// What follows `ESC [`.
fn control_sequence(rest: &[u8]) -> Step {
    let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
    let Some(end) = end.filter(|end| *end <= SEQUENCE_LIMIT) else {
        return if rest.len() > SEQUENCE_LIMIT {
            Step::Done(2 + rest.len(), None)
        } else {
            Step::Incomplete
        };
    };
    let used = 2 + end + 1;
    let parameters =
        rest.get(..end).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    let last = rest.get(end).copied().unwrap_or_default();
    if let (Some(parameters), b'M' | b'm') = (parameters.strip_prefix('<'), last) {
        return Step::Done(used, mouse(parameters, last == b'M'));
    }
    let numbers: Vec<u32> = parameters
        .split(';')
        .map(|part| part.split(':').next().unwrap_or_default().parse().unwrap_or(0))
        .collect();
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    let held = modifiers(number(1));
    let released =
        parameters.split(';').nth(1).and_then(|part| part.split(':').nth(1)) == Some("3");
    if released {
        return Step::Done(used, None);
    }
    let input = match last {
        b'~' if number(0) == 200 => return Step::PasteBegins(used),
        b'~' if number(0) == 27 => unicode_key(number(2), held),
        b'~' => tilde_key(number(0)).map(|code| key(code, held)),
        b'u' => unicode_key(number(0), held),
        b'Z' => Some(key(KeyCode::BackTab, KeyModifiers::SHIFT)),
        last => letter_key(last).map(|code| key(code, held)),
    };
    Step::Done(used, input)
}

fn modifiers(parameter: u32) -> KeyModifiers {
    let bits = parameter.saturating_sub(1);
    let mut held = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
    ] {
        if bits & bit != 0 {
            held |= modifier;
        }
    }
    held
}

fn letter_key(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return None,
    })
}

fn tilde_key(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number as u8 - 10),
        17..=21 => KeyCode::F(number as u8 - 11),
        23 | 24 => KeyCode::F(number as u8 - 12),
        _ => return None,
    })
}

/// A key that is named by its character.
fn unicode_key(code: u32, held: KeyModifiers) -> Option<Input> {
    let shift = held.contains(KeyModifiers::SHIFT);
    let code = match code {
        9 if shift => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57_344..=63_743 => return None,
        code => match char::from_u32(code)? {
            c if shift => KeyCode::Char(c.to_uppercase().next().unwrap_or(c)),
            c => KeyCode::Char(c),
        },
    };
    Some(key(code, held))
}

fn mouse(parameters: &str, pressed: bool) -> Option<Input> {
    let mut numbers = parameters.split(';').map(str::parse::<u16>);
    let (button, column, row) =
        (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    let kind = match button & 0b1110_0011 {
        64 => MouseEventKind::ScrollUp,
        65 => MouseEventKind::ScrollDown,
        0 if pressed => MouseEventKind::Down(MouseButton::Left),
        _ => return None,
    };
    Some(Input::Mouse(MouseEvent {
        kind,
        column: column.saturating_sub(1),
        row: row.saturating_sub(1),
        modifiers: KeyModifiers::NONE,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> Vec<Input> {
        Decoder::default().feed(bytes)
    }

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Input {
        Input::Key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn keys_of_old_and_new_terminals() {
        let none = KeyModifiers::NONE;
        for (bytes, code, modifiers) in [
            (&b"\r"[..], KeyCode::Enter, none),
            (b"\n", KeyCode::Char('j'), KeyModifiers::CONTROL),
            (b"\x1b", KeyCode::Esc, none),
            (b"\x1b\r", KeyCode::Enter, KeyModifiers::ALT),
            (b"\x1b[13;2u", KeyCode::Enter, KeyModifiers::SHIFT),
            (b"\x1b[27;2;13~", KeyCode::Enter, KeyModifiers::SHIFT),
            (b"\x1b[27u", KeyCode::Esc, none),
            (b"\x1b[99;5u", KeyCode::Char('c'), KeyModifiers::CONTROL),
            (b"\x1b[A", KeyCode::Up, none),
            (b"\x1bOA", KeyCode::Up, none),
            (b"\x1b[1;5D", KeyCode::Left, KeyModifiers::CONTROL),
            (b"\x1b[5~", KeyCode::PageUp, none),
            (b"\x1b[Z", KeyCode::BackTab, KeyModifiers::SHIFT),
            (b"\x1b[9;2u", KeyCode::BackTab, KeyModifiers::SHIFT),
            (b"\x03", KeyCode::Char('c'), KeyModifiers::CONTROL),
            (b"\x1f", KeyCode::Char('7'), KeyModifiers::CONTROL),
            (b"\x1bb", KeyCode::Char('b'), KeyModifiers::ALT),
            ("é".as_bytes(), KeyCode::Char('é'), none),
        ] {
            assert_eq!(decode(bytes), [pressed(code, modifiers)], "{bytes:?}");
        }
    }

    #[test]
    fn pastes_are_whole_and_clicks_have_places() {
        assert_eq!(
            decode(b"a\x1b[200~x\ry\x1b[201~\x1b[<0;5;3M\x1b[<64;1;1M\x1b[<0;5;3m"),
            [
                pressed(KeyCode::Char('a'), KeyModifiers::NONE),
                Input::Paste("x\ry".to_owned()),
                Input::Mouse(MouseEvent {
                    kind: MouseEventKind::Down(MouseButton::Left),
                    column: 4,
                    row: 2,
                    modifiers: KeyModifiers::NONE
                }),
                Input::Mouse(MouseEvent {
                    kind: MouseEventKind::ScrollUp,
                    column: 0,
                    row: 0,
                    modifiers: KeyModifiers::NONE
                }),
            ]
        );
    }

    #[test]
    fn sequences_that_are_no_keys_are_passed_over() {
        assert_eq!(decode(b"\x1b[?1;2cx"), [pressed(KeyCode::Char('x'), KeyModifiers::NONE)]);
        assert_eq!(decode(b"\xff\x80x"), [pressed(KeyCode::Char('x'), KeyModifiers::NONE)]);
    }

    proptest! {
        #[test]
        fn cuts_between_reads_change_nothing(cut in 2usize..40) {
            let bytes = "ab\x1b[1;5D你\x1b[200~pasted\x1b[20 text\x1b[201~\x1b[13;2u!".as_bytes();
            let cut = cut.min(bytes.len());
            // An escape at the end of a read is the Escape key.
            prop_assume!(bytes[cut - 1] != 0x1b || (11..40).contains(&cut));
            let mut decoder = Decoder::default();
            let mut inputs = decoder.feed(&bytes[..cut]);
            inputs.extend(decoder.feed(&bytes[cut..]));
            let whole = decode(bytes);
            if bytes[cut - 1] != 0x1b {
                prop_assert_eq!(inputs, whole);
            }
        }

        #[test]
        fn any_bytes_decode_without_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes);
            prop_assert!(decoder.rest.len() <= bytes.len());
        }
    }
}

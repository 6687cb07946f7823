//! Is there a secret at this place of a text? The answer may be that more of the text must arrive
//! first; it never depends on how the text was cut into pieces.

use super::mask::Tail;
use super::patterns::{Kind, Pattern, Patterns};
use super::shape::{
    AUTHORIZATION, CREDENTIAL, Class, PASSWORD, PRIVATE_KEY, Part, Shape, is_placeholder, is_random,
};
use super::words::{percent_decoded, reads_as_words};

/// Shortest value after `password =`.
const SHORTEST_VALUE: usize = 12;

/// So much of such a value decides; what follows of it is masked too.
const DECIDING: usize = 64;

/// A private key has so many characters of base64 in a row.
const KEY_LINE: usize = 32;

/// So far after its first line they must begin.
const KEY_HEAD: usize = 320;

/// A place in a text.
pub(super) struct View<'a> {
    /// The text as far as it has arrived.
    pub(super) text: &'a [u8],
    /// The place.
    pub(super) at: usize,
    /// The two bytes before it, nought where there are none.
    pub(super) before: [u8; 2],
    /// Nothing more will arrive.
    pub(super) ended: bool,
}

/// What is found at a place.
pub(super) enum Verdict {
    /// No secret begins here.
    No,
    /// That depends on text that has not arrived.
    More,
    /// This much is a secret.
    Yes(Found),
}

/// A secret.
pub(super) struct Found {
    /// Where it begins.
    pub(super) from: usize,
    /// Where it ends, as far as it has been looked at.
    pub(super) to: usize,
    /// What its mask says.
    pub(super) label: String,
    /// What of the following text belongs to it.
    pub(super) tail: Tail,
}

impl Found {
    fn new(from: usize, to: usize, label: &str, tail: Tail) -> Self {
        Self { from, to, label: label.to_owned(), tail }
    }
}

/// Why a check comes to no `Yes`: `Err(true)` if more text is needed.
type Step<T> = Result<T, bool>;

const NO: bool = false;

impl View<'_> {
    pub(super) fn judge(&self, patterns: &Patterns) -> Verdict {
        let rest = &self.text[self.at..];
        match rest {
            [only] if !self.ended => {
                let mut starting = patterns.beginning_with(*only);
                if starting.any(|pattern| self.may_stand_here(pattern)) {
                    Verdict::More
                } else {
                    Verdict::No
                }
            }
            [] | [_] => Verdict::No,
            [first, second, ..] => {
                for pattern in patterns.beginning(*first, *second) {
                    match self.check(pattern) {
                        Ok(found) => return Verdict::Yes(found),
                        Err(true) => return Verdict::More,
                        Err(false) => {}
                    }
                }
                Verdict::No
            }
        }
    }

    fn check(&self, pattern: &Pattern) -> Step<Found> {
        if !self.may_stand_here(pattern) {
            return Err(NO);
        }
        let any_case = matches!(pattern.kind, Kind::Assignment);
        let after = self.literal(self.at, &pattern.start, any_case)?;
        match &pattern.kind {
            Kind::Known(label) => Ok(Found::new(self.at, after, label, Tail::None)),
            Kind::Token(shape) => self.token(shape, after),
            Kind::Assignment => self.assignment(&pattern.start, after),
            Kind::UserInfo => self.user_info(after),
            Kind::Authorization => self.authorization(&pattern.start, after),
            Kind::PrivateKey => self.private_key(after),
        }
    }

    /// A token does not begin inside a word; a name may end one (`DB_PASSWORD`, `dbPassword`).
    fn may_stand_here(&self, pattern: &Pattern) -> bool {
        let [earlier, before] = self.before;
        let escaped = earlier == b'\\' && matches!(before, b'n' | b't' | b'r');
        let in_word = before.is_ascii_alphanumeric() && !escaped;
        match pattern.kind {
            Kind::Known(_) | Kind::PrivateKey | Kind::UserInfo => true,
            Kind::Token(_) | Kind::Authorization => !in_word,
            Kind::Assignment => !in_word || self.text[self.at].is_ascii_uppercase(),
        }
    }

    fn at(&self, place: usize) -> Step<Option<u8>> {
        match self.text.get(place) {
            Some(byte) => Ok(Some(*byte)),
            None if self.ended => Ok(None),
            None => Err(true),
        }
    }

    /// The place after `wanted`.
    fn literal(&self, place: usize, wanted: &str, any_case: bool) -> Step<usize> {
        for (index, expected) in wanted.bytes().enumerate() {
            let byte = self.at(place + index)?.ok_or(NO)?;
            if byte != expected && !(any_case && byte.eq_ignore_ascii_case(&expected)) {
                return Err(NO);
            }
        }
        Ok(place + wanted.len())
    }

    /// The place after as many bytes of the class as there are, at most `most`.
    fn run(&self, place: usize, class: Class, most: usize) -> Step<usize> {
        let mut end = place;
        while end - place < most {
            match self.at(end)? {
                Some(byte) if class.has(byte) => end += 1,
                _ => break,
            }
        }
        Ok(end)
    }

    fn token(&self, shape: &Shape, mut place: usize) -> Step<Found> {
        let mut body = place..place;
        let mut tail = Tail::None;
        for part in shape.parts {
            let begin = place;
            place = match *part {
                Part::Lit(text) => self.literal(place, text, false)?,
                Part::Run(class, min, max) => {
                    let end = self.run(place, class, max + 1)?;
                    if end - place < min || end - place > max {
                        return Err(NO);
                    }
                    body = begin..end;
                    end
                }
                Part::Open(class, min) => {
                    let end = self.run(place, class, min)?;
                    if end - place < min {
                        return Err(NO);
                    }
                    body = begin..end;
                    tail = Tail::Run(class);
                    end
                }
            };
        }
        let body = &self.text[body];
        let short = shape.prefix.len() <= 4 && !shape.prefix.ends_with('_');
        if is_placeholder(body) || short && !body.iter().any(u8::is_ascii_digit) {
            return Err(NO);
        }
        Ok(Found::new(self.at, place, shape.label, tail))
    }

    /// `name = value`, `"name": "value"`, `NAME=value`, the same with escaped quotes.
    fn assignment(&self, name: &str, place: usize) -> Step<Found> {
        let (place, _) = self.quote(place)?;
        let mut place = self.blanks(place)?;
        place = match self.at(place)? {
            Some(b':') if self.at(place + 1)? == Some(b'=') => place + 2,
            Some(b'=' | b':') => place + 1,
            _ => return Err(NO),
        };
        let place = self.blanks(place)?;
        let (from, quote) = self.quote(place)?;
        let to = self.run(from, Class::Value, DECIDING)?;
        let value = &self.text[from..to];
        let tail = if to - from == DECIDING {
            Tail::Run(Class::Value)
        } else {
            let ends = match (quote, self.at(to)?) {
                (_, None) => true,
                (Some(_), Some(next)) => matches!(next, b'"' | b'\'' | b'\\' | b'`'),
                (None, Some(next)) => {
                    next.is_ascii_whitespace()
                        || matches!(next, b',' | b';' | b'&' | b'"' | b'\'' | b'\\' | b'<' | b'|')
                }
            };
            if !ends {
                return Err(NO);
            }
            Tail::None
        };
        let is_code = quote.is_none() && value.contains(&b'.');
        let plain = percent_decoded(value);
        if value.len() < SHORTEST_VALUE || is_code || !is_random(&plain) {
            return Err(NO);
        }
        let label =
            if name.starts_with('p') && !name.contains("key") { PASSWORD } else { CREDENTIAL };
        // People make passwords of words; between quotes it is one.
        let may_be_name = quote.is_none() || label != PASSWORD;
        if may_be_name && reads_as_words(&plain) {
            return Err(NO);
        }
        Ok(Found::new(from, to, label, tail))
    }

    /// An opening or closing quote, perhaps an escaped one.
    fn quote(&self, place: usize) -> Step<(usize, Option<u8>)> {
        let escaped = self.at(place)? == Some(b'\\');
        let at = place + usize::from(escaped);
        match self.at(at)? {
            Some(quote @ (b'"' | b'\'' | b'`')) => Ok((at + 1, Some(quote))),
            _ => Ok((place, None)),
        }
    }

    fn blanks(&self, place: usize) -> Step<usize> {
        let mut end = place;
        while end - place < 8 && matches!(self.at(end)?, Some(b' ' | b'\t')) {
            end += 1;
        }
        Ok(end)
    }

    /// The password in `scheme://user:password@host`.
    fn user_info(&self, place: usize) -> Step<Found> {
        let user = self.run(place, Class::User, 64)?;
        let from = self.literal(user, ":", false)?;
        let to = self.run(from, Class::User, 129)?;
        if to - from > 128 || self.at(to)? != Some(b'@') || !is_random(&self.text[from..to]) {
            return Err(NO);
        }
        Ok(Found::new(from, to, PASSWORD, Tail::None))
    }

    fn authorization(&self, scheme: &str, from: usize) -> Step<Found> {
        let basic = scheme.starts_with("Basic");
        let (class, least) = if basic { (Class::Base64, 16) } else { (Class::Value, 20) };
        let to = self.run(from, class, least)?;
        let body = &self.text[from..to];
        let has = |what: fn(&u8) -> bool| body.iter().any(what);
        let random = has(u8::is_ascii_digit) && (!basic || has(u8::is_ascii_uppercase));
        if body.len() < least || !random || is_placeholder(body) {
            return Err(NO);
        }
        Ok(Found::new(from, to, AUTHORIZATION, Tail::Run(class)))
    }

    /// A block whose first line says that it holds a private key, with a line of base64 soon after:
    /// the words alone are in every parser of such files.
    fn private_key(&self, place: usize) -> Step<Found> {
        let mut end = place;
        while end - place < 40 {
            match self.at(end)? {
                Some(b'A'..=b'Z' | b'0'..=b'9' | b' ') => end += 1,
                _ => break,
            }
        }
        let words = &self.text[place..end];
        if !words.ends_with(b"PRIVATE KEY") && !words.ends_with(b"PRIVATE KEY BLOCK") {
            return Err(NO);
        }
        let head = self.literal(end, "-----", false)?;
        let mut in_row = 0;
        for place in head..head + KEY_HEAD {
            match self.at(place)?.ok_or(NO)? {
                byte if Class::Base64.has(byte) => in_row += 1,
                byte if byte.is_ascii_whitespace() || b"\\|>:,\"'().-".contains(&byte) => {
                    in_row = 0;
                }
                _ => return Err(NO),
            }
            if self.text[head..=place].ends_with(b"-----END") {
                return Err(NO);
            }
            if in_row == KEY_LINE {
                return Ok(Found::new(self.at, place + 1, PRIVATE_KEY, Tail::key()));
            }
        }
        Err(NO)
    }
}

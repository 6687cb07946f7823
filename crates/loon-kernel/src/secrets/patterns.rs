//! Everything that is looked for, by the two bytes it begins with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::label;
use super::shape::{AUTHORIZATION, CREDENTIAL, NAMES, PASSWORD, PRIVATE_KEY, SHAPES, Shape};

/// What one pattern is.
#[derive(Clone)]
pub(super) enum Kind {
    /// A known value, in one of its forms, with its label.
    Known(String),
    /// A token with a prefix.
    Token(&'static Shape),
    /// `password = value`; the name is lower case.
    Assignment,
    /// `://user:password@`
    UserInfo,
    /// `Bearer` or `Basic` and what follows.
    Authorization,
    /// A block with a private key.
    PrivateKey,
}

/// One thing to look for.
#[derive(Clone)]
pub(super) struct Pattern {
    /// How it begins; lower case for an assignment.
    pub(super) start: String,
    /// What it is.
    pub(super) kind: Kind,
}

/// What is looked for.
pub(super) struct Patterns {
    known: BTreeMap<String, String>,
    shapes: bool,
    all: Vec<Pattern>,
    /// Number of the bucket of each pair of first bytes, 0 for none.
    pairs: Box<[u16]>,
    /// Indexes into `all` in the order in which they are tried.
    buckets: Vec<Vec<usize>>,
    /// Bytes that something begins with.
    firsts: [bool; 256],
    /// For each first byte, one pattern of each kind of place.
    singles: Vec<Vec<usize>>,
    placed: Placed,
}

/// The labels of masks that took the place of a secret. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Placed(Arc<Mutex<BTreeSet<String>>>);

impl Placed {
    fn labels(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Patterns {
    fn default() -> Self {
        Self::new(BTreeMap::new(), true, Placed::default())
    }
}

impl Patterns {
    /// `known` holds labels by value.
    pub(super) fn new(known: BTreeMap<String, String>, shapes: bool, placed: Placed) -> Self {
        let mut all = Vec::new();
        for (value, name) in &known {
            for form in forms(value) {
                all.push(Pattern { start: form, kind: Kind::Known(name.clone()) });
            }
        }
        // The longest first, so that a value that begins with another one is masked whole.
        all.sort_by_key(|pattern| std::cmp::Reverse(pattern.start.len()));
        if shapes {
            all.extend(
                SHAPES.iter().map(|shape| Pattern {
                    start: shape.prefix.to_owned(),
                    kind: Kind::Token(shape),
                }),
            );
            let others = [
                ("-----BEGIN ", Kind::PrivateKey),
                ("://", Kind::UserInfo),
                ("Bearer ", Kind::Authorization),
                ("bearer ", Kind::Authorization),
                ("Basic ", Kind::Authorization),
            ];
            all.extend(others.map(|(start, kind)| Pattern { start: start.to_owned(), kind }));
            all.extend(
                NAMES
                    .iter()
                    .map(|name| Pattern { start: (*name).to_owned(), kind: Kind::Assignment }),
            );
        }
        let mut patterns = Self {
            known,
            shapes,
            all: Vec::new(),
            pairs: vec![0; 1 << 16].into(),
            buckets: vec![Vec::new()],
            firsts: [false; 256],
            singles: vec![Vec::new(); 256],
            placed,
        };
        for (index, pattern) in all.iter().enumerate() {
            patterns.add(index, pattern);
            for first in
                [pattern.start.as_bytes()[0], pattern.start.as_bytes()[0].to_ascii_uppercase()]
            {
                let singles = &mut patterns.singles[usize::from(first)];
                let begins = first == pattern.start.as_bytes()[0]
                    || matches!(pattern.kind, Kind::Assignment);
                if begins && !singles.iter().any(|at| stand_alike(&all[*at].kind, &pattern.kind)) {
                    singles.push(index);
                }
            }
        }
        patterns.all = all;
        patterns
    }

    fn add(&mut self, index: usize, pattern: &Pattern) {
        let &[first, second, ..] = pattern.start.as_bytes() else { return };
        let any_case = matches!(pattern.kind, Kind::Assignment);
        let cases = |byte: u8| {
            if any_case && byte.is_ascii_alphabetic() {
                vec![byte, byte.to_ascii_uppercase()]
            } else {
                vec![byte]
            }
        };
        for first in cases(first) {
            self.firsts[usize::from(first)] = true;
            for second in cases(second) {
                let pair = usize::from(first) << 8 | usize::from(second);
                if self.pairs[pair] == 0 {
                    self.pairs[pair] = self.buckets.len() as u16;
                    self.buckets.push(Vec::new());
                }
                self.buckets[usize::from(self.pairs[pair])].push(index);
            }
        }
    }

    pub(super) fn known(&self) -> &BTreeMap<String, String> {
        &self.known
    }

    pub(super) fn shapes(&self) -> bool {
        self.shapes
    }

    pub(super) fn placed(&self) -> &Placed {
        &self.placed
    }

    /// Notes that a mask with this label took the place of a secret.
    pub(super) fn note_placed(&self, label: &str) {
        let mut labels = self.placed.labels();
        if !labels.contains(label) {
            labels.insert(label.to_owned());
        }
    }

    /// True if one has.
    pub(super) fn was_placed(&self, label: &str) -> bool {
        self.placed.labels().contains(label)
    }

    /// True if a mask may carry this label.
    pub(super) fn has_label(&self, wanted: &str) -> bool {
        [PRIVATE_KEY, PASSWORD, CREDENTIAL, AUTHORIZATION].contains(&wanted)
            || SHAPES.iter().any(|shape| shape.label == wanted)
            || self.known.values().any(|name| label(name) == wanted)
    }

    /// True if something may begin with this byte.
    pub(super) fn may_begin(&self, byte: u8) -> bool {
        self.firsts[usize::from(byte)]
    }

    /// True if something begins with these two bytes.
    pub(super) fn begin(&self, first: u8, second: u8) -> bool {
        self.pairs[usize::from(first) << 8 | usize::from(second)] != 0
    }

    /// What begins with these two bytes, in the order in which it is tried.
    pub(super) fn beginning(&self, first: u8, second: u8) -> impl Iterator<Item = &Pattern> {
        let bucket = usize::from(self.pairs[usize::from(first) << 8 | usize::from(second)]);
        self.buckets[bucket].iter().map(|index| &self.all[*index])
    }

    /// One pattern for each kind of place at which something may begin with this byte.
    pub(super) fn beginning_with(&self, first: u8) -> impl Iterator<Item = &Pattern> {
        self.singles[usize::from(first)].iter().map(|index| &self.all[*index])
    }
}

/// Patterns of the same kind of place stand wherever one of them may stand.
fn stand_alike(one: &Kind, other: &Kind) -> bool {
    let place = |kind: &Kind| match kind {
        Kind::Known(_) | Kind::PrivateKey | Kind::UserInfo => 0,
        Kind::Token(_) | Kind::Authorization => 1,
        Kind::Assignment => 2,
    };
    place(one) == place(other)
}

/// The value as it may stand in a text: as it is, inside a JSON string, inside JSON
/// inside a JSON string, in a URL.
fn forms(value: &str) -> Vec<String> {
    let once = escaped(value);
    let mut forms = vec![value.to_owned(), escaped(&once), once];
    for upper in [true, false] {
        forms.push(percent(value, upper));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// As JSON writes it between quotes.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(value: &str, upper: bool) -> String {
    use std::fmt::Write as _;
    value.bytes().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                write!(text, "{}", byte as char)
            }
            _ if upper => write!(text, "%{byte:02X}"),
            _ => write!(text, "%{byte:02x}"),
        };
        text
    })
}

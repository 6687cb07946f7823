//! Secrets: what they look like, and how they are kept out of everything that is recorded or shown.
//!
//! A *known* value is a credential that Loom was handed: a key of the settings, a variable that holds
//! one. It is found in any text, as it is, as JSON writes it inside a string, and percent-encoded.
//! Other encodings (base64, hexadecimal, a value spread over several strings) are not looked for. A
//! *shape* is a text that is a credential by its form: the prefix and length of a token, a block with
//! a private key, a password in a URL. Both are replaced by a mask that says what it stands for:
//! `[secret: LAB_KEY]`, `[secret: github token]`.
//!
//! The recorder passes every record and every passing event through a [`Redactor`], so journal,
//! stream, fold, and with the fold later requests, hold the same masked text. What a tool is run with
//! is not masked.

mod event;
mod judge;
mod mask;
mod patterns;
mod shape;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

pub use mask::MaskStream;
use patterns::Patterns;

/// A known value with fewer characters is not masked: it would blank ordinary words.
pub const SHORTEST: usize = 8;

/// How a mask begins; its label and `]` follow.
const MASK: &str = "[secret: ";

/// Masks secrets. Clones share what they know.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Arc<RwLock<Arc<Patterns>>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// One that looks for shapes, or for known values alone, and knows none yet.
    pub fn new(shapes: bool) -> Self {
        let redactor = Self::default();
        redactor.look_for_shapes(shapes);
        redactor
    }

    /// Looks for shapes from now on, or no longer.
    pub fn look_for_shapes(&self, shapes: bool) {
        let now = self.patterns();
        self.replace(Patterns::new(now.known().clone(), shapes, now.placed().clone()));
    }

    /// Learns values, each with the name its mask carries. What was learned once stays masked. Gives
    /// the names whose values are too short ([`SHORTEST`]) and are not masked.
    pub fn learn(&self, values: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
        let now = self.patterns();
        let mut known: BTreeMap<String, String> = now.known().clone();
        let mut short = Vec::new();
        for (name, value) in values {
            let value = value.trim();
            if value.chars().count() >= SHORTEST {
                known.entry(value.to_owned()).or_insert_with(|| label(&name));
            } else if !value.is_empty() {
                short.push(name);
            }
        }
        if known != *now.known() {
            self.replace(Patterns::new(known, now.shapes(), now.placed().clone()));
        }
        short
    }

    /// The text with masks in place of its secrets.
    pub fn text(&self, text: String) -> String {
        let patterns = self.patterns();
        mask::masked(&patterns, &text).unwrap_or(text)
    }

    /// Masks a text that arrives in pieces.
    pub fn stream(&self) -> MaskStream {
        MaskStream::new(self.patterns())
    }

    /// The masks in a text that a redactor may have put there.
    pub fn masks_in<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let patterns = self.patterns();
        let masks = text.match_indices(MASK).filter_map(|(at, _)| {
            let label = text[at + MASK.len()..].split_once(']')?.0;
            let end = at + MASK.len() + label.len();
            patterns.has_label(label).then_some(&text[at..=end])
        });
        masks.collect()
    }

    /// True if this redactor has put such a mask in the place of a secret, in whatever text. Else it is
    /// a quotation: of a document that speaks of masks, say.
    pub fn has_placed(&self, mask: &str) -> bool {
        let label = mask.strip_prefix(MASK).and_then(|rest| rest.strip_suffix(']'));
        label.is_some_and(|label| self.patterns().was_placed(label))
    }

    fn patterns(&self) -> Arc<Patterns> {
        Arc::clone(&self.patterns.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, patterns: Patterns) {
        *self.patterns.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(patterns);
    }
}

/// A name as a mask can carry it: nothing that JSON would escape or that ends the mask.
fn label(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-. ".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

fn mask_of(label: &str) -> String {
    format!("{MASK}{label}]")
}

#[cfg(test)]
mod tests;

//! Telling a name that somebody made up from a credential that a machine did: `x25519_generate_key` has
//! as many digits as a token, but reads as words.

use std::borrow::Cow;

/// A word has so many letters.
const WORD: usize = 3;

/// So many letters without a vowel between them are in no word.
const CLUSTER: usize = 5;

/// The text with `%2F` and its like as what they stand for.
pub(super) fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'%') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let byte = after.get(..2).filter(|_| *first == b'%').and_then(hex);
        plain.push(byte.unwrap_or(*first));
        rest = after.get(if byte.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    Cow::Owned(plain)
}

fn hex(digits: &[u8]) -> Option<u8> {
    // The parser takes a sign as well.
    let digits = std::str::from_utf8(digits).ok().filter(|it| !it.contains('+'))?;
    u8::from_str_radix(digits, 16).ok()
}

/// True if nearly all letters are in words, at most one number stands in each part between separators,
/// and nothing is in it that no name has.
pub(super) fn reads_as_words(text: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./ :,".contains(byte);
    if !text.iter().all(is_name) {
        return false;
    }
    let parts = text.split(|byte| !byte.is_ascii_alphanumeric());
    let one_number = |part: &[u8]| {
        part.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
            .filter(|run| run[0].is_ascii_digit())
            .count()
            <= 1
    };
    if !parts.clone().all(one_number) {
        return false;
    }
    let (mut letters, mut in_words) = (0, 0);
    for run in parts.flat_map(humps) {
        letters += run.len();
        if run.len() >= WORD && run.iter().any(|byte| is_vowel(*byte)) {
            in_words += run.len();
        }
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let clusters = text.split(|byte| !byte.is_ascii_alphabetic() || is_vowel(*byte));
    let longest = clusters.map(<[u8]>::len).max().unwrap_or(0);
    letters > 0 && in_words * 5 >= letters * 4 && digits * 2 <= letters && longest < CLUSTER
}

fn is_vowel(byte: u8) -> bool {
    b"aeiouy".contains(&byte.to_ascii_lowercase())
}

/// The runs of letters of a part, cut before each capital that begins a word (`generateHTTPServer`).
fn humps(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    let runs = part.split(|byte| !byte.is_ascii_alphabetic()).filter(|run| !run.is_empty());
    runs.flat_map(|run| {
        let begins = |at: &usize| {
            run[*at].is_ascii_uppercase()
                && (run[*at - 1].is_ascii_lowercase()
                    || run.get(*at + 1).is_some_and(u8::is_ascii_lowercase))
        };
        let cuts: Vec<usize> = (1..run.len()).filter(begins).collect();
        let begin = std::iter::once(0).chain(cuts.clone());
        begin.zip(cuts.into_iter().chain([run.len()])).map(move |(from, to)| &run[from..to])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_words_and_credentials_do_not() {
        for name in [
            "x25519_generate_private_key",
            "generateX25519PrivateKey",
            "ed25519_dalek_keypair",
            "token-bucket-v1-2024",
            "loadConfigV2",
        ] {
            assert!(reads_as_words(name.as_bytes()), "{name}");
        }
        for other in [
            "c769e25f-2250-bb04-8548-194737adba5c",
            "d8be36c4c4a881956216",
            "TxSu0ChnfXntq3Z7",
            "Summer2024Winter!",
            "1234567890",
            "",
        ] {
            assert!(!reads_as_words(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn escapes_are_read_and_what_is_none_stays() {
        let decoded =
            |text: &str| String::from_utf8_lossy(&percent_decoded(text.as_bytes())).into_owned();
        assert_eq!(decoded("a%20b%2Fc%2fd"), "a b/c/d");
        assert_eq!(decoded("100% of %zz %+1 %2"), "100% of %zz %+1 %2");
    }
}

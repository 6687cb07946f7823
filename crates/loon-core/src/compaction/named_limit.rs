//! The limit that a server names when a request is too long.

/// Words after which the limit stands. The longer ones come first, since the shorter are part of them.
const BEFORE: [&str; 17] = [
    "maximum context length is",
    "maximum context length of",
    "maximum context length (",
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed is",
    "maximum number of input tokens is",
    "maximum prompt length is",
    "maximum input length is",
    "maximum model length of",
    "maximum model length is",
    "context length is only",
    "available context size (",
    "context window of",
    "context window (",
    "context length of",
    "context size of",
    "token limit of",
];

/// Words before which it stands.
const AFTER: [&str; 3] = ["maximum", "token limit", "token context"];

/// What no window is smaller or larger than.
const BELIEVABLE: std::ops::RangeInclusive<u64> = 256..=100_000_000;

/// Most tokens that a request to `model` may have, if the words say so. Of the words of several models
/// those of this one count.
pub(super) fn read(words: &str, model: &str) -> Option<u64> {
    let words = words.to_lowercase();
    let own = format!("{}: ", model.to_lowercase());
    let words = words.rsplit_once(&own).map_or(words.as_str(), |(_, own)| own);
    let named = BEFORE.iter().find_map(|phrase| {
        let (_, rest) = words.split_once(phrase)?;
        leading_number(rest.trim_start())
    });
    named.or_else(|| AFTER.iter().find_map(|phrase| number_before(words, phrase)))
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !is_digit(c)).unwrap_or(text.len());
    number(&text[..end])
}

/// The number right before one of the places at which `phrase` stands.
fn number_before(text: &str, phrase: &str) -> Option<u64> {
    text.match_indices(phrase).find_map(|(at, _)| {
        let before = text[..at].trim_end_matches([' ', '-']);
        let start = before.rfind(|c: char| !is_digit(c)).map_or(0, |last| last + 1);
        number(before.get(start..)?)
    })
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, ',' | '_')
}

fn number(digits: &str) -> Option<u64> {
    let digits = digits.replace([',', '_'], "");
    digits.parse().ok().filter(|limit| BELIEVABLE.contains(limit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limit_is_read_from_the_words_of_many_servers() {
        for (words, limit) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 10,245 \
                 tokens (6149 in the messages, 4096 in the completion).",
                Some(8_192),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
                Some(1_048_575),
            ),
            (
                "the request exceeds the available context size (4096 tokens), try increasing it",
                Some(4_096),
            ),
            (
                "This endpoint's maximum context length is 131,072 tokens. However, you requested about \
                 200000 tokens.",
                Some(131_072),
            ),
            ("prompt token count of 70000 exceeds the limit; 64000-token limit", Some(64_000)),
            ("Your input exceeds the context window of this model.", None),
            ("The prompt has 9000 tokens, which is too long.", None),
            ("maximum context length is 12 tokens", None),
            ("maximum context length is 99999999999999999999999 tokens", None),
            ("", None),
        ] {
            assert_eq!(read(words, "lab/m"), limit, "{words}");
        }
    }

    #[test]
    fn of_the_members_of_a_combo_each_has_its_own_limit() {
        let words = "no model of combo/x answered. lab/a: maximum context length is 8192 tokens; lab/b: \
                     prompt is too long: 40000 tokens > 32000 maximum";
        assert_eq!(read(words, "lab/b"), Some(32_000));
    }

    proptest! {
        #[test]
        fn whatever_a_server_says_the_limit_is_believable(words in "\\PC{0,80}(context window of |maximum)?\\PC{0,40}") {
            prop_assert!(read(&words, "lab/m").is_none_or(|limit| BELIEVABLE.contains(&limit)));
        }
    }
}

//! Patterns of file names.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use unicode_normalization::UnicodeNormalization;

/// Most bytes of a pattern. Compiling a much longer one breaks off.
const LONGEST: usize = 4096;

/// A compiled pattern over paths relative to the folder that is searched.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    /// It has no slash, so it speaks of the name alone.
    name_only: bool,
}

impl Pattern {
    /// Compiles a pattern. The error is what the model reads.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > LONGEST {
            let length = pattern.len();
            return Err(format!("The pattern has {length} bytes, at most {LONGEST} are taken."));
        }
        let name_only = !pattern.contains('/');
        let anchored = pattern.trim_start_matches("./");
        let composed: String = anchored.nfc().collect();
        let glob = GlobBuilder::new(&composed)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| {
                format!(
                    "The pattern is not valid: {error}. Write [[] or \\[ for a literal bracket."
                )
            })?;
        Ok(Self { matcher: glob.compile_matcher(), name_only })
    }

    /// True if the path matches; accents may be composed or not.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let path = match path.file_name() {
            Some(name) if self.name_only => Path::new(name),
            _ => path,
        };
        match path.to_str() {
            Some(text) if !text.is_ascii() => self.matcher.is_match(text.nfc().collect::<String>()),
            _ => self.matcher.is_match(path),
        }
    }
}

/// Takes the leading folders that are no pattern off the front: `src/**/*.rs` is `**/*.rs` in
/// `src`. What is left keeps its anchor: `src/*.rs` is `./*.rs` in `src`.
pub(crate) fn split(pattern: &str) -> (Option<String>, String) {
    let is_plain = |part: &str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let mut end = 0;
    for (slash, _) in pattern.match_indices('/') {
        if !is_plain(&pattern[end..slash]) {
            break;
        }
        end = slash + 1;
    }
    if end == 0 {
        return (None, pattern.to_owned());
    }
    let folder = if end == 1 { "/" } else { &pattern[..end - 1] };
    (Some(folder.to_owned()), format!("./{}", &pattern[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_any_length_is_answered() {
        assert!(
            Pattern::new(&"x".repeat(LONGEST))
                .unwrap()
                .matches(&Path::new("a").join("x".repeat(LONGEST)))
        );
        let error = Pattern::new(&"x".repeat(1_000_000)).unwrap_err();
        assert_eq!(error, "The pattern has 1000000 bytes, at most 4096 are taken.");
        for hostile in ["[a-z]".repeat(800), "{a,b}".repeat(800), "**/".repeat(1300)] {
            assert!(Pattern::new(&hostile).is_ok(), "{hostile}");
        }
    }

    #[test]
    fn leading_folders_are_split_off() {
        let split = |pattern| {
            let (folder, rest) = split(pattern);
            (folder.unwrap_or_default(), rest)
        };
        let pair = |folder: &str, rest: &str| (folder.to_owned(), rest.to_owned());
        assert_eq!(split("*.rs"), pair("", "*.rs"));
        assert_eq!(split("a/b/*.rs"), pair("a/b", "./*.rs"));
        assert_eq!(split("/*.rs"), pair("/", "./*.rs"));
        assert_eq!(split("**/a/*.rs"), pair("", "**/a/*.rs"));
        assert_eq!(split("a/{b,c}/d"), pair("a", "./{b,c}/d"));
        assert_eq!(split(r"a\[/b"), pair("", r"a\[/b"));
    }

    #[test]
    fn braces_are_not_cut_at_a_slash_within() {
        let pattern = Pattern::new("{a/b,c}/*.rs").unwrap();
        assert_eq!(split("{a/b,c}/*.rs").0, None);
        assert!(pattern.matches(Path::new("a/b/x.rs")));
        assert!(!pattern.matches(Path::new("b/x.rs")));
    }

    #[test]
    fn accents_match_in_both_forms() {
        let pattern = Pattern::new("caf\u{e9}*").unwrap();
        assert!(pattern.matches(Path::new("cafe\u{301}.txt")));
        let pattern = Pattern::new("cafe\u{301}*").unwrap();
        assert!(pattern.matches(Path::new("caf\u{e9}.txt")));
    }
}

//! Unified diffs taken apart into the old and new text of each place, as clients lay them out
//! themselves.

/// A stretch of text that may hold diffs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// No diff.
    Words(String),
    /// One changed place of a file.
    Hunk(Hunk),
}

/// One changed place of a file, with the lines around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Path before, as the diff has it; absent if the file was not there.
    pub(super) old_path: Option<String>,
    /// Path after; absent if the file is gone.
    pub(super) new_path: Option<String>,
    /// Its first line after the change, from 1.
    pub(super) line: u32,
    /// Lines before.
    pub(super) old: String,
    /// Lines after.
    pub(super) new: String,
}

impl Hunk {
    /// The path that counts.
    pub(super) fn path(&self) -> &str {
        self.new_path.as_deref().or(self.old_path.as_deref()).unwrap_or_default()
    }
}

/// What of a hunk is still to come.
struct Rest {
    old: u64,
    new: u64,
}

impl Rest {
    fn is_done(&self) -> bool {
        self.old == 0 && self.new == 0
    }
}

/// Takes text apart. The lines of a hunk are counted, so that no line of a file passes for a heading.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut old_path, mut new_path) = (None, None);
    let mut rest = Rest { old: 0, new: 0 };
    let mut last_sign = ' ';
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let sign = line.chars().next().unwrap_or_default();
        match parts.last_mut() {
            Some(Part::Hunk(hunk)) if !rest.is_done() && matches!(sign, ' ' | '-' | '+') => {
                take_line(hunk, &mut rest, sign, &line[1..]);
                last_sign = sign;
                continue;
            }
            Some(Part::Hunk(hunk)) if sign == '\\' => {
                end_without_newline(hunk, last_sign);
                continue;
            }
            _ => {}
        }
        if let Some((line_number, sizes)) = heading(line) {
            rest = sizes;
            parts.push(Part::Hunk(Hunk {
                old_path: old_path.clone(),
                new_path: new_path.clone(),
                line: line_number,
                ..Hunk::default()
            }));
        } else if let Some(old) = line.strip_prefix("--- ")
            && let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ "))
        {
            (old_path, new_path) = (name(old, "a/"), name(new, "b/"));
            rest = Rest { old: 0, new: 0 };
            lines.next();
        } else if let Some(Part::Words(words)) = parts.last_mut() {
            words.push_str(line);
        } else {
            parts.push(Part::Words(line.to_owned()));
        }
    }
    parts
}

fn take_line(hunk: &mut Hunk, rest: &mut Rest, sign: char, line: &str) {
    if sign != '+' {
        hunk.old.push_str(line);
        rest.old = rest.old.saturating_sub(1);
    }
    if sign != '-' {
        hunk.new.push_str(line);
        rest.new = rest.new.saturating_sub(1);
    }
}

fn end_without_newline(hunk: &mut Hunk, sign: char) {
    for (side, is_meant) in [(&mut hunk.old, sign != '+'), (&mut hunk.new, sign != '-')] {
        if is_meant && side.ends_with('\n') {
            side.pop();
        }
    }
}

fn name(path: &str, side: &str) -> Option<String> {
    let path = path.trim_end_matches('\n');
    (path != "/dev/null").then(|| path.strip_prefix(side).unwrap_or(path).to_owned())
}

/// First new line of a hunk, and how many old and new ones it has.
fn heading(line: &str) -> Option<(u32, Rest)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let range = |word: &str| -> Option<(u32, u64)> {
        let (start, size) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse().ok()?, size.parse().ok()?))
    };
    let (_, old) = range(words.next()?)?;
    let (start, new) = range(words.next()?.strip_prefix('+')?)?;
    Some((start.max(1), Rest { old, new }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(paths: [Option<&str>; 2], line: u32, old: &str, new: &str) -> Part {
        let [old_path, new_path] = paths.map(|path| path.map(str::to_owned));
        Part::Hunk(Hunk { old_path, new_path, line, old: old.to_owned(), new: new.to_owned() })
    }

    #[test]
    fn each_place_has_its_old_and_new_lines() {
        let text = "--- a/x y\n+++ b/x y\n@@ -2,3 +2,3 @@\n one\n-two\n+2\n three\n@@ -9 +9,2 @@\n-a\n+b\n+c\n";
        let both = [Some("x y"), Some("x y")];
        assert_eq!(
            parts(text),
            [hunk(both, 2, "one\ntwo\nthree\n", "one\n2\nthree\n"), hunk(both, 9, "a\n", "b\nc\n"),]
        );
    }

    #[test]
    fn new_and_deleted_files_have_one_side() {
        let text = "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
                    --- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n";
        assert_eq!(
            parts(text),
            [hunk([None, Some("new")], 1, "", "x"), hunk([Some("old"), None], 1, "y\n", "")]
        );
    }

    #[test]
    fn lines_that_look_like_headings_belong_to_their_hunk() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n @@ -1 +1 @@\nrest\n";
        assert_eq!(
            parts(text),
            [
                hunk([Some("x"), Some("x")], 1, "-- a/y\n@@ -1 +1 @@\n", "++ b/y\n@@ -1 +1 @@\n"),
                Part::Words("rest\n".to_owned()),
            ]
        );
    }

    #[test]
    fn words_around_diffs_stay_and_a_cut_one_says_so() {
        let text = "Takes back.\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n... 8 more lines of this diff are not shown\n";
        assert_eq!(
            parts(text),
            [
                Part::Words("Takes back.\n".to_owned()),
                hunk([Some("x"), Some("x")], 1, "a\n", "a\n"),
                Part::Words("... 8 more lines of this diff are not shown\n".to_owned()),
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "([-+ @\\\\a0-9,\n]|@@ -1,2 \\+3,4 @@|--- |\\+\\+\\+ )*") {
            let size: usize = parts(&text).iter().map(|part| match part {
                Part::Words(words) => words.len(),
                Part::Hunk(hunk) => hunk.old.len() + hunk.new.len(),
            }).sum();
            proptest::prop_assert!(size <= 2 * text.len());
        }
    }
}

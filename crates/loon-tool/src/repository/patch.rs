//! Differences in pages: what changed in numbers, then as many lines of the patch as fit.

use std::fmt::Write as _;

use loon_exec::Captured;

use crate::text;

/// Most bytes of one page.
const PAGE: usize = 48 * 1024;
/// Most bytes of the list of files that a patch of several pages begins with.
const LIST: usize = 12 * 1024;
/// Most characters of a line.
const LINE: usize = 1000;

/// Options of the subcommand whose answer is read here.
pub(crate) const OPTIONS: [&str; 2] = ["--numstat", "--patch"];

/// A page and what it is a page of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) text: String,
    /// `2 files, +10 -3`; empty if nothing differs.
    pub(crate) summary: String,
}

/// The page that begins with line `offset` (from 1) of the patch.
pub(crate) fn page(answer: &Captured, offset: usize) -> Result<Page, String> {
    let (stat, patch) = split(&answer.head);
    let files: Vec<Stat> = stat.split(|byte| *byte == b'\n').filter_map(Stat::parse).collect();
    let summary = summary(&files);
    let lines: Vec<&[u8]> = patch.split_inclusive(|byte| *byte == b'\n').collect();
    let whole = answer.is_whole();
    if offset > 1 && offset > lines.len() {
        return Err(if whole {
            format!("The patch has {}; offset is past its end.", text::count(lines.len(), "line"))
        } else {
            format!(
                "Only the first {} lines of a patch this large can be shown. Name paths to see the rest.",
                lines.len()
            )
        });
    }
    let mut text = String::new();
    if offset <= 1 && !files.is_empty() {
        // All numbers come before the patch.
        let counted = whole || !patch.is_empty();
        let _ = writeln!(text, "{summary}{}", if counted { "" } else { " and more" });
        if !whole || patch.len() > PAGE - LIST {
            list(&files, &mut text);
        }
        text.push('\n');
    }
    let first = offset.max(1);
    let mut next = first - 1;
    while let Some(line) = lines.get(next) {
        let line = shown(line);
        if text.len() + line.len() > PAGE && next >= first {
            break;
        }
        text.push_str(&line);
        next += 1;
    }
    if next < lines.len() || !whole {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let total = if whole { String::new() } else { "more than ".to_owned() };
        let _ = write!(text, "[lines {first} to {next} of {total}{} of the patch; ", lines.len());
        if next < lines.len() {
            let _ = writeln!(text, "go on with offset {}, or name paths]", next + 1);
        } else {
            text.push_str("name paths to see the rest]\n");
        }
    }
    Ok(Page { text, summary })
}

/// Where the numbers end and the patch begins.
fn split(answer: &[u8]) -> (&[u8], &[u8]) {
    let mut start = 0;
    for line in answer.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --") {
            break;
        }
        start += line.len();
    }
    answer.split_at(start)
}

struct Stat {
    name: String,
    /// Lines added and deleted; absent if the file is binary.
    lines: Option<(u64, u64)>,
}

impl Stat {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.splitn(3, '\t');
        let (added, deleted, name) = (fields.next()?, fields.next()?, fields.next()?);
        let lines = added.parse().ok().zip(deleted.parse().ok());
        Some(Self { name: text::visible_line(name), lines })
    }
}

fn summary(files: &[Stat]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let (added, deleted) = files
        .iter()
        .filter_map(|file| file.lines)
        .fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1));
    format!("{}, +{added} -{deleted}", text::count(files.len(), "file"))
}

fn list(files: &[Stat], text: &mut String) {
    for (index, file) in files.iter().enumerate() {
        if text.len() > LIST {
            let _ = writeln!(text, "  [{} more]", text::count(files.len() - index, "file"));
            break;
        }
        let _ = match file.lines {
            Some((added, deleted)) => writeln!(text, "  {} +{added} -{deleted}", file.name),
            None => writeln!(text, "  {} binary", file.name),
        };
    }
}

/// A line as shown.
pub(crate) fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = text::visible(&line);
    let Some((end, _)) = line.char_indices().nth(LINE) else { return line.into_owned() };
    let rest = line[end..].trim_end_matches('\n').chars().count();
    if rest == 0 {
        return line.into_owned();
    }
    format!("{} [{} more]\n", &line[..end], text::count(rest, "character"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Captured {
        Captured { head: text.as_bytes().to_vec(), omitted: 0, tail: Vec::new() }
    }

    #[test]
    fn a_small_patch_is_shown_whole() {
        let answer = "1\t2\ta b\n-\t-\tpic\n\ndiff --git a/a b b/a b\n+x\r\n";
        assert_eq!(
            page(&whole(answer), 1),
            Ok(Page {
                text: "2 files, +1 -2\n\ndiff --git a/a b b/a b\n+x␍\n".to_owned(),
                summary: "2 files, +1 -2".to_owned(),
            })
        );
        let past = page(&whole(answer), 9).unwrap_err();
        assert_eq!(past, "The patch has 2 lines; offset is past its end.");
    }

    #[test]
    fn pages_of_a_large_patch_join_to_all_of_it() {
        let mut patch = "diff --git a/f b/f\n".to_owned();
        for number in 0..12000 {
            let _ = writeln!(patch, "+line {number}");
        }
        let answer = whole(&format!("12000\t0\tf\n\n{patch}"));
        let (mut joined, mut offset, mut pages) = (String::new(), 1, 0);
        loop {
            let page = page(&answer, offset).unwrap().text;
            pages += 1;
            let body = page.strip_prefix("1 file, +12000 -0\n  f +12000 -0\n\n").unwrap_or(&page);
            let Some((lines, end)) = body.rsplit_once("[lines ") else {
                joined.push_str(body);
                break;
            };
            joined.push_str(lines);
            let (_, next) = end.split_once("offset ").unwrap();
            offset = next.split_once(',').unwrap().0.parse().unwrap();
        }
        assert_eq!(joined, patch);
        assert_eq!(pages, 3);
    }

    #[test]
    fn what_was_not_read_is_said() {
        let mut answer = whole("1\t0\tf\n\ndiff --git a/f b/f\n+x\n");
        answer.omitted = 1;
        let text = page(&answer, 1).unwrap().text;
        assert!(text.starts_with("1 file, +1 -0\n  f +1 -0\n\ndiff"), "{text}");
        assert!(
            text.ends_with(
                "[lines 1 to 2 of more than 2 of the patch; name paths to see the rest]\n"
            ),
            "{text}"
        );
        assert!(page(&answer, 3).unwrap_err().contains("Name paths"));
        answer.head.truncate(6);
        let text = page(&answer, 1).unwrap().text;
        assert!(text.starts_with("1 file, +1 -0 and more\n"), "{text}");
    }

    #[test]
    fn long_lines_are_cut() {
        let line = format!("+{}\n", "é".repeat(LINE + 4));
        assert!(shown(line.as_bytes()).ends_with("éé [5 characters more]\n"));
        let exact = format!("{}\n", "a".repeat(LINE));
        assert_eq!(shown(exact.as_bytes()), exact);
    }
}

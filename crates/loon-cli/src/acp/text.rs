//! Text as a client shows it: bounded, fenced where Markdown would spoil it, and free of what could
//! steer a terminal.

use std::borrow::Cow;

/// Most bytes of a call's output that are told.
const MAX_OUTPUT: usize = 32 * 1024;

/// Most characters of a title.
const MAX_TITLE: usize = 200;

/// One line that is not too long.
pub(super) fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Text as it is, between marks that it cannot hold itself.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// Text without its middle, if it is too long; it says so itself.
pub(super) fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_OUTPUT {
        return text.into();
    }
    let head = text.floor_char_boundary(MAX_OUTPUT / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_OUTPUT / 2);
    let left_out = tail - head;
    format!("{}\n… ({left_out} bytes are not shown)\n{}", &text[..head], &text[tail..]).into()
}

/// A remark of Loom between words of the model.
pub(super) fn remark(text: &str) -> String {
    let mut quoted = String::from("\n\n");
    for (number, line) in text.lines().enumerate() {
        quoted.push_str(if number == 0 { "> **Loom:** " } else { "> " });
        quoted.push_str(line);
        quoted.push('\n');
    }
    quoted.push('\n');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("``` x ````"), "`````\n``` x ````\n`````");
    }

    #[test]
    fn long_output_keeps_both_ends_and_says_what_is_missing() {
        let text = format!("begin{}end", "é".repeat(MAX_OUTPUT));
        let shown = bounded(&text);
        assert!(shown.starts_with("begin") && shown.ends_with("end"));
        assert!(shown.contains("bytes are not shown") && shown.len() < MAX_OUTPUT + 100);
        assert_eq!(bounded("short"), "short");
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(title("a\n  b\tc"), "a b c");
        assert_eq!(title(&"x".repeat(300)).chars().count(), MAX_TITLE + 1);
    }

    #[test]
    fn a_remark_stands_apart() {
        assert_eq!(remark("one\ntwo"), "\n\n> **Loom:** one\n> two\n\n");
    }
}

//! What servers say, made fit to be shown: no control characters, nothing that shows text in another
//! order or hides it, and bounded.

use loon_api::text::substitute;

/// The text without what could deceive its reader.
pub(crate) fn safe(text: &str) -> String {
    text.chars().filter(|ch| !is_hidden(*ch)).map(substitute).collect()
}

/// [`safe`] on one line of at most `most` bytes.
pub(crate) fn line(text: &str, most: usize) -> String {
    let flat: String = safe(text).split_whitespace().collect::<Vec<_>>().join(" ");
    clipped(flat, most)
}

/// [`safe`] with at most `most` bytes.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    clipped(safe(text), most)
}

fn clipped(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

/// Marks that reorder text, and characters that nobody sees but a model reads.
fn is_hidden(ch: char) -> bool {
    matches!(
        ch,
        '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A size as people read it.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_a_reader_is_gone_or_visible() {
        assert_eq!(safe("a\u{1b}[31mb\u{202e}c\u{e0041}\n\td\0"), "a\u{241b}[31mbc\n\td\u{2400}");
        assert_eq!(line(" a\n\r b\t", 100), "a \u{240d} b");
        assert_eq!(bounded("äää", 3), "ä…");
        assert_eq!(
            (size(10), size(2048), size(3 << 20)),
            ("10 bytes".into(), "2.0 KiB".into(), "3.0 MiB".into())
        );
    }
}

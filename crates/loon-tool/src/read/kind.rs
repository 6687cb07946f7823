//! What sort of file it is, by its first bytes.

use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;

use crate::text;
use crate::write_path::{Document, Encoding};

/// Bytes that are looked at.
pub(crate) const SAMPLE: usize = 8 * 1024;
/// Bytes of a file that is no text which are shown all the same.
const GLIMPSE: usize = 64;

/// Known beginnings of files that are no text.
const BEGINNINGS: [(&[u8], &str); 20] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (also used by office documents and packages)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O library"),
    (b"MZ", "a Windows program or library"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"RIFF", "RIFF media (WebP, WAV, AVI)"),
];

/// True if these first bytes are those of a file that is no text.
pub(crate) fn is_binary(sample: &[u8]) -> bool {
    if is_utf16(sample) {
        return false;
    }
    let odd = sample.iter().filter(|byte| is_odd(**byte)).count();
    // Neither has a place in text: a NUL not once, other control characters not in such numbers.
    sample.contains(&0) || odd * 10 > sample.len()
}

/// True if these first bytes announce UTF-16.
pub(crate) fn is_utf16(sample: &[u8]) -> bool {
    let mark = &sample[..sample.len().min(4)];
    matches!(Document::decode(mark.to_vec()).encoding(), Encoding::Utf16Le | Encoding::Utf16Be)
}

fn is_odd(byte: u8) -> bool {
    matches!(byte, 0x01..=0x07 | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F)
}

/// What a binary file is, as far as its first bytes say.
pub(crate) fn name(sample: &[u8]) -> &'static str {
    BEGINNINGS
        .iter()
        .find(|(beginning, _)| sample.starts_with(beginning))
        .map_or("binary data", |(_, name)| name)
}

/// The first bytes of a file that is no text, made visible.
pub(crate) fn glimpse(sample: &[u8]) -> String {
    let first = &sample[..sample.len().min(GLIMPSE)];
    text::visible_line(&String::from_utf8_lossy(first))
}

/// What an entry is that is neither file nor folder.
pub(crate) fn special(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "no regular file"
    }
}

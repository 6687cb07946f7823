//! The encodings a text file may have, and how single characters pass in both directions.

/// How a file's bytes stand for characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8; bytes that are none are kept and shown as U+FFFD.
    Utf8,
    /// UTF-16, low byte first. Only with a byte order mark.
    Utf16Le,
    /// UTF-16, high byte first. Only with a byte order mark.
    Utf16Be,
    /// One byte a character (Windows-1252, a superset of Latin-1): files that have bytes above
    /// ASCII, none of which are UTF-8.
    Windows1252,
}

/// One step through encoded text: the character, and how many bytes stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) ch: char,
    pub(super) len: usize,
    /// The bytes stand for no character; `ch` is U+FFFD.
    pub(super) foreign: bool,
}

impl Encoding {
    /// The encoding of these bytes and the length of their byte order mark.
    pub(super) fn detect(bytes: &[u8]) -> (Self, usize) {
        match bytes {
            [0xEF, 0xBB, 0xBF, ..] => (Self::Utf8, 3),
            [0xFF, 0xFE, ..] => (Self::Utf16Le, 2),
            [0xFE, 0xFF, ..] => (Self::Utf16Be, 2),
            _ if looks_single_byte(bytes) => (Self::Windows1252, 0),
            _ => (Self::Utf8, 0),
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16 (little endian)",
            Self::Utf16Be => "UTF-16 (big endian)",
            Self::Windows1252 => "Windows-1252",
        }
    }

    /// The first character of `bytes`, which must not be empty.
    pub(super) fn decode_first(self, bytes: &[u8]) -> Decoded {
        match self {
            Self::Utf8 => decode_utf8(bytes),
            Self::Utf16Le => decode_utf16(bytes, u16::from_le_bytes),
            Self::Utf16Be => decode_utf16(bytes, u16::from_be_bytes),
            Self::Windows1252 => {
                let byte = bytes.first().copied().unwrap_or_default();
                Decoded { ch: windows_1252(byte), len: 1, foreign: false }
            }
        }
    }

    /// The ASCII characters at the beginning of `bytes`, up to a line ending or to `most` of them.
    /// Empty where ASCII takes more than a byte.
    pub(super) fn ascii_run(self, bytes: &[u8], most: usize) -> &str {
        if matches!(self, Self::Utf16Le | Self::Utf16Be) {
            return "";
        }
        let within_line = |byte: &&u8| byte.is_ascii() && !matches!(byte, b'\n' | b'\r');
        let length = bytes.iter().take(most).take_while(within_line).count();
        std::str::from_utf8(&bytes[..length]).unwrap_or_default()
    }

    /// Appends a character; false if this encoding has none for it.
    pub(super) fn encode(self, ch: char, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Utf8 => out.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes()),
            Self::Utf16Le | Self::Utf16Be => {
                for unit in ch.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(&match self {
                        Self::Utf16Le => unit.to_le_bytes(),
                        _ => unit.to_be_bytes(),
                    });
                }
            }
            Self::Windows1252 => match single_byte(ch) {
                Some(byte) => out.push(byte),
                None => return false,
            },
        }
        true
    }
}

/// Bytes above ASCII, and not one well-formed UTF-8 sequence among them.
fn looks_single_byte(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err() && bytes.utf8_chunks().all(|chunk| chunk.valid().is_ascii())
}

fn decode_utf8(bytes: &[u8]) -> Decoded {
    let width = match bytes.first() {
        Some(byte @ ..=0x7F) => {
            return Decoded { ch: char::from(*byte), len: 1, foreign: false };
        }
        None => 1,
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(_) => 4,
    };
    let ch = bytes
        .get(..width)
        .and_then(|sequence| std::str::from_utf8(sequence).ok())
        .and_then(|text| text.chars().next());
    match ch {
        Some(ch) => Decoded { ch, len: ch.len_utf8(), foreign: false },
        None => Decoded { ch: char::REPLACEMENT_CHARACTER, len: 1, foreign: true },
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Decoded {
    let units = bytes.chunks_exact(2).take(2).map(|pair| unit([pair[0], pair[1]]));
    let decoded = char::decode_utf16(units).next().and_then(Result::ok);
    decoded.map_or(
        Decoded { ch: char::REPLACEMENT_CHARACTER, len: bytes.len().min(2), foreign: true },
        |ch| Decoded { ch, len: ch.len_utf16() * 2, foreign: false },
    )
}

/// What the bytes 0x80 to 0x9F stand for; the five unassigned ones stand for themselves.
const HIGH_CONTROLS: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2C6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9F => HIGH_CONTROLS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

fn single_byte(ch: char) -> Option<u8> {
    if let Some(place) = HIGH_CONTROLS.iter().position(|high| *high == ch) {
        return u8::try_from(0x80 + place).ok();
    }
    u8::try_from(u32::from(ch)).ok().filter(|byte| !(0x80..=0x9F).contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_byte_passes_both_ways() {
        for byte in 0..=u8::MAX {
            let mut out = Vec::new();
            assert!(Encoding::Windows1252.encode(windows_1252(byte), &mut out));
            assert_eq!(out, [byte]);
        }
        assert_eq!(single_byte('語'), None);
    }

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(Encoding::detect(b"plain"), (Encoding::Utf8, 0));
        assert_eq!(Encoding::detect("caf\u{e9}".as_bytes()), (Encoding::Utf8, 0));
        assert_eq!(Encoding::detect(b"caf\xe9 au lait"), (Encoding::Windows1252, 0));
        // One real sequence beside the stray byte: this is UTF-8 with damage.
        assert_eq!(Encoding::detect(b"caf\xc3\xa9 \xff"), (Encoding::Utf8, 0));
        assert_eq!(Encoding::detect(b"\xef\xbb\xbfx"), (Encoding::Utf8, 3));
        assert_eq!(Encoding::detect(b"\xff\xfex\0"), (Encoding::Utf16Le, 2));
        assert_eq!(Encoding::detect(b"\xfe\xff\0x"), (Encoding::Utf16Be, 2));
    }

    #[test]
    fn broken_sequences_are_foreign_and_counted_byte_by_byte() {
        let foreign = |len| Decoded { ch: '\u{FFFD}', len, foreign: true };
        assert_eq!(Encoding::Utf8.decode_first(b"\xe2\x82x"), foreign(1));
        assert_eq!(Encoding::Utf16Le.decode_first(b"\x00\xd8x\0"), foreign(2));
        assert_eq!(Encoding::Utf16Be.decode_first(b"x"), foreign(1));
        let smiley = Encoding::Utf16Le.decode_first(b"\x3d\xd8\x00\xde");
        assert_eq!(smiley, Decoded { ch: '\u{1F600}', len: 4, foreign: false });
    }
}

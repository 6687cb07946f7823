//! Short hashes as text.

use sha2::{Digest as _, Sha256};

/// The first `bytes` bytes of the SHA-256, hexadecimal.
pub(crate) fn hex(data: impl AsRef<[u8]>, bytes: usize) -> String {
    let hash = Sha256::digest(data);
    hash.iter().take(bytes).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

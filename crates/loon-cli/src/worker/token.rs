//! The token that opens a worker.

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;

/// Shortest token that is taken, in bytes. Requests can be sent as often as somebody likes.
const MIN_BYTES: usize = 16;

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token(SecretString);

impl Token {
    /// The token that a variable of the environment holds, if it is set.
    pub(crate) fn from_variable(name: &str) -> Result<Option<Self>, Failure> {
        let Some(text) = std::env::var(name).ok().filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        let text = text.trim().to_owned();
        if text.len() < MIN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!("The token in {name} is not one to rely on.");
            let hint = format!(
                "Use {MIN_BYTES} or more printable characters without spaces, for example of `openssl rand -hex 24`."
            );
            return Err(Failure::usage(message).hint(hint));
        }
        Ok(Some(Self(text.into())))
    }

    /// What a request sends.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0.expose_secret())
    }

    /// Whether a request sent it. Takes as long for any other text of its length: hashes are
    /// compared, and to their end.
    pub(crate) fn opens(&self, header: &[u8]) -> bool {
        let (ours, theirs) = (Sha256::digest(self.header()), Sha256::digest(header));
        ours.iter().zip(theirs.iter()).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_opens() {
        let token = Token("0123456789abcdef".to_owned().into());
        assert!(token.opens(b"Bearer 0123456789abcdef"));
        for wrong in
            ["", "Bearer ", "Bearer 0123456789abcde", "0123456789abcdef", "Bearer 0123456789abcdeg"]
        {
            assert!(!token.opens(wrong.as_bytes()), "{wrong}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }
}

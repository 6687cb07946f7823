//! Anthropic Messages, and what compatible servers make of it.

pub(crate) mod request;
pub(crate) mod stream;

//! Model wire formats, streams, catalog and prices. Does not know what a tool means.
//!
//! A [`Provider`] is a server with a key, or a script; [`Provider::model`] gives the
//! [`Model`](loon_kernel::port::Model) that the gate runs. Bytes of an answer go through three
//! steps, each of which knows nothing of the next: `sse` makes events of them, one of the three
//! format modules makes a draft of the events, and `exchange` tells what is new in the draft and,
//! at the explicit end, hands over the answer.

mod anthropic;
pub mod catalog;
pub mod combo;
mod draft;
mod error;
mod exchange;
mod history;
mod http;
mod member;
mod openai_chat;
mod openai_responses;
pub mod pricing;
mod provider;
pub mod script;
pub mod sse;
#[cfg(test)]
mod testing;
mod wire;

pub use catalog::{LocalServer, RemoteModel, detect_local};
pub use combo::{Candidate, Combo};
pub use http::Timeouts;
pub use provider::{
    ModelOptions, Provider, ProviderConfig, ProviderError, ProviderKind, ScriptSource,
};

//! The client of MCP servers: their tools, resources and prompts as tools behind the gate.
//!
//! A [`Pool`] holds the servers of the settings for a whole process. A server is started when it is
//! first wanted and stays; what it says is not trusted in any respect: names are mapped, schemas mended
//! or refused, texts made safe and bounded. The wire is the official SDK's; starting programs is
//! `loon-exec`'s.

mod adapter;
mod client;
mod config;
mod connection;
mod digest;
mod http;
mod listing;
mod names;
mod offer;
mod pool;
mod result;
mod results;
mod schema;
mod seen;
mod server;
mod stdio;
mod tail;
mod tool;
mod words;

pub use config::{ServerConfig, Way};
pub use pool::{Pool, PoolOptions};

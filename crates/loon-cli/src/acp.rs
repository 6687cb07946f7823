//! `loon acp`: the Agent Client Protocol over standard input and output, with which an editor drives
//! sessions. A front end like the others: it sends commands and tells events, and holds nothing of
//! how a session works.
//!
//! One task reads what the client sends and hands it to the task of its session, which holds one
//! runtime. What is to be written waits in a bounded channel, and a session takes its next event only
//! when all that the last one says was handed over. So a client that stops reading stops the work,
//! and does not fill the memory.

mod commands;
mod connection;
mod diff;
mod handshake;
mod left_out;
mod list;
mod live;
mod narrator;
mod options;
mod permission;
mod prompt;
mod session;
mod stdio;
mod stop;
mod text;
mod tool_call;
mod wire;

pub(crate) use self::connection::serve;

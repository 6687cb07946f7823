//! End-to-end tests: the built `loon`, as a person or a program runs it, against scripted servers.

#![expect(clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod acp;
mod agents;
mod bash;
mod budget;
mod cancel;
mod combos;
mod commands;
mod compaction;
mod config;
mod custom_commands;
mod demo;
mod edits;
mod faults;
mod guidance;
mod headless;
mod hooks;
mod integrity;
mod journal;
mod mcp;
mod permission;
mod provider;
mod receipts;
mod record;
mod replay;
mod scripts;
mod secrets;
mod sessions;
mod skills;
mod story;
mod subagents;
mod tools;
mod tui;
mod ultra;
mod user_tools;
mod warming;
mod wires;
mod worker;

//! Pools against servers on this machine, through the real gate: what works, and what servers do wrong.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

#[path = "servers/bench.rs"]
mod bench;
#[path = "servers/calls.rs"]
mod calls;
#[path = "servers/faults.rs"]
mod faults;
#[path = "servers/http.rs"]
mod http;

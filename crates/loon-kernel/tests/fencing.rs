//! The protocol of fences and cancels, every interleaving of it: once as a model that follows the file
//! store step by step, and once with the stores themselves.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "fencing/model.rs"]
mod model;
#[path = "fencing/schedules.rs"]
mod schedules;

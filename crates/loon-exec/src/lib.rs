//! The one place that starts processes: groups, pipes, bounded buffers, clean-up, and the Git
//! wrapper. Knows neither tools nor sessions.
//!
//! [`Spawner`] makes a [`Spawn`], and [`Spawn::run`] gives back a [`Finished`]. What holds for every
//! process started here:
//!
//! - it leads a session and a process group of its own, without a terminal;
//! - its standard input is empty unless bytes are given;
//! - its output is bounded while it is read, with the number of bytes left out;
//! - it is finished when its leader is finished, whatever a background child does with the pipe;
//! - nothing of its session outlives the run: not on exit, timeout, cancel or drop.

mod capture;
pub mod git;
mod group;
mod leader;
mod pump;
mod spawn;

pub use capture::Captured;
pub use git::{Git, GitError};
pub use spawn::{Cause, Exit, Finished, Spawn, SpawnError, Spawner};

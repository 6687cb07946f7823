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
//!
//! [`Spawn::start_process`] makes a [`Process`] instead, which goes on beside us, may be written to,
//! and may have a terminal of its own.

mod capture;
pub mod git;
mod group;
mod leader;
mod lines;
mod owner;
mod process;
mod pump;
mod ring;
mod session;
mod spawn;
mod terminal;

pub use capture::Captured;
pub use git::{Git, GitError};
pub use lines::{Ended, LineChild, LineInput};
pub use owner::{Leftover, leftovers};
pub use process::{Console, Process};
pub use ring::Piece;
pub use spawn::{Cause, Exit, Finished, Spawn, SpawnError, Spawner};
pub use terminal::WindowSize;

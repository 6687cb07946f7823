//! The one way in which files of a project change.
//!
//! A change is planned in memory on the bytes that are on disk ([`load`], [`Document::splice`]) and
//! put in place by [`commit`], together with all other changes of the call or not at all. Nothing
//! else in Loom writes to a project's files.

mod anchor;
mod call;
mod commit;
mod document;
mod encoding;
mod error;
mod plan;
mod sequence;
mod splice;
pub(crate) mod tree;

pub use call::Call;
pub use commit::commit;
pub use document::{Document, Ending};
pub use encoding::Encoding;
pub use error::WriteError;
pub use plan::{Described, Knowledge, MAX_TEXT_BYTES, Planned, load, preview, vacant};
pub(crate) use sequence::{Action, Intent, perform, trash_names, trash_place};
pub use splice::{Splice, SpliceError};

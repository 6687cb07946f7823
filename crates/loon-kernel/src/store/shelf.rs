//! What is known of a journal from outside, without reading it: whether it changed, and who writes it.

use loon_api::{At, Envelope};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::StoreError;

/// A place in a journal between two records. Zero is before the first; others come from a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub u64);

/// Records of one execution, oldest first, each with the place behind it.
pub type PlacedRecords = Box<dyn Iterator<Item = Result<(Envelope, Place), StoreError>> + Send>;

/// What tells two states of a journal apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Its length: bytes on disk, records in memory.
    pub len: u64,
    /// Nanoseconds between 1970 and its last change.
    pub modified: i64,
    /// Lists leave it out.
    pub archived: bool,
}

/// The process that writes a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// The machine it runs on.
    #[serde(default)]
    pub host: Option<String>,
    /// When it opened the journal.
    #[serde(default)]
    pub since: Option<At>,
}

impl Holder {
    /// Who it is, in words: `process 4711 since 2026-11-30 12:00 UTC`, with the machine if that is not
    /// this one.
    pub fn words(&self) -> String {
        let since = self.since.map(|at| {
            let at = at.to_string();
            format!(" since {} UTC", at.get(..16).unwrap_or(&at).replace('T', " "))
        });
        let here = this_host();
        let elsewhere = self.host.as_ref().filter(|host| Some(host.as_str()) != here.as_deref());
        let on = elsewhere.map(|host| format!(" on {host}"));
        format!("process {}{}{}", self.pid, on.unwrap_or_default(), since.unwrap_or_default())
    }
}

/// The name of this machine.
pub(super) fn this_host() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok()
}

/// Tells of changes of one journal until it is dropped. The number moves on with each of them, and
/// several may count as one.
pub struct Changes {
    /// The number.
    pub seen: watch::Receiver<u64>,
    /// Whatever has to live as long.
    pub(super) _source: Box<dyn Send + Sync>,
}

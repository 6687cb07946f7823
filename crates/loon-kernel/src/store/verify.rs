//! Checks a journal line by line: chain, numbers, fences, end and payloads.

use loon_api::{ExecutionId, Seq};

use super::line::{End, Link, TERMINAL, hash, inline, no_hash};
use super::{Damage, Verified};

/// What is known of a journal while it is checked. A line counts as intact only once the next one
/// holds its hash.
pub(super) struct Verifier<'a> {
    exec: ExecutionId,
    fetch: &'a dyn Fn(&str) -> Result<String, String>,
    /// What was made durable.
    durable: Option<End>,
    found: Verified,
    line: u64,
    last: Option<Last>,
    fence: u64,
}

struct Last {
    seq: Seq,
    hash: String,
    bytes: u64,
    ended: bool,
}

/// Why a line is bad.
pub(super) enum Fault {
    /// It is no record at all, as if its writing had been cut off.
    Torn(String),
    /// It is a record, but not the one that belongs here; the number is that of the bad line.
    Changed(u64, String),
}

impl<'a> Verifier<'a> {
    pub(super) fn new(
        exec: ExecutionId,
        durable: Option<End>,
        fetch: &'a dyn Fn(&str) -> Result<String, String>,
    ) -> Self {
        let found = Verified::default();
        Self { exec, fetch, durable, found, line: 0, last: None, fence: 0 }
    }

    /// Checks the next line, given without its end.
    pub(super) fn check(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.line += 1;
        let link = Link::parse(line).map_err(Fault::Torn)?;
        self.check_chain(&link)?;
        self.commit();
        self.check_record(&link)?;
        if !link.blobs.is_empty() {
            inline(line, &link.blobs, self.fetch).map_err(|reason| self.fault(reason))?;
        }
        let hash = hash(line);
        if self.durable.as_ref().is_some_and(|end| end.seq == link.seq && end.hash != hash) {
            return Err(self.fault("it is not the record that was made durable"));
        }
        self.fence = link.fence.unwrap_or(self.fence);
        self.last = Some(Last {
            seq: link.seq,
            hash,
            bytes: line.len() as u64 + 1,
            ended: TERMINAL.contains(&link.kind.as_ref()),
        });
        Ok(())
    }

    fn check_chain(&self, link: &Link<'_>) -> Result<(), Fault> {
        let Some(prev) = link.prev.as_deref() else {
            return Err(self.fault("it has no hash of the line before"));
        };
        match &self.last {
            None if prev != no_hash() => Err(self.fault("it is not the first line")),
            Some(last) if prev != last.hash => {
                let reason = format!("it, or its hash in line {}, was changed", self.line);
                Err(Fault::Changed(self.line - 1, reason))
            }
            None | Some(_) => Ok(()),
        }
    }

    fn check_record(&self, link: &Link<'_>) -> Result<(), Fault> {
        let expected = self.found.records + 1;
        if self.found.ended {
            return Err(self.fault("it follows the record that ends the execution"));
        }
        if link.seq != expected {
            return Err(self.fault(format!("record {} where {expected} must follow", link.seq)));
        }
        if link.exec != Some(self.exec) {
            return Err(self.fault("it belongs to another execution"));
        }
        if link.at.is_none() {
            return Err(self.fault("it has no time"));
        }
        match link.fence {
            Some(fence) if fence >= self.fence.max(1) => Ok(()),
            Some(fence) => Err(self.fault(format!("fence {fence} after {}", self.fence))),
            None => Err(self.fault("it has no fence")),
        }
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::Changed(self.line, reason.into())
    }

    fn commit(&mut self) {
        if let Some(last) = self.last.take() {
            self.found.records = last.seq;
            self.found.bytes += last.bytes;
            self.found.ended = last.ended;
        }
    }

    /// Ends with a bad line. `at_end` says that nothing but empty lines follows it.
    pub(super) fn damaged(mut self, fault: Fault, at_end: bool) -> Verified {
        let damage = match fault {
            Fault::Changed(line, reason) => Damage { line, reason, mendable: false },
            Fault::Torn(reason) => {
                self.commit();
                // A first line that cannot be read leaves nothing to go on from.
                let mendable = at_end && self.found.records > 0;
                self.found.unfinished = mendable && self.lost() == 0;
                Damage { line: self.line, reason, mendable }
            }
        };
        self.found.damage = Some(damage);
        self.found
    }

    /// Ends with the last line. `loose_end` says what is wrong with the bytes after it, if anything.
    pub(super) fn done(mut self, loose_end: Option<&str>) -> Verified {
        self.commit();
        let line = self.line + 1;
        let lost = self.lost();
        let damage = |reason: String| Some(Damage { line, reason, mendable: true });
        self.found.damage = if self.found.records == 0 {
            Some(Damage { line: 1, reason: "the journal is empty".to_owned(), mendable: false })
        } else if let Some(reason) = loose_end {
            self.found.unfinished = lost == 0;
            damage(reason.to_owned())
        } else if lost > 0 {
            damage(missing(lost))
        } else {
            None
        };
        self.found
    }

    /// Records that had been made durable and were not found.
    fn lost(&self) -> u64 {
        self.durable.as_ref().map_or(0, |end| end.seq).saturating_sub(self.found.records)
    }
}

/// How missing records are called.
pub(super) fn missing(records: u64) -> String {
    format!("{records} records that had been made durable are missing here")
}

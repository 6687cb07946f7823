//! Journals in memory, with the same lines, fences and leases as on disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loon_api::event::SessionForked;
use loon_api::{At, BoxFuture, Envelope, ExecutionId, Seq, VERSION};
use tokio::sync::watch;

use super::line::{Batch, End, Link, TERMINAL, decode, move_to, rehome};
use super::verify::Verifier;
use super::{
    Changes, Holder, IsWhole, JournalStore, JournalWriter, Opened, Place, PlacedRecords, Records,
    Repaired, Stamp, StopRequest, StoreError, SyncJob, Verified,
};

/// Journals that live as long as the store.
#[derive(Clone, Default)]
pub struct MemoryStore {
    journals: Arc<Mutex<HashMap<ExecutionId, Journal>>>,
    /// Changes when a fence is taken.
    fences: watch::Sender<()>,
}

#[derive(Clone, Default)]
struct Journal {
    lines: Vec<Vec<u8>>,
    blobs: HashMap<String, String>,
    fence: u64,
    /// The fence of the writer that holds the lease.
    lease: Option<u64>,
    stop: Option<StopRequest>,
    changes: watch::Sender<u64>,
}

impl Journal {
    fn fetch(&self, hash: &str) -> Result<String, String> {
        self.blobs.get(hash).cloned().ok_or_else(|| format!("payload {hash} is missing"))
    }

    fn end(&self) -> End {
        self.lines.last().map_or_else(End::nothing, |line| End {
            seq: self.lines.len() as u64,
            hash: super::line::hash(line),
        })
    }
}

impl MemoryStore {
    fn journals(&self) -> MutexGuard<'_, HashMap<ExecutionId, Journal>> {
        self.journals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy(&self, exec: ExecutionId) -> Result<Journal, StoreError> {
        let journals = self.journals();
        let journal = journals.get(&exec).filter(|journal| !journal.lines.is_empty());
        journal.cloned().ok_or(StoreError::NotFound { exec })
    }

    /// Fails unless `fence` is the newest.
    fn check(&self, exec: ExecutionId, fence: u64) -> Result<(), StoreError> {
        match self.journals().get(&exec) {
            Some(journal) if journal.fence == fence => Ok(()),
            Some(_) | None => Err(StoreError::Fenced { exec }),
        }
    }

    fn writer(&self, exec: ExecutionId, needs_lease: bool) -> Result<Opened, StoreError> {
        let mut journals = self.journals();
        let journal = journals.get_mut(&exec).filter(|journal| !journal.lines.is_empty());
        let journal = journal.ok_or(StoreError::NotFound { exec })?;
        if needs_lease && journal.lease.is_some() {
            return Err(StoreError::Busy { exec, pid: Some(std::process::id()) });
        }
        journal.fence += 1;
        journal.changes.send_modify(|number| *number += 1);
        journal.lease.get_or_insert(journal.fence);
        self.fences.send_replace(());
        let writer =
            MemoryWriter { exec, fence: journal.fence, end: journal.end(), store: self.clone() };
        Ok(Opened { writer: Box::new(writer), repaired_bytes: None })
    }
}

impl JournalStore for MemoryStore {
    fn create(&self, exec: ExecutionId) -> Result<Box<dyn JournalWriter>, StoreError> {
        let mut journals = self.journals();
        if journals.contains_key(&exec) {
            return Err(StoreError::Exists { exec });
        }
        journals.insert(exec, Journal { fence: 1, lease: Some(1), ..Journal::default() });
        Ok(Box::new(MemoryWriter { exec, fence: 1, end: End::nothing(), store: self.clone() }))
    }

    fn open(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        self.writer(exec, true)
    }

    fn take_over(&self, exec: ExecutionId) -> Result<Opened, StoreError> {
        self.writer(exec, false)
    }

    fn read(&self, exec: ExecutionId) -> Result<Records, StoreError> {
        let journal = self.copy(exec)?;
        Ok(Box::new((0..journal.lines.len()).map(move |index| {
            let fetch = |hash: &str| journal.fetch(hash);
            decode(&journal.lines[index], exec, None, &fetch).map_err(|reason| {
                let line = index as u64 + 1;
                StoreError::Corrupt { exec, line, reason, intact: line - 1, mendable: false }
            })
        })))
    }

    fn read_lean(&self, exec: ExecutionId, _is_whole: IsWhole) -> Result<Records, StoreError> {
        self.read(exec)
    }

    fn read_from(&self, exec: ExecutionId, place: Place) -> Result<PlacedRecords, StoreError> {
        let first = usize::try_from(place.0).unwrap_or(usize::MAX);
        let records = self.read(exec)?.zip(1..).skip(first);
        Ok(Box::new(records.map(|(record, behind)| Ok((record?, Place(behind))))))
    }

    fn stamp(&self, exec: ExecutionId) -> Option<Stamp> {
        let journal = self.copy(exec).ok()?;
        Some(Stamp { len: journal.lines.len() as u64, ..Stamp::default() })
    }

    fn holder(&self, exec: ExecutionId) -> Option<Holder> {
        let own = Holder { pid: std::process::id(), host: None, since: None };
        self.is_live(exec).then_some(own)
    }

    fn changes(&self, exec: ExecutionId) -> Result<Changes, StoreError> {
        let journals = self.journals();
        let journal = journals.get(&exec).ok_or(StoreError::NotFound { exec })?;
        Ok(Changes { seen: journal.changes.subscribe(), _source: Box::new(()) })
    }

    fn fork(&self, from: ExecutionId, upto: Seq, now: At) -> Result<ExecutionId, StoreError> {
        let journal = self.copy(from)?;
        let exec = ExecutionId::generate();
        let mut events = Vec::new();
        for (line, number) in journal.lines.iter().zip(1..=upto) {
            if Link::parse(line).is_ok_and(|link| TERMINAL.contains(&link.kind.as_ref())) {
                break;
            }
            let moved = move_to(line, exec).map_err(|reason| StoreError::Corrupt {
                exec: from,
                line: number,
                reason,
                intact: number - 1,
                mendable: false,
            })?;
            events.push(moved.event);
        }
        let at = events.len() as u64;
        let batch = Batch::of_events(exec, events, 1, &End::nothing())?;
        let event = SessionForked { from, records: at }.into();
        let record = Envelope { v: VERSION, seq: Some(at + 1), at: now, exec, turn: None, event };
        let last = Batch::of(exec, &[record], 1, &batch.end)?;
        let lines = batch.lines.into_iter().chain(last.lines).collect();
        let forked = Journal { lines, blobs: journal.blobs, fence: 1, ..Journal::default() };
        self.journals().insert(exec, forked);
        Ok(exec)
    }

    fn list(&self) -> Result<Vec<ExecutionId>, StoreError> {
        let journals = self.journals();
        let written = journals.iter().filter(|(_, journal)| !journal.lines.is_empty());
        let mut ids: Vec<ExecutionId> = written.map(|(exec, _)| *exec).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    fn verify(&self, exec: ExecutionId) -> Result<Verified, StoreError> {
        let journal = self.copy(exec)?;
        let fetch = |hash: &str| journal.fetch(hash);
        let mut verifier = Verifier::new(exec, Some(journal.end()), &fetch);
        for line in &journal.lines {
            if let Err(fault) = verifier.check(line) {
                return Ok(verifier.damaged(fault, false));
            }
        }
        Ok(verifier.done(None))
    }

    fn repair(&self, exec: ExecutionId) -> Result<Repaired, StoreError> {
        self.open(exec)?;
        Ok(Repaired::default())
    }

    fn salvage(&self, exec: ExecutionId) -> Result<ExecutionId, StoreError> {
        let intact = self.verify(exec)?.records;
        let journal = self.copy(exec)?;
        let fetch = |hash: &str| journal.fetch(hash);
        let copy = ExecutionId::generate();
        let mut events = Vec::new();
        for (line, number) in journal.lines.iter().zip(1..=intact) {
            if Link::parse(line).is_ok_and(|link| TERMINAL.contains(&link.kind.as_ref())) {
                break;
            }
            let event = rehome(line, copy, &fetch).map_err(|reason| StoreError::Corrupt {
                exec,
                line: number,
                reason,
                intact,
                mendable: false,
            })?;
            events.push(event);
        }
        let batch = Batch::of_events(copy, events, 1, &End::nothing())?;
        let blobs = batch.blobs.into_iter().map(|blob| (blob.hash, blob.text)).collect();
        let salvaged = Journal { lines: batch.lines, blobs, fence: 1, ..Journal::default() };
        self.journals().insert(copy, salvaged);
        Ok(copy)
    }

    fn ask_to_stop(&self, exec: ExecutionId, reason: Option<&str>) -> Result<(), StoreError> {
        let mut journals = self.journals();
        let journal = journals.get_mut(&exec).ok_or(StoreError::NotFound { exec })?;
        journal.stop = Some(StopRequest::of(reason.unwrap_or_default()));
        Ok(())
    }

    fn asked_to_stop(&self, exec: ExecutionId) -> Result<Option<StopRequest>, StoreError> {
        Ok(self.journals().get(&exec).and_then(|journal| journal.stop.clone()))
    }

    fn is_live(&self, exec: ExecutionId) -> bool {
        self.journals().get(&exec).is_some_and(|journal| journal.lease.is_some())
    }
}

struct MemoryWriter {
    exec: ExecutionId,
    fence: u64,
    end: End,
    store: MemoryStore,
}

impl JournalWriter for MemoryWriter {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), StoreError> {
        let batch = Batch::of(self.exec, batch, self.fence, &self.end)?;
        let mut journals = self.store.journals();
        match journals.get_mut(&self.exec) {
            Some(journal) if journal.fence == self.fence => {
                journal.lines.extend(batch.lines);
                journal.blobs.extend(batch.blobs.into_iter().map(|blob| (blob.hash, blob.text)));
                self.end = batch.end;
                journal.changes.send_modify(|number| *number += 1);
                Ok(())
            }
            Some(_) | None => Err(StoreError::Fenced { exec: self.exec }),
        }
    }

    fn sync_job(&mut self) -> SyncJob {
        let checked = self.check();
        Box::new(|| checked)
    }

    fn take_lease(&mut self) -> bool {
        let mut journals = self.store.journals();
        let journal = journals.get_mut(&self.exec);
        journal.is_some_and(|journal| *journal.lease.get_or_insert(self.fence) == self.fence)
    }

    fn check(&self) -> Result<(), StoreError> {
        self.store.check(self.exec, self.fence)
    }

    fn taken_over(&self) -> BoxFuture<'static, ()> {
        let mut fences = self.store.fences.subscribe();
        let (store, exec, fence) = (self.store.clone(), self.exec, self.fence);
        Box::pin(async move {
            while store.check(exec, fence).is_ok() {
                // The sender lives in `store`, so an error cannot come up.
                let _ = fences.changed().await;
            }
        })
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        let mut journals = self.store.journals();
        if let Some(journal) = journals.get_mut(&self.exec) {
            journal.lease.take_if(|fence| *fence == self.fence);
            journal.changes.send_modify(|number| *number += 1);
        }
    }
}

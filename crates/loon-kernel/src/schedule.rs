//! Schedules: instants that are known beforehand, and one execution for each.
//!
//! The occurrences of a schedule depend on nothing but the schedule, so that any process finds the
//! same ones, and an occurrence that two processes fire begins one execution: its id is made of the
//! schedule's name and the instant.

use std::time::Duration;

use loon_api::{At, ExecutionId};
use sha2::{Digest as _, Sha256};

mod cron;

pub use cron::{Cron, CronError};

/// When something happens again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// At each multiple of this time since 1970, in UTC.
    Every(Duration),
    /// When five fields say, in UTC.
    Cron(Cron),
}

impl Schedule {
    /// The first occurrence after `now`; absent if there is none.
    pub fn next_after(&self, now: At) -> Option<At> {
        match self {
            Self::Every(period) => {
                let period = i64::try_from(period.as_millis()).ok().filter(|ms| *ms > 0)?;
                let next = now.unix_ms().div_euclid(period).checked_add(1)?.checked_mul(period)?;
                Some(At::from_unix_ms(next)).filter(|next| *next > now)
            }
            Self::Cron(cron) => cron.next_after(now),
        }
    }
}

/// The id of the execution of one occurrence. A `UUIDv7` of its instant, like all ids; where others
/// have chance it has a hash.
pub fn occurrence_id(schedule: &str, at: At) -> Option<ExecutionId> {
    let ms = u64::try_from(at.unix_ms()).ok()?;
    let hash = Sha256::digest(format!("{schedule}\n{ms}"));
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&hash[..10]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    format!("{:032x}", u128::from_be_bytes(bytes)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> At {
        text.parse().unwrap()
    }

    #[test]
    fn k070_a_period_has_the_same_occurrences_for_everybody() {
        let every = Schedule::Every(Duration::from_hours(24));
        let noon = at("2026-11-30T12:00:00Z");
        let next = every.next_after(noon).unwrap();
        assert_eq!(next, at("2026-12-01T00:00:00Z"));
        assert_eq!(every.next_after(next), Some(at("2026-12-02T00:00:00Z")));
        assert_eq!(Schedule::Every(Duration::ZERO).next_after(noon), None);
    }

    #[test]
    fn k070_an_occurrence_has_one_id_that_tells_its_instant() {
        let instant = at("2026-12-01T03:00:00Z");
        let id = occurrence_id("nightly", instant).unwrap();
        assert_eq!(occurrence_id("nightly", instant), Some(id));
        assert_eq!(id.created_ms(), Some(1_796_094_000_000));
        assert_ne!(occurrence_id("other", instant), Some(id));
        assert_ne!(occurrence_id("nightly", instant.plus(Duration::from_mins(1))), Some(id));
    }
}

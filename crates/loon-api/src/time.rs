//! Time as records carry it, and the clock port that lets tests use virtual time.

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An instant in UTC with millisecond resolution, written as RFC 3339
/// (`2026-11-30T12:00:00.000Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(Timestamp);

impl At {
    /// The instant `ms` milliseconds after the Unix epoch; out-of-range values saturate.
    pub fn from_unix_ms(ms: i64) -> Self {
        Self(Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        }))
    }

    /// Milliseconds since the Unix epoch.
    pub fn unix_ms(self) -> i64 {
        self.0.as_millisecond()
    }

    /// This instant moved forward; saturates at the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_ms(self.unix_ms().saturating_add(ms))
    }

    /// Time from `earlier` to this instant, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.unix_ms() - earlier.unix_ms()).unwrap_or(0))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for At {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Timestamp::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for At {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "At".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Where time comes from. The kernel and everything above it asks this port, never the system.
pub trait Clock: Send + Sync {
    /// The present instant. It may jump, forwards or backwards, when the system's time is set.
    fn now(&self) -> At;

    /// Time since some moment, the same for the whole process. It never jumps; for durations only.
    fn steady(&self) -> Duration;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_with_milliseconds() {
        let at = At::from_unix_ms(1_796_040_000_007);
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-11-30T12:00:00.007Z\"");
        assert_eq!(serde_json::from_str::<At>("\"2026-11-30T12:00:00.007Z\"").unwrap(), at);
        assert_eq!(at.plus(Duration::from_millis(3)).since(at), Duration::from_millis(3));
    }
}

//! An event with its place in the stream, and how one line of it is read and written.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::AgentEvent;
use crate::id::{ExecutionId, Seq, TurnNumber};
use crate::time::At;

/// An event with its place in the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Version of the vocabulary.
    pub v: u32,
    /// Place in the journal; absent for passing events.
    pub seq: Option<Seq>,
    /// When it happened.
    pub at: At,
    /// The execution it belongs to.
    pub exec: ExecutionId,
    /// The turn it belongs to, if any.
    pub turn: Option<TurnNumber>,
    /// What happened.
    pub event: AgentEvent,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(default)]
    v: u32,
    seq: Option<Seq>,
    at: At,
    exec: ExecutionId,
    turn: Option<TurnNumber>,
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &self.v)?;
        if let Some(seq) = self.seq {
            map.serialize_entry("seq", &seq)?;
        }
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry("exec", &self.exec)?;
        if let Some(turn) = self.turn {
            map.serialize_entry("turn", &turn)?;
        }
        map.serialize_entry("type", self.event.kind())?;
        self.event.serialize_fields(&mut map)?;
        map.end()
    }
}

impl Envelope {
    /// Reads one line of a stream or journal. Members that are not known are passed over; an event
    /// type that is not known comes back as [`AgentEvent::Unknown`].
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        let head: Head<'_> = serde_json::from_str(line)?;
        let event = AgentEvent::parse(&head.kind, line)?;
        Ok(Self { v: head.v, seq: head.seq, at: head.at, exec: head.exec, turn: head.turn, event })
    }
}

//! One record as one line: the event itself with `fence` and `prev` at its end, and with large
//! strings moved to blobs.

use std::borrow::Cow;

use loon_api::{AgentEvent, At, Envelope, ExecutionId, Seq, TurnNumber};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::StoreError;

/// A line longer than this gives its large strings away.
pub(super) const LINE_LIMIT: usize = 64 * 1024;

/// Strings up to this stay in the line.
const STRING_LIMIT: usize = 8 * 1024;

/// The hash of a line, hexadecimal.
pub(crate) type Hash = String;

/// `prev` of the first line.
pub(super) fn no_hash() -> Hash {
    "0".repeat(64)
}

/// SHA-256, hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A payload that left its line.
pub(super) struct Blob {
    pub(super) hash: Hash,
    pub(super) text: String,
}

/// What the chain needs of a line.
#[derive(Deserialize)]
pub(super) struct Link<'a> {
    #[serde(default)]
    pub(super) v: u32,
    pub(super) seq: Seq,
    #[serde(default)]
    pub(super) exec: Option<ExecutionId>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) fence: Option<u64>,
    #[serde(default, borrow)]
    pub(super) prev: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) blobs: Vec<String>,
    #[serde(default)]
    pub(super) at: Option<At>,
    #[serde(default)]
    pub(super) turn: Option<TurnNumber>,
    /// The oldest format that can read this journal; set by versions that break with the old.
    #[serde(default)]
    pub(super) min_reader: Option<u32>,
}

impl<'a> Link<'a> {
    /// The error says what is wrong. Text is checked here because the decoder skips over what it
    /// does not need.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// Writes `event` (JSON of an envelope) as a line without its end. Strings too large for a line come
/// back as blobs.
pub(super) fn encode(
    event: Vec<u8>,
    fence: u64,
    prev: &str,
) -> Result<(Vec<u8>, Vec<Blob>), serde_json::Error> {
    let (mut line, blobs) =
        if event.len() > LINE_LIMIT { spill(&event)? } else { (event, Vec::new()) };
    line.pop();
    line.extend_from_slice(format!(",\"fence\":{fence},\"prev\":\"{prev}\"}}").as_bytes());
    Ok((line, blobs))
}

/// Moves the largest strings out until the line is short enough. Where they were is kept in `blobs`,
/// so that nothing else that looks like a reference is taken for one.
fn spill(event: &[u8]) -> Result<(Vec<u8>, Vec<Blob>), serde_json::Error> {
    let mut value: Value = serde_json::from_slice(event)?;
    let mut found = Vec::new();
    large_strings(&value, &mut String::new(), &mut found);
    found.sort_by_key(|(_, len)| std::cmp::Reverse(*len));
    let mut excess = event.len().saturating_sub(LINE_LIMIT);
    let mut blobs = Vec::new();
    let mut places = Vec::new();
    for (place, len) in found {
        if excess == 0 {
            break;
        }
        let Some(Value::String(text)) = value.pointer_mut(&place).map(Value::take) else {
            continue;
        };
        let blob = Blob { hash: hash(text.as_bytes()), text };
        if let Some(slot) = value.pointer_mut(&place) {
            *slot = serde_json::json!({ "$blob": blob.hash, "bytes": blob.text.len() });
        }
        excess = excess.saturating_sub(len);
        blobs.push(blob);
        places.push(Value::String(place));
    }
    if let (Value::Object(members), false) = (&mut value, places.is_empty()) {
        members.insert("blobs".to_owned(), Value::Array(places));
    }
    Ok((serde_json::to_vec(&value)?, blobs))
}

fn large_strings(value: &Value, place: &mut String, found: &mut Vec<(String, usize)>) {
    let len = place.len();
    match value {
        Value::String(text) if text.len() > STRING_LIMIT => {
            found.push((place.clone(), text.len()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push('/');
                place.push_str(&index.to_string());
                large_strings(item, place, found);
                place.truncate(len);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                place.push('/');
                place.push_str(&name.replace('~', "~0").replace('/', "~1"));
                large_strings(member, place, found);
                place.truncate(len);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Stands in a record for the text of a tool's result or of a diff that was not read.
pub const LEFT_OUT: &str = "(this text was not read)";

/// Where such texts are.
const LEAVABLE: [&str; 2] = ["/item/result/", "/item/changes/"];

/// Puts the payloads back, those of results and diffs as [`LEFT_OUT`].
fn inline_lean(
    line: &[u8],
    places: &[String],
    fetch: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Value, String> {
    let (left, kept): (Vec<String>, Vec<String>) = places
        .iter()
        .cloned()
        .partition(|place| LEAVABLE.iter().any(|begin| place.starts_with(begin)));
    let mut value = inline(line, &kept, fetch)?;
    for place in left {
        let slot = value.pointer_mut(&place).ok_or_else(|| format!("there is no {place}"))?;
        *slot = Value::String(LEFT_OUT.to_owned());
    }
    Ok(value)
}

/// Puts the payloads back. `fetch` gets the text of a blob by its hash.
pub(super) fn inline(
    line: &[u8],
    places: &[String],
    fetch: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Value, String> {
    let mut value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    for place in places {
        let slot = value.pointer_mut(place).ok_or_else(|| format!("there is no {place}"))?;
        let name = slot.get("$blob").and_then(Value::as_str);
        let name = name.ok_or_else(|| format!("{place} names no payload"))?;
        *slot = Value::String(fetch(name)?);
    }
    if let Value::Object(members) = &mut value {
        members.shift_remove("blobs");
    }
    Ok(value)
}

/// True if the line may have blobs: they are listed right before the fence.
pub(super) fn may_have_blobs(line: &[u8]) -> bool {
    const AFTER: &[u8] = b"],\"fence\":";
    let tail = &line[line.len().saturating_sub(128)..];
    tail.windows(AFTER.len()).any(|window| window == AFTER)
}

/// Reads a line. A type, or a value in a known type, that this version does not know gives an
/// unknown event; only what is no record at all is an error.
pub(super) fn decode(
    line: &[u8],
    exec: ExecutionId,
    last_at: Option<At>,
    fetch: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Envelope, String> {
    decode_where(line, exec, last_at, fetch, &|_| true)
}

/// The same, but with [`LEFT_OUT`] for the texts of results and diffs of records that are not wanted
/// whole.
pub(super) fn decode_where(
    line: &[u8],
    exec: ExecutionId,
    last_at: Option<At>,
    fetch: &dyn Fn(&str) -> Result<String, String>,
    is_whole: &dyn Fn(Seq) -> bool,
) -> Result<Envelope, String> {
    let whole = if may_have_blobs(line) {
        let link = Link::parse(line)?;
        if link.blobs.is_empty() {
            Cow::Borrowed(line)
        } else if link.kind == "item.completed" && !is_whole(link.seq) {
            Cow::Owned(inline_lean(line, &link.blobs, fetch)?.to_string().into_bytes())
        } else {
            Cow::Owned(inline(line, &link.blobs, fetch)?.to_string().into_bytes())
        }
    } else {
        Cow::Borrowed(line)
    };
    let text = std::str::from_utf8(&whole).map_err(|error| error.to_string())?;
    match Envelope::parse(text) {
        Ok(envelope) if envelope.seq.is_some() => Ok(envelope),
        Ok(_) => Err("the record has no number".to_owned()),
        Err(error) => {
            let link = Link::parse(line).map_err(|_| error.to_string())?;
            Ok(Envelope {
                v: link.v,
                seq: Some(link.seq),
                at: link.at.or(last_at).ok_or_else(|| error.to_string())?,
                exec: link.exec.unwrap_or(exec),
                turn: link.turn,
                event: AgentEvent::Unknown { kind: link.kind.into_owned() },
            })
        }
    }
}

/// The event of a line as part of another execution: with payloads in place and without a link.
pub(super) fn rehome(
    line: &[u8],
    exec: ExecutionId,
    fetch: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<u8>, String> {
    let link = Link::parse(line)?;
    let mut value = inline(line, &link.blobs, fetch)?;
    if let Value::Object(members) = &mut value {
        members.shift_remove("fence");
        members.shift_remove("prev");
        members.insert("exec".to_owned(), Value::String(exec.to_string()));
    }
    Ok(value.to_string().into_bytes())
}

/// A record on its way to another execution, its payloads still under their names.
pub(super) struct Moved {
    /// The event as JSON without its link.
    pub(super) event: Vec<u8>,
    /// Names of its payloads.
    pub(super) blobs: Vec<String>,
}

/// The event of a line as part of another execution, whose payloads move with it.
pub(super) fn move_to(line: &[u8], exec: ExecutionId) -> Result<Moved, String> {
    let link = Link::parse(line)?;
    let mut value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut blobs = Vec::new();
    for place in &link.blobs {
        let name = value.pointer(place).and_then(|slot| slot.get("$blob")?.as_str());
        let name = name.filter(|name| is_hash(name));
        blobs.push(name.ok_or_else(|| format!("{place} names no payload"))?.to_owned());
    }
    if let Value::Object(members) = &mut value {
        members.shift_remove("fence");
        members.shift_remove("prev");
        members.insert("exec".to_owned(), Value::String(exec.to_string()));
    }
    Ok(Moved { event: value.to_string().into_bytes(), blobs })
}

/// True for the name of a payload.
pub(super) fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The types of records after which nothing follows.
pub(super) const TERMINAL: [&str; 3] =
    ["execution.cancelled", "execution.completed", "execution.failed"];

/// Where the next line must go on.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) seq: Seq,
    pub(super) hash: Hash,
}

impl End {
    /// The end of a journal that has no line yet.
    pub(super) fn nothing() -> Self {
        Self { seq: 0, hash: no_hash() }
    }
}

/// The lines of one batch with their payloads, and where the journal ends after it.
pub(super) struct Batch {
    pub(super) lines: Vec<Vec<u8>>,
    pub(super) blobs: Vec<Blob>,
    pub(super) end: End,
}

impl Batch {
    /// Encodes records that go on at `end`.
    pub(super) fn of(
        exec: ExecutionId,
        records: &[Envelope],
        fence: u64,
        end: &End,
    ) -> Result<Self, StoreError> {
        for (expected, record) in (end.seq + 1..).zip(records) {
            if record.seq != Some(expected) {
                let found = record.seq.unwrap_or(0);
                return Err(StoreError::Sequence { exec, expected, found });
            }
        }
        let events: Result<Vec<_>, _> = records.iter().map(serde_json::to_vec).collect();
        let events = events.map_err(|source| StoreError::Encode { exec, source })?;
        Self::of_events(exec, events, fence, end)
    }

    /// Encodes events, given as JSON with their numbers, that go on at `end`.
    pub(super) fn of_events(
        exec: ExecutionId,
        events: Vec<Vec<u8>>,
        fence: u64,
        end: &End,
    ) -> Result<Self, StoreError> {
        let mut batch = Self { lines: Vec::new(), blobs: Vec::new(), end: end.clone() };
        for event in events {
            let (line, blobs) = encode(event, fence, &batch.end.hash)
                .map_err(|source| StoreError::Encode { exec, source })?;
            batch.end = End { seq: batch.end.seq + 1, hash: hash(&line) };
            batch.blobs.extend(blobs);
            batch.lines.push(line);
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests;

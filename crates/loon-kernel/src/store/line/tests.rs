//! Lines hold what was put into them, whatever it was.

use std::collections::HashMap;

use loon_api::ExecutionId;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LINE_LIMIT, Link, decode, encode, inline, no_hash};
use crate::store::tests::note;

fn lookup(blobs: &HashMap<String, String>) -> impl Fn(&str) -> Result<String, String> {
    |hash: &str| blobs.get(hash).cloned().ok_or_else(|| format!("no {hash}"))
}

#[test]
fn a_line_is_the_event_with_its_link_at_the_end() {
    let (line, blobs) = encode(br#"{"v":1,"type":"x"}"#.to_vec(), 7, &no_hash()).unwrap();
    assert!(blobs.is_empty());
    let zeros = "0".repeat(64);
    let expected = format!(r#"{{"v":1,"type":"x","fence":7,"prev":"{zeros}"}}"#);
    assert_eq!(String::from_utf8(line).unwrap(), expected);
}

#[test]
fn the_largest_strings_go_first_and_no_more_than_needed() {
    let event = json!({
        "seq": 1, "type": "x",
        "small": "s".repeat(8 * 1024),
        "middle": "m".repeat(20_000),
        "a/b~c": ["l".repeat(50_000)],
    });
    let (line, blobs) = encode(event.to_string().into_bytes(), 1, &no_hash()).unwrap();
    assert!(line.len() < LINE_LIMIT);
    assert_eq!(blobs.len(), 1);
    assert_eq!(blobs[0].text, "l".repeat(50_000));
    let value: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(value["blobs"], json!(["/a~1b~0c/0"]));
    assert_eq!(value["a/b~c"][0], json!({ "$blob": blobs[0].hash, "bytes": 50_000 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_text_comes_back(message in ".{0,40}", times in 1_usize..2_000) {
        let exec = ExecutionId::generate();
        let record = note(exec, 5, &message.repeat(times));
        let (line, blobs) = encode(serde_json::to_vec(&record).unwrap(), 1, &no_hash()).unwrap();
        let blobs = blobs.into_iter().map(|blob| (blob.hash, blob.text)).collect();
        prop_assert!(line.len() < LINE_LIMIT + 1024);
        prop_assert_eq!(decode(&line, exec, None, &lookup(&blobs)), Ok(record));
    }

    #[test]
    fn payloads_come_back_at_their_places(lens in prop::collection::vec(0_usize..30_000, 0..8)) {
        let event = json!({
            "seq": 1,
            "type": "x",
            "parts": lens.iter().map(|len| json!({"t": "p".repeat(*len)})).collect::<Vec<_>>(),
        });
        let (line, blobs) = encode(event.to_string().into_bytes(), 1, &no_hash()).unwrap();
        let blobs = blobs.into_iter().map(|blob| (blob.hash, blob.text)).collect();
        let link = Link::parse(&line).unwrap();
        let mut back = inline(&line, &link.blobs, &lookup(&blobs)).unwrap();
        back.as_object_mut().unwrap().retain(|name, _| name != "fence" && name != "prev");
        prop_assert_eq!(back, event);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let exec = ExecutionId::generate();
        let _ = decode(&bytes, exec, None, &lookup(&HashMap::new()));
    }
}

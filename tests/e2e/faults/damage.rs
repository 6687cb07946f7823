//! Lines that were changed, doubled, swapped, lost or grown, at every place of a real journal.

use loon_kernel::{JournalStore, Verified};

use super::cuts::Written;

/// What is done to the lines at a place.
type Harm = fn(&mut Vec<Vec<u8>>, usize);

const HARMS: [(&str, Harm); 8] = [
    ("a bit is flipped", |lines, at| {
        let middle = lines[at].len() / 2;
        lines[at][middle] ^= 1;
    }),
    ("a line is doubled", |lines, at| lines.insert(at, lines[at].clone())),
    ("two lines are swapped", |lines, at| lines.swap(at, at + 1)),
    ("a line is lost", |lines, at| drop(lines.remove(at))),
    ("a line is cut off", |lines, at| {
        let half = lines[at].len() / 2;
        lines[at].truncate(half);
    }),
    ("a line is empty", |lines, at| lines.insert(at, b"\n".to_vec())),
    ("a line is no text", |lines, at| lines.insert(at, vec![0xff, 0, 0x80, b'\n'])),
    ("a line is far too long", |lines, at| {
        let mut long = b"{\"v\":1,\"seq\":".to_vec();
        long.resize(300_000, b'1');
        long.push(b'\n');
        lines.insert(at, long);
    }),
];

#[test]
fn every_harm_at_every_line_is_found_and_the_records_before_it_are_saved() {
    let written = Written::new();
    let good: Vec<Vec<u8>> = written.lines().into_iter().map(<[u8]>::to_vec).collect();
    for (name, harm) in HARMS {
        // What happens to the last line is a torn end, which is another test's.
        for at in 0..good.len() - 2 {
            let mut lines = good.clone();
            harm(&mut lines, at);
            let bytes = lines.concat();
            let (_root, store) = written.put(&bytes, true);
            let context = format!("{name}: line {}", at + 1);
            let found = store.verify(written.exec).unwrap_or_else(|error| panic!("{error}"));
            let Verified { records, damage: Some(damage), .. } = &found else {
                panic!("{context}: not found: {found:?}")
            };
            assert!(!found.holds() && *records <= at as u64 + 1, "{context}: {found:?}");
            assert!(
                (at.max(1) as u64..=at as u64 + 2).contains(&damage.line),
                "{context}: {found:?}"
            );

            // Whoever reads gets records or an error, and never more records than there were.
            let read = store.read(written.exec).expect("a journal");
            assert!(read.filter_map(Result::ok).count() <= good.len() + 1, "{context}");
            if let Ok(opened) = store.open(written.exec) {
                drop(opened);
            }
            assert!(store.repair(written.exec).is_err(), "{context}: a repair hides it");
            let path = store.dir(written.exec).join("journal.jsonl");
            assert_eq!(std::fs::read(path).expect("the journal"), bytes, "{context}");
            if found.records > 0 && at % 4 == 1 {
                let copy = store.salvage(written.exec).expect("a copy");
                let saved = store.verify(copy).expect("an answer");
                assert!(saved.is_sound(), "{context}: {saved:?}");
                assert_eq!(saved.records, found.records, "{context}");
            }
        }
    }
}

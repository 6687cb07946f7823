//! Edits: every place the matcher names lies within the text, on character borders, and an exact
//! one holds exactly the wanted text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loon_tool::edit::matcher::{Tier, find, find_lines};

fuzz_target!(|input: (&str, &str)| {
    let (text, wanted) = input;
    for hit in find(text, wanted) {
        let found = text.get(hit.span.clone()).expect("a place within the text");
        assert!(hit.tier != Tier::Exact || found == wanted);
    }
    let pieces: Vec<&str> = wanted.split('\n').collect();
    for hit in find_lines(text, &pieces) {
        assert!(text.get(hit.span.clone()).is_some());
        assert!(hit.span.start == 0 || text.as_bytes()[hit.span.start - 1] == b'\n');
    }
});

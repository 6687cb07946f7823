//! Event streams: any bytes give events or an error, and an event holds no line end of its own kind
//! beyond those that join its data lines.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(events) = loon_model::sse::decode_all(bytes) {
        assert!(events.iter().all(|data| !data.contains('\r')));
        assert!(events.iter().map(String::len).sum::<usize>() <= bytes.len());
    }
});

//! Patches: any text parses or is refused with words; nothing panics.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match loon_tool::apply_patch::parse::parse(text) {
        Ok(patch) => assert!(!patch.files.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

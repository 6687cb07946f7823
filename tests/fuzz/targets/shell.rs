//! Shell lines: any text gives commands and doubts, and a quoted text is read back as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    let _ = loon_permission::shell::parse(line);
    let quoted = loon_permission::shell::quote(line);
    let again = loon_permission::shell::parse(&format!("echo {quoted}"));
    if again.doubts.is_empty() {
        assert_eq!(again.commands.len(), 1);
        assert_eq!(again.commands[0].words[1].text(), Some(line));
    }
});

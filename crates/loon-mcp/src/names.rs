//! Names of tools as models call them: `mcp__SERVER__TOOL` in the alphabet that every provider takes.
//!
//! A name that needs no change is used as it is. Any other one is changed and gets a hash of what it
//! was, always: so that no tool that a server adds later can take over the name of another, and with it
//! what rules allow that one.

use crate::digest::hex;

/// Longest name that every provider takes.
const LONGEST: usize = 64;

/// Characters of the hash.
const HASH: usize = 8;

/// The name of the tool `tool` of the server `server`.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let name = format!("{}{}", prefix(server), plain(tool));
    if is_plain_server(server) && !tool.is_empty() && plain(tool) == tool && name.len() <= LONGEST {
        return name;
    }
    marked(&name, &format!("{server}\0{tool}"))
}

/// The name of something that we offer for a server, where its tools take the plain one.
pub(crate) fn marked(name: &str, origin: &str) -> String {
    let hash = hex(origin, HASH / 2);
    let room = LONGEST - HASH - 1;
    // All of it is ASCII.
    format!("{}_{hash}", &name[..name.len().min(room)])
}

/// How the names of a server's tools begin.
pub(crate) fn prefix(server: &str) -> String {
    format!("mcp__{}__", plain(server))
}

fn is_plain_server(server: &str) -> bool {
    !server.is_empty()
        && plain(server) == server
        && !server.contains("__")
        && !server.ends_with('_')
}

fn plain(text: &str) -> String {
    let legal = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-');
    text.chars().map(|ch| if legal(ch) { ch } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn plain_names_stay_and_all_others_are_marked() {
        assert_eq!(tool_name("lab", "read_file"), "mcp__lab__read_file");
        let names: Vec<String> = [
            ("lab", "read.file"),
            ("lab", "read/file"),
            ("lab", ""),
            ("lab", "läs"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("a_", "b"),
            ("a", "_b"),
            ("läb", "x"),
            ("lab", &"x".repeat(200)),
            ("lab", &"x".repeat(201)),
            (&"s".repeat(100), "x"),
        ]
        .iter()
        .map(|(server, tool)| tool_name(server, tool))
        .collect();
        let distinct: BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        for name in &names {
            assert!(name.len() <= LONGEST && plain(name) == *name, "{name}");
        }
        assert_eq!(names[5], "mcp__a__b__c");
        assert_ne!(names[4], "mcp__a__b__c");
    }
}

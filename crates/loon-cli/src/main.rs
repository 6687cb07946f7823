//! The `loon` command.
fn main() {}

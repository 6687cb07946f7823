//! `loon sessions import`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use loon_kernel::{FileStore, Imported};
use serde_json::json;

use super::{failed, json_line};
use crate::failure::Failure;

/// Takes in what an archive holds, checked.
pub(super) fn run(store: &FileStore, file: &Path, json: bool) -> Result<u8, Failure> {
    let mut from: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let open = File::open(file)
            .map_err(|error| Failure::usage(format!("Cannot read {}: {error}", file.display())))?;
        Box::new(BufReader::new(open))
    };
    let imported = store.import(&mut from).map_err(|error| failed(store, &error))?;
    let mut text = String::new();
    for Imported { from, exec, records } in imported {
        if json {
            text.push_str(&json_line(&json!({"exec": exec, "from": from, "records": records}))?);
            continue;
        }
        let renamed = if exec == from {
            String::new()
        } else {
            format!(" There is a session {from} here already, so it has a new id.")
        };
        let _ =
            writeln!(text, "{exec} came in with {records} records, all of them sound.{renamed}");
    }
    super::super::print(&text)
}

//! `loon guidance`.

use std::fmt::Write as _;

use loon_api::{GuidanceSource, GuidanceState};
use loon_core::{guidance_sources, hidden_from_reading};

use crate::args::GuidanceArgs;
use crate::failure::Failure;
use crate::wiring::Setup;

/// Prints the guidance that a new session in this folder would have.
pub(super) fn run(args: &GuidanceArgs) -> Result<u8, Failure> {
    let setup = Setup::load(None, &[])?;
    let hidden = hidden_from_reading(&setup.policy());
    let user = setup.user_guidance();
    let (path, sources) = guidance_sources(&setup.root, Some(&user), hidden, args.path.as_deref());
    if !args.json {
        return super::print(&as_text(path.as_deref(), &sources));
    }
    let mut text = String::new();
    for source in &sources {
        let line = serde_json::to_string(source)
            .map_err(|error| Failure::other(format!("Cannot write JSON: {error}")))?;
        let _ = writeln!(text, "{line}");
    }
    super::print(&text)
}

fn as_text(path: Option<&str>, sources: &[GuidanceSource]) -> String {
    let mut text = match path {
        Some("") => "For the whole folder:\n".to_owned(),
        Some(path) => format!("For {path}:\n"),
        None => String::new(),
    };
    for source in sources {
        let _ = match &source.reason {
            Some(reason) => writeln!(text, "{:<36} not used: {reason}", source.path),
            None => {
                let cut = if source.cut { ", cut" } else { "" };
                writeln!(
                    text,
                    "{:<36} {} ({}, {} bytes{cut})",
                    source.path,
                    state(source.state),
                    source.scope,
                    source.bytes
                )
            }
        };
    }
    if sources.is_empty() {
        text.push_str("There are no instructions.\n");
    }
    text
}

/// What a session that has not begun makes of it.
fn state(state: GuidanceState) -> &'static str {
    match state {
        GuidanceState::Due => "with the first touch",
        other => other.words(),
    }
}

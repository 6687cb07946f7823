//! `note`: keeps words that must outlive the conversation.

use std::sync::Arc;

use loon_api::record::MAX_NOTES;
use loon_api::{RecordChange, Subject, ToolClass, WorkingRecord};
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use crate::text;

/// Most bytes of a note.
pub(crate) const MAX_NOTE: usize = 4000;
/// Most bytes of a note in a title.
const TITLE: usize = 120;

/// Keeps notes.
pub(crate) struct Note {
    record: watch::Receiver<Arc<WorkingRecord>>,
}

impl Note {
    pub(crate) fn new(record: &watch::Receiver<Arc<WorkingRecord>>) -> Self {
        Self { record: record.clone() }
    }
}

/// Arguments of `note`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    #[serde(alias = "note", alias = "content")]
    text: String,
}

impl NativeTool for Note {
    type Args = Args;

    const NAME: &'static str = "note";
    const DESCRIPTION: &'static str = "Keep a finding, decision, changed path, failed attempt, evidence, blocker or next action \
         for later.";
    const CLASS: ToolClass = ToolClass::Session;

    fn title(&self, args: &Args) -> String {
        let line = args.text.trim().lines().next().unwrap_or_default();
        text::clipped(&text::visible_line(line), TITLE).into_owned()
    }

    fn subjects(&self, _args: &Args) -> Result<Vec<Subject>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, args: Args, _cx: &EffectContext) -> ToolOutput {
        let kept = self.record.borrow().notes.len();
        noted(&args.text, kept).unwrap_or_else(ToolOutput::error)
    }
}

fn noted(written: &str, kept: usize) -> Result<ToolOutput, String> {
    let text = text::visible(written.trim()).into_owned();
    if text.is_empty() {
        return Err("The note is empty: write down what is worth keeping.".to_owned());
    }
    if text.len() > MAX_NOTE {
        return Err(format!(
            "The note has {} bytes, at most {MAX_NOTE} fit: keep to what matters, or split it.",
            text.len()
        ));
    }
    let said = if kept < MAX_NOTES {
        format!("Noted; {} kept.", text::count(kept + 1, "note"))
    } else {
        format!("Noted; {MAX_NOTES} notes kept, the oldest made room.")
    };
    let change = RecordChange::Note { text };
    Ok(ToolOutput { record: vec![change], ..ToolOutput::ok(said, "") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::run;

    fn note(notes: usize, text: &str) -> ToolOutput {
        let record = WorkingRecord { notes: vec!["x".into(); notes], ..WorkingRecord::default() };
        let (_sender, receiver) = watch::channel(Arc::new(record));
        run(&Note::new(&receiver), json!({ "text": text }))
    }

    #[test]
    fn a_note_is_kept_as_written_without_control_characters() {
        let output = note(2, " the bound is\n\ttoo small \x1b[31m\n");
        assert_eq!(output.result.text, "Noted; 3 notes kept.");
        let text = "the bound is\n\ttoo small \u{241b}[31m".to_owned();
        assert_eq!(output.record, [RecordChange::Note { text }]);
    }

    #[test]
    fn what_has_no_room_is_said() {
        assert_eq!(
            note(MAX_NOTES, "x").result.text,
            "Noted; 200 notes kept, the oldest made room."
        );
        for (text, said) in [(" \n", "empty"), (&*"x".repeat(4001), "4001 bytes")] {
            let output = note(0, text);
            assert!(output.result.is_error && output.result.text.contains(said));
            assert_eq!(output.record, []);
        }
    }
}

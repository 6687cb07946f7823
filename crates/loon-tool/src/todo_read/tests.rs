//! Tests of `todo_read`.

use loon_api::{ChecklistStep, WorkStatus};
use serde_json::{Value, json};

use super::*;
use crate::fixture::run;
use crate::note::MAX_NOTE;

fn read(record: WorkingRecord, arguments: Value) -> String {
    let (_sender, receiver) = watch::channel(Arc::new(record));
    run(&TodoRead::new(&receiver), arguments).result.text
}

fn task(id: u32, description: &str) -> Task {
    Task {
        id,
        title: format!("part {id}"),
        description: description.into(),
        status: WorkStatus::Pending,
        blocked_by: (1..id).collect(),
    }
}

#[test]
fn all_of_the_record_is_shown() {
    let record = WorkingRecord {
        goal: Some("faster search".into()),
        steps: vec![ChecklistStep { step: "measure".into(), status: WorkStatus::Completed }],
        tasks: vec![task(1, "the bound\nis in search.rs"), task(2, "")],
        notes: vec!["10 ms\nbefore".into(), "4 ms after".into()],
        ..WorkingRecord::default()
    };
    assert_eq!(
        read(record, json!({})),
        "Goal: faster search\n\nChecklist: 1 of 1 done\n[x] measure\n\nTasks:\n[ ] 1: part 1\n    \
         the bound\n    is in search.rs\n[ ] 2: part 2 (after 1)\n\nNotes (2):\n1. 10 ms\n    \
         before\n2. 4 ms after"
    );
    assert_eq!(read(WorkingRecord::default(), json!({})), "Nothing is written down yet.");
}

#[test]
fn the_newest_notes_come_first_and_all_can_be_paged_through() {
    let notes: Vec<String> =
        (1..=10).map(|number| number.to_string().repeat(MAX_NOTE / 2)).collect();
    let record = WorkingRecord { notes: notes.clone(), ..WorkingRecord::default() };
    let newest = read(record.clone(), json!({}));
    assert!(
        newest.starts_with("Notes (10):\n[5 older; notes_from 1 shows them]\n6. 66"),
        "{newest}"
    );
    assert!(newest.ends_with("10"));
    let mut seen = 0;
    while seen < notes.len() {
        let page = read(record.clone(), json!({ "notes_from": seen + 1 }));
        let shown = notes.iter().filter(|note| page.contains(note.as_str())).count();
        assert!(shown > 0);
        seen += shown;
        let rest = notes.len() - seen;
        let said = format!("[{rest} newer; notes_from {} shows them]", seen + 1);
        assert_eq!(page.ends_with(&said), rest > 0, "{page}");
    }
    assert!(
        read(record, json!({"notes_from": 99})).contains("[10 older; notes_from 1 shows them]")
    );
}

#[test]
fn descriptions_without_room_are_named() {
    let tasks: Vec<Task> = (1..=4).map(|id| task(id, &"d".repeat(4000))).collect();
    let text = read(WorkingRecord { tasks, ..WorkingRecord::default() }, json!({}));
    assert_eq!(text.matches("\n    dddd").count(), 3);
    assert!(text.ends_with("[description left out; task with op get shows it]"));
}

//! Tests of the two tools that write the checklist.

use loon_kernel::{NativeTool, native_tool};
use serde_json::{Value, json};

use super::*;
use crate::fixture::run;
use crate::todo_write::TodoWrite;
use crate::update_plan::UpdatePlan;

fn write(todos: &Value) -> ToolOutput {
    run(&TodoWrite, json!({ "todos": todos }))
}

fn refused(todos: &Value) -> String {
    let output = write(todos);
    assert!(output.result.is_error, "{}", output.result.text);
    assert_eq!(output.record, []);
    output.result.text
}

fn step(step: &str, status: WorkStatus) -> ChecklistStep {
    ChecklistStep { step: step.into(), status }
}

#[test]
fn both_names_write_the_same_checklist() {
    let todos = json!([
        {"content": "read  the\nbench", "status": "completed"},
        {"content": "change the bound", "status": "in_progress"},
        {"content": "measure"},
    ]);
    let plan = json!({"explanation": "too slow\u{7}", "plan": [
        {"step": "read the bench", "status": "done"},
        {"step": "change the bound", "status": "In-Progress"},
        {"step": "measure", "status": "pending"},
    ]});
    let written = write(&todos);
    let planned = run(&UpdatePlan, plan);
    let steps = vec![
        step("read the bench", WorkStatus::Completed),
        step("change the bound", WorkStatus::InProgress),
        step("measure", WorkStatus::Pending),
    ];
    assert_eq!(written.record, [RecordChange::Checklist { steps }]);
    assert_eq!(planned.record, written.record);
    assert_eq!(written.result.text, "1 of 3 done; now: change the bound");
    assert_eq!(planned.result.text, "1 of 3 done; now: change the bound\ntoo slow\u{2407}");
    assert_eq!((&*written.summary, &*planned.summary), ("1 of 3 done", "1 of 3 done"));
}

#[test]
fn the_state_names_what_is_next_or_that_all_is_done() {
    let said = |todos: &Value| write(todos).result.text;
    assert_eq!(said(&json!([{"content": "a"}, {"content": "b"}])), "0 of 2 done; next: a");
    assert_eq!(said(&json!([{"content": "a", "status": "done"}])), "1 of 1 done");
    let emptied = write(&json!([]));
    assert_eq!(emptied.result.text, "The checklist is empty.");
    assert_eq!(emptied.record, [RecordChange::Checklist { steps: Vec::new() }]);
}

#[test]
fn a_checklist_that_breaks_a_rule_changes_nothing() {
    let two = json!([
        {"content": "a", "status": "in_progress"},
        {"content": "b"},
        {"content": "c", "status": "doing"},
    ]);
    assert!(refused(&two).starts_with("Only one step can be in progress, but 1, 3 are"));
    assert_eq!(
        refused(&json!([{"content": "a"}, {"content": " \n"}])),
        "Step 2 is empty: say what is to be done."
    );
    let long = "x".repeat(MAX_LINE + 1);
    assert!(refused(&json!([{ "content": long }])).contains("Step 1 has 301 bytes"));
    assert!(!write(&json!([{ "content": &long[1..] }])).result.is_error);
    let many = vec![json!({"content": "a"}); MAX_STEPS + 1];
    assert!(refused(&json!(many)).contains("at most 100 steps"));
    assert!(!write(&json!(many[1..])).result.is_error);
}

#[test]
fn statuses_have_many_spellings_and_an_unknown_one_is_named() {
    for (written, meant) in [
        ("pending", WorkStatus::Pending),
        ("TODO", WorkStatus::Pending),
        ("not started", WorkStatus::Pending),
        ("in progress", WorkStatus::InProgress),
        ("in-progress", WorkStatus::InProgress),
        ("inProgress", WorkStatus::InProgress),
        ("Complete", WorkStatus::Completed),
        ("done", WorkStatus::Completed),
    ] {
        assert_eq!(status(written), Some(meant), "{written}");
    }
    let error = native_tool(TodoWrite)
        .subjects(&json!({"todos": [{"content": "a", "status": "blocked"}]}))
        .unwrap_err();
    assert!(
        error.contains("the status \"blocked\" is unknown: use pending, in_progress or completed"),
        "{error}"
    );
}

#[test]
fn the_title_is_the_step_under_way_or_the_number_of_steps() {
    let title = |todos: Value| native_tool(TodoWrite).title(&json!({ "todos": todos }));
    assert_eq!(
        title(json!([{"content": "a"}, {"content": "b\u{7}", "status": "active"}])),
        "b\u{2407}"
    );
    assert_eq!(title(json!([{"content": "a"}])), "1 step");
}

#[test]
fn the_schema_spells_the_statuses_out() {
    let spec = native_tool(TodoWrite).spec().clone();
    let item = &spec.parameters["properties"]["todos"]["items"];
    assert_eq!(
        item["properties"]["status"],
        json!({"type": "string", "enum": ["pending", "in_progress", "completed"]})
    );
    assert_eq!(item["required"], json!(["content"]));
    assert_eq!(TodoWrite::CLASS, loon_api::ToolClass::Session);
}

//! Tests of `task`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixture::run;

/// A working record under calls of `task`.
#[derive(Default)]
struct Book {
    record: WorkingRecord,
}

impl Book {
    fn call(&mut self, arguments: Value) -> ToolOutput {
        let (_sender, receiver) = watch::channel(Arc::new(self.record.clone()));
        let output = run(&Tasks::new(&receiver), arguments);
        assert!(!output.result.is_error || output.record.is_empty());
        output.record.iter().for_each(|change| self.record.apply(change));
        output
    }

    fn done(&mut self, arguments: Value) -> String {
        let output = self.call(arguments);
        assert!(!output.result.is_error, "{}", output.result.text);
        output.result.text
    }

    fn refused(&mut self, arguments: Value) -> String {
        let before = self.record.clone();
        let output = self.call(arguments);
        assert!(output.result.is_error, "{}", output.result.text);
        assert_eq!(self.record, before);
        output.result.text
    }

    /// A book with tasks 1, 2 after 1, and 3 after 2.
    fn chain() -> Self {
        let mut book = Self::default();
        book.done(json!({"op": "create", "title": "measure"}));
        book.done(json!({"op": "create", "title": "change", "blocked_by": [1]}));
        book.done(json!({"op": "create", "title": "measure again", "blocked_by": ["#2"]}));
        book
    }
}

#[test]
fn tasks_are_made_changed_shown_and_removed() {
    let mut book = Book::default();
    assert_eq!(
        book.done(json!({"op": "create", "title": "measure", "description": "with\nbench"})),
        "Created [ ] 1: measure\n0 of 1 done; ready: 1"
    );
    assert_eq!(
        book.done(json!({"op": "create", "title": "change", "blocked_by": [1, 1]})),
        "Created [ ] 2: change (after 1)\n0 of 2 done; ready: 1"
    );
    assert_eq!(
        book.done(json!({"op": "update", "id": 1, "status": "in_progress"})),
        "Updated [>] 1: measure\n0 of 2 done; in progress: 1"
    );
    let output = book.call(json!({"op": "update", "id": "1", "status": "done"}));
    assert_eq!(output.result.text, "Updated [x] 1: measure\n1 of 2 done; ready: 2");
    assert_eq!(output.summary, "1 of 2 done");
    assert_eq!(book.done(json!({"op": "get", "id": 1})), "[x] 1: measure\nwith\nbench");
    book.done(json!({"op": "update", "id": 2, "title": "change it", "blocked_by": []}));
    assert_eq!(
        book.done(json!({"op": "list"})),
        "1 of 2 done; ready: 2\n[x] 1: measure\n[ ] 2: change it"
    );
    assert_eq!(book.done(json!({"op": "remove", "id": 2})), "Removed task 2\n1 of 1 done");
    assert_eq!(
        book.done(json!({"op": "create", "title": "x"})).lines().next(),
        Some("Created [ ] 3: x")
    );
    assert_eq!(Book::default().done(json!({"op": "list"})), "There are no tasks.");
}

#[test]
fn cycles_are_refused_with_their_way() {
    let mut book = Book::chain();
    assert_eq!(
        book.refused(json!({"op": "update", "id": 1, "blocked_by": [3]})),
        "That would be a cycle: 1 is blocked by 3 is blocked by 2 is blocked by 1. Take one of \
         these out of a blocked_by."
    );
    assert_eq!(
        book.refused(json!({"op": "update", "id": 2, "blocked_by": [2]})),
        "Task 2 cannot be blocked by itself."
    );
}

#[test]
fn nothing_begins_before_what_it_depends_on_is_done() {
    let mut book = Book::chain();
    for (status, word) in [("in_progress", "in progress"), ("completed", "completed")] {
        assert_eq!(
            book.refused(json!({"op": "update", "id": 2, "status": status})),
            format!("Task 2 cannot be {word} before its dependency is completed: 1.")
        );
    }
    assert!(
        book.refused(
            json!({"op": "create", "title": "x", "status": "in_progress", "blocked_by": [1, 2]})
        )
        .ends_with("before its dependencies are completed: 1, 2.")
    );
    book.done(json!({"op": "update", "id": 1, "status": "completed"}));
    book.done(json!({"op": "update", "id": 2, "status": "in_progress"}));
    // Neither a new dependency nor an old one that opens again may slip under a begun task.
    book.done(json!({"op": "create", "title": "late"}));
    assert!(
        book.refused(json!({"op": "update", "id": 2, "blocked_by": [1, 4]}))
            .ends_with("completed: 4.")
    );
    assert!(
        book.refused(json!({"op": "update", "id": 1, "status": "pending"}))
            .starts_with("Task 1 has to stay completed")
    );
    book.done(json!({"op": "update", "id": 2, "status": "pending"}));
    book.done(json!({"op": "update", "id": 1, "status": "pending"}));
}

#[test]
fn a_task_that_others_wait_for_is_not_removed() {
    let mut book = Book::chain();
    assert_eq!(
        book.refused(json!({"op": "remove", "id": 2})),
        "Others are blocked by task 2: 3. Take 2 out of their blocked_by first, or remove them."
    );
    for id in [3, 2, 1] {
        book.done(json!({"op": "remove", "id": id}));
    }
    assert_eq!(book.record.tasks, []);
}

#[test]
fn wrong_calls_are_told_what_is_missing() {
    let mut book = Book::chain();
    for (arguments, said) in [
        (json!({"op": "create"}), "create needs a title."),
        (json!({"op": "create", "title": " "}), "The title is empty"),
        (json!({"op": "create", "title": "x".repeat(301)}), "The title has 301 bytes"),
        (
            json!({"op": "create", "title": "x", "description": "x".repeat(4001)}),
            "The description has 4001 bytes",
        ),
        (
            json!({"op": "create", "title": "x", "blocked_by": [9]}),
            "blocked_by names task 9, which is not there: the tasks are 1, 2, 3.",
        ),
        (json!({"op": "get"}), "An id is needed: the tasks are 1, 2, 3."),
        (json!({"op": "remove", "id": 7}), "There is no task 7: the tasks are 1, 2, 3."),
        (json!({"op": "update", "id": 1}), "Nothing changes"),
        (json!({"op": "update", "id": 1, "status": "pending"}), "Nothing changes"),
    ] {
        let told = book.refused(arguments.clone());
        assert!(told.starts_with(said), "{arguments}: {told}");
    }
    while book.record.tasks.len() < MAX_TASKS {
        book.done(json!({"op": "create", "title": "x"}));
    }
    assert!(book.refused(json!({"op": "create", "title": "x"})).contains("100 tasks already"));
    assert!(Book::default().refused(json!({"op": "get", "id": 1})).ends_with("no tasks yet."));
}

#[test]
fn ids_of_other_kinds_are_told() {
    let tool = loon_kernel::native_tool(Tasks::new(&watch::channel(Arc::default()).1));
    let told = tool.subjects(&json!({"op": "get", "id": 1.5})).unwrap_err();
    assert!(told.contains("1.5 is no id of a task"), "{told}");
}

#[test]
fn only_the_operation_is_required_and_nothing_offers_null() {
    let tool = loon_kernel::native_tool(Tasks::new(&watch::channel(Arc::default()).1));
    let schema = &tool.spec().parameters;
    assert_eq!(schema["required"], json!(["op"]));
    assert!(!schema.to_string().contains("null"), "{schema}");
}

/// A call of `task` on one of few ids, so that most calls meet others.
fn calls() -> impl Strategy<Value = Value> {
    let id = || 1..7_u32;
    let status = prop::sample::select(vec!["pending", "in_progress", "completed"]);
    let blocked_by = prop::collection::vec(id(), 0..3);
    let optional = (prop::option::of(status), prop::option::of(blocked_by));
    let op = prop::sample::select(vec!["create", "update", "update", "update", "remove"]);
    (op, id(), optional).prop_map(|(op, id, (status, blocked_by))| {
        json!({"op": op, "id": id, "title": "x", "status": status, "blocked_by": blocked_by})
    })
}

proptest! {
    #[test]
    fn no_sequence_of_calls_breaks_the_graph(calls in prop::collection::vec(calls(), 1..60)) {
        let mut book = Book::default();
        for call in calls {
            let before = book.record.last_task;
            book.call(call);
            let tasks = &book.record.tasks;
            prop_assert!(book.record.last_task - before <= 1);
            for task in tasks {
                for id in &task.blocked_by {
                    let other = book.record.task(*id);
                    prop_assert!(other.is_some(), "{task} waits for nothing");
                    prop_assert!(
                        task.status == WorkStatus::Pending
                            || other.is_some_and(|other| other.status == WorkStatus::Completed),
                        "{task} began before {id} was done"
                    );
                }
            }
            // Taking out what waits for nothing that is left ends with nothing if there is no cycle.
            let mut left: Vec<&Task> = tasks.iter().collect();
            while let Some(free) = left.iter().position(|task| {
                left.iter().all(|other| !task.blocked_by.contains(&other.id))
            }) {
                left.remove(free);
            }
            prop_assert!(left.is_empty(), "a cycle among {left:?}");
        }
    }
}

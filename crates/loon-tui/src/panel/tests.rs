//! What the panel shows in which room.

use loon_api::{ChecklistStep, RecordChange, Task};
use proptest::prelude::*;

use super::*;
use crate::glyphs::{ASCII, UNICODE};

fn session(steps: usize, tasks: u32, notes: usize, goal: &str) -> Session {
    let mut session = Session::default();
    let steps = (0..steps).map(|at| ChecklistStep {
        step: format!("step {at}"),
        status: if at < 2 { WorkStatus::Completed } else { WorkStatus::Pending },
    });
    session.record.apply(&RecordChange::Checklist { steps: steps.collect() });
    for id in 1..=tasks {
        let task = Task {
            id,
            title: format!("task {id}"),
            description: String::new(),
            status: WorkStatus::Pending,
            blocked_by: if id > 1 { vec![id - 1] } else { Vec::new() },
        };
        session.record.apply(&RecordChange::Task { task });
    }
    for at in 0..notes {
        session.record.apply(&RecordChange::Note { text: format!("note {at}") });
    }
    if !goal.is_empty() {
        session.record.goal = Some(goal.to_owned());
    }
    session
}

fn texts(session: &Session, height: usize) -> Vec<String> {
    lay(session, 20, height, &UNICODE).iter().map(Line::text).collect()
}

#[test]
fn what_is_not_there_has_no_heading() {
    assert_eq!(texts(&session(3, 0, 0, ""), 10), ["Plan 2/3", "● step 0", "● step 1", "· step 2"]);
    assert_eq!(texts(&Session::default(), 10), Vec::<String>::new());
}

#[test]
fn lists_share_the_room_and_the_short_one_is_whole() {
    assert_eq!(
        texts(&session(9, 2, 0, ""), 10),
        [
            "Plan 2/9",
            "● step 0",
            "● step 1",
            "· step 2",
            "· step 3",
            "… 5 more",
            "",
            "Tasks 0/2",
            "· 1 task 1",
            "· 2 task 2   after 1",
        ]
    );
}

#[test]
fn notes_and_goal_give_way_before_the_plan() {
    let session = session(9, 0, 3, "go on");
    let shown = texts(&session, 14);
    assert_eq!(shown.len(), 14);
    assert_eq!([&shown[0], &shown[11], &shown[12]], ["Goal", "Notes 3", "• note 2"]);
    let shown = texts(&session, 9);
    assert_eq!(shown[..4], ["Goal", "go on", "", "Plan 2/9"]);
    let shown = texts(&session, 4);
    assert_eq!(shown, ["Plan 2/9", "… 2 before", "· step 2", "… 6 more"]);
}

#[test]
fn it_is_laid_out_again_only_when_its_data_or_its_size_changes() {
    let mut session = session(1, 0, 0, "");
    let mut panel = Panel::default();
    panel.layout(&session, 20, 5, &UNICODE);
    let before = panel.lines().to_vec();
    session.record.steps.clear();
    panel.layout(&session, 20, 5, &UNICODE);
    assert_eq!(panel.lines(), before);
    session.revision += 1;
    panel.layout(&session, 20, 5, &UNICODE);
    assert_eq!(panel.lines(), []);
}

proptest! {
    #[test]
    fn it_keeps_to_its_room_and_shows_the_current_step(
        steps in 0usize..70, tasks in 0u32..30, notes in 0usize..4, goal in "[a-z 你👍🏽]{0,90}",
        width in 10usize..44, height in 0usize..40, at in 0usize..70, ascii in any::<bool>(),
    ) {
        let mut session = session(steps, tasks, notes, &goal);
        if let Some(step) = session.record.steps.get_mut(at) {
            step.status = WorkStatus::InProgress;
        }
        let lines = lay(&session, width, height, if ascii { &ASCII } else { &UNICODE });
        prop_assert!(lines.len() <= height);
        prop_assert!(lines.iter().all(|line| line.width() <= width));
        if at < steps && height >= 14 {
            let label = format!("step {at}");
            prop_assert!(lines.iter().any(|line| line.text().ends_with(&label)));
        }
    }
}

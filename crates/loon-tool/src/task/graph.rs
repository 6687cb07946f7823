//! The rules of the task graph: no cycles, and nothing begun before what it depends on is done.

use loon_api::{Task, WorkStatus};

/// Whether `task` may stand among these, in place of the one with its id if there is one.
pub(super) fn may_stand(tasks: &[Task], task: &Task) -> Result<(), String> {
    for id in &task.blocked_by {
        if *id == task.id {
            return Err(format!("Task {id} cannot be blocked by itself."));
        }
        if !tasks.iter().any(|other| other.id == *id) {
            return Err(format!(
                "blocked_by names task {id}, which is not there: {}",
                known(tasks)
            ));
        }
    }
    if let Some(way) = cycle(tasks, task) {
        return Err(format!(
            "That would be a cycle: {}. Take one of these out of a blocked_by.",
            way.iter().map(u32::to_string).collect::<Vec<_>>().join(" is blocked by ")
        ));
    }
    let waits_for = unfinished(tasks, task);
    if task.status != WorkStatus::Pending && !waits_for.is_empty() {
        return Err(format!(
            "Task {} cannot be {} before {} completed: {}.",
            task.id,
            if task.status == WorkStatus::Completed { "completed" } else { "in progress" },
            if waits_for.len() == 1 { "its dependency is" } else { "its dependencies are" },
            list(&waits_for)
        ));
    }
    let begun: Vec<u32> = dependents(tasks, task.id)
        .filter(|other| other.status != WorkStatus::Pending)
        .map(|other| other.id)
        .collect();
    if task.status != WorkStatus::Completed && !begun.is_empty() {
        return Err(format!(
            "Task {} has to stay completed, for tasks that depend on it have begun: {}. Set them \
             back to pending first.",
            task.id,
            list(&begun)
        ));
    }
    Ok(())
}

/// Whether the task with this id may be taken out.
pub(super) fn may_be_removed(tasks: &[Task], id: u32) -> Result<(), String> {
    let blocked: Vec<u32> = dependents(tasks, id).map(|other| other.id).collect();
    if blocked.is_empty() {
        return Ok(());
    }
    Err(format!(
        "Others are blocked by task {id}: {}. Take {id} out of their blocked_by first, or remove \
         them.",
        list(&blocked)
    ))
}

/// What `task` depends on that is not completed.
pub(super) fn unfinished(tasks: &[Task], task: &Task) -> Vec<u32> {
    tasks
        .iter()
        .filter(|other| task.blocked_by.contains(&other.id))
        .filter(|other| other.status != WorkStatus::Completed)
        .map(|other| other.id)
        .collect()
}

/// The ids there are, as the end of an error.
pub(super) fn known(tasks: &[Task]) -> String {
    if tasks.is_empty() {
        return "there are no tasks yet.".to_owned();
    }
    let ids: Vec<u32> = tasks.iter().map(|task| task.id).collect();
    format!("the tasks are {}.", list(&ids))
}

fn dependents(tasks: &[Task], id: u32) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(move |other| other.blocked_by.contains(&id))
}

fn list(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The way from `task` back to itself over what blocks what, if there is one.
fn cycle(tasks: &[Task], task: &Task) -> Option<Vec<u32>> {
    // Each visited task with the one it was reached from.
    let mut reached: Vec<(u32, u32)> = Vec::new();
    let mut open = vec![task];
    while let Some(at) = open.pop() {
        for id in &at.blocked_by {
            if *id == task.id {
                return Some(way(&reached, task.id, at.id));
            }
            if reached.iter().all(|(visited, _)| visited != id) {
                reached.push((*id, at.id));
                open.extend(tasks.iter().find(|other| other.id == *id));
            }
        }
    }
    None
}

fn way(reached: &[(u32, u32)], start: u32, last: u32) -> Vec<u32> {
    let mut way = vec![start, last];
    let mut at = last;
    while at != start {
        let Some((_, from)) = reached.iter().find(|(visited, _)| *visited == at) else { break };
        way.push(*from);
        at = *from;
    }
    way.reverse();
    way
}

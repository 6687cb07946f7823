//! Whose processes are whose, across the lives of our own process: an owner's processes are told by a
//! variable that all their descendants inherit.

use std::sync::OnceLock;

use uuid::Uuid;

/// Which mark the processes that we start for `owner` bear.
pub(crate) fn mark_of(owner: &str) -> String {
    format!("{owner}/{}", this_process())
}

/// Told apart from other processes that had our id before.
fn this_process() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| Uuid::now_v7().to_string())
}

/// A process that outlived the one of ours that started it, or that one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its command line, as far as it fits a short line. Raw words: whoever shows them makes them safe.
    pub command: String,
}

/// What other processes than this one started for these owners and what is still there, by process id.
/// Where there is no process table to read, nothing is found.
#[cfg(target_os = "linux")]
pub fn leftovers(owners: &[String]) -> Vec<Leftover> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Leftover> = pids
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            // That of a process that has ended is empty.
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| is_left_over(&environment, owners))
        })
        .map(|pid| Leftover { pid, command: command_of(pid) })
        .collect();
    found.sort_by_key(|leftover| leftover.pid);
    found
}

/// The same where nothing can be found.
#[cfg(not(target_os = "linux"))]
pub fn leftovers(_owners: &[String]) -> Vec<Leftover> {
    Vec::new()
}

/// Whether this environment bears the mark of an owner from another process than this one.
#[cfg(any(target_os = "linux", test))]
fn is_left_over(environment: &[u8], owners: &[String]) -> bool {
    crate::session::marks(environment).filter_map(|mark| std::str::from_utf8(mark).ok()).any(
        |mark| {
            mark.split_once('/').is_some_and(|(owner, process)| {
                process != this_process() && owners.iter().any(|it| it == owner)
            })
        },
    )
}

#[cfg(target_os = "linux")]
fn command_of(pid: u32) -> String {
    const MOST: usize = 80;
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.trim().chars().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::spawn::Spawner;

    #[test]
    fn marks_of_former_processes_are_left_over_and_ours_are_not() {
        let owners = ["one".to_owned(), "two".to_owned()];
        let is_left =
            |marks: &str| is_left_over(format!("A=b\0LOON_SPAWN={marks}\0").as_bytes(), &owners);
        assert!(is_left("x,two/former,y"));
        assert!(is_left(&format!("{},one/former", mark_of("one"))));
        assert!(!is_left(&mark_of("one")));
        assert!(!is_left("three/former"));
        assert!(!is_left("one"));
    }

    #[tokio::test]
    async fn what_is_started_for_an_owner_bears_its_mark() {
        let spawner = Spawner::default().owned_by("some-owner");
        let run = spawner.bash("echo $LOON_SPAWN", Path::new("/")).run().await.unwrap();
        let said = String::from_utf8(run.output.head).unwrap();
        assert!(said.split(',').any(|mark| mark == mark_of("some-owner")), "{said}");
        assert_eq!(leftovers(&["some-owner".to_owned()]), []);
    }
}

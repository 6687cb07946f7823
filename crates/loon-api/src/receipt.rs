//! Receipts: what a turn verifiably did, told by its records and never by the model's words.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a command checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// It runs tests.
    Test,
    /// It builds, or checks types.
    Build,
    /// It lints.
    Lint,
}

/// What a checking command counted, where it printed so. Absent is not nought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckCounts {
    /// Tests that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// Tests that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Tests that were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Errors of a compiler or linter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Its warnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<u64>,
}

impl CheckCounts {
    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if it says that something is wrong.
    pub fn has_failures(&self) -> bool {
        self.failed.is_some_and(|count| count > 0) || self.errors.is_some_and(|count| count > 0)
    }

    fn words(&self) -> String {
        let named = [
            (self.failed.filter(|count| *count > 0), "failed"),
            (self.passed, "passed"),
            (self.skipped.filter(|count| *count > 0), "skipped"),
            (self.errors.filter(|count| *count > 0), "errors"),
            (self.warnings.filter(|count| *count > 0), "warnings"),
        ];
        let words: Vec<String> = named
            .iter()
            .filter_map(|(count, name)| count.map(|count| format!("{count} {name}")))
            .collect();
        words.join(", ")
    }
}

/// One command that a call ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramRun {
    /// The command as a shell is given it.
    pub line: String,
    /// Its exit status; absent if it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it checks, if that is known and the exit status is that of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckKind>,
    /// What it counted.
    #[serde(default, skip_serializing_if = "CheckCounts::is_empty")]
    pub counts: CheckCounts,
    /// The command failed, and that may be the failure of something else in it: whether the check
    /// ran is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
}

/// What became of one path in a turn, first state against last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetChange {
    /// Path as shown.
    pub path: String,
    /// SHA-256 of the bytes before the turn; absent if nothing was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// SHA-256 of the bytes after it; absent if nothing is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// It was moved here from this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Why something is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCause {
    /// Its end was never recorded.
    OutcomeUnknown,
    /// It was stopped on its way.
    Stopped,
    /// It still ran when the turn ended.
    StillRunning,
}

/// Work of a turn whose effect is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownWork {
    /// What: a tool with its title, a process, an agent.
    pub what: String,
    /// Why.
    pub cause: UnknownCause,
}

/// What a turn verifiably did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Files that tools changed, net. What commands did to files is not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<NetChange>,
    /// Commands that ran after the last of these changes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ProgramRun>,
    /// Number of commands before it.
    #[serde(default)]
    pub runs_before: u32,
    /// What is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownWork>,
}

/// Longest command in the one line, in characters.
const LINE: usize = 60;

/// Checks named in the one line.
const NAMED: usize = 3;

impl Receipt {
    /// True if it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The receipt in one line; nothing if no file changed.
    pub fn line(&self) -> Option<String> {
        if self.changes.is_empty() {
            return None;
        }
        let checks = self.last_checks();
        let mut line = match (checks.is_empty(), self.runs.len()) {
            (true, 0) => "nothing was run after the last edit".to_owned(),
            (true, others) => format!(
                "no test, build or lint was run after the last edit ({others} other {})",
                if others == 1 { "command" } else { "commands" }
            ),
            (false, _) => checks_in_words(&checks),
        };
        match self.unknown.len() {
            0 => {}
            1 => line.push_str("; 1 call whose effect is unknown"),
            many => {
                let _ = write!(line, "; {many} calls whose effect is unknown");
            }
        }
        Some(line)
    }

    /// The line, and below it all that the receipt says.
    pub fn details(&self) -> Option<String> {
        let mut text = self.line()?;
        for change in &self.changes {
            let what = match (&change.before, &change.after, &change.from) {
                (_, _, Some(from)) => format!("moved from {from}"),
                (None, Some(_), None) => "new".to_owned(),
                (Some(_), None, None) => "deleted".to_owned(),
                _ => "changed".to_owned(),
            };
            let _ = write!(text, "\n  {} ({what})", change.path);
        }
        for run in &self.runs {
            let counts = run.counts.words();
            let comma = if counts.is_empty() { "" } else { ", " };
            let _ = write!(text, "\n  $ {}  {}{comma}{counts}", short(&run.line), end(run));
        }
        if self.runs_before > 0 {
            let commands = if self.runs_before == 1 { "command" } else { "commands" };
            let _ = write!(text, "\n  {} {commands} before the last edit", self.runs_before);
        }
        for unknown in &self.unknown {
            let why = match unknown.cause {
                UnknownCause::OutcomeUnknown => "its end is not known",
                UnknownCause::Stopped => "stopped on its way",
                UnknownCause::StillRunning => "still running",
            };
            let _ = write!(text, "\n  {}: {why}", unknown.what);
        }
        Some(text)
    }

    /// The newest run of each check; failed ones first.
    fn last_checks(&self) -> Vec<&ProgramRun> {
        let mut newest: Vec<&ProgramRun> = Vec::new();
        for run in self.runs.iter().filter(|run| run.check.is_some()) {
            newest.retain(|other| other.line != run.line);
            newest.push(run);
        }
        newest.sort_by_key(|run| End::of(run) == End::Passed);
        newest
    }
}

/// How a check ended, by its status and by what it counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed(i32),
    /// The status says yes, the counts say no.
    Contradictory,
    /// It may be that the check never ran.
    Unclear(i32),
    None,
}

impl End {
    fn of(run: &ProgramRun) -> Self {
        match run.exit_code {
            Some(0) if run.counts.has_failures() => Self::Contradictory,
            Some(0) => Self::Passed,
            Some(code) if run.unclear => Self::Unclear(code),
            Some(code) => Self::Failed(code),
            None => Self::None,
        }
    }

    /// What stands between the command and its counts.
    fn words(self) -> String {
        match self {
            Self::Passed => "passed after the last edit".to_owned(),
            Self::Failed(_) => "FAILED after the last edit".to_owned(),
            Self::Contradictory => {
                "did NOT pass after the last edit, although its status is 0".to_owned()
            }
            Self::Unclear(code) => {
                format!("ended with {code} after the last edit, perhaps before its check ran")
            }
            Self::None => "did not end after the last edit".to_owned(),
        }
    }
}

fn checks_in_words(checks: &[&ProgramRun]) -> String {
    let mut parts: Vec<String> = checks
        .iter()
        .take(NAMED)
        .map(|run| {
            let counts = run.counts.words();
            let counts = if counts.is_empty() { counts } else { format!(" ({counts})") };
            format!("{} {}{counts}", short(&run.line), End::of(run).words())
        })
        .collect();
    if checks.len() > NAMED {
        parts.push(format!("{} more", checks.len() - NAMED));
    }
    parts.join("; ")
}

fn end(run: &ProgramRun) -> String {
    match (run.exit_code, run.unclear) {
        (Some(code), true) => format!("exit {code}, perhaps before its check ran"),
        (Some(code), false) => format!("exit {code}"),
        (None, _) => "did not end".to_owned(),
    }
}

fn short(line: &str) -> String {
    let first = line.trim().lines().next().unwrap_or_default();
    let mut short: String = first.chars().take(LINE).collect();
    if short.len() < line.trim().len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, exit_code: Option<i32>, check: Option<CheckKind>) -> ProgramRun {
        let counts = CheckCounts::default();
        ProgramRun { line: line.into(), exit_code, check, counts, unclear: false }
    }

    fn changed(runs: Vec<ProgramRun>) -> Receipt {
        let change = NetChange {
            path: "a".into(),
            before: Some("1".into()),
            after: Some("2".into()),
            from: None,
        };
        Receipt { changes: vec![change], runs, ..Receipt::default() }
    }

    #[test]
    fn nothing_is_called_passed_whose_counts_have_failures() {
        let counted = |failed, errors| {
            let passed = Some(40);
            let counts = CheckCounts { passed, failed, errors, ..CheckCounts::default() };
            let run = ProgramRun { counts, ..run("make test", Some(0), Some(CheckKind::Test)) };
            changed(vec![run]).line().unwrap()
        };
        let not = "make test did NOT pass after the last edit, although its status is 0";
        for (failed, errors, expected) in [
            (Some(2), None, format!("{not} (2 failed, 40 passed)")),
            (None, Some(1), format!("{not} (40 passed, 1 errors)")),
            (Some(0), Some(0), "make test passed after the last edit (40 passed)".to_owned()),
            (None, None, "make test passed after the last edit (40 passed)".to_owned()),
        ] {
            assert_eq!(counted(failed, errors), expected);
        }
    }

    #[test]
    fn the_line_says_what_was_checked_after_the_last_edit() {
        let test = Some(CheckKind::Test);
        let mut passed = run("cargo test", Some(0), test);
        passed.counts = CheckCounts { passed: Some(42), failed: Some(0), ..CheckCounts::default() };
        let mut failed = run("cargo test", Some(101), test);
        failed.counts = CheckCounts { passed: Some(40), failed: Some(2), ..CheckCounts::default() };
        let line = |runs| changed(runs).line().unwrap();
        assert_eq!(line(vec![]), "nothing was run after the last edit");
        assert_eq!(
            line(vec![run("ls", Some(0), None)]),
            "no test, build or lint was run after the last edit (1 other command)"
        );
        assert_eq!(line(vec![passed.clone()]), "cargo test passed after the last edit (42 passed)");
        assert_eq!(
            line(vec![
                run("cargo clippy", Some(0), Some(CheckKind::Lint)),
                passed.clone(),
                failed.clone()
            ]),
            "cargo test FAILED after the last edit (2 failed, 40 passed); cargo clippy passed after \
             the last edit"
        );
        assert_eq!(line(vec![failed, passed]), "cargo test passed after the last edit (42 passed)");
        assert_eq!(
            line(vec![run("go test ./...", None, test)]),
            "go test ./... did not end after the last edit"
        );
        let unclear = ProgramRun { unclear: true, ..run("false && go test", Some(1), test) };
        assert_eq!(
            line(vec![unclear]),
            "false && go test ended with 1 after the last edit, perhaps before its check ran"
        );
        let nothing_changed =
            Receipt { changes: vec![], ..changed(vec![run("cargo test", Some(1), test)]) };
        assert_eq!(nothing_changed.line(), None);
        let unknown = UnknownWork { what: "bash x".into(), cause: UnknownCause::OutcomeUnknown };
        let receipt = Receipt { unknown: vec![unknown], ..changed(vec![]) };
        assert_eq!(
            receipt.details().unwrap(),
            "nothing was run after the last edit; 1 call whose effect is unknown\n  a (changed)\n  \
             bash x: its end is not known"
        );
    }
}

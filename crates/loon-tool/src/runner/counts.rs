//! How many tests passed and failed, or how much a linter found, where the program prints it.

use std::fmt::Write as _;

use loon_api::CheckCounts;

use crate::project::Kind;
use crate::text::Terminal;

/// Longest line that is looked at, bytes.
const LINE: usize = 4 * 1024;

/// Reads output as it comes, a piece at a time.
#[derive(Debug)]
pub(crate) struct Counter {
    kind: Kind,
    line: Vec<u8>,
    counts: Counts,
    /// Tests that `unittest` has run, until it says how they went.
    ran: Option<u64>,
    /// `unittest` found no test at all: a success that is none.
    found_none: bool,
    /// Errors of the TypeScript compiler, a line each.
    typescript: u64,
}

/// What was printed. Absent is not nought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: Option<u64>,
    failed: Option<u64>,
    skipped: Option<u64>,
    packages_passed: Option<u64>,
    packages_failed: Option<u64>,
    errors: Option<u64>,
    warnings: Option<u64>,
}

impl Counter {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            line: Vec::new(),
            counts: Counts::default(),
            ran: None,
            found_none: false,
            typescript: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = Terminal::read(&std::mem::take(&mut self.line));
        let whole = line.trim_end();
        let line = line.trim();
        match self.kind {
            Kind::Cargo => self.cargo(line),
            Kind::Node => self.node(line),
            // What is indented belongs to a test above it.
            Kind::Go => self.go(whole),
            Kind::Python => self.python(line),
        }
    }

    /// `10 passed, 2 failed`; empty if nothing was printed.
    /// What was counted, in words and as numbers.
    pub(crate) fn finish(mut self) -> (String, CheckCounts) {
        self.end_line();
        if self.typescript > 0 {
            self.counts.errors = Some(self.typescript);
        }
        if self.found_none {
            return (
                "no tests found".to_owned(),
                CheckCounts { passed: Some(0), ..CheckCounts::default() },
            );
        }
        let counts = &self.counts;
        let named = [
            (counts.passed, "passed", "passed"),
            (counts.failed, "failed", "failed"),
            (counts.skipped, "skipped", "skipped"),
            (counts.packages_passed, "package ok", "packages ok"),
            (counts.packages_failed, "package failed", "packages failed"),
            (counts.errors, "error", "errors"),
            (counts.warnings, "warning", "warnings"),
        ];
        let mut text = String::new();
        for (count, one, many) in named {
            let Some(count) = count else { continue };
            let comma = if text.is_empty() { "" } else { ", " };
            let name = if count == 1 { one } else { many };
            let _ = write!(text, "{comma}{count} {name}");
        }
        let Counts { passed, failed, skipped, errors, warnings, .. } = self.counts;
        (text, CheckCounts { passed, failed, skipped, errors, warnings })
    }

    fn cargo(&mut self, line: &str) {
        let counts = &mut self.counts;
        if line.starts_with("test result: ")
            || line.starts_with("Summary [") && line.contains(" run: ")
        {
            for (number, word) in counted(line) {
                counts.tests(number, word);
            }
        } else if line.starts_with("warning: `") && line.contains(" generated ") {
            let (mut all, mut repeated) = (0, 0);
            for (number, word) in counted(line) {
                match word {
                    "warning" | "warnings" => all = number,
                    "duplicate" | "duplicates" => repeated = number,
                    _ => {}
                }
            }
            add(&mut counts.warnings, all.saturating_sub(repeated));
        } else if line.starts_with("error: could not compile ")
            && let Some((_, reason)) = line.split_once(" due to ")
        {
            for (number, word) in counted(reason) {
                match word {
                    "previous" => add(&mut counts.errors, number),
                    "warning" | "warnings" => add(&mut counts.warnings, number),
                    _ => {}
                }
            }
            if reason.starts_with("previous error") {
                add(&mut counts.errors, 1);
            }
        }
    }

    fn go(&mut self, line: &str) {
        let counts = &mut self.counts;
        if line.starts_with("--- FAIL: ") {
            add(&mut counts.failed, 1);
        } else if line.starts_with("--- PASS: ") {
            add(&mut counts.passed, 1);
        } else if line.starts_with("--- SKIP: ") {
            add(&mut counts.skipped, 1);
        } else if line.starts_with("ok  \t") {
            add(&mut counts.packages_passed, 1);
        } else if line.starts_with("FAIL\t") {
            add(&mut counts.packages_failed, 1);
        }
    }

    fn python(&mut self, line: &str) {
        if let Some(ran) = line.strip_prefix("Ran ") {
            self.ran = ran.split(' ').next().and_then(|number| number.parse().ok());
        } else if let Some(ran) = self.ran
            && let Some(rest) = line.strip_prefix("OK").or(line.strip_prefix("FAILED"))
        {
            self.ran = None;
            self.unittest(ran, rest);
        } else if let Some(summary) = pytest(line) {
            for (number, word) in counted(summary) {
                self.counts.tests(number, word);
            }
        } else if line == "All checks passed!" || line.starts_with("Success: no issues found") {
            add(&mut self.counts.errors, 0);
        } else if let Some(found) = line.strip_prefix("Found ")
            && let Some((number, "error" | "errors")) = counted(found).next()
        {
            add(&mut self.counts.errors, number);
        }
    }

    /// `(failures=1, errors=2, skipped=3)` after the number of tests.
    fn unittest(&mut self, ran: u64, rest: &str) {
        self.found_none |= ran == 0;
        let (mut failed, mut skipped, mut other) = (0, 0, 0);
        for part in rest.trim_matches([' ', '(', ')']).split(", ") {
            let Some((name, number)) = part.split_once('=') else { continue };
            let number: u64 = number.parse().unwrap_or(0);
            match name {
                "failures" | "errors" | "unexpected successes" => failed += number,
                "skipped" => skipped += number,
                _ => other += number,
            }
        }
        // An error while a module was loaded counts as a test, one in a fixture of a class does not.
        let passed = ran.saturating_sub(failed + skipped + other);
        add(&mut self.counts.passed, passed);
        add(&mut self.counts.failed, failed);
        if skipped > 0 {
            add(&mut self.counts.skipped, skipped);
        }
    }

    fn node(&mut self, line: &str) {
        let counts = &mut self.counts;
        if line.contains(": error TS") || line.contains(" - error TS") {
            self.typescript += 1;
        } else if line.starts_with("Tests:") || line.starts_with("Tests  ") {
            // jest, vitest
            for (number, word) in counted(line) {
                counts.tests(number, word);
            }
        } else if line.starts_with('\u{2716}') && line.contains(" problem") {
            // eslint
            for (number, word) in counted(line) {
                match word {
                    "error" | "errors" => add(&mut counts.errors, number),
                    "warning" | "warnings" => add(&mut counts.warnings, number),
                    _ => {}
                }
            }
        } else if let Some(found) = line.strip_prefix("Found ")
            && let Some((number, "error" | "errors")) = counted(found).next()
        {
            add(&mut counts.errors, number);
        } else {
            let words: Vec<&str> = line.split_whitespace().collect();
            let found = match words.as_slice() {
                // node --test, tap
                ["#" | "\u{2139}", word @ ("pass" | "fail" | "skip" | "skipped"), number]
                // mocha; bun; ava
                | [number, word @ ("passing" | "failing" | "pending"), ..]
                | [number, word @ ("pass" | "fail" | "skip")]
                | [number, "test" | "tests", word @ ("passed" | "failed" | "skipped")] => {
                    number.parse().ok().map(|number| (number, *word))
                }
                _ => None,
            };
            if let Some((number, word)) = found {
                counts.tests(number, word);
            }
        }
    }
}

impl Counts {
    fn tests(&mut self, number: u64, word: &str) {
        match word {
            "passed" | "passing" | "pass" => add(&mut self.passed, number),
            "failed" | "failing" | "fail" => add(&mut self.failed, number),
            // Outside of a test, as pytest says it.
            "error" | "errors" => add(&mut self.errors, number),
            "skipped" | "skip" | "ignored" | "pending" => add(&mut self.skipped, number),
            _ => {}
        }
    }
}

fn add(count: &mut Option<u64>, number: u64) {
    *count = Some(count.unwrap_or(0).saturating_add(number));
}

/// The last line of pytest: `== 1 failed, 2 passed in 0.1s ==`, or without its frame.
fn pytest(line: &str) -> Option<&str> {
    let line = line.trim_matches(['=', ' ']);
    let (summary, time) = line.rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    counted(summary).next()?;
    summary.starts_with(|ch: char| ch.is_ascii_digit()).then_some(summary)
}

/// Each number with the word after it.
fn counted(line: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut words = line.split([' ', ',', ';', '|', '(', ')', '.']).filter(|word| !word.is_empty());
    let mut number: Option<u64> = None;
    std::iter::from_fn(move || {
        loop {
            let word = words.next()?;
            match (word.parse(), number.take()) {
                (Ok(next), _) => number = Some(next),
                (Err(_), Some(number)) => return Some((number, word)),
                (Err(_), None) => {}
            }
        }
    })
}

#[cfg(test)]
mod tests;

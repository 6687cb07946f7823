//! Tests of reading counts, on what the programs print.

use proptest::prelude::*;

use super::*;

fn counted_in(kind: Kind, output: &str) -> String {
    let mut counter = Counter::new(kind);
    counter.push(output.as_bytes());
    counter.finish().0
}

#[test]
fn cargo_tests_are_summed_over_binaries() {
    let output = "running 2 tests\ntest a ... FAILED\n\
        test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
        test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n";
    assert_eq!(counted_in(Kind::Cargo, output), "15 passed, 2 failed, 1 skipped");
    let output = "     Summary [   0.010s] 3 tests run: 2 passed, 1 failed, 4 skipped\n";
    assert_eq!(counted_in(Kind::Cargo, output), "2 passed, 1 failed, 4 skipped");
}

#[test]
fn cargo_warnings_and_errors_are_counted_once() {
    let output = "warning: unused variable: `x`\n\
        warning: `a` (lib) generated 3 warnings\n\
        warning: `a` (lib test) generated 4 warnings (3 duplicates)\n\
        error: could not compile `a` (bin \"a\") due to 2 previous errors; 1 warning emitted\n\
        error: could not compile `b` (lib) due to previous error\n";
    assert_eq!(counted_in(Kind::Cargo, output), "3 errors, 5 warnings");
}

#[test]
fn pytest_and_unittest_are_read() {
    let python = |output| counted_in(Kind::Python, output);
    let line = "==== 1 failed, 3 passed, 2 skipped, 1 warning, 1 error in 0.12s ====\n";
    assert_eq!(python(line), "3 passed, 1 failed, 2 skipped, 1 error");
    assert_eq!(python("3 passed in 61.20s (0:01:01)\n"), "3 passed");
    assert_eq!(python("Ran 12 tests in 0.001s\n\nOK\n"), "12 passed, 0 failed");
    let output =
        "Ran 12 tests in 0.001s\n\nFAILED (failures=1, errors=2, skipped=3, expected failures=1)\n";
    assert_eq!(python(output), "5 passed, 3 failed, 3 skipped");
    assert_eq!(python("Ran 0 tests in 0.000s\n\nOK\n"), "no tests found");
    assert_eq!(python("2 things in 5 minutes\nOK\n"), "");
}

#[test]
fn python_linters_are_read() {
    let python = |output| counted_in(Kind::Python, output);
    assert_eq!(python("Found 3 errors.\n[*] 1 fixable\n"), "3 errors");
    assert_eq!(python("Found 1 error in 1 file (checked 2 source files)\n"), "1 error");
    assert_eq!(python("All checks passed!\n"), "0 errors");
    assert_eq!(python("Success: no issues found in 2 source files\n"), "0 errors");
}

#[test]
fn programs_of_node_are_read() {
    let node = |output| counted_in(Kind::Node, output);
    let jest =
        "Test Suites: 1 failed, 1 total\nTests:       1 failed, 2 skipped, 10 passed, 13 total\n";
    assert_eq!(node(jest), "10 passed, 1 failed, 2 skipped");
    let vitest = " Test Files  1 passed (1)\n      Tests  1 failed | 10 passed | 2 skipped (13)\n";
    assert_eq!(node(vitest), "10 passed, 1 failed, 2 skipped");
    assert_eq!(
        node("  10 passing (20ms)\n  1 pending\n  2 failing\n"),
        "10 passed, 2 failed, 1 skipped"
    );
    assert_eq!(
        node("# tests 3\n# pass 2\n# fail 1\n# skipped 0\n"),
        "2 passed, 1 failed, 0 skipped"
    );
    assert_eq!(node("ℹ pass 2\nℹ fail 0\n"), "2 passed, 0 failed");
    assert_eq!(node(" 4 pass\n 1 fail\nRan 5 tests across 1 file.\n"), "4 passed, 1 failed");
    assert_eq!(node("  2 tests failed\n"), "2 failed");
    let eslint = "\u{1b}[31m✖ 3 problems (2 errors, 1 warning)\u{1b}[39m\n";
    assert_eq!(node(eslint), "2 errors, 1 warning");
    let tsc =
        "a.ts(1,2): error TS2304: x\nb.ts(1,2): error TS2304: y\n\nFound 2 errors in 2 files.\n";
    assert_eq!(node(tsc), "2 errors");
}

#[test]
fn go_counts_what_it_prints() {
    let output = "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\nFAIL\ta/b\t0.001s\nok  \ta/c\t0.002s\n?   \ta/d\t[no test files]\nFAIL\n";
    assert_eq!(counted_in(Kind::Go, output), "1 failed, 1 package ok, 1 package failed");
}

#[test]
fn a_last_line_needs_no_end() {
    assert_eq!(counted_in(Kind::Python, "3 passed in 0.1s"), "3 passed");
}

proptest! {
    #[test]
    fn pieces_and_noise_do_not_matter(
        noise in prop::collection::vec(any::<u8>(), 0..6000),
        cut in 1usize..64,
        kind in prop::sample::select(vec![Kind::Cargo, Kind::Node, Kind::Go, Kind::Python]),
    ) {
        let mut whole = Counter::new(kind);
        whole.push(&noise);
        let mut pieces = Counter::new(kind);
        noise.chunks(cut).for_each(|piece| pieces.push(piece));
        prop_assert_eq!(whole.finish().0, pieces.finish().0);
    }
}

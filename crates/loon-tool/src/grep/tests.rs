//! Tests of searches over small projects.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use loon_kernel::native_tool;
use serde_json::json;

use super::*;

struct Project {
    _folder: tempfile::TempDir,
    workspace: Arc<Workspace>,
}

fn project(files: &[(&str, &[u8])]) -> Project {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
    for (name, content) in files {
        let path = workspace.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap().write_all(content).unwrap();
    }
    Project { _folder: folder, workspace }
}

impl Project {
    fn grep(&self, args: &Args) -> String {
        search(&self.workspace, args, &Sight::default()).unwrap().result.text
    }
}

fn args(pattern: &str) -> Args {
    Args { pattern: pattern.to_owned(), ..Args::default() }
}

#[test]
fn lines_stand_below_their_file() {
    let project = project(&[
        ("b.txt", b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"),
        ("a/x.txt", b"two\r\n"),
    ]);
    assert_eq!(
        project.grep(&args("two$")),
        "a/x.txt\n1:two\n\nb.txt\n2:two\n\n[2 matches in 2 files]"
    );
    assert_eq!(
        project.grep(&Args { context: Some(1), path: Some("b.txt".into()), ..args("one|six") }),
        "b.txt\n1:one\n2-two\n--\n5-five\n6:six\n7-seven\n\n[2 matches in 1 file]"
    );
    assert_eq!(
        project.grep(&Args { mode: Mode::Files, ..args("TWO") }),
        "[no match in 2 files of the workspace root; ignored, hidden and binary files were left out]"
    );
    let any_case = Args { ignore_case: Some(true), mode: Mode::Files, ..args("TWO") };
    assert_eq!(project.grep(&any_case), "a/x.txt\nb.txt\n[2 files]");
    assert_eq!(
        project.grep(&Args { mode: Mode::Count, ..args("t") }),
        "a/x.txt:1\nb.txt:2\n[3 matches in 2 files]"
    );
}

#[test]
fn a_dash_is_data() {
    let project = project(&[("s.txt", b"a -> b\n--flag\n-42\n")]);
    assert!(project.grep(&args("-42")).contains("3:-42\n"));
    assert!(project.grep(&args("--flag")).contains("2:--flag\n"));
    assert!(project.grep(&args("->")).contains("1:a -> b\n"));
    assert!(project.grep(&args("-e")).starts_with("[no match in 1 file"));
}

#[test]
fn ignored_hidden_and_binary_files_are_left_out() {
    let project = project(&[
        (".gitignore", b"*.log\n"),
        ("a.log", b"needle\n"),
        (".ci/run", b"needle\n"),
        (".git/x", b"needle\n"),
        ("bin", b"needle\n\0\n"),
        ("code", b"needle\n"),
    ]);
    assert_eq!(
        project.grep(&args("needle")),
        "code\n1:needle\n\n[1 match in 1 file; 1 binary file skipped]"
    );
    let hidden = Args { hidden: Some(true), mode: Mode::Files, ..args("needle") };
    assert!(project.grep(&hidden).starts_with(".ci/run\ncode\n["));
    let by_glob = Args { glob: Some(".ci/*".into()), mode: Mode::Files, ..args("needle") };
    assert!(project.grep(&by_glob).starts_with(".ci/run\n["));
    let direct = Args { path: Some("a.log".into()), mode: Mode::Files, ..args("needle") };
    assert!(project.grep(&direct).starts_with("a.log\n"));
}

#[test]
fn a_cancelled_search_says_so() {
    let project = project(&[("a", b"x\n")]);
    let sight = Sight::default();
    sight.cancel().cancel();
    assert_eq!(search(&project.workspace, &args("x"), &sight).unwrap_err(), "Cancelled.");
}

#[test]
fn what_is_asked_for_by_name_is_searched() {
    let project = project(&[(".git/config", b"needle\n"), (".env", b"needle\n")]);
    for (path, found) in [(".git", ".git/config\n"), (".env", ".env\n")] {
        let text =
            project.grep(&Args { path: Some(path.into()), mode: Mode::Files, ..args("needle") });
        assert!(text.starts_with(found), "{text}");
    }
}

#[test]
fn files_are_chosen_by_glob() {
    let project = project(&[("a.rs", b"x\n"), ("src/b.rs", b"x\n"), ("src/c.ts", b"x\n")]);
    let files = |glob: &str| {
        project.grep(&Args { glob: Some(glob.into()), mode: Mode::Files, ..args("x") })
    };
    assert_eq!(files("*.rs"), "a.rs\nsrc/b.rs\n[2 files]");
    assert_eq!(files("!*.rs"), "src/c.ts\n[1 file]");
    assert_eq!(files("src/*"), "src/b.rs\nsrc/c.ts\n[2 files]");
    assert_eq!(files("/*.rs"), "a.rs\n[1 file]");
}

#[test]
fn accents_are_found_in_both_forms() {
    let project = project(&[("a", "caf\u{e9}\n".as_bytes()), ("b", "cafe\u{301}\n".as_bytes())]);
    for pattern in ["caf\u{e9}", "cafe\u{301}"] {
        let text = project.grep(&Args { mode: Mode::Files, ..args(pattern) });
        assert_eq!(text, "a\nb\n[2 files]");
    }
}

#[test]
fn patterns_may_span_lines() {
    let project = project(&[("a", b"fn x() {\n    body\n}\n")]);
    assert_eq!(
        project.grep(&args(r"x\(\) \{\n\s+body")),
        "a\n1:fn x() {\n2:    body\n\n[2 matches in 1 file]"
    );
}

#[test]
fn other_encodings_are_searched() {
    let utf16: Vec<u8> =
        [0xFEFF_u16].into_iter().chain("näh\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let project = project(&[("u", &utf16), ("l", b"n\xe4h\n")]);
    assert!(project.grep(&args("n.h")).starts_with("u\n1:näh\n"));
    assert_eq!(project.grep(&args("(?-u)n.h")), "l\n1:n\u{FFFD}h\n\n[1 match in 1 file]");
}

#[test]
fn long_lines_are_shown_around_the_match() {
    let line = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
    let project = project(&[("min.js", line.as_bytes())]);
    let text = project.grep(&args("needle"));
    assert!(text.contains(&format!(
        "1:[...] {}needle{}",
        "a".repeat(BEFORE_SHOWN),
        "b".repeat(10)
    )));
    assert!(text.len() < 500, "{}", text.len());
}

const BEFORE_SHOWN: usize = 60;

#[test]
fn results_are_bounded_and_counted() {
    let many = "the same line again\n".repeat(5000);
    let project = project(&[("a", many.as_bytes()), ("b", many.as_bytes())]);
    let text = project.grep(&args("same"));
    assert!(text.len() < 34 * 1024);
    let shown = text.matches("again").count();
    assert!(text.ends_with(&format!(
        "[10000 matches in 2 files; {shown} shown; narrow down by path, glob or mode files]"
    )));
}

#[test]
fn control_characters_are_made_visible() {
    let project = project(&[("a", b"x\x1b[31my\rz\n")]);
    assert!(project.grep(&args("y")).starts_with("a\n1:x␛[31my␍z\n"));
}

#[test]
fn missing_places_are_said() {
    let project = project(&[("src/a", b"x\n")]);
    let args = Args { path: Some("scr".into()), ..args("x") };
    let error = search(&project.workspace, &args, &Sight::default()).unwrap_err();
    assert_eq!(error, "scr does not exist. Did you mean src?");
}

#[test]
fn links_are_not_followed() {
    let project = project(&[("a", b"x\n")]);
    std::os::unix::fs::symlink("a", project.workspace.root().join("l")).unwrap();
    std::os::unix::fs::symlink("..", project.workspace.root().join("up")).unwrap();
    assert_eq!(project.grep(&Args { mode: Mode::Files, ..args("x") }), "a\n[1 file]");
}

#[test]
fn what_models_are_told_is_short() {
    let spec = native_tool(Grep::new(&project(&[]).workspace)).spec().clone();
    assert_eq!(spec.parameters["required"], json!(["pattern"]));
    assert_eq!(spec.parameters["properties"]["mode"]["enum"], json!(["content", "files", "count"]));
    let size = spec.description.len() + spec.parameters.to_string().len();
    assert!(size <= 600, "{size} bytes: {}", spec.parameters);
}

//! What is found for which path, and what is passed over.
#![expect(clippy::disallowed_methods, reason = "test fixtures, not a project's files")]

use std::os::unix::fs::symlink;

use loon_api::{GuidanceSource, GuidanceState};
use proptest::prelude::*;

use super::*;
use crate::conversation::Given;

/// A project with a file of the user's beside it.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(bench.path("project")).unwrap();
        for (path, text) in files {
            bench.write(path, text);
        }
        bench
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn shelf(&self) -> GuidanceShelf {
        let user = self.path("config/AGENTS.md");
        GuidanceShelf::new(&self.path("project"), Some(&user), vec![self.path("project/private")])
    }

    /// Names and texts of every request.
    fn general(&self) -> Vec<(String, String)> {
        told(self.shelf().general())
    }

    /// Names of what speaks of a path.
    fn speaking_of(&self, path: &str) -> Vec<String> {
        let shelf = self.shelf();
        let found = shelf.speaking_of(&self.path("project").join(path), &shelf.rules());
        told(found).into_iter().map(|(path, _)| path).collect()
    }

    fn list(&self, path: Option<&str>) -> Vec<GuidanceSource> {
        self.shelf().list(path, &Given::default()).1
    }

    fn unused(&self) -> Vec<String> {
        let unused = |source: GuidanceSource| {
            source.reason.map(|reason| format!("{}: {reason}", source.path))
        };
        self.list(None).into_iter().filter_map(unused).collect()
    }
}

fn told(found: Reading) -> Vec<(String, String)> {
    found.pieces.into_iter().map(|piece| (piece.path, piece.text)).collect()
}

fn rule(head: &str) -> String {
    format!("---\n{head}\n---\nRule.\n")
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn h140_h141_h144_general_guidance_is_that_of_the_root_and_of_rules_without_paths() {
    let bench = Bench::new(&[
        ("project/AGENTS.md", "use \u{1b}[31mtabs\u{202e}\r\n\n"),
        ("project/CLAUDE.md", "other"),
        ("project/.loon/rules/b.md", "\u{FEFF}---\r\ndescription: x\r\n---\r\nB.\r\n"),
        ("project/.loon/rules/deep/er/a.md", "A."),
        ("project/.loon/rules/rust.md", &rule("paths: src/**/*.rs")),
        ("project/.loon/rules/notes.txt", "no rule"),
        ("project/.loon/rules/empty.md", " \n"),
        ("project/src/AGENTS.md", "nested"),
    ]);
    let wanted = [
        ("AGENTS.md", "use [31mtabs"),
        ("CLAUDE.md", "other"),
        (".loon/rules/b.md", "B."),
        (".loon/rules/deep/er/a.md", "A."),
    ];
    assert_eq!(bench.general(), pairs(&wanted));
    // It is read anew each time; copies and mere references are not repeated.
    bench.write("project/CLAUDE.md", "use \u{1b}[31mtabs");
    bench.write("config/AGENTS.md", "Mine.");
    assert_eq!(bench.general().len(), 4);
    bench.write("project/CLAUDE.md", "@AGENTS.md\n");
    let user = bench.path("config/AGENTS.md").display().to_string();
    let found = bench.general();
    assert_eq!(found[0], (user, "Mine.".to_owned()));
    assert_eq!((found.len(), found[1].0.as_str()), (4, "AGENTS.md"));
    assert_eq!(bench.unused(), [""; 0]);
}

#[test]
fn h142_a_path_has_the_guidance_of_its_folders_and_no_others() {
    let bench = Bench::new(&[
        ("project/AGENTS.md", "root"),
        ("project/a/AGENTS.md", "a"),
        ("project/a/b/CLAUDE.md", "a b"),
        ("project/a/b/AGENTS.md", "a b too"),
        ("project/a/other/AGENTS.md", "other"),
        ("outside/AGENTS.md", "outside"),
        ("project/.loon/rules/late.md", &rule("paths: a/**")),
    ]);
    let all = ["a/AGENTS.md", "a/b/AGENTS.md", "a/b/CLAUDE.md", ".loon/rules/late.md"];
    assert_eq!(bench.speaking_of("a/b/new.rs"), all);
    assert_eq!(bench.speaking_of("a/b"), all);
    assert_eq!(bench.speaking_of("a/x/y/z.rs"), ["a/AGENTS.md", ".loon/rules/late.md"]);
    assert_eq!(bench.speaking_of("a"), ["a/AGENTS.md"]);
    for path in ["top.rs", "", "../outside/x"] {
        assert_eq!(bench.speaking_of(path), [""; 0], "{path}");
    }
}

#[test]
fn h144_every_pattern_of_a_rule_counts_however_it_is_written() {
    let bench = Bench::new(&[
        ("project/.loon/rules/r1.md", &rule("paths:\n  - \"**/*.ts\"\n  - \"**/*.js\"")),
        ("project/.loon/rules/r2.md", &rule("paths: \"**/*.{rs,toml}\"")),
        ("project/.loon/rules/r3.md", &rule("globs: *.tsx")),
        ("project/.loon/rules/r4.md", &rule("globs: **/*.cs, **/Controllers/**")),
        ("project/.loon/rules/r5.md", &rule("paths: []")),
        ("project/.loon/rules/r7.md", "\u{FEFF}---\r\npaths: [\"**/*.go\"]\r\n---\r\nGo.\r\n"),
        ("project/.loon/rules/r8.md", &rule("paths: /only.md, ./tests/, src/*.py")),
    ]);
    let name = |number: u32| format!(".loon/rules/r{number}.md");
    for (path, rules) in [
        ("a.ts", vec![1]),
        ("deep/er/a.js", vec![1]),
        ("src/b.rs", vec![2]),
        ("Cargo.toml", vec![2]),
        ("c.tsx", vec![3]),
        ("web/c.tsx", vec![3]),
        ("d/e.cs", vec![4]),
        ("d/Controllers/x/y", vec![4]),
        ("m.go", vec![7]),
        ("only.md", vec![8]),
        ("a/only.md", vec![]),
        ("tests/a/b", vec![8]),
        ("src/x.py", vec![8]),
        ("src/deep/x.py", vec![]),
        ("a.txt", vec![]),
    ] {
        let wanted: Vec<String> = rules.into_iter().map(name).collect();
        assert_eq!(bench.speaking_of(path), wanted, "{path}");
    }
    assert_eq!(bench.general(), []);
    assert_eq!(bench.unused(), [""; 0]);
}

#[test]
fn what_is_no_guidance_is_named_with_its_reason() {
    let bench = Bench::new(&[
        ("outside/secret.md", "secret"),
        ("project/private/AGENTS.md", "private"),
        ("project/.loon/rules/open.md", "---\nother: x\npaths: [a, b\n---\nx"),
        ("project/.loon/rules/glob.md", &rule("paths: src/[a")),
        ("project/shared/rule.md", "Shared."),
    ]);
    bench.write("project/.loon/rules/latin.md", b"caf\xe9");
    let rules = bench.path("project/.loon/rules");
    symlink(bench.path("outside/secret.md"), rules.join("out.md")).unwrap();
    symlink(bench.path("project/shared/rule.md"), rules.join("in.md")).unwrap();
    symlink(bench.path("outside"), rules.join("folder")).unwrap();
    symlink("/dev/zero", bench.path("project/AGENTS.md")).unwrap();
    std::fs::create_dir(bench.path("project/CLAUDE.md")).unwrap();
    assert_eq!(bench.general(), pairs(&[(".loon/rules/in.md", "Shared.")]));
    let unused = bench.unused();
    let wanted = [
        "AGENTS.md: it is a link out of the project",
        "CLAUDE.md: it is no file",
        ".loon/rules/glob.md: `src/[a` in line 2 is no pattern: unclosed character class; missing ']'",
        ".loon/rules/latin.md: it is not UTF-8",
        ".loon/rules/open.md: the list `paths` in line 3 has no end",
        ".loon/rules/out.md: it is a link out of the project",
    ];
    assert_eq!(unused, wanted);
    let private = bench.list(Some("private/x"));
    let hidden = private.iter().find(|source| source.path == "private/AGENTS.md").unwrap();
    assert_eq!(hidden.reason.as_deref(), Some("a deny rule keeps it from the model"));
    assert_eq!(bench.speaking_of("private/x"), [""; 0]);
}

#[test]
fn folders_that_are_links_out_of_the_project_give_nothing() {
    let bench = Bench::new(&[("elsewhere/rules/x.md", "x"), ("elsewhere/AGENTS.md", "y")]);
    symlink(bench.path("elsewhere"), bench.path("project/.loon")).unwrap();
    symlink(bench.path("elsewhere"), bench.path("project/src")).unwrap();
    assert_eq!(bench.general(), []);
    assert_eq!(bench.speaking_of("src/a.rs"), [""; 0]);
    assert_eq!(bench.unused(), [".loon/rules: it is a link out of the project"]);
}

#[test]
fn texts_are_bounded_and_say_so() {
    let bench = Bench::new(&[("project/AGENTS.md", &"é".repeat(20_000))]);
    let found = bench.general();
    assert!(found[0].1.ends_with("é\n[cut at 32 KiB; read the file for the rest]"));
    assert_eq!(found[0].1.matches('é').count(), 16 * 1024);
    let source = &bench.list(None)[0];
    assert_eq!((source.bytes, source.cut), (40_000, true));
    for number in 0..5 {
        bench.write(&format!("project/.loon/rules/{number}.md"), "x".repeat(40 * 1024));
    }
    // What has no room is named, and a smaller one behind it is not lost.
    bench.write("project/.loon/rules/9.md", "small");
    let names: Vec<String> = bench.general().into_iter().map(|(path, _)| path).collect();
    let kept = ["AGENTS.md", ".loon/rules/0.md", ".loon/rules/1.md", ".loon/rules/9.md"];
    assert_eq!(names, kept);
    let unused = bench.unused();
    assert_eq!(unused.len(), 3);
    assert!(unused[0].starts_with(".loon/rules/2.md: the guidance of every request may have"));
}

#[test]
fn a_list_says_for_each_file_what_it_speaks_of_and_whether_it_came() {
    let bench = Bench::new(&[
        ("project/AGENTS.md", "root"),
        ("project/src/AGENTS.md", "src"),
        ("project/.loon/rules/rs.md", &rule("paths: [docs/**, *.rs]")),
        ("project/.loon/rules/go.md", &rule("paths: *.go")),
    ]);
    let list = |path| {
        bench
            .list(path)
            .into_iter()
            .map(|source| format!("{} {:?}: {}", source.path, source.state, source.scope))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        list(Some("src/new/../a.rs")),
        [
            "AGENTS.md EachRequest: the whole project",
            "src/AGENTS.md Due: src/",
            ".loon/rules/rs.md Due: paths like *.rs",
            ".loon/rules/go.md Elsewhere: paths like *.go",
        ]
    );
    assert_eq!(
        list(None),
        [
            "AGENTS.md EachRequest: the whole project",
            ".loon/rules/go.md Elsewhere: paths like *.go",
            ".loon/rules/rs.md Elsewhere: paths like docs/**, *.rs",
        ]
    );
    let absolute = bench.path("project/src/a.rs").display().to_string();
    let (shown, sources) = bench.shelf().list(Some(&absolute), &Given::default());
    assert_eq!(shown.as_deref(), Some("src/a.rs"));
    assert_eq!(sources[1].state, GuidanceState::Due);
}

#[tokio::test]
async fn problems_are_told_once() {
    let bench = Bench::new(&[("project/.loon/rules/x.md", "---\npaths: [a\n---\nx")]);
    let mut problems = GuidanceProblems::default();
    let told = problems.refresh(bench.shelf()).await.unwrap();
    assert_eq!(told.message, "Not used as guidance: 1 file.");
    assert_eq!(told.hints, [".loon/rules/x.md: the list `paths` in line 2 has no end."]);
    assert_eq!(problems.refresh(bench.shelf()).await, None);
    bench.write("project/.loon/rules/y.md", "---\npaths: [a\n---\nx");
    assert_eq!(problems.refresh(bench.shelf()).await.unwrap().hints.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_give_clean_text_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let bench = Bench::new(&[]);
        bench.write("project/AGENTS.md", &bytes);
        bench.write("project/.loon/rules/r.md", &bytes);
        for (_, text) in bench.general() {
            let hidden = |ch: char| ch.is_control() && !matches!(ch, '\n' | '\t');
            prop_assert!(!text.contains(hidden) && !text.trim().is_empty());
        }
    }

    #[test]
    fn a_pattern_of_plain_names_is_about_that_path_and_nothing_else(
        names in prop::collection::vec("[a-zA-Z0-9_-]{1,8}", 2..5), other in "[a-z]{1,8}",
    ) {
        let path = names.join("/");
        let bench = Bench::new(&[("project/.loon/rules/r.md", &rule(&format!("paths: {path}")))]);
        prop_assert_eq!(bench.speaking_of(&path).len(), 1);
        let deeper = format!("{path}/{other}");
        prop_assert_eq!(bench.speaking_of(&deeper).len(), 0);
        let moved = format!("{other}/{path}");
        prop_assert_eq!(bench.speaking_of(&moved).len(), 0);
        let starred = rule(&format!("paths: {}/**", names[0]));
        bench.write("project/.loon/rules/r.md", starred);
        prop_assert_eq!(bench.speaking_of(&path).len(), 1);
    }
}

//! Which files are commands, and what they are sent as.
#![expect(clippy::disallowed_methods, reason = "test fixtures, not a project's files")]

use std::os::unix::fs::symlink;

use super::*;

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
        self.dir.path().join(path)
    }

    fn places(&self) -> Vec<PathBuf> {
        ["data", "project/.claude", "project/.loon"].map(|place| self.path(place)).to_vec()
    }

    fn read(&self) -> Customs {
        read_customs(&self.path("project"), &self.places())
    }

    fn listed(&self) -> (Vec<CustomCommand>, Vec<String>) {
        self.read().listed()
    }
}

#[test]
fn commands_have_names_by_their_place_and_words_by_their_head() {
    let head = "---\ndescription: >\n  Review\n  it \u{1b}[31m\nargument-hint: [file] [depth]\n---\nLook at $1.";
    let bench = Bench::new(&[
        ("project/.loon/commands/review.md", head),
        ("project/.loon/commands/git/tidy.md", "Tidy."),
        ("project/.claude/commands/review.md", "weaker"),
        ("data/commands/review.md", "weakest"),
        ("data/commands/mine.md", "Mine."),
        ("project/.loon/commands/README.md", "about"),
        ("project/.loon/commands/.hidden.md", "x"),
        ("project/.loon/commands/notes.txt", "x"),
    ]);
    let (commands, unusable) = bench.listed();
    let names: Vec<&str> = commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(names, ["git:tidy", "mine", "review"]);
    assert_eq!(commands[2].description, "Review it [31m");
    assert_eq!(commands[2].argument_hint, "[file] [depth]");
    assert_eq!(commands[2].origin, ".loon/commands/review.md");
    assert_eq!(commands[1].origin, bench.path("data/commands/mine.md").display().to_string());
    assert_eq!(unusable, [""; 0]);
    // Read anew each time.
    bench.write("project/.loon/commands/review.md", "Now $ARGUMENTS");
    assert_eq!(bench.read().expand("review", " so it is ").unwrap(), "Now so it is");
}

#[test]
fn what_is_no_command_is_named_with_its_reason() {
    let bench = Bench::new(&[
        ("outside.md", "secret"),
        ("project/.loon/commands/fine.md", "Fine."),
        ("project/.loon/commands/two words.md", "x"),
        ("project/.loon/commands/1st.md", "x"),
        ("project/.loon/commands/a\u{1b}b.md", "x"),
        ("project/.loon/commands/empty.md", "---\ndescription: nothing\n---\n"),
    ]);
    let folder = bench.path("project/.loon/commands");
    symlink(bench.path("outside.md"), folder.join("out.md")).unwrap();
    symlink("/dev/zero", folder.join("zero.md")).unwrap();
    symlink(bench.path("."), folder.join("loop")).unwrap();
    bench.write("project/.loon/commands/latin.md", b"caf\xe9");
    let (commands, unusable) = bench.listed();
    assert_eq!(commands.len(), 2);
    assert_eq!(unusable.len(), 6, "{unusable:?}");
    assert!(unusable.iter().all(|reason| !reason.contains('\u{1b}')));
    assert!(unusable.contains(&".loon/commands/latin.md: it is not UTF-8.".to_owned()));
    assert!(
        unusable.contains(&".loon/commands/out.md: it is a link out of the project.".to_owned())
    );
    let error = bench.read().expand("latin", "").unwrap_err();
    assert_eq!(error.message, "There is no custom command /latin.");
    assert_eq!(error.hints[0], ".loon/commands/latin.md: it is not UTF-8.");
    let error = bench.read().expand("empty", "").unwrap_err();
    assert_eq!(error.message, "The command /empty has no text.");
    assert_eq!(bench.read().expand("no\u{1b}pe", "").unwrap_err().hints.len(), 1);
}

#[test]
fn commands_are_bounded() {
    let bench = Bench::new(&[("project/.loon/commands/a/b/c/d/deep.md", "x")]);
    for number in 0..205 {
        bench.write(&format!("project/.loon/commands/c{number:03}.md"), "x");
    }
    let (commands, unusable) = bench.listed();
    assert_eq!(commands.len(), 200);
    assert_eq!(unusable.len(), 1);
    assert!(unusable[0].starts_with(".loon/commands: it holds more than 200 commands"));
}

#[test]
fn words_that_begin_with_the_name_of_a_command_are_that_command() {
    let bench = Bench::new(&[("project/.loon/commands/git/tidy.md", "Tidy.")]);
    let opening =
        |text: &str| opening_command(&bench.path("project"), &bench.places(), text.to_owned());
    assert_eq!(
        opening(" /git:tidy  a\nb "),
        Command::Custom { name: "git:tidy".into(), arguments: "a\nb".into(), steer: false }
    );
    for text in ["/git", "/git:tidyx", "/usr/bin is full", "tidy", "/", ""] {
        assert_eq!(opening(text), Command::Prompt { text: text.to_owned() });
    }
}

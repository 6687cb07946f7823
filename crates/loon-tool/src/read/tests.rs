//! Tests of reading: ranges, encodings, binary and huge files.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use loon_kernel::native_tool;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

struct Project {
    _folder: tempfile::TempDir,
    workspace: Arc<Workspace>,
}

fn project(name: &str, content: &[u8]) -> Project {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path(), PathBuf::from("/nowhere")).unwrap();
    fs::File::create(workspace.root().join(name)).unwrap().write_all(content).unwrap();
    Project { _folder: folder, workspace }
}

impl Project {
    fn part(
        &self,
        path: &str,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, String> {
        let args = Args { path: path.to_owned(), offset, limit };
        let path = nearby::locate(&self.workspace, path);
        page::read(&self.workspace, &path, args.window(), &CancellationToken::new())
            .map(|page| page.text)
    }

    fn read(&self, path: &str) -> Result<String, String> {
        self.part(path, None, None)
    }

    fn seen(&self, path: &str) -> bool {
        self.workspace.read_state(&self.workspace.root().join(path)).is_some()
    }
}

fn read(content: &[u8]) -> String {
    project("f", content).read("f").unwrap()
}

#[test]
fn lines_are_numbered_and_otherwise_untouched() {
    assert_eq!(read(b"\tone\n  two \t\n\nthree\n"), "1\t\tone\n2\t  two \t\n3\t\n4\tthree\n");
    assert_eq!(read(b"last"), "1\tlast\n[no newline at the end of the file]\n");
    assert_eq!(read(b""), "[the file is empty]");
}

#[test]
fn ranges_say_how_to_go_on() {
    let project = project("f", b"1\n2\n3\n4\n5\n");
    assert_eq!(
        project.part("f", Some(2), Some(2)).unwrap(),
        "2\t2\n3\t3\n[lines 2-3 of 5; go on with offset 4]\n"
    );
    assert_eq!(project.part("f", Some(4), Some(100)).unwrap(), "4\t4\n5\t5\n");
    assert_eq!(
        project.part("f", Some(0), Some(0)).unwrap(),
        "1\t1\n[lines 1-1 of 5; go on with offset 2]\n"
    );
    assert_eq!(
        project.part("f", Some(6), None).unwrap_err(),
        "f has 5 lines; offset 6 is past its end."
    );
}

#[test]
fn pages_are_bounded_in_lines_and_bytes() {
    let text = read("x\n".repeat(5000).as_bytes());
    assert!(text.ends_with("2000\tx\n[lines 1-2000 of 5000; go on with offset 2001]\n"));
    let text = read(format!("{}\n", "y".repeat(1000)).repeat(500).as_bytes());
    assert!(text.len() < PAGE + 100);
    assert!(
        text.ends_with("[lines 1-65 of 500; go on with offset 66]\n"),
        "{}",
        &text[text.len() - 60..]
    );
    let text = read("é".repeat(3000).as_bytes());
    assert!(text.contains("é [... 1000 more characters]\n"));
}

#[test]
fn other_encodings_and_endings_are_shown_decoded_and_said() {
    assert_eq!(read(b"a\r\nb\r\n"), "[CRLF line endings, shown as LF]\n1\ta\n2\tb\n");
    assert_eq!(read(b"a\r\nb\n"), "[mixed LF and CRLF line endings, shown as LF]\n1\ta\n2\tb\n");
    assert_eq!(read(b"\xef\xbb\xbfa\n"), "1\ta\n");
    assert_eq!(read(b"caf\xe9\n"), "[encoding Windows-1252, shown decoded]\n1\tcafé\n");
    let utf16: Vec<u8> =
        [0xFEFF_u16].into_iter().chain("né\n".encode_utf16()).flat_map(u16::to_be_bytes).collect();
    assert_eq!(read(&utf16), "[encoding UTF-16 (big endian), shown decoded]\n1\tné\n");
    assert_eq!(
        read(
            "é\n"
                .as_bytes()
                .iter()
                .chain(b"\xff\x1b[0m\n")
                .copied()
                .collect::<Vec<u8>>()
                .as_slice()
        ),
        "[bytes that are no UTF-8 are shown as \u{FFFD}; control characters are shown as symbols]\n1\té\n2\t\u{FFFD}␛[0m\n"
    );
}

#[test]
fn what_is_no_text_is_refused_with_its_kind() {
    let error = project("p", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").read("p").unwrap_err();
    assert!(error.starts_with("p is no text but a PNG image of 16 bytes."), "{error}");
    let error =
        project("f", b"a\0b\xffc\xed\xa0\x80d\x1b[31mred\x1b[0m\rEND\n").read("f").unwrap_err();
    assert_eq!(
        error,
        "f is no text but binary data of 26 bytes. Its first bytes: \
         a␀b\u{FFFD}c\u{FFFD}\u{FFFD}\u{FFFD}d␛[31mred␛[0m␍END␊"
    );
    let mut late = vec![b'x'; 20_000];
    late.push(0);
    assert!(project("f", &late).read("f").unwrap_err().contains("NUL bytes further on"));
}

#[test]
fn places_that_are_no_files_are_answered() {
    let project = project("main.rs", b"x\n");
    assert_eq!(project.read(".").unwrap_err(), ". is a folder: use list_directory or tree.");
    assert_eq!(
        project.read("mian.rs").unwrap_err(),
        "mian.rs does not exist. Did you mean main.rs?"
    );
    nix::unistd::mkfifo(&project.workspace.root().join("pipe"), nix::sys::stat::Mode::S_IRWXU)
        .unwrap();
    assert_eq!(project.read("pipe").unwrap_err(), "pipe is a named pipe, which cannot be read.");
    assert_eq!(
        project.read("/dev/zero").unwrap_err(),
        "/dev/zero is a device, which cannot be read."
    );
}

#[test]
fn a_name_that_begins_with_a_dash_is_a_name() {
    assert_eq!(project("-n", b"z\n").read("-n").unwrap(), "1\tz\n");
}

#[test]
fn what_was_read_is_remembered_as_a_whole() {
    let project = project("f", b"1\n2\n3\n");
    assert!(!project.seen("f"));
    project.part("f", Some(9), None).unwrap_err();
    assert!(!project.seen("f"));
    project.part("f", Some(2), Some(1)).unwrap();
    let seen = project.workspace.read_state(&project.workspace.root().join("f")).unwrap();
    assert_eq!(seen.content.as_deref(), Some(&b"1\n2\n3\n"[..]));
}

#[test]
fn huge_files_are_read_in_part() {
    let long = "of a long log file ".repeat(10);
    let mut content = String::from("first\r\n");
    for number in 2..=90_000 {
        std::fmt::Write::write_fmt(&mut content, format_args!("line {number} {long}\n")).unwrap();
    }
    let project = project("log", content.as_bytes());
    let path = project.workspace.root().join("log");
    let size = text::size(fs::metadata(&path).unwrap().len());
    let note = format!("[a file of {size}, too large to be edited as text]\n");
    assert_eq!(
        project.part("log", None, Some(2)).unwrap(),
        format!("{note}1\tfirst\n2\tline 2 {long}\n[lines 1-2; go on with offset 3]\n")
    );
    assert_eq!(
        project.part("log", Some(90_000), None).unwrap(),
        format!("{note}90000\tline 90000 {long}\n")
    );
    assert_eq!(
        project.part("log", Some(90_001), None).unwrap_err(),
        "log has 90000 lines; offset 90001 is past its end."
    );
    assert!(!project.seen("log"));
}

#[test]
fn titles_and_subjects_name_the_place() {
    let project = project("f", b"x\n");
    let tool = Read::new(&project.workspace);
    let args = |offset, limit| Args { path: "./f".to_owned(), offset, limit };
    assert_eq!(tool.title(&args(None, None)), "./f");
    assert_eq!(tool.title(&args(Some(5), Some(10))), "./f:5-14");
    assert_eq!(tool.title(&args(Some(5), None)), "./f:5");
    let path = project.workspace.root().join("f");
    assert_eq!(
        tool.subjects(&args(None, None)),
        Ok(vec![Subject::Path { access: PathAccess::Read, path }])
    );
    let outside = Args { path: "../x".to_owned(), offset: None, limit: None };
    let path = project.workspace.root().parent().unwrap().join("x");
    assert_eq!(tool.subjects(&outside), Ok(vec![Subject::Path { access: PathAccess::Read, path }]));
}

#[test]
fn what_models_are_told_is_short() {
    let spec = native_tool(Read::new(&project("f", b"").workspace)).spec().clone();
    assert_eq!(spec.parameters["required"], json!(["path"]));
    let size = spec.description.len() + spec.parameters.to_string().len();
    assert!(size <= 350, "{size} bytes: {}", spec.parameters);
}

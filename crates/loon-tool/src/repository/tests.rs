//! Tests of the Git tools on real repositories.

use std::path::PathBuf;

use loon_api::EffectKey;
use loon_kernel::{EffectContext, NativeTool, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::git_blame::GitBlame;
use crate::git_branches::GitBranches;
use crate::git_diff::GitDiff;
use crate::git_log::GitLog;
use crate::git_show::GitShow;
use crate::git_status::GitStatus;

struct Fixture {
    folder: tempfile::TempDir,
    workspace: Arc<Workspace>,
}

impl Fixture {
    /// A workspace that is a repository on branch `trunk`.
    async fn new() -> Self {
        let fixture = Self::below("");
        fixture
            .sh("git init -q -b trunk . && git config user.name 'A U' && git config user.email e@e")
            .await;
        fixture
    }

    /// A workspace in a folder below another, without a repository.
    fn below(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(name);
        std::fs::create_dir_all(&root).unwrap();
        let workspace = Workspace::new(&root, PathBuf::from("/nowhere")).unwrap();
        Self { folder, workspace }
    }

    async fn sh(&self, line: &str) {
        let finished = Spawner::default()
            .bash(line, self.workspace.root())
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
            .run()
            .await
            .unwrap();
        assert!(finished.exit.is_success(), "{}", String::from_utf8_lossy(&finished.output.head));
    }

    async fn call<T: NativeTool>(&self, tool: T, arguments: Value) -> ToolOutput {
        let (progress, _heard) = mpsc::channel(8);
        let cx = EffectContext {
            hidden: [].into(),
            subjects: Arc::default(),
            key: EffectKey::call(1, 0, 0),
            cancel: CancellationToken::new(),
            progress,
        };
        tool.run(serde_json::from_value(arguments).unwrap(), &cx).await
    }

    async fn status(&self, arguments: Value) -> String {
        let tool = GitStatus::new(&self.workspace, &Spawner::default());
        self.call(tool, arguments).await.result.text
    }

    async fn diff(&self, arguments: Value) -> ToolOutput {
        self.call(GitDiff::new(&self.workspace, &Spawner::default()), arguments).await
    }

    async fn log(&self, arguments: Value) -> ToolOutput {
        self.call(GitLog::new(&self.workspace, &Spawner::default()), arguments).await
    }

    async fn show(&self, arguments: Value) -> ToolOutput {
        self.call(GitShow::new(&self.workspace, &Spawner::default()), arguments).await
    }

    async fn blame(&self, arguments: Value) -> ToolOutput {
        self.call(GitBlame::new(&self.workspace, &Spawner::default()), arguments).await
    }

    async fn branches(&self, arguments: Value) -> String {
        let tool = GitBranches::new(&self.workspace, &Spawner::default());
        self.call(tool, arguments).await.result.text
    }
}

/// The text without the hashes of commits, which differ from run to run.
fn hashless(text: &str) -> String {
    regex::Regex::new("[0-9a-f]{10,40}").unwrap().replace_all(text, "HASH").into_owned()
}

#[tokio::test]
async fn before_the_first_commit_all_is_normal() {
    let fixture = Fixture::new().await;
    fixture.sh("printf 'a\\n' > f; git add f").await;
    assert_eq!(
        fixture.status(json!({})).await,
        "On branch trunk, which has no commit yet.\nStaged:\n  added: f\n"
    );
    let staged = fixture.diff(json!({"staged": true})).await;
    assert!(staged.result.text.starts_with("1 file, +1 -0\n\ndiff --git a/f b/f\n"));
    assert!(staged.result.text.ends_with("@@ -0,0 +1 @@\n+a\n"), "{}", staged.result.text);
    assert!(fixture.diff(json!({})).await.result.text.starts_with("No differences. Staged"));
    let log = fixture.log(json!({})).await;
    assert_eq!(log.result.text, "No commits yet on branch trunk.");
    assert!(!log.result.is_error);
    let branches = fixture.branches(json!({})).await;
    assert_eq!(branches, "On branch trunk, which has no commit yet.\nNo branches.\n");
}

#[tokio::test]
async fn settings_of_the_repository_change_nothing() {
    let fixture = Fixture::new().await;
    fixture
        .sh("printf 'a\\n' > f; git add f; git commit -qm i; printf 'b\\n' >> f
             git config color.ui always; git config color.diff always; git config diff.noprefix true
             git config diff.mnemonicPrefix true; git config diff.external 'touch ran'
             git config status.short true; git config log.showSignature true
             git config core.pager false; git config diff.context 0; git config diff.orderFile gone
             git config status.showUntrackedFiles no; git config diff.renames false
             git config gpg.program 'touch ran'; git config core.sshCommand 'touch ran'
             printf '* diff=d\\n' > .git/info/attributes; git config diff.d.textconv 'touch ran'")
        .await;
    let text = fixture.diff(json!({})).await.result.text;
    assert!(text.contains("\n--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n+b\n"), "{text}");
    assert!(!text.contains('␛'), "{text}");
    let status = hashless(&fixture.status(json!({})).await);
    assert_eq!(status, "On branch trunk, commit HASH.\nNot staged:\n  modified: f\n");
    let log = hashless(&fixture.log(json!({})).await.result.text);
    assert_eq!(log, "HASH 2026-01-02 A U (HEAD -> trunk): i\n");
    let shown = fixture.show(json!({"revision": "HEAD"})).await.result.text;
    assert!(shown.ends_with("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"), "{shown}");
    let blame = hashless(&fixture.blame(json!({"path": "f"})).await.result.text);
    assert_eq!(
        blame,
        "HASH 1\ta\nuncommitted 2\tb\n\nuncommitted: changes that are in no commit yet\nHASH 2026-01-02 A U: i\n"
    );
    let text = fixture.show(json!({"revision": "^HEAD"})).await.result.text;
    assert_eq!(text, "^HEAD excludes commits and names none.");
    let text = fixture.show(json!({"revision": "x".repeat(100_000)})).await.result.text;
    assert!(text.contains("names no commit") && text.len() < 5000, "{} bytes", text.len());
    assert!(!fixture.workspace.root().join("ran").exists());
}

#[tokio::test]
async fn odd_names_are_names() {
    let fixture = Fixture::new().await;
    fixture
        .sh("touch ./-n 'two
lines' 'qu\"ote' $'\\xff' '*'; mkdir d; touch 'd/ü'")
        .await;
    assert_eq!(
        fixture.status(json!({})).await,
        "On branch trunk, which has no commit yet.\nUntracked:\n  *\n  -n\n  d/\n  qu\"ote\n  two␊lines\n  \u{fffd}\n"
    );
    fixture
        .sh("git add . && git commit -qm one; for f in ./-n '*' d/ü; do echo x > \"$f\"; done")
        .await;
    let only = |text: &str| text.lines().filter(|line| line.starts_with("+++")).count();
    for path in ["-n", "*", "d/ü"] {
        let text = fixture.diff(json!({"paths": [path]})).await.result.text;
        assert!(text.contains(&format!("\n+++ b/{path}\n")), "{text}");
        assert_eq!(only(&text), 1);
        let log = fixture.log(json!({"path": path})).await;
        assert_eq!(log.summary, "1 commit", "{path}: {}", log.result.text);
    }
}

#[tokio::test]
async fn a_revision_is_data() {
    let fixture = Fixture::new().await;
    fixture.sh("echo a > f; git add f; git commit -qm one").await;
    for revision in ["--output=ran", "-p", "--all", "HEAD\nHEAD", "", "nosuch", "HEAD^"] {
        for output in [
            fixture.show(json!({"revision": revision})).await,
            fixture.log(json!({"revision": revision})).await,
            fixture.diff(json!({"base": revision})).await,
            fixture.blame(json!({"revision": revision, "path": "f"})).await,
        ] {
            assert!(output.result.is_error, "{revision}: {}", output.result.text);
            assert!(output.result.text.contains("names no commit"), "{}", output.result.text);
        }
    }
    let text = fixture.show(json!({"revision": "HEAD:f"})).await.result.text;
    assert!(text.contains("give the commit as revision and the file as path"), "{text}");
    assert!(!fixture.workspace.root().join("ran").exists());
}

#[tokio::test]
async fn differences_are_between_what_was_asked_for() {
    let fixture = Fixture::new().await;
    fixture
        .sh("echo a > f; git add f; git commit -qm one; git branch old
             echo b > f; git commit -qam two; echo c > f; git add f; echo d > f; printf '\\0' > bin; git add -N bin")
        .await;
    let changes = |output: ToolOutput| -> Vec<String> {
        let lines = output.result.text.lines().map(str::to_owned);
        lines.filter(|line| matches!(line.as_bytes(), [b'+' | b'-', _])).collect()
    };
    let f = json!(["f"]);
    assert_eq!(changes(fixture.diff(json!({"paths": f})).await), ["-c", "+d"]);
    assert_eq!(changes(fixture.diff(json!({"staged": true})).await), ["-b", "+c"]);
    assert_eq!(changes(fixture.diff(json!({"base": "HEAD", "paths": f})).await), ["-b", "+d"]);
    let staged = json!({"base": "old", "staged": true});
    assert_eq!(changes(fixture.diff(staged).await), ["-a", "+c"]);
    assert_eq!(changes(fixture.diff(json!({"base": "old..trunk"})).await), ["-a", "+b"]);
    assert_eq!(changes(fixture.diff(json!({"base": "trunk..old"})).await), ["-b", "+a"]);
    assert_eq!(changes(fixture.diff(json!({"base": "old...trunk"})).await), ["-a", "+b"]);
    let all = fixture.diff(json!({})).await;
    assert_eq!(all.summary, "2 files, +1 -1");
    assert!(all.result.text.contains("Binary files /dev/null and b/bin differ"));
    let both = fixture.diff(json!({"base": "old..trunk", "staged": true})).await;
    assert!(both.result.is_error && both.result.text.contains("leave staged out"));
}

#[tokio::test]
async fn commits_are_listed_in_pages_and_followed_through_renames() {
    let fixture = Fixture::new().await;
    fixture
        .sh("seq 9 > old; git add .; git commit -qm 'one'; git mv old new; git commit -qm two
             git commit -q --allow-empty -m $'three\\e[31m\\n\\nbody'")
        .await;
    let text = hashless(&fixture.log(json!({"limit": 2})).await.result.text);
    assert_eq!(
        text,
        "HASH 2026-01-02 A U (HEAD -> trunk): three␛[31m\nHASH 2026-01-02 A U: two\n[more commits follow; go on with skip 2]\n"
    );
    let text = hashless(&fixture.log(json!({"limit": 2, "skip": 2})).await.result.text);
    assert_eq!(text, "HASH 2026-01-02 A U: one\n");
    assert_eq!(fixture.log(json!({"path": "new"})).await.summary, "2 commits");
    assert_eq!(fixture.log(json!({"path": "old"})).await.summary, "2 commits");
    assert_eq!(fixture.log(json!({"revision": "HEAD~2..HEAD~1"})).await.summary, "1 commit");
    let shown = hashless(&fixture.show(json!({"revision": "HEAD"})).await.result.text);
    assert_eq!(
        shown,
        "commit HASH\nauthor A U <e@e>, 2026-01-02T03:04:05Z\nrefs HEAD -> trunk\n\n    three␛[31m\n    \n    body\n\nNo differences.\n"
    );
    let shown = fixture.show(json!({"revision": "HEAD~1"})).await.result.text;
    assert!(shown.contains("rename from old\nrename to new"), "{shown}");
}

#[tokio::test]
async fn files_are_shown_as_they_were() {
    let fixture = Fixture::new().await;
    fixture
        .sh("printf 'a\\nb' > f; mkdir d; printf '\\0x' > d/bin; ln -s f link; touch d/empty
             git add .; git commit -qm one; git rm -rqf .; git commit -qm two")
        .await;
    let at = async |path: &str| {
        fixture.show(json!({"revision": "HEAD~1", "path": path})).await.result.text
    };
    assert_eq!(at("f").await, "1\ta\n2\tb\n");
    assert_eq!(at("d").await, "bin\nempty\n");
    assert_eq!(at(".").await, "d\nf\nlink\n");
    assert_eq!(at("d/bin").await, "d/bin is binary, 2 bytes.");
    assert_eq!(at("d/empty").await, "It is empty.\n");
    assert_eq!(at("link").await, "link is a link to f.");
    let now = fixture.show(json!({"revision": "HEAD", "path": "f"})).await.result;
    assert!(now.is_error && now.text.starts_with("f is not in HEAD."), "{}", now.text);
    let page = fixture.show(json!({"revision": "HEAD~1", "path": "f", "offset": 2})).await;
    assert_eq!(page.result.text, "2\tb\n");
    let past = fixture.show(json!({"revision": "HEAD~1", "path": "f", "offset": 3})).await.result;
    assert!(past.is_error && past.text == "It has 2 lines; offset is past its end.");
}

#[tokio::test]
async fn a_merge_is_shown_against_its_first_parent() {
    let fixture = Fixture::new().await;
    fixture
        .sh("echo a > f; git add .; git commit -qm one; git checkout -qb side; echo s > s; git add .; git commit -qm side
             git checkout -q trunk; echo t > t; git add .; git commit -qm trunk; git merge -q -m merged side")
        .await;
    let text = fixture.show(json!({"revision": "HEAD"})).await.result.text;
    assert!(text.contains("; shown against the first\n"), "{text}");
    assert!(text.contains("+++ b/s\n") && !text.contains("+++ b/t\n"), "{text}");
}

#[tokio::test]
async fn conflicts_and_what_is_under_way_are_told() {
    let fixture = Fixture::new().await;
    fixture
        .sh("echo a > f; git add .; git commit -qm one; git checkout -qb side; echo s > f; git commit -qam side
             git checkout -q trunk; echo t > f; git commit -qam trunk; ! git merge -q side")
        .await;
    let text = hashless(&fixture.status(json!({})).await);
    assert_eq!(
        text,
        "On branch trunk, commit HASH.\nUnder way: merge.\nConflicts:\n  both modified: f\n"
    );
    let diff = fixture.diff(json!({})).await.result;
    assert!(!diff.is_error && diff.text.contains("++<<<<<<< "), "{}", diff.text);
    fixture.sh("git merge --abort; git checkout -q side; ! git rebase -q trunk").await;
    let text = hashless(&fixture.status(json!({})).await);
    assert!(text.starts_with("On no branch (detached), commit HASH.\nUnder way: rebase of side, step 1 of 1.\nConflicts:\n"), "{text}");
}

#[tokio::test]
async fn branches_tell_upstream_and_worktree() {
    let fixture = Fixture::new().await;
    fixture
        .sh("git commit -q --allow-empty -m one; git branch up; git branch -q --set-upstream-to=up trunk
             git commit -q --allow-empty -m two; git worktree add -q -b side ../side-of-it 2>/dev/null || exit 1
             mv ../side-of-it ../moved 2>/dev/null; git worktree repair -q ../moved 2>/dev/null || true
             git update-ref refs/remotes/o/main HEAD")
        .await;
    let text = hashless(&fixture.branches(json!({})).await);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"* trunk HASH 2026-01-02 [up: ahead 1] two"), "{text}");
    assert!(lines.contains(&"  up HASH 2026-01-02 one"), "{text}");
    let checked_out = |line: &&str| line.starts_with("  side HASH 2026-01-02 [checked out in /");
    assert!(lines.iter().any(checked_out), "{text}");
    assert_eq!(
        hashless(&fixture.branches(json!({"remote": true})).await),
        "  o/main HASH 2026-01-02 two\n"
    );
    fixture.sh("rm -rf ../moved ../side-of-it; git checkout -q --detach").await;
    let text = hashless(&fixture.branches(json!({})).await);
    assert!(text.starts_with("On no branch (detached), commit HASH.\n  "), "{text}");
}

#[tokio::test]
async fn lines_are_blamed_in_ranges() {
    let fixture = Fixture::new().await;
    fixture
        .sh("seq 500 > f; git add .; git commit -qm one; sed -i 3s/.*/x/ f; git commit -qam two")
        .await;
    let output = fixture.blame(json!({"path": "f", "first": 2, "last": 3})).await;
    let text = hashless(&output.result.text);
    let subjects: Vec<&str> =
        text.lines().skip(3).map(|line| line.rsplit(": ").next().unwrap()).collect();
    assert!(text.starts_with("HASH 2\t2\nHASH 3\tx\n\n"), "{text}");
    assert_eq!(subjects.len(), 2);
    let text = fixture.blame(json!({"path": "f"})).await.result.text;
    assert!(text.contains("400\n[more lines follow; go on with first 401]\n"), "{text}");
    let text = hashless(
        &fixture.blame(json!({"path": "f", "first": 500, "revision": "HEAD~1"})).await.result.text,
    );
    assert_eq!(text, "HASH 500\t500\n\nHASH 2026-01-02 A U: one\n");
    let past = fixture.blame(json!({"path": "f", "first": 501})).await.result;
    assert!(past.is_error && past.text.contains("has only 500 lines"), "{}", past.text);
}

#[tokio::test]
async fn what_is_no_repository_is_named() {
    let fixture = Fixture::below("");
    for output in [
        fixture.diff(json!({})).await,
        fixture.log(json!({})).await,
        fixture.show(json!({"revision": "HEAD"})).await,
        fixture.blame(json!({"path": "f"})).await,
    ] {
        assert!(output.result.is_error);
        let said = format!("{} is not in a Git repository", fixture.workspace.root().display());
        assert!(output.result.text.starts_with(&said), "{}", output.result.text);
    }
}

#[tokio::test]
async fn a_bare_repository_has_history_only() {
    let fixture = Fixture::below("bare");
    fixture
        .sh("git init -q -b trunk ../w; cd ../w; echo a > f; git add f
             git -c user.name=n -c user.email=e commit -qm one; cd ../bare; git clone -q --bare ../w .")
        .await;
    let status = fixture.status(json!({})).await;
    assert!(status.contains("is a bare repository: it has no working files"), "{status}");
    assert!(fixture.diff(json!({})).await.result.text.contains("is a bare repository"));
    assert_eq!(fixture.log(json!({})).await.summary, "1 commit");
    let show = async |arguments: Value| fixture.show(arguments).await.result.text;
    assert!(show(json!({"revision": "trunk"})).await.ends_with("+a\n"));
    assert_eq!(show(json!({"revision": "trunk", "path": "f"})).await, "1\ta\n");
    assert!(fixture.branches(json!({})).await.contains("trunk"));
}

#[tokio::test]
async fn a_workspace_that_is_part_of_a_repository_shows_its_part() {
    let fixture = Fixture::below("part");
    fixture
        .sh("git init -q -b trunk ..; echo a > ../outside; echo b > inside; git add .. && git -c user.name=n -c user.email=e commit -qm one
             echo c >> ../outside; echo d >> inside")
        .await;
    let text = fixture.diff(json!({})).await.result.text;
    assert!(text.starts_with("1 file, +1 -0\n\ndiff --git a/inside b/inside\n"), "{text}");
    let status = fixture.status(json!({})).await;
    assert!(status.ends_with("Not staged:\n  modified: inside\n"), "{status}");
    let shown = fixture.show(json!({"revision": "HEAD"})).await.result.text;
    assert!(shown.contains("+++ b/inside\n") && !shown.contains("outside"), "{shown}");
    assert!(fixture.folder.path().join("outside").exists());
}

#[tokio::test]
async fn repositories_below_are_asked_by_path() {
    let fixture = Fixture::new().await;
    fixture
        .sh("git init -q -b inner sub; cd sub; echo a > f; git add f; git -c user.name=n -c user.email=e commit -qm inner; echo b > f
             cd ..; echo x > g; git -c protocol.file.allow=always submodule --quiet add ./sub sub 2>/dev/null; git add g; git commit -qm outer")
        .await;
    let text = fixture.diff(json!({"paths": ["sub/f"]})).await.result.text;
    assert!(text.contains("--- a/sub/f\n+++ b/sub/f\n") && text.ends_with("+b\n"), "{text}");
    assert!(fixture.status(json!({"path": "sub"})).await.contains("modified: sub/f"));
    // What changed inside is not the outer repository's business.
    assert!(fixture.status(json!({})).await.ends_with("Nothing differs.\n"));
    let mixed = fixture.diff(json!({"paths": ["sub/f", "g"]})).await.result;
    assert!(
        mixed.is_error
            && mixed.text.starts_with("g is not in the repository of the first path, sub."),
        "{}",
        mixed.text
    );
}

#[tokio::test]
async fn files_elsewhere_are_not_read() {
    let fixture = Fixture::below("root");
    fixture
        .sh("mkdir ../secret; echo s > ../secret/f; git init -q .; git config core.worktree \"$PWD/../secret\"")
        .await;
    let output = fixture.diff(json!({})).await.result;
    assert!(output.is_error && output.text.contains("core.worktree says"), "{}", output.text);
    let status = fixture.status(json!({})).await;
    assert!(status.contains("core.worktree says"), "{status}");
}

#[tokio::test]
async fn objects_that_are_not_here_are_not_fetched() {
    let fixture = Fixture::below("clone");
    fixture
        .sh("git init -q -b trunk ../w; cd ../w; git config uploadpack.allowFilter true; git config user.name n; git config user.email e
             seq 99 > f; git add .; git commit -qm one; echo x > f; git commit -qam two
             git clone -q --no-checkout --filter=blob:none \"file://$PWD\" ../clone")
        .await;
    let output = fixture.show(json!({"revision": "HEAD"})).await.result;
    assert!(output.is_error && output.text.contains("partial clone"), "{}", output.text);
    assert_eq!(fixture.log(json!({})).await.summary, "2 commits");
}

#[tokio::test]
async fn a_history_that_was_cut_off_is_told() {
    let fixture = Fixture::below("clone");
    fixture
        .sh("git init -q -b trunk ../w; cd ../w; for n in 1 2; do git -c user.name=n -c user.email=e commit -q --allow-empty -m $n; done
             git clone -q --depth 1 \"file://$PWD\" ../clone")
        .await;
    let text = hashless(&fixture.log(json!({})).await.result.text);
    assert!(
        text.ends_with(": 2\n[the history was cut off when the repository was cloned]\n"),
        "{text}"
    );
    let shown = fixture.show(json!({"revision": "HEAD"})).await.result.text;
    assert!(shown.contains("the history ends here"), "{shown}");
}

#[tokio::test]
async fn a_link_is_itself_and_what_it_points_to_is_declared_too() {
    let fixture = Fixture::new().await;
    fixture.sh("echo a > f; ln -s f link; git add .; git commit -qm one; ln -sf gone link").await;
    let text = fixture.diff(json!({"paths": ["link"]})).await.result.text;
    assert!(text.contains("-f\n") && text.contains("+gone\n"), "{text}");
    fixture.sh("ln -sf f link").await;
    let root = fixture.workspace.root();
    let read = |name: &str| Subject::Path { access: PathAccess::Read, path: root.join(name) };
    assert_eq!(subjects(&fixture.workspace, &["link".to_owned()]), [read("link"), read("f")]);
    assert_eq!(
        subjects(&fixture.workspace, &[]),
        [Subject::Path { access: PathAccess::Read, path: root.to_owned() }]
    );
}

//! Tests of the Git wrapper on real repositories, hostile ones among them.

use std::fs;
use std::io::Write as _;

use super::*;

struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    async fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository
            .sh("git init -q -b trunk . && git config user.name n && git config user.email e@e")
            .await;
        repository
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn git(&self) -> Git {
        Git::new(&Spawner::default(), self.path(), &CancellationToken::new())
    }

    async fn sh(&self, line: &str) {
        let finished = Spawner::default().bash(line, self.path()).run().await.unwrap();
        assert!(finished.exit.is_success(), "{}", String::from_utf8_lossy(&finished.output.head));
    }
}

#[tokio::test]
async fn a_branch_without_a_commit_has_a_name() {
    let repository = Repository::new().await;
    assert_eq!(branch(repository.path()).as_deref(), Some("trunk"));
    fs::create_dir_all(repository.path().join("a/b")).unwrap();
    assert_eq!(branch(&repository.path().join("a/b")).as_deref(), Some("trunk"));
}

#[tokio::test]
async fn linked_worktrees_and_loose_commits_are_told_apart() {
    let repository = Repository::new().await;
    repository.sh("git commit -q --allow-empty -m one && git worktree add -q -b side/line w").await;
    assert_eq!(branch(&repository.path().join("w")).as_deref(), Some("side/line"));
    assert_eq!(branch(repository.path()).as_deref(), Some("trunk"));
    repository.sh("git checkout -q --detach").await;
    assert_eq!(branch(repository.path()), None);
}

#[test]
fn outside_a_repository_there_is_no_branch() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(branch(folder.path()), None);
}

#[test]
fn pipes_and_floods_in_place_of_its_files_hold_nobody_up() {
    let pipe = |path: &Path| {
        let _ = fs::remove_file(path);
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let put = |path: &Path, text: &str| {
        let _ = fs::remove_file(path);
        fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let entry = folder.path().join(".git");
    pipe(&entry);
    assert_eq!((branch(folder.path()), operation(folder.path())), (None, None));

    fs::remove_file(&entry).unwrap();
    fs::create_dir_all(entry.join("rebase-merge")).unwrap();
    put(&entry.join("HEAD"), "ref: refs/heads/trunk\n");
    let settings = || dirs::may_name_filters(folder.path());
    assert!(!settings(), "without settings");
    for name in ["commondir", "rebase-merge/head-name"] {
        pipe(&entry.join(name));
    }
    assert_eq!(branch(folder.path()).as_deref(), Some("trunk"));
    assert_eq!(operation(folder.path()).as_deref(), Some("rebase"));
    pipe(&entry.join("config"));
    assert!(settings(), "what cannot be read may hold one");
    put(&entry.join("config"), "[user]\n");
    assert!(!settings(), "without filters");
    put(&entry.join("config"), &" ".repeat(5 * 1024 * 1024));
    assert!(settings(), "what is too large may hold one");
}

#[tokio::test]
async fn toplevel_is_found_from_below_and_refused_outside() {
    let repository = Repository::new().await;
    let below = repository.path().join("deep/er");
    fs::create_dir_all(&below).unwrap();
    let git = Git::new(&Spawner::default(), &below, &CancellationToken::new());
    assert_eq!(git.toplevel().await.unwrap(), repository.path().canonicalize().unwrap());

    let outside = tempfile::tempdir().unwrap();
    let git = Git::new(&Spawner::default(), outside.path(), &CancellationToken::new());
    let error = git.toplevel().await.unwrap_err();
    assert!(error.to_string().contains("not a git repository"), "{error}");
}

#[tokio::test]
async fn status_counts_each_state_once() {
    let repository = Repository::new().await;
    repository
        .sh("seq 20 > moved; echo a > edited; echo b > both; git add . && git commit -q -m one
             git mv moved 'new name'; echo c >> edited; echo d >> both; git add both; echo e >> both
             touch loose ./-n")
        .await;
    let summary = repository.git().status_summary().await.unwrap();
    assert!(summary.commit.as_ref().is_some_and(|commit| commit.len() == 40));
    assert_eq!(
        StatusSummary { commit: None, ..summary },
        StatusSummary {
            branch: Some("trunk".to_owned()),
            staged: 2,
            changed: 2,
            untracked: 2,
            ..StatusSummary::default()
        }
    );
}

#[test]
fn status_headers_are_read() {
    let head =
        b"# branch.oid abc\0# branch.head m\0# branch.upstream o/m\0# branch.ab +2 -13\0u UU x\0"
            .to_vec();
    let summary = StatusSummary::of(&Captured { head, omitted: 1, tail: Vec::new() });
    assert_eq!(
        summary,
        StatusSummary {
            branch: Some("m".to_owned()),
            commit: Some("abc".to_owned()),
            upstream: Some("o/m".to_owned()),
            ahead: 2,
            behind: 13,
            conflicted: 1,
            truncated: true,
            ..StatusSummary::default()
        }
    );
    assert!(!summary.is_clean());
}

#[tokio::test]
async fn no_program_that_a_repository_names_is_started() {
    let repository = Repository::new().await;
    repository.sh("echo a > f && git add f && git commit -q -m one").await;
    repository
        .sh("printf '* filter=x=y diff=d\n' > .gitattributes
             git config 'filter.x=y.clean' 'touch ran-filter; cat'
             git config 'filter.x=y.required' true
             git config diff.d.textconv 'touch ran-textconv; cat'
             git config diff.external 'touch ran-external'
             git config core.fsmonitor 'touch ran-monitor'
             echo b > f; touch -d '1 hour ago' f")
        .await;
    let git = repository.git();
    assert_eq!(git.status_summary().await.unwrap().changed, 1);
    let shown = git.run("diff", &[], &[Path::new("f")]).await.unwrap();
    assert!(String::from_utf8(shown.head).unwrap().contains("+b"));
    let ran: Vec<_> = fs::read_dir(repository.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.as_bytes().starts_with(b"ran-"))
        .collect();
    assert_eq!(ran, Vec::<OsString>::new());
}

#[tokio::test]
async fn paths_are_data() {
    let repository = Repository::new().await;
    repository.sh("echo z > ./-n; echo y > '*'; echo x > other").await;
    repository.git().run("add", &[], &[Path::new("-n"), Path::new("*")]).await.unwrap();
    let listed = repository.git().run("ls-files", &["-z"], &[]).await.unwrap();
    assert_eq!(listed.head, b"*\0-n\0");
}

#[tokio::test]
async fn a_revision_or_range_is_resolved_to_hashes() {
    let repository = Repository::new().await;
    repository
        .sh("for n in 1 2; do git commit -q --allow-empty -m $n; done; git branch -- side HEAD~1")
        .await;
    let git = repository.git();
    let head = git.resolve("HEAD").await.unwrap();
    let side = git.resolve("side").await.unwrap();
    assert_eq!((head.len(), head[0].len(), side.len()), (1, 40, 1));
    assert_eq!(
        git.resolve("side..HEAD").await.unwrap(),
        [head[0].clone(), format!("^{}", side[0])]
    );
    for no in ["--all", "-n1", "gone", "", "HEAD\n", "HEAD^2", "a..b"] {
        let error = git.resolve(no).await.unwrap_err();
        assert!(matches!(error, GitError::NoRevision { .. }), "{no}: {error}");
    }
}

#[tokio::test]
async fn git_is_ended_when_it_has_said_enough() {
    let repository = Repository::new().await;
    repository.sh("seq 300000 > f; git add f").await;
    let query = Query::new("diff").arg("--cached").limit(1000);
    let output = repository.git().ask(&query).await.unwrap();
    assert_eq!(output.head.len(), 1000);
    assert!(!output.is_whole());
    let query = Query::new("diff").arg("--cached").limit(8 * 1024 * 1024);
    assert!(repository.git().ask(&query).await.unwrap().is_whole());
}

#[tokio::test]
async fn a_cancelled_question_is_no_answer() {
    let repository = Repository::new().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let git = Git::new(&Spawner::default(), repository.path(), &cancel);
    let error = git.ask(&Query::new("status").limit(1000)).await.unwrap_err();
    assert!(matches!(error, GitError::Cancelled { .. }), "{error}");
}

#[tokio::test]
async fn each_file_of_a_status_is_told() {
    let repository = Repository::new().await;
    repository
        .sh("seq 20 > moved; echo a > both; git add . && git commit -q -m one
             git mv moved 'new name'; echo c >> both; git add both; echo e >> both; mkdir d; touch d/x")
        .await;
    let output = repository.git().run("status", &["--porcelain=v2", "-z"], &[]).await.unwrap();
    let changed = |staged, unstaged, from: Option<&str>| Kind::Changed {
        staged,
        unstaged,
        from: from.map(PathBuf::from),
        submodule: false,
    };
    let entry = |path: &str, kind| StatusEntry { path: path.into(), kind };
    let modified = Some(Change::Modified);
    assert_eq!(
        entries(&output),
        [
            entry("both", changed(modified, modified, None)),
            entry("new name", changed(Some(Change::Renamed), None, Some("moved"))),
            entry("d/", Kind::Untracked),
        ]
    );
}

#[tokio::test]
async fn what_is_under_way_is_known() {
    let repository = Repository::new().await;
    repository
        .sh("echo a > f; git add f; git commit -qm a; git checkout -qb side; echo s > f; git commit -qam s
             git checkout -q trunk; echo t > f; git commit -qam t")
        .await;
    assert_eq!(operation(repository.path()), None);
    repository.sh("! git cherry-pick side").await;
    assert_eq!(operation(repository.path()).as_deref(), Some("cherry-pick"));
    repository
        .sh("git cherry-pick --abort; git checkout -q side; ! git rebase --apply trunk")
        .await;
    assert_eq!(operation(repository.path()).as_deref(), Some("rebase of side, step 1 of 1"));
}

#[test]
fn programs_are_found_on_the_path() {
    let spawner = Spawner::default();
    assert!(spawner.find("git").is_some_and(|path| path.is_absolute() && path.ends_with("git")));
    assert_eq!(spawner.find("no-such-program-at-all"), None);
}

proptest::proptest! {
    #[test]
    fn any_status_is_read(head in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let whole = [&b"1 "[..], &head, b"\0u ", &head, b"\0"].concat();
        let output = Captured { head: whole, omitted: 0, tail: Vec::new() };
        let _ = (entries(&output), StatusSummary::of(&output));
    }
}

#[tokio::test]
async fn filters_are_found_around_what_only_looks_like_a_repository() {
    let repository = Repository::new().await;
    repository
        .sh("mkdir sub; echo a > sub/f; git add -f sub; git commit -q -m one; echo b > sub/f
             printf '* filter=x\n' > .git/info/attributes
             git config filter.x.process \"touch $PWD/ran-process\"
             git config filter.x.clean \"touch $PWD/ran-clean; cat\"
             mkdir sub/.git; : > sub/.git/HEAD; ln -s sub link")
        .await;
    for folder in ["sub", "link"] {
        let folder = repository.path().join(folder);
        let git = Git::new(&Spawner::default(), &folder, &CancellationToken::new());
        let shown = git.run("diff", &[], &[]).await.unwrap();
        assert!(String::from_utf8(shown.head).unwrap().contains("+b"));
    }
    assert!(!repository.path().join("ran-process").exists());
    assert!(!repository.path().join("ran-clean").exists());
}

#[tokio::test]
async fn nothing_but_ordinary_files_is_read() {
    let repository = Repository::new().await;
    let path = repository.path();
    repository
        .sh("mkdir .git/rebase-merge pipe
             rm .git/config
             mkfifo pipe/.git .git/commondir .git/config .git/rebase-merge/msgnum")
        .await;
    assert_eq!(branch(path).as_deref(), Some("trunk"));
    assert_eq!(branch(&path.join("pipe")).as_deref(), Some("trunk"));
    assert_eq!(operation(path).as_deref(), Some("rebase"));
    assert!(dirs::may_name_filters(path));
    repository.sh("rm -r .git/rebase-merge; ln -s /dev/zero .git/MERGE_HEAD").await;
    assert_eq!(operation(path).as_deref(), Some("merge"));
}

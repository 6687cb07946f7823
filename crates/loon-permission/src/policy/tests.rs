//! Decisions.

mod hosts;

use std::path::{Path, PathBuf};

use loon_api::RuleEffect::{Allow, Ask, Deny};
use loon_api::{
    Mode, PathAccess, PermissionRule, RuleEffect, RuleOrigin, RuleSet, Subject, ToolClass,
};
use proptest::prelude::*;

use super::{Judgement, Policy, Reason, Remedy, Request};
use crate::explain;

const ROOT: &str = "/w/p";
const HOME: &str = "/home/me";

type Written = (RuleEffect, &'static str, &'static str);

/// `matcher`: empty, `path=..`, `host=..`, else the words of a command.
fn rule(tool: &str, matcher: &str) -> PermissionRule {
    let mut rule = PermissionRule {
        tool: tool.to_owned(),
        path_prefix: None,
        command_prefix: None,
        host: None,
    };
    if let Some(path) = matcher.strip_prefix("path=") {
        rule.path_prefix = Some(path.to_owned());
    } else if let Some(host) = matcher.strip_prefix("host=") {
        rule.host = Some(host.to_owned());
    } else if !matcher.is_empty() {
        rule.command_prefix = Some(matcher.to_owned());
    }
    rule
}

fn policy(rules: &[Written]) -> Policy {
    let written = rules.iter().zip(1..).map(|((effect, tool, matcher), line)| {
        let origin = RuleOrigin { source: ".loon/config.toml".to_owned(), line: Some(line) };
        (*effect, rule(tool, matcher), origin)
    });
    let set = RuleSet { rules: written.collect(), write_roots: vec![PathBuf::from(ROOT)] };
    Policy::new(set, Some(PathBuf::from(HOME)), PathBuf::from(ROOT))
        .protecting(PathBuf::from("/home/me/.config/loon"))
}

/// `/w/p/link` leads to `/tmp/there`.
fn resolve(path: &Path) -> PathBuf {
    path.strip_prefix("/w/p/link")
        .map_or_else(|_| path.to_path_buf(), |rest| Path::new("/tmp/there").join(rest))
}

fn judge(policy: &Policy, line: &str, mode: Mode) -> Judgement {
    let subjects = [Subject::Command { line: line.to_owned(), cwd: PathBuf::from(ROOT) }];
    let request = Request { tool: "bash", class: ToolClass::Executes, subjects: &subjects, mode };
    policy.decide(&request, &resolve)
}

fn always(policy: &Policy, line: &str) -> Option<String> {
    let subjects = [Subject::Command { line: line.to_owned(), cwd: PathBuf::from(ROOT) }];
    let request = Request {
        tool: "bash",
        class: ToolClass::Executes,
        subjects: &subjects,
        mode: Mode::Default,
    };
    policy.always(&request, &resolve).and_then(|rule| rule.command_prefix)
}

fn file(policy: &Policy, tool: &str, access: PathAccess, path: &str, mode: Mode) -> RuleEffect {
    let class = if access == PathAccess::Read { ToolClass::Reads } else { ToolClass::Writes };
    let subjects = [Subject::Path { access, path: PathBuf::from(path) }];
    policy.decide(&Request { tool, class, subjects: &subjects, mode }, &resolve).effect
}

#[track_caller]
fn all(policy: &Policy, mode: Mode, wanted: &[RuleEffect], lines: &[&str]) {
    for line in lines {
        let judgement = judge(policy, line, mode);
        assert!(
            wanted.contains(&judgement.effect),
            "{line:?}: {:?}\n{}",
            judgement.effect,
            explain(&judgement)
        );
    }
}

#[test]
fn every_simple_command_of_a_line_is_judged() {
    let policy = policy(&[(Allow, "bash", "git"), (Deny, "bash", "rm")]);
    all(
        &policy,
        Mode::Default,
        &[Deny],
        &[
            "git status && rm -rf v",
            "git status; rm -rf v",
            "git status | rm -rf v",
            "git status |& rm -rf v",
            "git status & rm -rf v",
            "git status\nrm -rf v",
            "git status $(rm -rf v)",
            "git status `rm -rf v`",
            "git status \"$(rm -rf v)\"",
            "git status <(rm -rf v)",
            "(rm -rf v)",
            "{ rm -rf v; }",
            "if true; then rm -rf v; fi",
            "! rm -rf v",
            "for f in v; do rm -rf $f; done",
            "f(){ rm -rf v; }; f",
            "coproc rm -rf v",
            "coproc NAME { rm -rf v; }",
            "while rm v; do :; done",
            "case x in a) ;; *) rm v;; esac",
            "function f { rm v; }",
            "git status > >(rm v)",
            "git log <<< $(rm v)",
            "cat <<E\n$(rm v)\nE",
            "cat <<-E\n\t`rm v`\n\tE\n",
            "echo $((1 + $(rm v)))",
            "(( $(rm v) ))",
            "[[ -n $(rm v) ]]",
            "echo ${x:-$(rm v)}",
            "echo \"${x:-$(rm v)}\"",
            "x=$(rm v)",
            "x=(a $(rm v))",
            "git log || { git log && rm v; }",
            "time rm v",
            "time -p -- rm v",
            "! ! rm v",
            "echo \"a `echo \\`rm v\\``\"",
            "r\\m v",
            "'rm' v",
            "r\"\"m v",
            "$'r\\x6d' v",
            "r\\\nm v",
            "/bin/rm v",
            ">out rm v",
            "2>/dev/null rm v",
            "X=1 rm v",
            "X\\\n=1 rm v",
            "rm v; echo 'unclosed",
            "select x in a; do rm v; done",
            "for ((;;)); do rm v; done",
            "until false; do rm v; done",
            "a=1 b=2; rm v",
            "git status #c\nrm v",
            "echo $(git status # )\nrm v)",
        ],
    );
    all(
        &policy,
        Mode::Default,
        &[Allow],
        &[
            "git status '$(rm -rf v)'",
            "git status # && rm -rf v",
            "git log --grep \"; rm -rf v\"",
            "git status \\; rm",
            "git log --grep=a\\&rm",
            "git status <<'E'\n$(rm v)\nE\n",
        ],
    );
    // A word that is known only later can be an option that names a program.
    all(
        &policy,
        Mode::Default,
        &[Ask],
        &[
            "git $X",
            "git \"$X\" status",
            "X='-c alias.z=!./h z'; git $X",
            "git {-c,alias.z=!./h} z",
            "git *",
        ],
    );
}

#[test]
fn wrappers_hide_nothing_from_strict_rules() {
    let policy = policy(&[(Deny, "bash", "rm"), (Deny, "bash", "git push")]);
    for mode in [Mode::Default, Mode::Auto, Mode::Bypass] {
        all(
            &policy,
            mode,
            &[Deny],
            &[
                "env rm v",
                "env -i A=1 a.b=2 rm v",
                "env -u X -- rm v",
                "timeout 5 rm v",
                "timeout -k 1 --signal=KILL 5s rm v",
                "nice rm v",
                "nice -n 5 rm v",
                "nice -10 rm v",
                "nohup rm v",
                "stdbuf -oL rm v",
                "setsid -w rm v",
                "ionice -c2 -n 7 rm v",
                "sudo rm v",
                "sudo -u root -n A=1 rm v",
                "doas rm v",
                "xargs rm",
                "xargs -0 -n1 -I{} rm {}",
                "find . -name x | xargs rm -f",
                "exec rm v",
                "exec -a x rm v",
                "command rm v",
                "command -p rm v",
                "builtin command rm v",
                "busybox rm v",
                "sh -c 'rm v'",
                "bash -c 'rm v'",
                "bash -lc 'git status; rm v'",
                "bash -o pipefail -c 'rm v'",
                "bash --norc -ec 'rm v' x y",
                "zsh -c 'rm v'",
                "sh -c \"sh -c 'rm v'\"",
                "env nice timeout 5 sh -c 'nohup rm v'",
                "find . -exec rm {} \\;",
                "find . -execdir rm {} +",
                "find . -ok rm {} \\;",
                "find . -name x -delete",
                "find . -exec sh -c 'rm v' \\;",
                "watch -n 1 rm v",
                "watch 'git log; rm v'",
                "trap 'rm v' EXIT",
                "git push",
                "git -C x push",
                "git -c a.b=c push origin",
                "git --git-dir=x --work-tree y push",
                "git --no-pager push",
                "sudo git -C x push",
                "((x=1<<EOF))\nrm v\nEOF",
            ],
        );
    }
    all(
        &policy,
        Mode::Bypass,
        &[Ask],
        &[
            "$X v",
            "$(echo rm) v",
            "{rm,v}",
            "eval 'rm v'",
            "eval \"$X\"",
            "source x",
            ". x",
            "alias ls=rm",
            "echo rm v | bash",
            "bash -s x",
            "bash <<E\nrm v\nE",
            "sh -c \"$X\"",
            "xargs sh -c",
            "xargs -I X X v",
            "parallel ::: x",
            "ssh host rm v",
            "chroot x rm v",
            "env -S 'rm v'",
            "sudo -i",
            "git $X",
            "find . -exec {} \\;",
            "echo 'unclosed",
            "shopt -s extglob",
            "git -c alias.z='!./h' z",
            "timeout $X git status",
            "a[ # ]=1; rm v",
            "cat <<A\n\\\nA\ncat <<'B'\nA\nrm v\nB\n",
            "echo \"$\\\n(rm v)\"",
            "x='a[$(rm v)]'; echo $((x))",
        ],
    );
}

#[test]
fn allow_rules_read_a_command_narrowly() {
    let policy = policy(&[
        (Allow, "bash", "git status"),
        (Allow, "bash", "git diff"),
        (Allow, "bash", "git log"),
        (Allow, "bash", "git fetch"),
        (Allow, "bash", "cargo test"),
        (Allow, "bash", "env"),
        (Allow, "bash", "timeout"),
        (Allow, "bash", "find"),
        (Allow, "bash", "bash"),
        (Allow, "bash", "nice cargo build"),
    ]);
    all(
        &policy,
        Mode::Default,
        &[Ask],
        &[
            "GIT_EXTERNAL_DIFF=./h git diff",
            "GIT_SSH_COMMAND=./h git fetch",
            "PATH=./evil:$PATH git status",
            "LD_PRELOAD=./x.so git status",
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=./h git status",
            "git -c core.fsmonitor=./h status",
            "git -c alias.z='!./h' z",
            "git --exec-path=./x status",
            "git -C /other status",
            "git --paginate log",
            "git fetch ext::sh%20-c%20id",
            "git fetch --upload-pack=./h x",
            "git fetch --upload-p ./h x",
            "git diff --ext-diff",
            "git log --output=x",
            "git fetch $X",
            "cargo test $(whoami)",
            "cargo test <(ls)",
            "cargo testx",
            "cargo",
            "cargo $X",
            "RUSTC_WRAPPER=./h cargo test",
            "PATH=./evil; cargo test",
            "PATH=./evil\ncargo test",
            "for PATH in ./evil; do cargo test; done",
            ": ${PATH:=./evil}; cargo test",
            "cargo test && make",
            "env ./h",
            "timeout 5 ./h",
            "find . -exec ./h \\;",
            "find . -delete",
            "bash -c ./h",
            "nice cargo publish",
            "./cargo test",
            "cargo test > out",
        ],
    );
    all(
        &policy,
        Mode::Default,
        &[Allow],
        &[
            "git status",
            "LC_ALL=C git status",
            "git --no-pager log -p",
            "git fetch origin main",
            "cargo test",
            "cargo  'test' -p x",
            "cargo test -p $name",
            "RUST_BACKTRACE=1 cargo test 2>&1 | tail -n 20",
            "cargo test; git status",
            "dir=src; cargo test $dir",
            "bash script.sh",
            "nice cargo build -p x",
            "cargo test >/dev/null 2>/dev/null",
        ],
    );
}

#[test]
fn a_redirect_is_a_write() {
    let rules = [
        (Allow, "bash", "echo"),
        (Allow, "bash", "cat"),
        (Allow, "bash", "printf"),
        (Allow, "bash", "tee"),
        (Allow, "bash", "exec"),
        (Deny, "write", "path=/tmp"),
        (Deny, "write", "path=~"),
        (Deny, "write", "path=../out"),
    ];
    let strict = policy(&rules);
    all(
        &strict,
        Mode::Default,
        &[Deny],
        &[
            "echo k >> ~/.ssh/authorized_keys",
            "echo x > /tmp/out",
            "echo x 1> ../out",
            "echo x >| ../out",
            "echo x &> ../out",
            "echo x &>> ../out",
            "echo x >& ../out",
            "cat <> ../out",
            "exec 3> ../out",
            "echo x | tee ../out",
            "echo x > src/../../out",
            "echo x >../out",
            "{ echo x; } > ../out",
            "(echo x) 2>../out",
            "if true; then echo x; fi >> ../out",
            "> ../out",
            "cd .. && echo x > out",
            "cd ..; echo x > out",
            "cd /tmp; echo x > out",
            "cd; echo x > out",
            "echo x > link/out",
            "cp a ../out",
            "cp a b /tmp",
            "cp -t /tmp a",
            "mv ../out here",
            "ln -s ../out here",
            "rm ../out",
            "rm -r ..",
            "mkdir /tmp/x",
            "touch -- /tmp/x",
            "dd if=a of=/tmp/x",
            "sed -i s/a/b/ /tmp/x",
            "install -m 755 a /tmp/x",
            "truncate -s 0 /tmp/x",
            "bash -c 'echo x > /tmp/out'",
            "sudo tee /tmp/x",
            "sort -o /tmp/x a",
        ],
    );
    all(
        &strict,
        Mode::Default,
        &[Deny, Ask],
        &[
            "printf x > \"$PWD/../out\"",
            "echo x > $HOME/out",
            "echo x > $(cat name)",
            "echo x > \"a\nb/../../out\"",
            "echo x > *",
            "echo x > ~other/x",
            "cd $X; echo x > out",
            "cd -; echo x > out",
            "for d in a; do cd ..; done; echo x > out",
            "CDPATH=/ cd tmp; echo x > out",
            "f() { echo x > out; }; cd ..; f",
            "for i in 1 2; do echo x > out; cd ..; done",
            "HOME=/tmp; echo x > ~/out",
            "export HOME=/tmp; cd; echo x > out",
            "trap 'echo x > out' EXIT; cd ..",
            "trap 'cd ..' DEBUG; echo x > out",
        ],
    );
    let wide: Vec<Written> = rules.iter().copied().chain([(Allow, "write", "path=.")]).collect();
    all(
        &policy(&wide),
        Mode::Default,
        &[Allow],
        &[
            "echo x > /dev/null",
            "echo x 2>&1",
            "cat < in.txt",
            "echo x > out.txt",
            "echo x >&2",
            "echo x 2>&-",
            "cd src && echo x > out.txt",
        ],
    );
    all(&strict, Mode::Default, &[Ask], &["echo x > out.txt"]);
    all(&strict, Mode::Auto, &[Allow], &["echo x > out.txt"]);
}

#[test]
fn strict_rules_of_every_source_outweigh_allow_rules() {
    let before_trust = [
        (Allow, "bash", "ls *"),
        (Ask, "bash", "ls /etc*"),
        (Deny, "bash", "ls /root*"),
        (Allow, "bash", "ls -la"),
    ];
    let policy_before = policy(&before_trust);
    let effect = |line| judge(&policy_before, line, Mode::Default).effect;
    assert_eq!(effect("ls"), Allow);
    assert_eq!(effect("ls /etc"), Ask);
    assert_eq!(effect("ls /etc/ssh"), Ask);
    assert_eq!(effect("ls /root"), Deny);
    assert_eq!(effect("ls -la; make x"), Ask);
    assert_eq!(effect("curl a.example"), Ask);
    let after: Vec<Written> = before_trust.into_iter().chain([(Allow, "bash", "curl *")]).collect();
    assert_eq!(judge(&policy(&after), "curl a.example", Mode::Default).effect, Allow);

    // An answer of "always" for what an ask rule speaks of changes nothing, so none is offered.
    let asked = policy(&[(Ask, "bash", "git push")]);
    assert_eq!(always(&asked, "git push origin main"), None);
    let mut answered = asked;
    let origin = RuleOrigin { source: "session".to_owned(), line: None };
    answered.add(Allow, rule("bash", "git push"), origin);
    assert_eq!(judge(&answered, "git push", Mode::Bypass).effect, Ask);
}

#[test]
fn files_that_decide_what_is_allowed_are_never_written_silently() {
    let policy = policy(&[(Allow, "*", ""), (Allow, "write", "path=/"), (Allow, "bash", "path=/")]);
    for path in [
        "/w/p/.loon/config.toml",
        "/w/p/.loon/config.local.toml",
        "/w/p/.LOON/Config.toml",
        "/w/p/src/../.loon/config.toml",
        "/other/.loon/config.toml",
        "/home/me/.config/loon/config.toml",
    ] {
        for mode in [Mode::Default, Mode::Auto, Mode::Bypass] {
            assert_eq!(file(&policy, "write", PathAccess::Write, path, mode), Ask, "{path}");
        }
        assert_eq!(file(&policy, "read", PathAccess::Read, path, Mode::Default), Allow);
    }
    all(
        &policy,
        Mode::Bypass,
        &[Ask],
        &[
            "echo x > .loon/config.toml",
            "cp config.toml .loon",
            "cp config.toml .loon/",
            "mv .loon x",
            "rm -rf .loon",
            "ln -s /tmp/there .loon",
            "cp -r /tmp/there .loon",
            "mv /w/p/mine .loon",
            "ln -s .loon way",
            "rm -rf ~/.config",
            "ln .loon/config.toml x",
            "tee -a .loon/config.local.toml",
            "sed -i s/a/b/ .loon/config.toml",
            "bash -c 'echo x > .loon/config.toml'",
        ],
    );
}

#[test]
fn a_tool_that_takes_a_folder_is_judged_by_what_lies_below() {
    let policy = policy(&[(Deny, "read", "path=secret"), (Deny, "write", "path=src/kept")]);
    let tree = |tool, access, path| {
        let subjects = [Subject::Tree { access, path: PathBuf::from(path) }];
        let request =
            Request { tool, class: ToolClass::Writes, subjects: &subjects, mode: Mode::Bypass };
        policy.decide(&request, &resolve).effect
    };
    for tool in ["delete_path", "move_path", "undo"] {
        let wanted = [
            ("/w/p/src/kept/x", Deny),
            ("/w/p/src", Deny),
            ("/w/p/.loon", Ask),
            ("/home/me/.config", Ask),
            ("/w/p/src/free", Allow),
            ("/w/p/docs", Allow),
        ];
        for (path, effect) in wanted {
            assert_eq!(tree(tool, PathAccess::Write, path), effect, "{tool} {path}");
        }
    }
    assert_eq!(tree("copy_path", PathAccess::Read, "/w/p"), Deny);
    assert_eq!(tree("copy_path", PathAccess::Read, "/w/p/docs"), Allow);
}

#[test]
fn a_strict_rule_about_files_speaks_of_every_tool_that_touches_them_so() {
    let policy = policy(&[
        (Deny, "read", "path=secret"),
        (Ask, "edit", "path=src/kept"),
        (Allow, "write", "path=docs"),
        (Deny, "write", ""),
    ]);
    let (read, write) = (PathAccess::Read, PathAccess::Write);
    for tool in ["read", "read_many", "grep", "file_compare"] {
        assert_eq!(file(&policy, tool, read, "/w/p/secret/k", Mode::Bypass), Deny, "{tool}");
        assert_eq!(file(&policy, tool, read, "/w/p/src/kept", Mode::Bypass), Allow, "{tool}");
    }
    for tool in ["edit", "apply_patch", "json_edit", "make_directory"] {
        assert_eq!(file(&policy, tool, write, "/w/p/src/kept/k", Mode::Bypass), Ask, "{tool}");
        assert_eq!(file(&policy, tool, write, "/w/p/docs/k", Mode::Default), Ask, "{tool}");
        assert_eq!(file(&policy, tool, write, "/w/p/docs/k", Mode::Bypass), Allow, "{tool}");
    }
    assert_eq!(file(&policy, "write", write, "/w/p/docs/k", Mode::Bypass), Deny);
}

#[test]
fn modes_decide_where_no_rule_speaks() {
    let none = policy(&[]);
    let looks = [
        "ls -la src",
        "cat src/a.rs | head -n 5",
        "pwd",
        "git status && git diff HEAD~1 -- src",
        "git branch --show-current",
        "rg -n foo src",
        "grep -rn /api src",
        "find . -name '*.rs' -type f",
        "sort a | uniq -c | sort -rn",
        "wc -l < a",
        "test -f a && echo yes",
        "for f in a b; do cat a; done",
        "# nothing",
        "x=1",
        "set -euo pipefail; cd src && ls",
    ];
    let does = [
        "make",
        "ls > out",
        "cat /etc/passwd",
        "cat ../x",
        "cat ~/.ssh/id_rsa",
        "cat link/x",
        "cat $X",
        "grep -f /etc/passwd a",
        "grep x /etc/passwd",
        "find . -exec cat {} +",
        "sort -o a a",
        "uniq a b",
        "git branch new",
        "git diff --ext-diff",
        "git diff --no-index /etc/passwd a",
        "git log --output=x",
        "rg --pre ./h x",
        "printf -v PATH x",
        "PAGER=./h git log",
        "wc < /etc/passwd",
        "curl a.example",
        "./ls",
        "cd /etc && ls",
        "cd $X && ls",
    ];
    all(&none, Mode::Default, &[Allow], &looks);
    all(&none, Mode::Auto, &[Allow], &looks);
    all(&none, Mode::Default, &[Ask], &does);
    all(&none, Mode::Plan, &[Deny], &["ls", "make", "# nothing"]);
    all(&none, Mode::Bypass, &[Allow], &["make", "rm -rf v", "$X", "eval x", "echo > /tmp/x"]);
    let (read, write) = (PathAccess::Read, PathAccess::Write);
    for (tool, access, path, wanted) in [
        ("read", read, "/w/p/a", [Allow, Allow, Allow, Allow]),
        ("read", read, "/etc/passwd", [Ask, Ask, Allow, Ask]),
        ("read", read, "/w/p/link/a", [Ask, Ask, Allow, Ask]),
        ("write", write, "/w/p/a", [Ask, Allow, Allow, Deny]),
        ("write", write, "/w/px/a", [Ask, Ask, Allow, Deny]),
        ("write", write, "/w/p/link/a", [Ask, Ask, Allow, Deny]),
        ("write", write, "/w/p/.git/hooks/pre-commit", [Ask, Ask, Allow, Deny]),
        ("write", write, "/w/p/sub/.git/config", [Ask, Ask, Allow, Deny]),
    ] {
        let got = [Mode::Default, Mode::Auto, Mode::Bypass, Mode::Plan]
            .map(|mode| file(&none, tool, access, path, mode));
        assert_eq!(got, wanted, "{tool} {path}");
    }
    let plain = |class, mode| {
        none.decide(&Request { tool: "t", class, subjects: &[], mode }, &resolve).effect
    };
    assert_eq!(plain(ToolClass::Session, Mode::Plan), Allow);
    assert_eq!(plain(ToolClass::Reads, Mode::Default), Allow);
    assert_eq!(plain(ToolClass::Writes, Mode::Auto), Ask);
    assert_eq!(plain(ToolClass::Executes, Mode::Auto), Ask);
    assert_eq!(plain(ToolClass::Network, Mode::Plan), Ask);
    assert_eq!(plain(ToolClass::Network, Mode::Bypass), Allow);
}

#[test]
fn what_is_not_understood_is_asked_under_a_wide_allow() {
    let policy = policy(&[(Allow, "bash", "")]);
    all(
        &policy,
        Mode::Default,
        &[Ask],
        &[
            "echo 'x",
            "eval ls",
            "$X",
            "echo > $X",
            "if ls; then",
            "ls )",
            "echo $((x))",
            "echo ${!x}",
            "cat <<E\nx",
            "a=$[1]",
            "ls ;; ls",
            "\u{1}ls",
            "PS4='$(make)'; set -x; ls",
            "export BASH_ENV=x; bash -c ls",
            "env BASH_FUNC_ls%%='() { make; }' bash -c ls",
            "ssh host ls",
        ],
    );
    all(
        &policy,
        Mode::Default,
        &[Allow],
        &[
            "make -j4",
            "PATH=x make",
            "sudo make install > log",
            "for f in *.c; do cc -c \"$f\"; done",
            "rm $X",
            "bash -c 'make; ls'",
            "cat <<E > f\nx $y\nE",
        ],
    );
    let long = format!("echo {}", "x".repeat(crate::shell::MAX_LINE));
    let deep = format!("{}ls{}", "(".repeat(200), ")".repeat(200));
    let deeper = format!("echo {}", "$(".repeat(10_000));
    let wraps = "watch ".repeat(4_000);
    let backquotes = "`".repeat(999);
    let quotes = format!("echo {}", "\"$(".repeat(5_000));
    let finds = "find -exec ".repeat(2_000);
    let nohups = "nohup ".repeat(4_000);
    all(
        &policy,
        Mode::Default,
        &[Ask],
        &[&long, &deep, &deeper, &wraps, &backquotes, &quotes, &finds, &nohups],
    );
}

#[test]
fn path_and_host_rules_meet_every_form_of_a_name() {
    let policy = policy(&[
        (Deny, "*", "path=secret"),
        (Deny, "write", "path=/tmp/there"),
        (Allow, "write", "path=src"),
        (Allow, "read", "path=/etc"),
        (Deny, "fetch", "host=Private.example"),
        (Allow, "fetch", "host=docs.example"),
    ]);
    let write = |path| file(&policy, "write", PathAccess::Write, path, Mode::Default);
    assert_eq!(write("/w/p/secret"), Deny);
    assert_eq!(write("/w/p/secret/x"), Deny);
    assert_eq!(write("/w/p/secrets"), Ask);
    assert_eq!(write("/w/p/src/../secret/x"), Deny);
    assert_eq!(write("/w/p/link/x"), Deny);
    assert_eq!(write("/w/p/src/x"), Allow);
    assert_eq!(write("/w/p/srcx"), Ask);
    assert_eq!(file(&policy, "read", PathAccess::Read, "/etc/hosts", Mode::Default), Allow);
    all(&policy, Mode::Bypass, &[Deny], &["cat secret/x", "cat < secret/x", "rm -rf ../p"]);
    all(&policy, Mode::Default, &[Allow], &["cat /etc/hosts"]);

    let fetch = |url: &str| {
        let subjects = [Subject::Url { url: url.to_owned() }];
        let request = Request {
            tool: "fetch",
            class: ToolClass::Network,
            subjects: &subjects,
            mode: Mode::Default,
        };
        (policy.decide(&request, &resolve).effect, policy.always(&request, &resolve))
    };
    assert_eq!(fetch("https://docs.example@PRIVATE.example./x").0, Deny);
    assert_eq!(fetch("https://private.example:8080/").0, Deny);
    assert_eq!(fetch("https://docs.example/private.example").0, Allow);
    assert_eq!(fetch("https://docs.example.evil.example/").0, Ask);
    assert_eq!(fetch("file:///etc/passwd").0, Ask);
    assert_eq!(fetch("https://new.example/a").1, Some(rule("fetch", "host=new.example")));
}

#[test]
fn a_strict_rule_that_cannot_be_read_does_not_fall_away() {
    let subjects = [Subject::Url { url: "https://a.example/".to_owned() }];
    let request = Request {
        tool: "fetch",
        class: ToolClass::Network,
        subjects: &subjects,
        mode: Mode::Bypass,
    };
    let effect =
        |effect, host| policy(&[(effect, "fetch", host)]).decide(&request, &resolve).effect;
    assert_eq!(effect(Deny, "host=a b"), Deny);
    assert_eq!(effect(Ask, "host="), Ask);
    assert_eq!(effect(Deny, "host=b.example"), Allow);
    let both = PermissionRule { host: Some("b.example".to_owned()), ..rule("bash", "rm") };
    let origin = RuleOrigin { source: "session".to_owned(), line: None };
    let mut strict = policy(&[]);
    strict.add(Deny, both.clone(), origin.clone());
    assert_eq!(judge(&strict, "rm v", Mode::Bypass).effect, Deny);
    let mut wide = policy(&[]);
    wide.add(Allow, both, origin);
    assert_eq!(judge(&wide, "rm v", Mode::Default).effect, Ask);
}

#[test]
fn always_writes_a_rule_of_the_right_width() {
    let none = policy(&[]);
    for (line, wanted) in [
        ("git push origin main", Some("git push origin")),
        ("git push --force origin", Some("git push --force origin")),
        ("git commit -m 'a b'", Some("git commit")),
        ("git reset --hard HEAD~1", Some("git reset --hard HEAD~1")),
        ("cargo test -p x", Some("cargo test")),
        ("cargo +nightly test -p x", Some("cargo +nightly test")),
        ("cargo test -p a && cargo test -p b | tail -n 3", Some("cargo test")),
        ("npm run build -- --x", Some("npm run build")),
        ("make all", Some("make all")),
        ("pytest -x tests", Some("pytest")),
        ("python -m pytest -x", Some("python -m pytest")),
        ("python tool.py --x", Some("python tool.py")),
        ("./run.sh 'a b'", Some("./run.sh 'a b'")),
        ("timeout 60 cargo test -p x", Some("timeout 60 cargo test")),
        ("python -c 'print(1)'", None),
        ("node -e x", None),
        ("bash -c ls", None),
        ("xargs make", None),
        ("sudo make", None),
        ("env A=1 make", None),
        ("rm -rf build", None),
        ("find . -delete", None),
        ("find . -exec rm {} \\;", None),
        ("make && cargo build", None),
        ("make $(ls)", None),
        ("./run.sh $X", None),
        ("eval make", None),
        ("git -C x commit", None),
        ("PATH=x make", None),
        ("echo x > $X", None),
        ("ls", None),
    ] {
        assert_eq!(always(&none, line).as_deref(), wanted, "{line}");
    }
    let subjects =
        [Subject::Path { access: PathAccess::Write, path: PathBuf::from("/w/p/src/a.rs") }];
    let request = Request {
        tool: "edit",
        class: ToolClass::Writes,
        subjects: &subjects,
        mode: Mode::Default,
    };
    assert_eq!(none.always(&request, &resolve), Some(rule("edit", "path=src/a.rs")));
}

#[test]
fn an_explanation_names_rule_file_and_remedy() {
    let policy = policy(&[(Ask, "bash", "git push"), (Deny, "bash", "rm")]);
    let text = explain(&judge(&policy, "git push && rm -rf x; make", Mode::Default)).to_string();
    assert_eq!(
        text,
        "deny\n\
         \n  ask    git push\n\
         \x20        because  ask rule  bash \"git push\"  .loon/config.toml:1\n\
         \x20        change   only that rule in .loon/config.toml:1: an allow rule does not outweigh it\n\
         \n  deny   rm -rf x\n\
         \x20        because  deny rule  bash \"rm\"  .loon/config.toml:2\n\
         \x20        change   nothing: denied by the rule in .loon/config.toml:2\n\
         \n  ask    make\n\
         \x20        because  no rule speaks of it; mode default: it starts a program\n\
         \x20        change   add  allow  bash \"make\"\n"
    );
}

#[test]
fn a_whole_tool_is_decided_and_its_parts_still_named() {
    let policy = policy(&[(Deny, "mcp_x", ""), (Allow, "bash", ""), (Deny, "bash", "rm")]);
    assert!(policy.denies_tool("mcp_x", ToolClass::Reads, Mode::Bypass));
    assert!(!policy.denies_tool("bash", ToolClass::Executes, Mode::Default));
    assert!(policy.denies_tool("bash", ToolClass::Executes, Mode::Plan));
    let judgement = judge(&policy, "make; rm v", Mode::Default);
    let effects: Vec<RuleEffect> = judgement.parts.iter().map(|part| part.effect).collect();
    assert_eq!(effects, [Allow, Deny]);
    assert!(matches!(judgement.parts[0].remedy, Remedy::None));
    assert!(
        matches!(&judgement.parts[1].reason, Reason::Rule { origin, .. } if origin.line == Some(3))
    );
    assert_eq!(judgement.reasons(), ["rm v: deny rule  bash \"rm\"  .loon/config.toml:3."]);
}

#[test]
fn rules_of_the_shell_speak_of_commands_of_every_tool() {
    let started = |policy: &Policy, line: &str| {
        let subjects = [Subject::Command { line: line.to_owned(), cwd: PathBuf::from(ROOT) }];
        let request = Request {
            tool: "process_start",
            class: ToolClass::Executes,
            subjects: &subjects,
            mode: Mode::Default,
        };
        (policy.decide(&request, &resolve).effect, policy.always(&request, &resolve))
    };
    let rules = policy(&[(Allow, "bash", "npm run dev"), (Deny, "bash", "git push")]);
    assert_eq!(started(&rules, "npm run dev --port 1").0, Allow);
    assert_eq!(started(&rules, "git push && npm run dev").0, Deny);
    let (effect, always) = started(&rules, "make serve");
    assert_eq!((effect, always), (Ask, Some(rule("bash", "make serve"))));
    assert_eq!(started(&policy(&[(Allow, "bash", "")]), "make").0, Ask);
    assert_eq!(started(&policy(&[(Deny, "bash", "")]), "make").0, Deny);
    assert_eq!(
        started(&policy(&[(Deny, "bash", ""), (Allow, "process_start", "")]), "make").0,
        Deny
    );
}

/// Pieces that lines are made of, joined at random.
fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "rm", "git", "push", "ls", "cat", "x", "'", "\"", "`", "$(", ")", "(", "{", "}", ";",
            "&&", "||", "|", "&", "\n", " ", " ", " ", "<", ">", ">>", "<<E", "E", "<<-'E'", "\\",
            "$x", "${x:-", "${", "$((", "))", "((", "[[", "]]", "if", "then", "fi", "for", "in",
            "do", "done", "case", "esac", ";;", "while", "function", "f()", "coproc", "time", "!",
            "#", "~", "*", "[", "]", "=", "a=", "PATH=", "env", "sudo", "sh -c", "xargs", "find",
            "-exec", "cd", "..", "/tmp", "eval", "$'", "<(", "<<<", "2>&1", "&>", "\t", "é",
            "\u{1}",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,4}",
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_text_breaks_the_judgement(text in any::<String>(), line in line()) {
        let policy = policy(&[(Allow, "bash", ""), (Deny, "bash", "rm")]);
        for line in [text, line] {
            let script = crate::shell::parse(&line);
            let judgement = judge(&policy, &line, Mode::Default);
            prop_assert!(script.doubts.is_empty() || judgement.effect > Allow);
            let denied = script.commands.iter().any(|command| {
                command.words.first().and_then(crate::shell::Word::text) == Some("rm")
            });
            prop_assert!(!denied || judgement.effect == Deny);
        }
    }

    #[test]
    fn one_more_strict_rule_never_weakens(line in line(), mode in 0..3_usize, extra in 0..6_usize) {
        let mode = [Mode::Default, Mode::Auto, Mode::Bypass][mode];
        let extra = [
            (Deny, "bash", "rm"),
            (Deny, "bash", "git push"),
            (Deny, "write", "path=/tmp"),
            (Deny, "bash", ""),
            (Ask, "bash", "ls"),
            (Deny, "read", "path=x"),
        ][extra];
        let base = [(Allow, "bash", "git"), (Allow, "bash", "ls"), (Allow, "write", "path=.")];
        let more: Vec<Written> = base.iter().copied().chain([extra]).collect();
        let before = judge(&policy(&base), &line, mode).effect;
        let after = judge(&policy(&more), &line, mode).effect;
        prop_assert!(after >= before);
    }

    #[test]
    fn quoting_a_harmless_word_changes_nothing(
        words in proptest::collection::vec("[a-z]{1,6}", 1..5),
        program in proptest::sample::select(vec!["git push", "git status", "rm", "ls", "cargo test", "sudo rm", "x"]),
        quoted in 0..6_usize,
    ) {
        let policy = policy(&[(Allow, "bash", "cargo test"), (Deny, "bash", "rm"), (Ask, "bash", "git push")]);
        let all: Vec<String> = program.split(' ').map(str::to_owned).chain(words).collect();
        let written = |quote: &dyn Fn(&str) -> String| {
            let words = all.iter().enumerate().map(|(index, word)| {
                if index == quoted % all.len() { quote(word) } else { word.clone() }
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let plain = judge(&policy, &written(&str::to_owned), Mode::Default).effect;
        for quote in [
            &|word: &str| format!("'{word}'"),
            &|word: &str| format!("\"{word}\""),
            &|word: &str| format!("\\{word}"),
            &|word: &str| format!("{word}''"),
        ] as [&dyn Fn(&str) -> String; 4] {
            let line = written(quote);
            prop_assert_eq!(judge(&policy, &line, Mode::Default).effect, plain, "{}", line);
        }
    }
}

#[test]
fn a_copy_of_the_workspace_stands_in_its_place_and_opens_nothing_of_the_original() {
    let original = policy(&[
        (Deny, "read", "path=secret"),
        (Allow, "write", "path=/w/p/src"),
        (Ask, "write", "path=/w/p/src/gen"),
        (Allow, "write", "path=/opt/out"),
    ]);
    let copy = original.moved(PathBuf::from("/data/copy"));
    let write = |path| file(&copy, "write", PathAccess::Write, path, Mode::Default);
    let read = |path| file(&copy, "read", PathAccess::Read, path, Mode::Default);
    assert_eq!((read("/data/copy/secret/key"), read("/w/p/secret/key")), (Deny, Deny));
    assert_eq!((read("/data/copy/a"), read("/w/p/a")), (Allow, Ask));
    assert_eq!((write("/data/copy/src/a"), write("/w/p/src/a")), (Allow, Ask));
    assert_eq!((write("/data/copy/src/gen/a"), write("/opt/out/a")), (Ask, Allow));
    let auto = |path| file(&copy, "write", PathAccess::Write, path, Mode::Auto);
    assert_eq!((auto("/data/copy/a"), auto("/w/p/a")), (Allow, Ask));
    let settings = "/data/copy/.loon/config.toml";
    assert_eq!(file(&copy, "write", PathAccess::Write, settings, Mode::Bypass), Ask);
}

//! Decisions.

mod hosts;
mod lines;
mod remote;

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

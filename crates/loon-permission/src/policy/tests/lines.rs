//! Decisions on shell lines.

use super::*;

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

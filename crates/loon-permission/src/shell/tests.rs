//! Lines and what is found in them.

use brush_parser::ast;
use proptest::prelude::*;

use super::{Script, WordKind, parse, quote};

/// The words of every command, unknown ones as `?`, `~` kept.
fn commands(script: &Script) -> Vec<String> {
    let words = script.commands.iter().filter(|command| !command.words.is_empty()).map(|command| {
        let words = command.words.iter().map(|word| match &word.kind {
            WordKind::Literal(text) => text.clone(),
            WordKind::Home(rest) => format!("~{rest}"),
            WordKind::Dynamic { substitution: true } => "!".to_owned(),
            WordKind::Dynamic { substitution: false } => "?".to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    words.collect()
}

#[track_caller]
fn found(line: &str, wanted: &[&str]) {
    let script = parse(line);
    assert_eq!(script.doubts, Vec::<String>::new(), "{line:?}");
    assert_eq!(commands(&script), wanted, "{line:?}");
}

#[track_caller]
fn doubted(line: &str, wanted: &[&str]) {
    let script = parse(line);
    assert_ne!(script.doubts, Vec::<String>::new(), "{line:?}");
    assert_eq!(commands(&script), wanted, "{line:?}");
}

#[test]
fn words_are_read_as_bash_reads_them() {
    found("a 'b c' \"d e\" f\\ g", &["a b c d e f g"]);
    found("a '' \"\" b''c", &["a   bc"]);
    found("a $'x\\ty' $'\\x41\\u0042\\103'", &["a x\ty ABC"]);
    found("a \"\\$x \\\\ \\q \\\"\"", &["a $x \\ \\q \""]);
    found("a\\\nb \\\n c", &["ab c"]);
    found("a $x ${x} \"$x\" *.rs x? [ab] {a,b} {1..3}", &["a ? ? ? ? ? ? ? ?"]);
    found("a {} HEAD@{1} x{y}", &["a {} HEAD@{1} x{y}"]);
    found("a ~ ~/x '~/x' x~ ~user HEAD~1", &["a ~ ~/x ~/x x~ ? HEAD~1"]);
    found("a x=~/y x:~", &["a ? ?"]);
    found("a $ 5$ \"$\" $. ", &["a $ 5$ $ $."]);
    found("a#b #c", &["a#b"]);
    found("[ -f x ]", &["[ -f x ]"]);
    found("a \"b\nc\"", &["a b\nc"]);
    found("a $'\\''", &["a '"]);
    found("é \"ü\" '\u{4e2d}'", &["é ü \u{4e2d}"]);
    found(
        "a ${x:-b} ${x%%.*} ${x//a/b} ${#x} ${x:1:2} ${x[@]} ${x^^} ${1} $1",
        &["a ? ? ? ? ? ? ? ? ?"],
    );
}

#[test]
fn commands_are_found_wherever_they_stand() {
    found("a | b |& c && d || e; f & g", &["a", "b", "c", "d", "e", "f", "g"]);
    found(
        "a $(b `c`) \"$(d)\" <(e) >(f) ${x:-$(g)}",
        &["c", "b !", "d", "e", "f", "g", "a ! ! ! ! !"],
    );
    found("if a; then b; elif c; then d; else e; fi > x", &["a", "b", "c", "d", "e"]);
    found("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]);
    found("for x in $(a) b; do c $x; done", &["a", "c ?"]);
    found("for x\ndo a\ndone", &["a"]);
    found("case $(a) in (b|c) d;; e) f;& *) g\nesac", &["a", "d", "f", "g"]);
    found("case x in a) b;; esac; c", &["b", "c"]);
    found("f() { a; }; function g { b; }; function h() (c)", &["a", "b", "c"]);
    found("coproc a b; coproc N { c; }", &["a b", "c"]);
    found("[[ -f $(a) && b == c || ! ( d < e ) ]] && f", &["a", "f"]);
    found("[[ $x =~ ^(a|'b c')+$ && y =~ ($(c)) ]] || d", &["c", "d"]);
    found("time -p a; ! b", &["a", "b"]);
    found("(a; (b)) ; { c; }", &["a", "b", "c"]);
    found("echo $(( 1 + (2 << 3) )); ((1)); for ((;;)); do a; done", &["echo ?", "a"]);
    found("a <<E; b\n$(c) 'x' \"\n`d`\nE\ne", &["a", "b", "c", "d", "e"]);
    found("a <<'E'\n$(c)\nE", &["a"]);
    found("a <<-E <<\"F\"\n\tx\n\tE\n$(y)\nF\nb", &["a", "b"]);
    found("a <<< \"$(b)\"", &["b", "a"]);
    found("x=(a $(b) 'c') y+=d e", &["b", "e"]);
    found("a 2>&1 >x 3<y {fd}>z &>w", &["a"]);
    found("a $(case x in b) c;; esac)", &["c", "a !"]);
    found("a $(b # )\nc)", &["b", "c", "a !"]);
    found("", &[]);
    found("# a\n\n", &[]);
}

#[test]
fn redirects_are_files_and_copies_are_not() {
    let script = parse("a >b 2>>'c d' <e <>f >|g >&h &>i &>>j 2>&1 1>&- <&3 >&2- <<<k");
    let redirects: Vec<(bool, &str)> = script.commands[0]
        .redirects
        .iter()
        .map(|redirect| (redirect.writes, redirect.target.text().unwrap()))
        .collect();
    assert_eq!(
        redirects,
        [
            (true, "b"),
            (true, "c d"),
            (false, "e"),
            (true, "f"),
            (true, "g"),
            (true, "h"),
            (true, "i"),
            (true, "j"),
        ]
    );
    assert_eq!(commands(&script), ["a"]);
}

#[test]
fn what_bash_might_read_differently_is_doubted() {
    doubted("a; 'b", &["a"]);
    doubted("a $(b", &["b"]);
    doubted("a (b)", &[]);
    doubted("a; then b", &["a"]);
    doubted("a ;; b", &["a"]);
    doubted("a[ # ]=1; b", &[]);
    doubted("((a[$(b)]))", &["b"]);
    doubted("echo $((x))", &["echo ?"]);
    doubted("((echo a); b)", &[]);
    doubted("echo ${x@P} ${y}", &[]);
    doubted("echo ${!x}", &[]);
    doubted("echo ${ a; }", &[]);
    doubted("echo ${PATH:=x}", &["echo ?"]);
    doubted("echo \"${x:-'}'}\"", &[]);
    doubted("a <<E\nx\\\nE\nb\nE", &["a"]);
    doubted("a <<E", &["a"]);
    doubted("a <<$x\n$x", &[]);
    doubted("a $(b <<E)\nE", &["b"]);
    doubted("a <<E \"\n\"\nE", &[]);
    doubted("a \"$\\\n(b)\"", &[]);
    doubted("a !(b)", &[]);
    doubted("[[ a =~ (b;c) ]]", &[]);
    doubted("[[ x -eq y ]]", &[]);
    doubted("a $'\\c'", &[]);
    doubted("a <\\\n<b", &[]);
    doubted("a \\", &[]);
    doubted("}", &[]);
}

#[test]
fn a_chain_is_known_where_it_decides() {
    let place = |line: &str| {
        let script = parse(line);
        let places: Vec<(bool, bool)> = script
            .commands
            .iter()
            .map(|command| (command.place.decides_chain, command.place.repeated))
            .collect();
        let same = script.commands.first().map(|c| c.place.chain)
            == script.commands.last().map(|c| c.place.chain);
        (places, same)
    };
    assert_eq!(place("a && b"), (vec![(true, false), (false, false)], true));
    assert_eq!(place("a || b"), (vec![(false, false), (false, false)], false));
    assert_eq!(place("a; b"), (vec![(false, false), (false, false)], false));
    assert_eq!(place("a | c && b").0[0], (false, false));
    assert_eq!(place("! a && b").0[0], (false, false));
    assert_eq!(place("x || a && b").0[1], (false, false));
    assert_eq!(place("while a; do b; done").0, [(false, true), (false, true)]);
    assert_eq!(place("f() { a; }; b").0, [(false, true), (false, false)]);
}

/// The commands that another parser of the same grammar finds at the top of a line.
fn top_level(list: &ast::CompoundList, out: &mut Vec<String>) {
    for ast::CompoundListItem(chain, _) in &list.0 {
        let rest = chain.additional.iter().map(|next| match next {
            ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) => pipeline,
        });
        for command in std::iter::once(&chain.first).chain(rest).flat_map(|p| &p.seq) {
            match command {
                ast::Command::Simple(simple) => {
                    out.extend(simple.word_or_name.iter().map(|w| w.value.clone()));
                }
                ast::Command::Compound(ast::CompoundCommand::BraceGroup(group), _) => {
                    top_level(&group.list, out);
                }
                ast::Command::Compound(ast::CompoundCommand::Subshell(group), _) => {
                    top_level(&group.list, out);
                }
                ast::Command::Compound(ast::CompoundCommand::IfClause(clause), _) => {
                    top_level(&clause.condition, out);
                    top_level(&clause.then, out);
                }
                _ => {}
            }
        }
    }
}

fn ordinary_line() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(vec!["a", "b", "c", "d"]);
    let argument = proptest::sample::select(vec![
        "",
        " x",
        " 'y z'",
        " \"q; r\"",
        " $v",
        " >o",
        " 2>&1",
        " \\;",
        " '|'",
        " #c\n",
        " <i",
        " ${v:-w}",
        " \"$v\"",
        " e\\\nf",
    ]);
    let simple = (name, argument).prop_map(|(name, argument)| format!("{name}{argument}"));
    simple.prop_recursive(4, 24, 2, |inner| {
        let joint = proptest::sample::select(vec![" && ", " || ", " | ", "; ", "\n", " & "]);
        prop_oneof![
            (inner.clone(), joint, inner.clone()).prop_map(|(a, j, b)| format!("{a}\n{b}{j}{a}")),
            inner.clone().prop_map(|a| format!("( {a}\n)")),
            inner.clone().prop_map(|a| format!("{{ {a}\n}}")),
            inner.prop_map(|a| format!("if {a}\nthen {a}\nfi")),
        ]
    })
}

proptest! {
    #[test]
    fn two_parsers_find_the_same_commands(line in ordinary_line()) {
        let options = brush_parser::ParserOptions {
            enable_extended_globbing: false,
            ..brush_parser::ParserOptions::default()
        };
        let other = brush_parser::Parser::new(line.as_bytes(), &options).parse_program();
        let script = parse(&line);
        if let Ok(program) = other {
            let mut wanted = Vec::new();
            for list in &program.complete_commands {
                top_level(list, &mut wanted);
            }
            let found: Vec<String> = script
                .commands
                .iter()
                .filter_map(|command| command.words.first())
                .map(|word| word.source.clone())
                .collect();
            prop_assert_eq!(&script.doubts, &Vec::<String>::new(), "{}", line);
            prop_assert_eq!(found, wanted, "{}", line);
        }
    }

    #[test]
    fn a_quoted_text_is_one_word(text in "[ -~\t\n\u{e9}]{0,12}") {
        let script = parse(&format!("a {}", quote(&text)));
        prop_assert_eq!(&script.doubts, &Vec::<String>::new());
        prop_assert_eq!(script.commands[0].words[1].text(), Some(text.as_str()));
    }
}

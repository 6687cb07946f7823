//! Tests of `find_symbol`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixture::{Fixture, run};

fn find(fixture: &Fixture, arguments: Value) -> String {
    run(&FindSymbol::new(&fixture.workspace), arguments).result.text
}

/// Kind and name of every declaration in a text, one a line.
fn declared(file: &str, text: &str) -> Vec<String> {
    let language = Language::of(Path::new(file)).unwrap();
    mask::mask(text, language.syntax())
        .lines()
        .filter_map(|line| language.declared(line))
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect()
}

#[test]
fn exact_names_are_found_with_their_place() {
    let fixture = Fixture::new();
    fixture
        .put("src/a.rs", "// fn load\nlet s = \"fn load()\";\npub(crate) async fn load<T>() {}\n");
    fixture.put("lib/b.py", "\"\"\"\ndef load(): pass\n\"\"\"\nclass A:\n    def load(self):\n");
    fixture.put("c.ts", "load();\nexport const load = async (x) => {\n");
    fixture.put("d.rs", "fn load_all() {}\nfn reload() {}\n");
    fixture.put("target/e.rs", "fn load() {}");
    fixture.put(".gitignore", "target/\n");
    assert_eq!(
        find(&fixture, json!({"name": "load"})),
        "c.ts:2 function load: export const load = async (x) => {\nlib/b.py:5 function load: def \
         load(self):\nsrc/a.rs:3 function load: pub(crate) async fn load<T>() {}"
    );
    assert_eq!(
        find(&fixture, json!({"name": "Widget::load", "path": "src"})),
        "src/a.rs:3 function load: pub(crate) async fn load<T>() {}"
    );
    assert_eq!(
        find(&fixture, json!({"name": "loa", "path": "d.rs"})),
        "[no declaration is called loa; these names hold it]\nd.rs:1 function load_all: fn \
         load_all() {}\nd.rs:2 function reload: fn reload() {}"
    );
    assert_eq!(
        find(&fixture, json!({"name": "nothing"})),
        "No declaration of nothing in 4 source files of the workspace root. It may be declared in \
         another way, or in files that .gitignore leaves out: try grep."
    );
}

#[test]
fn names_in_other_encodings_and_letters_are_found() {
    let fixture = Fixture::new();
    let utf16: Vec<u8> =
        "\u{FEFF}fn load() {}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fixture.put("a.rs", utf16);
    fixture.put("b.py", "def größe():\n");
    fixture.put("c.py", b"# \xe9\ndef load():\n");
    assert_eq!(
        find(&fixture, json!({"name": "load"})),
        "a.rs:1 function load: fn load() {}\nc.py:2 function load: def load():"
    );
    assert_eq!(
        find(&fixture, json!({"name": "Größe"})),
        "[no declaration is called Größe; these names hold it]\nb.py:1 function größe: def größe():"
    );
}

#[test]
fn a_kind_narrows_the_search() {
    let fixture = Fixture::new();
    fixture.put("a.rs", "struct Item;\nimpl Item {}\nimpl Clone for Item {\nenum Item {}\n");
    assert_eq!(
        find(&fixture, json!({"name": "Item", "kind": "struct"})),
        "a.rs:1 struct Item: struct Item;"
    );
    assert_eq!(
        find(&fixture, json!({"name": "Item", "kind": "impl"})),
        "a.rs:2 impl Item: impl Item {}\na.rs:3 impl Item: impl Clone for Item {"
    );
    assert!(
        find(&fixture, json!({"name": "Item", "kind": "thing"}))
            .starts_with("No such kind: thing. There are function, class, struct,")
    );
    assert_eq!(
        find(&fixture, json!({"name": " "})),
        "Give the name of a declaration, or a part of it."
    );
    assert!(
        find(&fixture, json!({"name": "a", "path": "nope"})).starts_with("nope does not exist")
    );
}

#[test]
fn many_hits_and_large_files_are_told() {
    let fixture = Fixture::new();
    let functions: Vec<_> =
        (0..SHOWN + 5).map(|number| format!("fn item{number}() {{}}")).collect();
    fixture.put("a.rs", functions.join("\n"));
    fixture.put("b.rs", " ".repeat(FILE as usize + 1));
    let text = find(&fixture, json!({"name": "item"}));
    assert!(text.ends_with(
        "\n[60 of 65; give a longer name, a kind or a path]\n[1 file above 2.0 MiB not looked at]"
    ), "{text}");
}

#[test]
fn declarations_of_many_languages_are_known() {
    let check = |file: &str, text: &str, expected: &[&str]| {
        assert_eq!(declared(file, text), expected, "{file}");
    };
    check(
        "a.rs",
        "pub unsafe extern \"C\" fn a() {}\npub trait B: C {\ntype D = u8;\npub const E: u8 = 1;\n\
         static mut F: u8 = 1;\nmacro_rules! g {\npub mod h;\nimpl<T: Copy> I for J<T> {\nif x {\n\
         let k = 1;\nconst fn new() {}\nfn r#match() {}\n",
        &[
            "function a",
            "trait B",
            "type D",
            "const E",
            "variable F",
            "macro g",
            "module h",
            "impl J",
            "function new",
            "function match",
        ],
    );
    check(
        "a.py",
        "async def a():\nclass B(C):\nD: int = 1\nif d == 1:\nx.y = 2\nreturn z\nfor i in x:\n",
        &["function a", "class B", "variable D"],
    );
    check(
        "a.tsx",
        "export default function a() {\nexport abstract class B {\ninterface C {\ntype D = 1\n\
         export enum E {\nconst f = 1\nlet g\n  private async h(x: number): Promise<void> {\n\
         if (x) {\nreturn x(1)\nfoo(1);\nexport const i = (x: T): U => {\n  j = () => {\n\
         describe(x, function () {\ndeclare namespace K {\n} else if (y) {\nfor (const q of r) {\n",
        &[
            "function a",
            "class B",
            "interface C",
            "type D",
            "enum E",
            "const f",
            "variable g",
            "function h",
            "function i",
            "function j",
            "module K",
        ],
    );
    check(
        "a.go",
        "package a\nfunc (s *S) B(x int) error {\nfunc C[T any]() {\ntype D struct {\n\
         type E interface {\ntype F = int\nvar g = 1\nconst H = 1\n",
        &[
            "module a",
            "function B",
            "function C",
            "struct D",
            "interface E",
            "type F",
            "variable g",
            "const H",
        ],
    );
    check(
        "A.java",
        "public final class A {\n  @interface B {\nenum C {\nrecord D(int x) {\n\
         public static <T> List<T> e(int x) throws F {\nreturn g(1);\nnew H(1);\n\
         private static final int I = 1;\nelse if (x) {\n",
        &["class A", "interface B", "enum C", "class D", "function e", "const I"],
    );
    check(
        "a.kt",
        "data class A(val x: Int)\nfun String.b() = 1\nenum class C {\nobject D\nconst val E = 1\n\
         interface F\nprivate suspend fun g() {}\n",
        &["class A", "function b", "enum C", "class D", "const E", "interface F", "function g"],
    );
    check(
        "a.cs",
        "namespace X.Y;\npublic partial class A {\npublic record B(int X);\n\
         public async Task<int> C(int x)\nreturn D(1);\npublic string E { get; set; }\n",
        &["module Y", "class A", "class B", "function C", "variable E"],
    );
    check(
        "a.cpp",
        "#define A 1\nclass B : public C {\nstruct D {\nclass E;\nstatic int f(int x) {\n\
         void G::h() const {\nreturn i(x);\nj(x);\ntypedef unsigned long K;\nusing L = int;\n\
         enum class M {\nG::G(int x)\nG::p(x);\nnamespace n {\ntemplate <typename T> T o(T x) {\n\
         else if (x) {\n",
        &[
            "macro A",
            "class B",
            "struct D",
            "function f",
            "function h",
            "type K",
            "type L",
            "enum M",
            "function G",
            "module n",
            "function o",
        ],
    );
    check(
        "a.rb",
        "module A\nclass A::B < C\n  def self.d?\n  E = 1\n  attr_reader :f\n",
        &["module A", "class B", "function d?", "const E", "function f"],
    );
    check(
        "a.php",
        "abstract class A {\n  public static function b() {\n  const C = 1;\ninterface D {\n\
         trait E {\n  private ?int $f;\n",
        &["class A", "function b", "const C", "interface D", "trait E", "variable f"],
    );
    check(
        "a.swift",
        "public func a() {\nstruct B {\nprotocol C {\nextension D {\nactor E {\nlet f = 1\n",
        &["function a", "struct B", "interface C", "impl D", "class E", "variable f"],
    );
    check(
        "a.scala",
        "case class A(x: Int)\nobject B\ndef c(x: Int) = 1\ntrait D\nval e = 1\n",
        &["class A", "class B", "function c", "trait D", "variable e"],
    );
    check(
        "a.sh",
        "a() {\nfunction b {\nexport C=1\necho d=1\n# e() {\nx=$#; f\n",
        &["function a", "function b", "variable C", "variable x"],
    );
    check(
        "a.lua",
        "local function a()\nfunction M.b()\nfunction M:c()\nM.d = function()\n--[[\nfunction e()\n]]\n",
        &["function a", "function b", "function c", "function d"],
    );
    check(
        "a.ex",
        "defmodule A.B do\n  def c?(x), do: x\n  defp d do\n  defmacro e do\n  @type f :: atom\n",
        &["module B", "function c?", "function d", "macro e", "type f"],
    );
    check(
        "a.sql",
        "CREATE TABLE IF NOT EXISTS public.\"a\" (\ncreate or replace view b as\n\
         create function s.c(x int)\n-- create table d\ncreate type e as enum\n",
        &["table a", "view b", "function c", "type e"],
    );
}

proptest! {
    #[test]
    fn any_bytes_can_be_searched(bytes in prop::collection::vec(any::<u8>(), 0..200), name in "[a-z(\\\\é]{1,3}") {
        let text = String::from_utf8_lossy(&bytes);
        let wanted = Wanted::new(&name, None).unwrap();
        for file in ["a.rs", "a.py", "a.ts", "a.c", "a.lua", "a.sql", "a.rb", "a.hs"] {
            let language = Language::of(Path::new(file)).unwrap();
            let masked = mask::mask(&text, language.syntax());
            prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
            declarations(&text, language, &wanted, file, &mut Vec::new());
        }
    }

    #[test]
    fn odd_code_can_be_searched(text in "[a-c\"'`/*#\\\\\\-\\[\\]{}=rn \n]{0,80}") {
        for file in ["a.rs", "a.py", "a.ts", "a.c", "a.lua", "a.sql", "a.rb", "a.hs"] {
            let language = Language::of(Path::new(file)).unwrap();
            let masked = mask::mask(&text, language.syntax());
            prop_assert_eq!(masked.chars().count(), text.chars().count());
            prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
        }
    }
}

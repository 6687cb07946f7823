//! What declarations look like, language by language.

use std::path::Path;
use std::sync::OnceLock;

use regex::Regex;

use super::mask::Syntax;

/// The kinds of declarations.
pub(super) const KINDS: [&str; 15] = [
    "function",
    "class",
    "struct",
    "enum",
    "union",
    "trait",
    "interface",
    "type",
    "const",
    "variable",
    "module",
    "macro",
    "impl",
    "table",
    "view",
];

/// A language: its files, its comments, and the lines that declare something.
#[derive(Debug)]
pub(super) struct Language {
    extensions: &'static [&'static str],
    syntax: Syntax,
    /// Kind and pattern; `@` stands for the name.
    shapes: &'static [(&'static str, &'static str)],
    compiled: OnceLock<Vec<(&'static str, Regex)>>,
}

impl Language {
    const fn new(
        extensions: &'static [&'static str],
        syntax: Syntax,
        shapes: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { extensions, syntax, shapes, compiled: OnceLock::new() }
    }

    /// The language of a file, by its name.
    pub(super) fn of(path: &Path) -> Option<&'static Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        LANGUAGES.iter().find(|language| language.extensions.contains(&extension.as_str()))
    }

    /// Its comments and strings.
    pub(super) fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// What a line of code declares: kind and name.
    pub(super) fn declared<'l>(&self, line: &'l str) -> Option<(&'static str, &'l str)> {
        if is_statement(line) {
            return None;
        }
        self.compiled().iter().find_map(|(kind, shape)| {
            let name = shape.captures(line)?.name("name")?.as_str();
            (!KEYWORDS.contains(&name)).then_some((*kind, name))
        })
    }

    fn compiled(&self) -> &[(&'static str, Regex)] {
        self.compiled.get_or_init(|| {
            let compile = |(kind, shape): &(&'static str, &str)| {
                let pattern = format!("^[ \t]*{}", shape.replace('@', NAME));
                Some((*kind, Regex::new(&pattern).ok()?))
            };
            self.shapes.iter().filter_map(compile).collect()
        })
    }
}

const NAME: &str = r"(?<name>[\p{L}_$][\w$]*[?!]?)";

/// Words that stand where the name of a function may stand. Only those that are no names anywhere:
/// `new` and `delete` are.
const KEYWORDS: [&str; 14] = [
    "if", "for", "while", "switch", "catch", "return", "else", "do", "throw", "await", "function",
    "typeof", "case", "sizeof",
];

/// Words that begin statements which otherwise look like a type and a name.
const STATEMENTS: [&str; 7] = ["return", "new", "throw", "else", "await", "goto", "yield"];

/// True for a line as `return f(x);`, but not for a method called `return`.
fn is_statement(line: &str) -> bool {
    STATEMENTS.iter().any(|word| {
        line.trim_start().strip_prefix(word).is_some_and(|rest| {
            rest.starts_with([' ', '\t']) && !rest.trim_start().starts_with('(')
        })
    })
}

pub(super) const C_LIKE: Syntax =
    Syntax { line: &["//"], blocks: &[("/*", "*/")], quotes: &['"'], chars: true };
/// With text blocks.
const JVM: Syntax = Syntax { blocks: &[("/*", "*/"), ("\"\"\"", "\"\"\"")], ..C_LIKE };
pub(super) const RUST: Syntax = Syntax {
    blocks: &[("/*", "*/"), ("r##\"", "\"##"), ("r#\"", "\"#"), ("\"", "\"")],
    quotes: &[],
    ..C_LIKE
};
const GO: Syntax = Syntax { blocks: &[("/*", "*/"), ("`", "`")], ..C_LIKE };
pub(super) const SCRIPT: Syntax = Syntax {
    line: &["//"],
    blocks: &[("/*", "*/"), ("`", "`")],
    quotes: &['"', '\''],
    chars: false,
};
const PHP: Syntax =
    Syntax { line: &["//", "#"], blocks: &[("/*", "*/")], quotes: &['"', '\''], chars: false };
pub(super) const PYTHON: Syntax = Syntax {
    line: &["#"],
    blocks: &[("\"\"\"", "\"\"\""), ("'''", "'''")],
    quotes: &['"', '\''],
    chars: false,
};
const RUBY: Syntax = Syntax { blocks: &[("\n=begin", "\n=end")], ..PYTHON };
const ELIXIR: Syntax = Syntax { quotes: &['"'], ..PYTHON };
pub(super) const SHELL: Syntax = Syntax { blocks: &[], ..PYTHON };
const LUA: Syntax = Syntax {
    line: &["--"],
    blocks: &[("--[[", "]]"), ("[[", "]]")],
    quotes: &['"', '\''],
    chars: false,
};
/// Names may stand in double quotes.
const SQL: Syntax =
    Syntax { line: &["--"], blocks: &[("/*", "*/")], quotes: &['\''], chars: false };
const HASKELL: Syntax =
    Syntax { line: &["--"], blocks: &[("{-", "-}")], quotes: &['"'], chars: true };
const LISP: Syntax = Syntax { line: &[";"], blocks: &[], quotes: &['"'], chars: false };

static LANGUAGES: [Language; 24] = [
    Language::new(
        &["rs"],
        RUST,
        &[
            (
                "function",
                r#"(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+)?(?:async\s+)?(?:unsafe\s+)?(?:extern\s+(?:"[^"]*"|\s*)\s*)?fn\s+(?:r#)?@"#,
            ),
            ("struct", r"(?:pub(?:\([^)]*\))?\s+)?struct\s+@"),
            ("enum", r"(?:pub(?:\([^)]*\))?\s+)?enum\s+@"),
            ("union", r"(?:pub(?:\([^)]*\))?\s+)?union\s+@"),
            ("trait", r"(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:auto\s+)?trait\s+@"),
            ("type", r"(?:pub(?:\([^)]*\))?\s+)?type\s+@"),
            ("const", r"(?:pub(?:\([^)]*\))?\s+)?const\s+@"),
            ("variable", r"(?:pub(?:\([^)]*\))?\s+)?static\s+(?:mut\s+)?(?:ref\s+)?@"),
            ("module", r"(?:pub(?:\([^)]*\))?\s+)?mod\s+@"),
            ("macro", r"(?:pub(?:\([^)]*\))?\s+)?macro(?:_rules!)?\s+@"),
            (
                "impl",
                r"(?:unsafe\s+)?impl(?:<[^{]*?>)?\s+(?:[^{]*?\s+for\s+)?(?:[\w:]+::)?&?@(?:\s*<|\s*\{|\s*$|\s+where)",
            ),
        ],
    ),
    Language::new(
        &["py", "pyi", "pyx"],
        PYTHON,
        &[
            ("function", r"(?:async\s+)?(?:cp)?def\s+@"),
            ("class", r"class\s+@"),
            ("type", r"type\s+@\s*[=\[]"),
            ("variable", r"@\s*(?::[^=]+)?=[^=]"),
        ],
    ),
    Language::new(
        &["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue", "svelte"],
        SCRIPT,
        &[
            (
                "function",
                r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:async\s+)?function\s*\*?\s*@",
            ),
            ("class", r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?class\s+@"),
            ("interface", r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?interface\s+@"),
            ("enum", r"(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+@"),
            ("type", r"(?:export\s+)?(?:declare\s+)?type\s+@\s*[=<]"),
            ("module", r"(?:export\s+)?(?:declare\s+)?(?:namespace|module)\s+@"),
            (
                "function",
                r"(?:export\s+)?(?:const|let|var)\s+@\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|\w+\s*=>|\([^)]*$)",
            ),
            ("const", r"(?:export\s+)?(?:declare\s+)?const\s+@"),
            ("variable", r"(?:export\s+)?(?:declare\s+)?(?:let|var)\s+@"),
            ("function", r"(?:module\.)?exports\.@\s*=\s*(?:async\s*)?(?:function\b|\()"),
            ("function", r"[\w$.]+\.prototype\.@\s*=\s*function"),
            (
                "function",
                r"(?:(?:public|private|protected|static|readonly|override|abstract|async|get|set)\s+)*\*?#?@\s*(?:<[^>]*>)?\((?:[^();]|\([^()]*\))*\)\s*(?::[^{;]+)?\{",
            ),
            (
                "function",
                r"(?:(?:public|private|protected|static|readonly|override)\s+)*#?@\s*[=:]\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>)",
            ),
        ],
    ),
    Language::new(
        &["go"],
        GO,
        &[
            ("function", r"func\s+(?:\([^)]*\)\s*)?@"),
            ("struct", r"(?:type\s+)?@(?:\[[^\]]*\])?\s+struct\b"),
            ("interface", r"(?:type\s+)?@(?:\[[^\]]*\])?\s+interface\b"),
            ("type", r"type\s+@"),
            ("const", r"const\s+@"),
            ("variable", r"var\s+@"),
            ("module", r"package\s+@"),
        ],
    ),
    Language::new(
        &["java"],
        JVM,
        &[
            (
                "class",
                r"(?:(?:public|private|protected|static|final|abstract|sealed|non-sealed|strictfp)\s+)*(?:class|record)\s+@",
            ),
            (
                "interface",
                r"(?:(?:public|private|protected|static|abstract|sealed)\s+)*\x40?interface\s+@",
            ),
            ("enum", r"(?:(?:public|private|protected|static)\s+)*enum\s+@"),
            (
                "const",
                r"(?:(?:public|private|protected)\s+)?(?:static\s+final|final\s+static)\s+[\w<>\[\], .?]+\s+@\s*[=;]",
            ),
            (
                "function",
                r"(?:(?:public|private|protected|static|final|abstract|synchronized|native|default)\s+)*(?:<[^>]+>\s+)?[\w<>\[\], .?]+\s+@\s*\([^;=]*(?:\{|\)|,|$)",
            ),
        ],
    ),
    Language::new(
        &["kt", "kts"],
        JVM,
        &[
            ("function", r"(?:\w+\s+)*fun\s+(?:<[^>]+>\s+)?(?:[\w<>?, ]+\.)?`?@"),
            ("interface", r"(?:\w+\s+)*interface\s+@"),
            ("enum", r"(?:\w+\s+)*enum\s+class\s+@"),
            ("class", r"(?:\w+\s+)*(?:class|object)\s+@"),
            ("type", r"(?:\w+\s+)*typealias\s+@"),
            ("const", r"(?:\w+\s+)*const\s+val\s+@"),
            ("variable", r"(?:\w+\s+)*va[lr]\s+(?:[\w<>?]+\.)?@"),
        ],
    ),
    Language::new(
        &["cs"],
        JVM,
        &[
            ("class", r"(?:\w+\s+)*(?:class|record)\s+(?:struct\s+|class\s+)?@"),
            ("struct", r"(?:\w+\s+)*struct\s+@"),
            ("interface", r"(?:\w+\s+)*interface\s+@"),
            ("enum", r"(?:\w+\s+)*enum\s+@"),
            ("module", r"namespace\s+(?:\w+\.)*@"),
            ("const", r"(?:\w+\s+)*const\s+[\w<>\[\]?.]+\s+@"),
            ("type", r"(?:\w+\s+)*delegate\s+[\w<>\[\]?., ]+\s+@"),
            (
                "function",
                r"(?:(?:public|private|protected|internal|static|virtual|override|abstract|async|sealed|extern|partial|unsafe|new)\s+)*[\w<>\[\], .?]+\s+@(?:<[^>]+>)?\s*\([^;=]*(?:\{|\)|,|$)",
            ),
            (
                "variable",
                r"(?:(?:public|private|protected|internal|static|virtual|override|abstract|required|readonly)\s+)+[\w<>\[\], .?]+\s+@\s*(?:\{|=|;)",
            ),
        ],
    ),
    Language::new(
        &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "ino", "cu", "m", "mm"],
        C_LIKE,
        &[
            ("macro", r"#\s*define\s+@"),
            ("enum", r"(?:typedef\s+)?enum\s+(?:class\s+|struct\s+)?@(?:\s*:[^;]*)?\s*(?:\{|$)"),
            (
                "class",
                r"(?:template\s*<.*>\s*)?class\s+(?:[A-Z_]+\s+)?@(?:\s+final)?\s*(?::[^;]*)?(?:\{|$)",
            ),
            (
                "struct",
                r"(?:template\s*<.*>\s*)?(?:typedef\s+)?struct\s+(?:[A-Z_]+\s+)?@(?:\s+final)?\s*(?::[^;]*)?(?:\{|$)",
            ),
            ("union", r"(?:typedef\s+)?union\s+@\s*(?:\{|$)"),
            ("module", r"(?:inline\s+)?namespace\s+(?:\w+::)*@"),
            ("type", r"using\s+@\s*="),
            ("type", r"typedef\s+[^;]*?\b@\s*(?:\[[^\]]*\])?;"),
            ("type", r"\}\s*@\s*;"),
            ("interface", r"\x40(?:interface|protocol|implementation)\s+@"),
            (
                "const",
                r"(?:static\s+|inline\s+)*(?:constexpr|const)\s+[\w:<>*& ]+?[\s*&]@\s*(?:\[[^\]]*\])?\s*[={]",
            ),
            (
                "function",
                r"(?:template\s*<.*>\s*)?(?:[\w:<>,*&\[\]]+\s+)*(?:[\w:<>,]+[\s*&]+)(?:\w+(?:<[^>]*>)?::)*~?@\s*\([^;]*(?:\{|\)|,|$)",
            ),
            ("function", r"(?:\w+::)+~?@\s*\((?:[^;{]*\{|[^;]*$)"),
        ],
    ),
    Language::new(
        &["rb", "rake", "gemspec"],
        RUBY,
        &[
            ("function", r"(?:private\s+|protected\s+|public\s+)?def\s+(?:self\.|\w+\.)?@"),
            ("class", r"class\s+(?:\w+::)*@"),
            ("module", r"module\s+(?:\w+::)*@"),
            ("function", r"(?:define_method|attr_\w+)[\s(]+:@"),
            ("const", r"(?<name>[A-Z]\w*)\s*=[^=~]"),
        ],
    ),
    Language::new(
        &["php"],
        PHP,
        &[
            (
                "function",
                r"(?:<\?php\s+)?(?:(?:public|private|protected|static|final|abstract)\s+)*function\s+&?@",
            ),
            ("class", r"(?:<\?php\s+)?(?:(?:final|abstract|readonly)\s+)*class\s+@"),
            ("interface", r"interface\s+@"),
            ("trait", r"trait\s+@"),
            ("enum", r"enum\s+@"),
            ("const", r"(?:(?:public|private|protected|final)\s+)*const\s+(?:\w+\s+)?@\s*="),
            (
                "variable",
                r"(?:(?:public|private|protected|static|readonly|var)\s+)+(?:[?\w|\\]+\s+)?\$@",
            ),
        ],
    ),
    Language::new(
        &["swift"],
        JVM,
        &[
            ("function", r"(?:\x40\w+\s+)*(?:\w+\s+)*func\s+@"),
            ("class", r"(?:\w+\s+)*(?:class|actor)\s+@"),
            ("struct", r"(?:\w+\s+)*struct\s+@"),
            ("enum", r"(?:\w+\s+)*enum\s+@"),
            ("interface", r"(?:\w+\s+)*protocol\s+@"),
            ("impl", r"(?:\w+\s+)*extension\s+@"),
            ("type", r"(?:\w+\s+)*(?:typealias|associatedtype)\s+@"),
            ("variable", r"(?:\w+\s+)*(?:let|var)\s+@"),
        ],
    ),
    Language::new(
        &["scala", "sc"],
        JVM,
        &[
            ("function", r"(?:[\w\[\]]+\s+)*def\s+@"),
            ("trait", r"(?:\w+\s+)*trait\s+@"),
            ("enum", r"(?:\w+\s+)*enum\s+@"),
            ("class", r"(?:\w+\s+)*(?:class|object)\s+@"),
            ("type", r"(?:\w+\s+)*type\s+@"),
            ("variable", r"(?:\w+\s+)*va[lr]\s+@"),
        ],
    ),
    Language::new(
        &["sh", "bash", "zsh", "ksh", "bats"],
        SHELL,
        &[
            ("function", r"function\s+(?<name>[\w:.-]+)"),
            ("function", r"(?<name>[\w:.-]+)\s*\(\)"),
            ("type", r"alias\s+(?<name>[\w.-]+)="),
            ("variable", r"(?:export\s+|readonly\s+|declare\s+(?:-\w+\s+)*|local\s+)?@="),
        ],
    ),
    Language::new(
        &["lua"],
        LUA,
        &[
            ("function", r"(?:local\s+)?function\s+(?:[\w.]+[.:])?@"),
            ("function", r"(?:local\s+)?(?:[\w.]+\.)?@\s*=\s*function"),
            ("variable", r"local\s+@\s*(?:<\w+>\s*)?="),
        ],
    ),
    Language::new(
        &["ex", "exs"],
        ELIXIR,
        &[
            ("function", r"def(?:p|delegate|guardp?)?\s+@"),
            ("macro", r"defmacrop?\s+@"),
            ("module", r"defmodule\s+(?:\w+\.)*@"),
            ("interface", r"defprotocol\s+(?:\w+\.)*@"),
            ("impl", r"defimpl\s+(?:\w+\.)*@"),
            ("type", r"\x40(?:typep?|opaque)\s+@"),
        ],
    ),
    Language::new(
        &["sql", "psql", "ddl"],
        SQL,
        &[
            (
                "table",
                r#"(?i)create\s+(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unlogged|external|virtual)\s+)*table\s+(?:if\s+not\s+exists\s+)?(?:["`\[]?\w+["`\]]?\.)*["`\[]?@"#,
            ),
            (
                "view",
                r#"(?i)create\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|materialized|recursive)\s+)*view\s+(?:if\s+not\s+exists\s+)?(?:["`\[]?\w+["`\]]?\.)*["`\[]?@"#,
            ),
            (
                "function",
                r#"(?i)create\s+(?:or\s+(?:replace|alter)\s+)?(?:function|procedure|proc|trigger|aggregate)\s+(?:if\s+not\s+exists\s+)?(?:["`\[]?\w+["`\]]?\.)*["`\[]?@"#,
            ),
            ("type", r#"(?i)create\s+(?:type|domain)\s+(?:["`\[]?\w+["`\]]?\.)*["`\[]?@"#),
            (
                "const",
                r#"(?i)create\s+(?:unique\s+)?(?:index|sequence|schema)\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?(?:["`\[]?\w+["`\]]?\.)*["`\[]?@"#,
            ),
        ],
    ),
    Language::new(
        &["dart"],
        JVM,
        &[
            ("class", r"(?:(?:abstract|base|final|sealed|interface|mixin)\s+)*(?:class|mixin)\s+@"),
            ("enum", r"enum\s+@"),
            ("impl", r"extension\s+(?:type\s+)?@"),
            ("type", r"typedef\s+@"),
            (
                "function",
                r"(?:(?:static|external|late|final|const)\s+)*[\w<>?, ]+\s+@\s*\([^;]*(?:\{|=>|,|\)|$)",
            ),
        ],
    ),
    Language::new(
        &["zig"],
        Syntax { blocks: &[], ..C_LIKE },
        &[
            ("function", r"(?:pub\s+)?(?:export\s+|extern\s+|inline\s+)*fn\s+@"),
            ("struct", r"(?:pub\s+)?const\s+@\s*=\s*(?:packed\s+|extern\s+)?struct\b"),
            ("enum", r"(?:pub\s+)?const\s+@\s*=\s*enum\b"),
            ("union", r"(?:pub\s+)?const\s+@\s*=\s*union\b"),
            ("const", r"(?:pub\s+)?const\s+@"),
            ("variable", r"(?:pub\s+)?var\s+@"),
        ],
    ),
    Language::new(
        &["hs"],
        HASKELL,
        &[
            ("type", r"(?:data|newtype|type(?:\s+family)?)\s+@"),
            ("class", r"class\s+(?:.*=>\s*)?@"),
            ("module", r"module\s+(?:\w+\.)*@"),
            ("function", r"@\s*::"),
        ],
    ),
    Language::new(
        &["pl", "pm"],
        SHELL,
        &[
            ("function", r"sub\s+@"),
            ("module", r"package\s+(?:\w+::)*@"),
            ("variable", r"(?:our|my)\s+[$\x40%]@"),
        ],
    ),
    Language::new(
        &["r"],
        SHELL,
        &[
            ("function", r"(?<name>[\w.]+)\s*(?:<-|=)\s*function"),
            ("variable", r"(?<name>[\w.]+)\s*<-"),
        ],
    ),
    Language::new(
        &["clj", "cljs", "cljc", "el", "lisp", "scm", "rkt"],
        LISP,
        &[
            (
                "function",
                r"\((?:defn-?|defun|defmethod|defmulti)\s+(?:\^\S+\s+)*(?<name>[^\s()\[\]]+)",
            ),
            ("macro", r"\(defmacro\s+(?<name>[^\s()\[\]]+)"),
            ("function", r"\(define\s+\((?<name>[^\s()\[\]]+)"),
            (
                "variable",
                r"\((?:def|defvar|defonce|defparameter|defconst|defcustom|define)\s+(?:\^\S+\s+)*(?<name>[^\s()\[\]]+)",
            ),
            (
                "type",
                r"\((?:defrecord|deftype|defprotocol|defstruct|defclass)\s+(?<name>[^\s()\[\]]+)",
            ),
        ],
    ),
    Language::new(
        &["proto"],
        C_LIKE,
        &[
            ("struct", r"message\s+@"),
            ("enum", r"enum\s+@"),
            ("interface", r"service\s+@"),
            ("function", r"rpc\s+@"),
        ],
    ),
    Language::new(
        &["graphql", "gql"],
        SHELL,
        &[
            ("type", r"(?:extend\s+)?(?:type|input|scalar|union)\s+@"),
            ("enum", r"(?:extend\s+)?enum\s+@"),
            ("interface", r"(?:extend\s+)?interface\s+@"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_a_valid_pattern_with_a_name_and_a_known_kind() {
        for language in &LANGUAGES {
            assert_eq!(
                language.compiled().len(),
                language.shapes.len(),
                "{:?}",
                language.extensions
            );
            for (kind, shape) in language.compiled() {
                assert!(KINDS.contains(kind), "{kind}");
                assert!(shape.capture_names().flatten().any(|name| name == "name"), "{shape}");
            }
        }
    }
}

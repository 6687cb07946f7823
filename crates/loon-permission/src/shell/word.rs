//! Words: quotes, escapes, expansions and substitutions.

use super::grammar::{Parse, Parser};
use super::{Word, WordKind, is_plain_variable};

/// A word together with what the grammar needs to know of its writing.
pub(super) struct Piece {
    pub(super) word: Word,
    /// The text, if nothing in it was quoted or expanded: only then can it be a reserved word.
    pub(super) bare: Option<String>,
    /// Some part was quoted.
    pub(super) quoted: bool,
    /// It is `NAME=` or `NAME+=` followed by a value.
    pub(super) assigns: Option<String>,
    /// The value of the assignment; the word itself otherwise.
    pub(super) value: Word,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of one text")]
struct Builder {
    text: String,
    quoted: bool,
    dynamic: bool,
    substitution: bool,
    home: bool,
    brace_open: bool,
    subscript_open: bool,
    assigns: Option<String>,
    value_from: usize,
    last_bare: Option<char>,
}

impl Builder {
    fn expand(&mut self, substitution: bool) {
        self.dynamic = true;
        self.substitution |= substitution;
    }

    fn is_plain_so_far(&self) -> bool {
        !self.quoted && !self.dynamic && !self.home
    }
}

impl Parser<'_, '_> {
    /// The word that begins here, if one does.
    pub(super) fn word(&mut self) -> Parse<Option<Piece>> {
        let begin = self.pos;
        let mut built = Builder::default();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if self.peek_second() != Some('(') => break,
                '<' | '>' => {
                    self.pos += 2;
                    self.substituted_list()?;
                    built.expand(true);
                }
                '\\' => {
                    self.next();
                    match self.next() {
                        None => return Err(self.unfinished()),
                        Some('\n') => continue,
                        Some(escaped) => built.text.push(escaped),
                    }
                    built.quoted = true;
                }
                '\'' => {
                    self.next();
                    let text = self.until_quote()?;
                    built.text.push_str(&text);
                    built.quoted = true;
                }
                '"' => {
                    self.next();
                    built.quoted = true;
                    self.double_quoted(&mut built)?;
                }
                '$' => self.dollar(&mut built, false)?,
                '`' => self.backquoted(&mut built, false)?,
                _ => {
                    self.next();
                    self.bare_character(c, &mut built);
                    built.last_bare = Some(c);
                    continue;
                }
            }
            built.last_bare = None;
        }
        if built.subscript_open {
            // Bash reads on to the bracket, over blanks and operators.
            return Err(self.stop("an array element is named over several words"));
        }
        if self.pos == begin {
            return Ok(None);
        }
        let source = self.src.get(begin..self.pos).unwrap_or_default().to_owned();
        Ok(Some(built.finish(source)))
    }

    /// A regular expression after `=~`, in which parentheses and bars are ordinary.
    pub(super) fn regular_expression(&mut self) -> Parse<()> {
        let mut open = 0_usize;
        let mut built = Builder::default();
        let begin = self.pos;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ')' if open == 0 && self.pos > begin => return Ok(()),
                '\n' | ';' | '&' | '<' | '>' | '#' => {
                    return Err(self.stop("a regular expression is not understood"));
                }
                '\'' => {
                    self.next();
                    self.until_quote()?;
                }
                '"' => {
                    self.next();
                    self.double_quoted(&mut built)?;
                }
                '$' => self.dollar(&mut built, false)?,
                '`' => self.backquoted(&mut built, false)?,
                '\\' => {
                    self.next();
                    if matches!(self.next(), None | Some('\n')) {
                        return Err(self.unfinished());
                    }
                }
                _ => {
                    open += usize::from(c == '(');
                    open = open.saturating_sub(usize::from(c == ')'));
                    self.next();
                }
            }
        }
        Err(self.unfinished())
    }

    fn bare_character(&mut self, c: char, built: &mut Builder) {
        match c {
            '[' if built.is_plain_so_far() && is_identifier(&built.text) => {
                built.subscript_open = true;
                built.dynamic = true;
            }
            '[' if built.text.is_empty() && !built.quoted => {
                // `[` alone is a program, `[[` a reserved word; anything more is a pattern.
                let alone = self.peek().is_none_or(|c| " \t\n;&|<>()".contains(c));
                built.dynamic |= !alone;
            }
            '*' | '?' | '[' => built.dynamic = true,
            ']' => built.subscript_open = false,
            '{' => built.brace_open = true,
            ',' if built.brace_open => built.dynamic = true,
            '.' if built.brace_open && built.last_bare == Some('.') => built.dynamic = true,
            '~' => {
                let at_start = built.text.is_empty() && built.is_plain_so_far();
                let ends = self.peek().is_none_or(|c| "/ \t\n;&|<>()".contains(c));
                if at_start && ends {
                    built.home = true;
                    return;
                }
                built.dynamic |= at_start || matches!(built.last_bare, Some('=' | ':'));
            }
            '=' if built.is_plain_so_far() && built.assigns.is_none() => {
                let name = built.text.strip_suffix('+').unwrap_or(&built.text);
                if is_identifier(name) {
                    built.assigns = Some(name.to_owned());
                    built.value_from = built.text.len() + 1;
                }
            }
            _ => {}
        }
        built.text.push(c);
    }

    fn until_quote(&mut self) -> Parse<String> {
        let Some(length) = self.rest().find('\'') else { return Err(self.unfinished()) };
        let text = self.rest().get(..length).unwrap_or_default().to_owned();
        self.pos += length + 1;
        if text.contains('\n') {
            self.no_pending_documents()?;
        }
        Ok(text)
    }

    /// The rest of a text in double quotes, with its closing quote.
    fn double_quoted(&mut self, built: &mut Builder) -> Parse<()> {
        loop {
            match self.peek() {
                None => return Err(self.unfinished()),
                Some('"') => {
                    self.next();
                    return Ok(());
                }
                Some(c) => self.quoted_character(c, true, built)?,
            }
        }
    }

    /// The body of a here-document whose end mark is not quoted.
    pub(super) fn here_text(&mut self) -> Parse<()> {
        if self.depth > super::MAX_DEPTH {
            return Err(self.stop("it is nested too deeply"));
        }
        let mut built = Builder::default();
        while let Some(c) = self.peek() {
            self.quoted_character(c, false, &mut built)?;
        }
        Ok(())
    }

    fn quoted_character(&mut self, c: char, quote_closes: bool, built: &mut Builder) -> Parse<()> {
        match c {
            '$' => return self.dollar(built, true),
            '`' => return self.backquoted(built, quote_closes),
            '\\' => {
                self.next();
                match self.next() {
                    None => return Err(self.unfinished()),
                    Some('\n') => {}
                    Some(escaped) => {
                        let special =
                            matches!(escaped, '$' | '`' | '\\') || (quote_closes && escaped == '"');
                        if !special {
                            built.text.push('\\');
                        }
                        built.text.push(escaped);
                    }
                }
                return Ok(());
            }
            '\n' => self.no_pending_documents()?,
            _ => {}
        }
        self.next();
        built.text.push(c);
        Ok(())
    }

    /// Whatever a `$` begins.
    fn dollar(&mut self, built: &mut Builder, quoted: bool) -> Parse<()> {
        self.next();
        match self.peek() {
            Some('(') if self.peek_second() == Some('(') => {
                self.pos += 2;
                built.expand(false);
                self.deeper(Self::arithmetic)
            }
            Some('(') => {
                self.next();
                built.expand(true);
                self.substituted_list()
            }
            Some('{') => {
                self.next();
                built.expand(false);
                let substitution = self.deeper(|p| p.parameter(quoted))?;
                built.substitution |= substitution;
                Ok(())
            }
            Some('[') => Err(self.stop("`$[` is not understood")),
            Some('\'') if !quoted => {
                self.next();
                let text = self.escaped_text()?;
                built.text.push_str(&text);
                built.quoted = true;
                Ok(())
            }
            Some('"') if !quoted => {
                self.next();
                // The text may be translated before it is used.
                built.expand(false);
                self.double_quoted(built)
            }
            Some('\\') if self.peek_second() == Some('\n') => {
                Err(self.stop("an expansion is broken over two lines"))
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let length = identifier_length(self.rest());
                self.pos += length;
                built.expand(false);
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
                built.expand(false);
                Ok(())
            }
            _ => {
                built.text.push('$');
                Ok(())
            }
        }
    }

    /// The rest of `${`. Whether a command runs in it.
    fn parameter(&mut self, quoted: bool) -> Parse<bool> {
        const UNKNOWN: &str = "an expansion of a variable is not understood";
        let length_of = self.peek() == Some('#') && self.peek_second() != Some('}');
        if length_of {
            self.next();
        }
        let identifier = identifier_length(self.rest());
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let special = self.peek().is_some_and(|c| "@*#?-$".contains(c));
        let length = identifier.max(digits).max(usize::from(special));
        if length == 0 {
            return Err(self.stop(UNKNOWN));
        }
        let name = self.rest().get(..length).unwrap_or_default().to_owned();
        self.pos += length;
        if self.eat("[") {
            let index = self.rest().find(']').unwrap_or(0);
            let text = self.rest().get(..index).unwrap_or_default();
            let harmless = matches!(text, "@" | "*")
                || (!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()));
            if !harmless {
                return Err(self.stop("an index is evaluated as code"));
            }
            self.pos += index + 1;
        }
        if self.eat("}") {
            return Ok(false);
        }
        if length_of {
            return Err(self.stop(UNKNOWN));
        }
        if self.eat("@") {
            let known = matches!(self.next(), Some('U' | 'u' | 'L' | 'Q'));
            return if known && self.eat("}") { Ok(false) } else { Err(self.stop(UNKNOWN)) };
        }
        if self.peek() == Some(':') && !self.peek_second().is_some_and(|c| "-=?+".contains(c)) {
            let Some(end) = self.rest().find('}') else { return Err(self.unfinished()) };
            let range = self.rest().get(..end).unwrap_or_default();
            if !range.chars().all(|c| c.is_ascii_digit() || ": -".contains(c)) {
                return Err(self.stop("a range is evaluated as code"));
            }
            self.pos += end + 1;
            return Ok(false);
        }
        self.eat(":");
        if self.peek() == Some('=') && !is_plain_variable(&name) {
            self.out.doubt(format!("an expansion sets `{name}`"));
        }
        match self.next() {
            Some('-' | '=' | '?' | '+' | '#' | '%' | '/' | '^' | ',') => {
                self.parameter_word(quoted)
            }
            _ => Err(self.stop(UNKNOWN)),
        }
    }

    /// The word inside `${..}`, with the closing brace. Whether a command runs in it.
    fn parameter_word(&mut self, quoted: bool) -> Parse<bool> {
        let mut built = Builder::default();
        loop {
            match self.peek() {
                None => return Err(self.unfinished()),
                Some('}') => {
                    self.next();
                    return Ok(built.substitution);
                }
                Some('\\') => {
                    self.next();
                    if matches!(self.next(), None | Some('\n')) {
                        return Err(self.unfinished());
                    }
                }
                // What quotes mean here depends on the kind of expansion around them.
                Some('\'' | '"') if quoted => {
                    return Err(self.stop("quotes stand inside an expansion"));
                }
                Some('\'') => {
                    self.next();
                    self.until_quote()?;
                }
                Some('"') => {
                    self.next();
                    self.double_quoted(&mut built)?;
                }
                Some('$') => self.dollar(&mut built, quoted)?,
                Some('`') => self.backquoted(&mut built, quoted)?,
                Some('<' | '>') if self.peek_second() == Some('(') && !quoted => {
                    self.pos += 2;
                    self.substituted_list()?;
                    built.expand(true);
                }
                Some('{') => return Err(self.stop("braces stand inside an expansion")),
                Some('\n') => {
                    self.next();
                    self.no_pending_documents()?;
                }
                Some(_) => {
                    self.next();
                }
            }
        }
    }

    /// The rest of an arithmetic expression, with its closing `))`.
    pub(super) fn arithmetic(&mut self) -> Parse<()> {
        const AMBIGUOUS: &str = "an arithmetic expression is not understood";
        let mut open = 0_usize;
        let mut built = Builder::default();
        loop {
            match self.peek() {
                None => return Err(self.unfinished()),
                Some('(') => {
                    open += 1;
                    self.next();
                }
                Some(')') if open > 0 => {
                    open -= 1;
                    self.next();
                }
                Some(')') => {
                    // Without the second parenthesis it would be a group of commands.
                    return if self.eat("))") { Ok(()) } else { Err(self.stop(AMBIGUOUS)) };
                }
                Some('\'' | '"' | '\\') => return Err(self.stop(AMBIGUOUS)),
                Some('$') => self.dollar(&mut built, true)?,
                Some('`') => self.backquoted(&mut built, true)?,
                Some('\n') => {
                    self.next();
                    self.no_pending_documents()?;
                }
                Some(c) => {
                    built.dynamic |= !(c.is_ascii_digit() || " \t+-*/%<>=!&|^~?:,;".contains(c));
                    self.next();
                }
            }
            if built.dynamic {
                // A value such as `a[$(..)]` runs a command when it is evaluated.
                self.out.doubt("arithmetic may evaluate the value of a variable as code");
            }
        }
    }

    /// A command in backquotes.
    fn backquoted(&mut self, built: &mut Builder, in_double_quotes: bool) -> Parse<()> {
        self.next();
        built.expand(true);
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(self.unfinished()),
                Some('`') => break,
                Some('\\') => match self.next() {
                    None => return Err(self.unfinished()),
                    Some(c @ ('`' | '$' | '\\')) => text.push(c),
                    Some('"') if in_double_quotes => text.push('"'),
                    Some(c) => {
                        text.push('\\');
                        text.push(c);
                    }
                },
                Some(c) => text.push(c),
            }
        }
        if text.contains('\n') {
            self.no_pending_documents()?;
        }
        self.inside(&text).whole_list()
    }

    /// The rest of `$'..'`, with its closing quote.
    fn escaped_text(&mut self) -> Parse<String> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(self.unfinished()),
                Some('\'') => break,
                Some('\\') => {
                    let c = self.escape()?;
                    text.push(c);
                }
                Some(c) => text.push(c),
            }
        }
        if text.contains('\n') {
            self.no_pending_documents()?;
        }
        Ok(text)
    }

    fn escape(&mut self) -> Parse<char> {
        let Some(c) = self.next() else { return Err(self.unfinished()) };
        let value = match c {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            'r' => return Ok('\r'),
            '\\' | '\'' | '"' | '?' => return Ok(c),
            'x' => self.number(16, 2),
            'u' => self.number(16, 4),
            'U' => self.number(16, 8),
            '0'..='7' => {
                self.pos -= 1;
                self.number(8, 3)
            }
            _ => None,
        };
        // Bytes beyond ASCII and control characters have a meaning that depends on the locale.
        let ascii = value.and_then(char::from_u32).filter(|c| matches!(c, ' '..='~'));
        match ascii {
            Some(c) => Ok(c),
            None => Err(self.stop("an escape in `$'..'` is not understood")),
        }
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits: String =
            self.rest().chars().take(most).take_while(|c| c.is_digit(radix)).collect();
        self.pos += digits.len();
        u32::from_str_radix(&digits, radix).ok()
    }
}

impl Builder {
    fn finish(self, source: String) -> Piece {
        let kind = |text: &str| {
            if self.dynamic {
                WordKind::Dynamic { substitution: self.substitution }
            } else if self.home {
                WordKind::Home(text.to_owned())
            } else {
                WordKind::Literal(text.to_owned())
            }
        };
        let bare = (!self.quoted && !self.dynamic && !self.home).then(|| self.text.clone());
        let value = self.text.get(self.value_from..).unwrap_or_default();
        Piece {
            value: Word { source: value.to_owned(), kind: kind(value) },
            word: Word { kind: kind(&self.text), source },
            bare,
            quoted: self.quoted,
            assigns: self.assigns,
        }
    }
}

fn identifier_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && identifier_length(text) == text.len()
}

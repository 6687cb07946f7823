//! The grammar of commands: lists, pipelines, compound commands, redirects, here-documents.

use super::word::Piece;
use super::{Assignment, MAX_DEPTH, Place, Redirect, Script, SimpleCommand, Word, WordKind};

/// The parse stopped; why is among the doubts.
pub(super) struct Stop;

pub(super) type Parse<T> = Result<T, Stop>;

struct HereDocument {
    delimiter: String,
    quoted: bool,
    strips_tabs: bool,
}

pub(super) struct Parser<'s, 'o> {
    pub(super) src: &'s str,
    pub(super) pos: usize,
    pub(super) out: &'o mut Script,
    pub(super) depth: usize,
    pending: Vec<HereDocument>,
    place: Place,
}

const CLOSERS: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];
const COMPOUND: [&str; 9] =
    ["{", "if", "while", "until", "for", "case", "select", "[[", "function"];
const OPERATORS: [&str; 12] =
    ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];
const UNFINISHED: &str = "something in the line is not closed";

impl<'s, 'o> Parser<'s, 'o> {
    pub(super) fn new(src: &'s str, depth: usize, out: &'o mut Script) -> Self {
        Self { src, pos: 0, out, depth, pending: Vec::new(), place: Place::default() }
    }

    /// Reads all of the source as a list of commands.
    pub(super) fn whole(mut self) {
        // The reason of a stop is already among the doubts.
        let _ = self.whole_list();
    }

    pub(super) fn whole_list(&mut self) -> Parse<()> {
        if self.depth > MAX_DEPTH {
            return Err(self.stop("it is nested too deeply"));
        }
        self.list()?;
        if self.pos < self.src.len() {
            return Err(self.unexpected());
        }
        self.no_pending_documents()
    }

    pub(super) fn stop(&mut self, why: impl Into<String>) -> Stop {
        self.out.doubt(why);
        Stop
    }

    pub(super) fn unfinished(&mut self) -> Stop {
        self.stop(UNFINISHED)
    }

    fn unexpected(&mut self) -> Stop {
        let near: String = self.rest().chars().take(12).collect();
        let near = near.lines().next().unwrap_or_default().trim_end().to_owned();
        self.stop(if near.is_empty() {
            "the syntax is not understood".to_owned()
        } else {
            format!("the syntax is not understood at `{near}`")
        })
    }

    pub(super) fn rest(&self) -> &'s str {
        self.src.get(self.pos..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.pos += text.len();
        }
        found
    }

    /// Runs a part of the grammar one level deeper.
    pub(super) fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.stop("it is nested too deeply"));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Reads the commands of a substitution up to and with its `)`.
    pub(super) fn substituted_list(&mut self) -> Parse<()> {
        let begin = self.pos;
        let place = self.place;
        let outer = std::mem::take(&mut self.pending);
        self.deeper(Self::list)?;
        self.place = place;
        if !self.eat(")") {
            return Err(if self.peek().is_none() { self.unfinished() } else { self.unexpected() });
        }
        self.no_pending_documents()?;
        self.pending = outer;
        let inside = self.src.get(begin..self.pos).unwrap_or_default();
        if inside.contains('\n') { self.no_pending_documents() } else { Ok(()) }
    }

    /// A newline here would be read as the start of a here-document by some shells only.
    pub(super) fn no_pending_documents(&mut self) -> Parse<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        Err(self.stop("a here-document has no body of its own"))
    }

    /// Passes over blanks, joined lines and a comment.
    fn blanks(&mut self) {
        loop {
            if self.eat(" ") || self.eat("\t") || self.eat("\\\n") {
                continue;
            }
            if self.peek() == Some('#') {
                let length = self.rest().find('\n').unwrap_or(self.rest().len());
                self.pos += length;
            }
            return;
        }
    }

    fn blank_lines(&mut self) -> Parse<()> {
        loop {
            self.blanks();
            if !self.eat("\n") {
                return Ok(());
            }
            self.here_documents()?;
        }
    }

    fn here_documents(&mut self) -> Parse<()> {
        for document in std::mem::take(&mut self.pending) {
            let begin = self.pos;
            loop {
                if self.peek().is_none() {
                    return Err(self.stop("a here-document has no end"));
                }
                let line_begin = self.pos;
                let rest = self.rest();
                let length = rest.find('\n').unwrap_or(rest.len());
                let line = rest.get(..length).unwrap_or_default();
                self.pos += length;
                self.eat("\n");
                let bare = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
                if bare == document.delimiter {
                    let body = self.src.get(begin..line_begin).unwrap_or_default();
                    if !document.quoted {
                        self.here_body(body)?;
                    }
                    break;
                }
                // Such a line is joined with the next before that one is compared.
                if !document.quoted && line.ends_with('\\') {
                    return Err(self.stop("a here-document joins lines"));
                }
            }
        }
        Ok(())
    }

    fn here_body(&mut self, body: &str) -> Parse<()> {
        if body.contains('`') && body.contains("\\\"") {
            return Err(self.stop("a here-document escapes quotes inside backquotes"));
        }
        self.inside(body).here_text()
    }

    /// A parser for a text that stands inside this one.
    pub(super) fn inside<'x>(&'x mut self, text: &'x str) -> Parser<'x, 'x> {
        let place = Place { repeated: self.place.repeated, ..Place::default() };
        let mut inner = Parser::new(text, self.depth + 1, self.out);
        inner.place = place;
        inner
    }

    /// The unquoted word that begins here, or nothing if it is quoted or expanded in part.
    fn bare_word(&self) -> &'s str {
        let rest = self.rest();
        let end = rest.find(|c: char| " \t\n;&|<>()".contains(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        if word.contains(['\'', '"', '\\', '$', '`']) { "" } else { word }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.bare_word() == word;
        if found {
            self.pos += word.len();
        }
        found
    }

    fn expect_word(&mut self, word: &str) -> Parse<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(if self.peek().is_none() { self.unfinished() } else { self.unexpected() })
    }

    fn at_list_end(&self) -> bool {
        let rest = self.rest();
        rest.is_empty()
            || rest.starts_with(')')
            || rest.starts_with(";;")
            || rest.starts_with(";&")
            || CLOSERS.contains(&self.bare_word())
    }

    /// A list up to what closes it, which is left in place.
    fn list(&mut self) -> Parse<()> {
        loop {
            self.blank_lines()?;
            if self.at_list_end() {
                return Ok(());
            }
            self.and_or()?;
            self.blanks();
            if self.at_list_end() {
                return Ok(());
            }
            if !self.eat(";") && !self.eat("&") && self.peek() != Some('\n') {
                return Err(self.unexpected());
            }
        }
    }

    fn and_or(&mut self) -> Parse<()> {
        self.new_chain();
        let mut only_and = true;
        loop {
            let chain = self.place.chain;
            let alone = self.pipeline()?;
            self.blanks();
            let and = self.eat("&&");
            if !and && !self.eat("||") {
                return Ok(());
            }
            if and && alone && only_and && let Some(last) = self.out.commands.last_mut() {
                last.place.decides_chain = last.place.chain == chain;
            }
            if !and {
                only_and = false;
                self.new_chain();
            } else {
                self.place.chain = chain;
            }
            self.blank_lines()?;
        }
    }

    fn new_chain(&mut self) {
        self.out.chains += 1;
        self.place.chain = self.out.chains;
    }

    /// Whether it was one simple command and nothing else.
    fn pipeline(&mut self) -> Parse<bool> {
        let mut alone = true;
        loop {
            self.blanks();
            if self.eat_word("time") {
                self.blanks();
                self.eat_word("-p");
                self.blanks();
                self.eat_word("--");
            } else if self.eat_word("!") {
                alone = false;
            } else {
                break;
            }
        }
        if self.at_list_end() || matches!(self.peek(), Some('\n' | ';')) {
            return Ok(false);
        }
        let chain = self.place.chain;
        loop {
            alone &= self.command()?;
            self.place.chain = chain;
            self.blanks();
            if self.rest().starts_with("||") || !self.eat("|") {
                return Ok(alone);
            }
            self.eat("&");
            alone = false;
            self.blank_lines()?;
        }
    }

    /// Whether it was a simple command.
    fn command(&mut self) -> Parse<bool> {
        let bare = self.bare_word();
        if self.peek() == Some('(') || COMPOUND.contains(&bare) {
            self.deeper(Self::compound)?;
            return Ok(false);
        }
        if CLOSERS.contains(&bare) {
            return Err(self.unexpected());
        }
        if self.eat_word("coproc") {
            self.coprocess()?;
            return Ok(false);
        }
        self.simple()
    }

    fn compound(&mut self) -> Parse<()> {
        let before = self.place;
        if self.eat("((") {
            self.arithmetic()?;
        } else if self.eat("(") {
            self.list()?;
            if !self.eat(")") {
                return Err(self.unfinished());
            }
        } else if self.eat_word("{") {
            self.list()?;
            self.expect_word("}")?;
        } else if self.eat_word("if") {
            self.conditional()?;
        } else if self.eat_word("while") || self.eat_word("until") {
            self.place.repeated = true;
            self.list()?;
            self.loop_body()?;
        } else if self.eat_word("for") {
            self.each(true)?;
        } else if self.eat_word("select") {
            self.each(false)?;
        } else if self.eat_word("case") {
            self.case()?;
        } else if self.eat_word("[[") {
            self.extended_test()?;
        } else if self.eat_word("function") {
            self.blanks();
            self.name()?;
            self.blanks();
            if self.eat("(") {
                self.blanks();
                if !self.eat(")") {
                    return Err(self.unexpected());
                }
            }
            self.function_body()?;
        } else {
            return Err(self.unexpected());
        }
        self.place = before;
        self.compound_redirects()
    }

    fn conditional(&mut self) -> Parse<()> {
        self.list()?;
        self.expect_word("then")?;
        self.list()?;
        while self.eat_word("elif") {
            self.list()?;
            self.expect_word("then")?;
            self.list()?;
        }
        if self.eat_word("else") {
            self.list()?;
        }
        self.expect_word("fi")
    }

    fn loop_body(&mut self) -> Parse<()> {
        self.expect_word("do")?;
        self.list()?;
        self.expect_word("done")
    }

    fn each(&mut self, may_count: bool) -> Parse<()> {
        self.place.repeated = true;
        self.blanks();
        if may_count && self.eat("((") {
            self.arithmetic()?;
        } else {
            let name = self.name()?;
            self.blank_lines()?;
            if self.eat_word("in") {
                loop {
                    self.blanks();
                    if self.word()?.is_none() {
                        break;
                    }
                }
            }
            let value = Word { source: String::new(), kind: WordKind::Dynamic { substitution: false } };
            self.out.commands.push(SimpleCommand {
                source: format!("for {name}"),
                assignments: vec![Assignment { name, value }],
                place: self.place,
                ..SimpleCommand::default()
            });
        }
        self.blanks();
        self.eat(";");
        self.blank_lines()?;
        self.loop_body()
    }

    fn case(&mut self) -> Parse<()> {
        self.blanks();
        self.required_word()?;
        self.blank_lines()?;
        self.expect_word("in")?;
        loop {
            self.blank_lines()?;
            if self.eat_word("esac") {
                return Ok(());
            }
            self.eat("(");
            loop {
                self.blanks();
                self.required_word()?;
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            if !self.eat(")") {
                return Err(self.unexpected());
            }
            self.list()?;
            if !self.eat(";;&") && !self.eat(";;") && !self.eat(";&") {
                return self.expect_word("esac");
            }
        }
    }

    fn extended_test(&mut self) -> Parse<()> {
        const NUMERIC: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        loop {
            while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
            if self.eat("\n") {
                self.no_pending_documents()?;
                continue;
            }
            if self.eat_word("]]") {
                return Ok(());
            }
            if self.eat("&&") || self.eat("||") {
                continue;
            }
            let bare = self.bare_word();
            if NUMERIC.contains(&bare) || bare == "-v" {
                self.out.doubt("a test may evaluate the value of a variable as code");
            }
            match self.peek() {
                None => return Err(self.unfinished()),
                Some('(' | ')') => {
                    self.next();
                }
                Some('<' | '>') if self.peek_second() != Some('(') => {
                    self.next();
                }
                Some('#' | ';' | '&' | '|') => return Err(self.unexpected()),
                Some(_) => {
                    self.required_word()?;
                    // Patterns and regular expressions may go on where a word ends.
                    if !matches!(self.peek(), Some(' ' | '\t' | '\n' | ')' | '\\')) {
                        return Err(self.unexpected());
                    }
                }
            }
        }
    }

    fn function_body(&mut self) -> Parse<()> {
        let before = self.place;
        self.place.repeated = true;
        self.blank_lines()?;
        let bare = self.bare_word();
        if self.peek() != Some('(') && (!COMPOUND.contains(&bare) || bare == "function") {
            return Err(self.unexpected());
        }
        self.deeper(Self::compound)?;
        self.place = before;
        Ok(())
    }

    fn coprocess(&mut self) -> Parse<()> {
        let starts_compound =
            |p: &Self| p.peek() == Some('(') || COMPOUND.contains(&p.bare_word());
        self.blanks();
        if !starts_compound(self) {
            let begin = self.pos;
            self.pos += self.bare_word().len();
            self.blanks();
            if !starts_compound(self) {
                self.pos = begin;
            }
        }
        self.deeper(Self::command)?;
        Ok(())
    }

    /// A name that the line may set.
    fn name(&mut self) -> Parse<String> {
        let name = self.bare_word().to_owned();
        if name.is_empty() || name.contains(['[', '{', '*', '?', '~', '#']) {
            return Err(self.unexpected());
        }
        self.pos += name.len();
        Ok(name)
    }

    fn required_word(&mut self) -> Parse<Piece> {
        match self.word()? {
            Some(word) => Ok(word),
            None if self.peek().is_none() => Err(self.unfinished()),
            None => Err(self.unexpected()),
        }
    }

    /// Whether it was a simple command and no function.
    fn simple(&mut self) -> Parse<bool> {
        let begin = self.pos;
        let mut end = begin;
        let mut command = SimpleCommand::default();
        let mut nameable = false;
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('&') if !self.rest().starts_with("&>") => break,
                Some('(') => {
                    if !nameable {
                        return Err(self.unexpected());
                    }
                    self.next();
                    self.blanks();
                    if !self.eat(")") {
                        return Err(self.unexpected());
                    }
                    self.function_body()?;
                    return Ok(false);
                }
                Some('<' | '>' | '&') if self.at_redirect() => self.redirect(&mut command)?,
                Some(_) => {
                    let word = self.required_word()?;
                    nameable = self.take_word(word, &mut command)?;
                }
            }
            end = self.pos;
        }
        if end == begin {
            return Err(self.unexpected());
        }
        command.source = self.src.get(begin..end).unwrap_or_default().trim().to_owned();
        command.place = self.place;
        self.out.commands.push(command);
        Ok(true)
    }

    /// Whether the command is so far one plain word, which could name a function.
    fn take_word(&mut self, piece: Piece, command: &mut SimpleCommand) -> Parse<bool> {
        let descriptor = piece.bare.as_deref().is_some_and(is_descriptor);
        if descriptor && matches!(self.peek(), Some('<' | '>')) {
            return Ok(false);
        }
        if command.words.is_empty() {
            if let Some(name) = piece.assigns {
                let mut value = piece.value;
                if self.peek() == Some('(') {
                    self.next();
                    self.array()?;
                    value.kind = WordKind::Dynamic { substitution: false };
                }
                command.assignments.push(Assignment { name, value });
                return Ok(false);
            }
            let reserved = |word: &str| CLOSERS.contains(&word) || COMPOUND.contains(&word);
            if piece.bare.as_deref().is_some_and(reserved) {
                return Err(self.unexpected());
            }
        }
        command.words.push(piece.word);
        let nothing_else = command.assignments.is_empty() && command.redirects.is_empty();
        Ok(command.words.len() == 1 && nothing_else && piece.bare.is_some())
    }

    fn array(&mut self) -> Parse<()> {
        loop {
            self.blank_lines()?;
            if self.eat(")") {
                return Ok(());
            }
            if self.peek() == Some('[') {
                self.out.doubt("an array is set by index");
            }
            self.required_word()?;
        }
    }

    /// A redirect begins here, and no process substitution.
    fn at_redirect(&self) -> bool {
        self.rest().starts_with("&>") || self.peek_second() != Some('(')
    }

    fn compound_redirects(&mut self) -> Parse<()> {
        let begin = self.pos;
        let mut command = SimpleCommand { place: self.place, ..SimpleCommand::default() };
        loop {
            self.blanks();
            let bare = self.bare_word();
            let after = self.rest().get(bare.len()..).unwrap_or_default();
            if is_descriptor(bare) && after.starts_with(['<', '>']) {
                self.pos += bare.len();
            }
            let redirects = matches!(self.peek(), Some('<' | '>'))
                || self.rest().starts_with("&>");
            if !redirects {
                break;
            }
            if !self.at_redirect() {
                return Err(self.unexpected());
            }
            self.redirect(&mut command)?;
        }
        if !command.redirects.is_empty() {
            command.source =
                self.src.get(begin..self.pos).unwrap_or_default().trim().to_owned();
            self.out.commands.push(command);
        }
        Ok(())
    }

    fn redirect(&mut self, command: &mut SimpleCommand) -> Parse<()> {
        let Some(operator) = OPERATORS.into_iter().find(|o| self.rest().starts_with(o)) else {
            return Err(self.unexpected());
        };
        self.pos += operator.len();
        if self.rest().starts_with("\\\n") {
            return Err(self.stop("an operator is broken over two lines"));
        }
        self.blanks();
        let target = self.required_word()?;
        let copied = target.bare.as_deref().is_some_and(|word| {
            word == "-" || word.trim_end_matches('-').chars().all(|c| c.is_ascii_digit())
        });
        match operator {
            "<<" | "<<-" => return self.here_document(&target, operator == "<<-"),
            "<<<" => return Ok(()),
            "<&" | ">&" if copied => return Ok(()),
            "<&" => return Err(self.stop("a descriptor is known only when the line runs")),
            _ => {}
        }
        command.redirects.push(Redirect { writes: operator != "<", target: target.word });
        Ok(())
    }

    fn here_document(&mut self, delimiter: &Piece, strips_tabs: bool) -> Parse<()> {
        match &delimiter.word.kind {
            WordKind::Literal(text)
                if !text.contains('\n') && !delimiter.word.source.contains('$') =>
            {
                self.pending.push(HereDocument {
                    delimiter: text.clone(),
                    quoted: delimiter.quoted,
                    strips_tabs,
                });
                Ok(())
            }
            _ => Err(self.stop("the end mark of a here-document is not plain")),
        }
    }
}

/// The number or the `{name}` before a redirect.
fn is_descriptor(word: &str) -> bool {
    let named = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match named {
        Some(name) => super::is_plain_variable(name),
        None => !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()),
    }
}

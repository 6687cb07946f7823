//! The grammar of commands: lists, pipelines and simple commands.

use super::redirect::{HereDocument, is_descriptor};
use super::word::Piece;
use super::{Assignment, MAX_DEPTH, Place, Script, SimpleCommand, WordKind};

/// The parse stopped; why is among the doubts.
pub(super) struct Stop;

pub(super) type Parse<T> = Result<T, Stop>;

pub(super) struct Parser<'s, 'o> {
    pub(super) src: &'s str,
    pub(super) pos: usize,
    pub(super) out: &'o mut Script,
    pub(super) depth: usize,
    pub(super) pending: Vec<HereDocument>,
    pub(super) place: Place,
}

const CLOSERS: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];
pub(super) const COMPOUND: [&str; 9] =
    ["{", "if", "while", "until", "for", "case", "select", "[[", "function"];
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

    pub(super) fn unexpected(&mut self) -> Stop {
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
    pub(super) fn blanks(&mut self) {
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

    pub(super) fn blank_lines(&mut self) -> Parse<()> {
        loop {
            self.blanks();
            if !self.eat("\n") {
                return Ok(());
            }
            self.here_documents()?;
        }
    }

    /// A parser for a text that stands inside this one.
    pub(super) fn inside<'x>(&'x mut self, text: &'x str) -> Parser<'x, 'x> {
        let place = Place { repeated: self.place.repeated, ..Place::default() };
        let mut inner = Parser::new(text, self.depth + 1, self.out);
        inner.place = place;
        inner
    }

    /// The unquoted word that begins here, or nothing if it is quoted or expanded in part.
    pub(super) fn bare_word(&self) -> &'s str {
        let rest = self.rest();
        let end = rest.find(|c: char| " \t\n;&|<>()".contains(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        if word.contains(['\'', '"', '\\', '$', '`']) { "" } else { word }
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.bare_word() == word;
        if found {
            self.pos += word.len();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Parse<()> {
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
    pub(super) fn list(&mut self) -> Parse<()> {
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
            if and
                && alone
                && only_and
                && let Some(last) = self.out.commands.last_mut()
            {
                last.place.decides_chain = last.place.chain == chain;
            }
            if and {
                self.place.chain = chain;
            } else {
                only_and = false;
                self.new_chain();
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
    pub(super) fn command(&mut self) -> Parse<bool> {
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

    pub(super) fn required_word(&mut self) -> Parse<Piece> {
        match self.word()? {
            Some(word) => Ok(word),
            None if self.peek().is_none() => Err(self.unfinished()),
            None => Err(self.unexpected()),
        }
    }

    /// Whether it was a simple command and no function.
    pub(super) fn simple(&mut self) -> Parse<bool> {
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
        self.src.get(begin..end).unwrap_or_default().trim().clone_into(&mut command.source);
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
}

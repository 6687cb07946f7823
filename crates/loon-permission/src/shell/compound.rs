//! Compound commands: groups, loops, conditions, tests, functions.

use super::grammar::{COMPOUND, Parse, Parser};
use super::{Assignment, SimpleCommand, Word, WordKind};

impl Parser<'_, '_> {
    pub(super) fn compound(&mut self) -> Parse<()> {
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
            let value =
                Word { source: String::new(), kind: WordKind::Dynamic { substitution: false } };
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
            if self.eat_word("=~") {
                while self.eat(" ") || self.eat("\t") {}
                self.regular_expression()?;
                continue;
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

    pub(super) fn function_body(&mut self) -> Parse<()> {
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

    pub(super) fn coprocess(&mut self) -> Parse<()> {
        let starts_compound = |p: &Self| p.peek() == Some('(') || COMPOUND.contains(&p.bare_word());
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
}

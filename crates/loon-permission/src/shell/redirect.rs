//! Redirects and here-documents.

use super::grammar::{Parse, Parser};
use super::word::Piece;
use super::{Redirect, SimpleCommand, WordKind};

/// A here-document whose body has not begun.
pub(super) struct HereDocument {
    delimiter: String,
    quoted: bool,
    strips_tabs: bool,
}

const OPERATORS: [&str; 12] =
    ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];

impl Parser<'_, '_> {
    pub(super) fn here_documents(&mut self) -> Parse<()> {
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

    pub(super) fn redirect(&mut self, command: &mut SimpleCommand) -> Parse<()> {
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

    pub(super) fn compound_redirects(&mut self) -> Parse<()> {
        let begin = self.pos;
        let mut command = SimpleCommand { place: self.place, ..SimpleCommand::default() };
        loop {
            self.blanks();
            let bare = self.bare_word();
            let after = self.rest().get(bare.len()..).unwrap_or_default();
            if is_descriptor(bare) && after.starts_with(['<', '>']) {
                self.pos += bare.len();
            }
            let redirects = matches!(self.peek(), Some('<' | '>')) || self.rest().starts_with("&>");
            if !redirects {
                break;
            }
            if !self.at_redirect() {
                return Err(self.unexpected());
            }
            self.redirect(&mut command)?;
        }
        if !command.redirects.is_empty() {
            self.src
                .get(begin..self.pos)
                .unwrap_or_default()
                .trim()
                .clone_into(&mut command.source);
            self.out.commands.push(command);
        }
        Ok(())
    }

    /// A redirect begins here, and no process substitution.
    pub(super) fn at_redirect(&self) -> bool {
        self.rest().starts_with("&>") || self.peek_second() != Some('(')
    }
}

/// The number or the `{name}` before a redirect.
pub(super) fn is_descriptor(word: &str) -> bool {
    let named = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match named {
        Some(name) => super::is_plain_variable(name),
        None => !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()),
    }
}

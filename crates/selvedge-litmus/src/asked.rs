//! Parses the question at the end of a test.

use crate::condition::{Condition, Formula, Place, Quantifier};
use crate::lex::Token;
use crate::parse::{Error, Parser, plain, shown};

impl Parser {
    /// `locations [x; 0:r1;]`
    pub(crate) fn shown(&mut self) -> Result<Vec<Place>, Error> {
        let mut shown = Vec::new();
        if self.eat_word("locations") {
            self.expect("[")?;
            while !self.eat("]") {
                shown.push(self.place()?);
                self.eat(";");
            }
        }
        Ok(shown)
    }

    fn place(&mut self) -> Result<Place, Error> {
        if let Some(Token::Number(_)) = self.peek() {
            let thread = self.number()? as usize;
            self.expect(":")?;
            let name = self.word()?;
            let Some(code) = self.threads.get_mut(thread) else {
                return self.error(format!("there is no thread {thread}"));
            };
            let Some(register) = code.registers.iter().position(|known| *known == name) else {
                return self.error(format!("thread {thread} has no register `{name}`"));
            };
            return Ok(Place::Register(thread, register));
        }
        let bracketed = self.eat("[");
        let variable = self.address()?;
        if bracketed {
            self.expect("]")?;
        }
        Ok(Place::Variable(variable))
    }

    pub(crate) fn condition(&mut self) -> Result<Condition, Error> {
        let negated = self.eat("~") || self.eat_word("not");
        let quantifier = match self.word()?.as_str() {
            "exists" if negated => Quantifier::NotExists,
            "exists" => Quantifier::Exists,
            "forall" if !negated => Quantifier::Forall,
            word => return self.error(format!("`exists` or `forall` is expected, not `{word}`")),
        };
        let start = self.at;
        let formula = self.formula()?;
        if self.at < self.tokens.len() {
            let found = self.peek().cloned();
            return self.error(format!("the test ends before {}", shown(found)));
        }
        let text = self.tokens[start..]
            .iter()
            .fold(String::new(), |mut text, (token, _)| {
                match token {
                    Token::Sign(sign @ ("/\\" | "\\/")) => {
                        text.push_str(&format!(" {sign} "));
                    }
                    Token::Word(word) if word == "not" => text.push_str("not "),
                    token => text.push_str(&plain(token)),
                }
                text
            });
        Ok(Condition {
            quantifier,
            formula,
            text,
        })
    }

    fn formula(&mut self) -> Result<Formula, Error> {
        let left = self.conjunction()?;
        self.chain(&["\\/"], left, |parser, _, left| {
            Ok(Formula::Or(left.into(), parser.conjunction()?.into()))
        })
    }

    fn conjunction(&mut self) -> Result<Formula, Error> {
        let left = self.nested(Parser::atom)?;
        self.chain(&["/\\"], left, |parser, _, left| {
            Ok(Formula::And(
                left.into(),
                parser.nested(Parser::atom)?.into(),
            ))
        })
    }

    fn atom(&mut self) -> Result<Formula, Error> {
        if self.eat("~") || self.eat_word("not") {
            return Ok(Formula::Not(self.nested(Parser::atom)?.into()));
        }
        if self.eat_word("true") {
            return Ok(Formula::Truth(true));
        }
        if self.eat_word("false") {
            return Ok(Formula::Truth(false));
        }
        if self.eat("(") {
            let inner = self.formula()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let place = self.place()?;
        let differs = self.eat("!=");
        if !differs && !self.eat("==") {
            self.expect("=")?;
        }
        let equal = Formula::Equal(place, self.number()?);
        Ok(if differs {
            Formula::Not(equal.into())
        } else {
            equal
        })
    }
}

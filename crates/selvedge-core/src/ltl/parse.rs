//! From text to formulas.
//!
//! From the tightest: `! X F G` (also `[]` for `G` and `<>` for `F`), then `U R W M`, then `&&`,
//! `||`, `->` and `<->`. Operators with two operands group to the right. The same in words:
//! `not next eventually always`, `until release weak_until strong_release`, `and or implies iff`.
//!
//! An atom is a name that the program gave to a proposition (`granted`, or `"G"` in quotes where
//! the name means something else), an expression over the program's globals in braces (`{x == 1}`),
//! or one of the words about threads: `T1.moves`, `T1.progress`, `T1.enabled`, `T1.ended`,
//! `T1.joins`, `any.moves`, `any.progress`.

use std::fmt;

use super::formula::{Atom, Binary, Formula, Unary, Who};
use crate::ids::ThreadId;

/// How deep operators may be nested: the parser and what follows it are recursive.
const DEEPEST: usize = 200;

/// Why a text is not a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where, in bytes from the start of the text.
    pub at: usize,
    /// The error there.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.at + 1)
    }
}

impl std::error::Error for ParseError {}

/// Reads a formula.
pub fn parse(text: &str) -> Result<Formula, ParseError> {
    let tokens = Lexer { text, at: 0 }.tokens()?;
    let mut parser = Parser {
        tokens,
        next: 0,
        end: text.len(),
        depth: 0,
    };
    let formula = parser.formula(0)?;
    match parser.tokens.get(parser.next) {
        None => Ok(formula),
        Some((at, token)) => Err(ParseError {
            at: *at,
            message: format!("an operator is missing before {token}"),
        }),
    }
}

/// Whether `text` can stand for a proposition without quotes.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(starts_name);
    first && chars.all(continues_name) && word(text).is_none()
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Constant(bool),
    Unary(Unary),
    Binary(Binary),
    Atom(Atom),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Open => f.write_str("`(`"),
            Token::Close => f.write_str("`)`"),
            Token::Constant(value) => write!(f, "`{value}`"),
            Token::Unary(operator) => write!(f, "the operator {operator:?}"),
            Token::Binary(operator) => write!(f, "the operator {operator:?}"),
            Token::Atom(atom) => write!(f, "`{atom}`"),
        }
    }
}

/// The meaning of a word that is not a name.
fn word(text: &str) -> Option<Token> {
    Some(match text {
        "true" => Token::Constant(true),
        "false" => Token::Constant(false),
        "not" => Token::Unary(Unary::Not),
        "X" | "next" => Token::Unary(Unary::Next),
        "F" | "eventually" => Token::Unary(Unary::Finally),
        "G" | "always" => Token::Unary(Unary::Globally),
        "and" => Token::Binary(Binary::And),
        "or" => Token::Binary(Binary::Or),
        "implies" => Token::Binary(Binary::Implies),
        "iff" => Token::Binary(Binary::Equals),
        "U" | "until" => Token::Binary(Binary::Until),
        "W" | "weak_until" => Token::Binary(Binary::WeakUntil),
        "R" | "release" => Token::Binary(Binary::Release),
        "M" | "strong_release" => Token::Binary(Binary::StrongRelease),
        _ => return None,
    })
}

/// Longer ones first.
const SIGNS: [(&str, Token); 11] = [
    ("<->", Token::Binary(Binary::Equals)),
    ("->", Token::Binary(Binary::Implies)),
    ("&&", Token::Binary(Binary::And)),
    ("||", Token::Binary(Binary::Or)),
    ("[]", Token::Unary(Unary::Globally)),
    ("<>", Token::Unary(Unary::Finally)),
    ("&", Token::Binary(Binary::And)),
    ("|", Token::Binary(Binary::Or)),
    ("!", Token::Unary(Unary::Not)),
    ("(", Token::Open),
    (")", Token::Close),
];

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn tokens(mut self) -> Result<Vec<(usize, Token)>, ParseError> {
        let mut tokens = Vec::new();
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let at = self.at;
            let Some(first) = self.rest().chars().next() else {
                return Ok(tokens);
            };
            let token = match first {
                '{' => self.expression()?,
                '"' => self.quoted()?,
                c if starts_name(c) => self.name()?,
                _ => self.sign()?,
            };
            tokens.push((at, token));
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError {
            at: self.at,
            message: message.into(),
        })
    }

    fn sign(&mut self) -> Result<Token, ParseError> {
        let rest = self.rest();
        match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((sign, token)) => {
                self.at += sign.len();
                Ok(token.clone())
            }
            None => {
                let c = rest.chars().next().unwrap_or_default();
                self.error(format!(
                    "`{c}` means nothing here; expressions of the program go in braces, as in {{x == 1}}"
                ))
            }
        }
    }

    fn take_name(&mut self) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn name(&mut self) -> Result<Token, ParseError> {
        let start = self.at;
        let name = self.take_name();
        if !self.rest().starts_with('.') {
            let named = || Token::Atom(Atom::Named(name.to_owned()));
            return Ok(word(name).unwrap_or_else(named));
        }
        self.at += 1;
        let what = self.take_name();
        let number = name.strip_prefix('T').and_then(|n| n.parse().ok());
        let thread = number.map(ThreadId);
        let who = match thread {
            Some(thread) => Some(Who::Thread(thread)),
            None => (name == "any").then_some(Who::Any),
        };
        let atom = match (what, who, thread) {
            ("moves", Some(who), _) => Atom::Moves(who),
            ("progress", Some(who), _) => Atom::Progress(who),
            ("enabled", _, Some(thread)) => Atom::Enabled(thread),
            ("ended", _, Some(thread)) => Atom::Ended(thread),
            ("joins", _, Some(thread)) => Atom::Joins(thread),
            _ => {
                self.at = start;
                return self.error(format!(
                    "`{name}.{what}` is not known; there are T1.moves, T1.progress, T1.enabled, T1.ended and \
                     T1.joins (of any thread), any.moves and any.progress"
                ));
            }
        };
        Ok(Token::Atom(atom))
    }

    fn quoted(&mut self) -> Result<Token, ParseError> {
        let rest = &self.rest()[1..];
        match rest.find('"') {
            Some(0) => self.error("a proposition has a name"),
            Some(length) => {
                self.at += length + 2;
                Ok(Token::Atom(Atom::Named(rest[..length].to_owned())))
            }
            None => self.error("this `\"` is not closed"),
        }
    }

    /// Everything up to the brace that closes this one. Braces in literals do not count.
    fn expression(&mut self) -> Result<Token, ParseError> {
        let rest = self.rest();
        let (mut depth, mut literal, mut escaped) = (0_usize, None, false);
        for (at, c) in rest.char_indices() {
            match (literal, c) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(quote), _) if c == quote => literal = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => literal = Some(c),
                (None, '{') => depth += 1,
                (None, '}') => depth -= 1,
                (None, _) => {}
            }
            if depth == 0 {
                let text = rest[1..at].trim();
                if text.is_empty() {
                    return self.error("there is nothing between the braces");
                }
                self.at += at + 1;
                return Ok(Token::Atom(Atom::Expression(text.to_owned())));
            }
        }
        self.error("this `{` is not closed")
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    depth: usize,
}

/// Larger binds tighter.
fn strength(operator: Binary) -> u8 {
    match operator {
        Binary::Equals => 1,
        Binary::Implies => 2,
        Binary::Or => 3,
        Binary::And => 4,
        Binary::Until | Binary::WeakUntil | Binary::Release | Binary::StrongRelease => 5,
    }
}

impl Parser {
    /// A formula whose outermost operators bind at least as tight as `least`.
    fn formula(&mut self, least: u8) -> Result<Formula, ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error(self.here(), "this is nested too deeply");
        }
        let mut left = self.operand()?;
        while let Some(&(_, Token::Binary(operator))) = self.tokens.get(self.next) {
            if strength(operator) < least {
                break;
            }
            self.next += 1;
            let right = self.formula(strength(operator))?;
            left = Formula::binary(operator, left, right);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Formula, ParseError> {
        let at = self.here();
        let Some((_, token)) = self.tokens.get(self.next).cloned() else {
            return self.error(at, "the formula ends where an operand should stand");
        };
        self.next += 1;
        match token {
            Token::Constant(value) => Ok(Formula::Constant(value)),
            Token::Atom(atom) => Ok(Formula::Atom(atom)),
            Token::Unary(operator) => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return self.error(at, "this is nested too deeply");
                }
                let operand = self.operand()?;
                self.depth -= 1;
                Ok(Formula::unary(operator, operand))
            }
            Token::Open => {
                let formula = self.formula(0)?;
                if !matches!(self.tokens.get(self.next), Some((_, Token::Close))) {
                    return self.error(at, "this `(` is not closed");
                }
                self.next += 1;
                Ok(formula)
            }
            Token::Close | Token::Binary(_) => {
                self.error(at, format!("{token} stands where an operand should"))
            }
        }
    }

    fn here(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |&(at, _)| at)
    }

    fn error<T>(&self, at: usize, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError {
            at,
            message: message.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(formula) => formula.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn operators_bind_as_documented() {
        assert_eq!(
            shown("G (request -> F granted)"),
            "G (request -> F granted)"
        );
        assert_eq!(shown("G request -> F granted"), "(G request -> F granted)");
        assert_eq!(
            shown("a U b && !c || d -> e <-> f"),
            "(((((a U b) && !c) || d) -> e) <-> f)"
        );
        assert_eq!(shown("a U b U c"), "(a U (b U c))");
        assert_eq!(shown("a -> b -> c"), "(a -> (b -> c))");
        assert_eq!(shown("[]<>p & X q W r"), "(G F p && (X q W r))");
        assert_eq!(
            shown("always (not a implies eventually b until c)"),
            "G (!a -> (F b U c))"
        );
    }

    #[test]
    fn atoms_are_names_expressions_and_threads() {
        let text = "\"G\" && {x[1] == '}' || (s){1}.a} && T12.moves && any.progress";
        let atoms = parse(text).unwrap().atoms();
        let expected = [
            Atom::Named("G".to_owned()),
            Atom::Expression("x[1] == '}' || (s){1}.a".to_owned()),
            Atom::Moves(Who::Thread(ThreadId(12))),
            Atom::Progress(Who::Any),
        ];
        assert_eq!(atoms, expected);
        assert_eq!(parse(&parse(text).unwrap().to_string()), parse(text));
    }

    #[test]
    fn errors_tell_where_and_what() {
        for (text, at, part) in [
            ("", 0, "ends where"),
            ("G", 1, "ends where"),
            ("a b", 2, "operator is missing before `b`"),
            ("(a && b", 0, "not closed"),
            ("a && && b", 5, "where an operand should"),
            ("a)", 1, "before `)`"),
            ("x == 1", 2, "in braces"),
            ("{x == 1", 0, "not closed"),
            ("{ }", 0, "nothing between"),
            ("a && T1.walks", 5, "T1.moves"),
            ("any.ended", 0, "T1.moves"),
            ("\"a", 0, "not closed"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        assert!(parse(&"!".repeat(100_000)).is_err());
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"a U ".repeat(100_000)).is_err());
    }
}

//! From text to a test.

use std::fmt;

use crate::code::{Instruction, Register, Variable};
use crate::condition::{Condition, Place};
use crate::lex::{Placed, Token, tokens};

/// Why a text is no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where.
    pub line: usize,
    /// The error.
    pub message: String,
}

impl Error {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { line, message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Error {}

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// The question of the test.
    pub condition: Condition,
    pub(crate) threads: Vec<Thread>,
    /// The shared variables with their initial values.
    pub(crate) variables: Vec<(String, i64)>,
    /// The variables that are shown besides those of the condition.
    pub(crate) shown: Vec<Place>,
}

/// A thread of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) code: Vec<Instruction>,
    pub(crate) registers: Vec<String>,
    pub(crate) initial: Vec<i64>,
}

impl Thread {
    pub(crate) fn register(&mut self, name: &str) -> Register {
        let known = self.registers.iter().position(|register| register == name);
        known.unwrap_or_else(|| {
            self.registers.push(name.to_owned());
            self.initial.push(0);
            self.registers.len() - 1
        })
    }
}

impl Test {
    /// How many accesses and fences its threads have in all.
    pub fn operations(&self) -> usize {
        let code = self.threads.iter().flat_map(|thread| &thread.code);
        code.filter(|instruction| instruction.is_visible()).count()
    }

    pub(crate) fn place_name(&self, place: Place) -> String {
        match place {
            Place::Register(thread, register) => {
                format!("{thread}:{}", self.threads[thread].registers[register])
            }
            Place::Variable(variable) => format!("[{}]", self.variables[variable as usize].0),
        }
    }
}

/// Reads a litmus test in herd's C syntax.
pub fn parse(text: &str) -> Result<Test, Error> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        threads: Vec::new(),
        variables: Vec::new(),
        thread: 0,
        depth: 0,
    };
    parser.test()
}

/// Reads one test.
pub(crate) struct Parser {
    pub(crate) tokens: Vec<Placed>,
    pub(crate) at: usize,
    pub(crate) threads: Vec<Thread>,
    pub(crate) variables: Vec<(String, i64)>,
    /// The thread whose code is read.
    pub(crate) thread: usize,
    /// How deep the present statement, expression or condition is nested.
    depth: usize,
}

/// How deep statements, expressions and conditions may be nested, and how many operators of one
/// level may follow each other: the parser and the evaluation are recursive.
const DEEPEST: usize = 200;

/// The words that begin a declaration.
pub(crate) const TYPES: [&str; 8] = [
    "int",
    "atomic_int",
    "volatile",
    "const",
    "unsigned",
    "long",
    "_Atomic",
    "intptr_t",
];

impl Parser {
    pub(crate) fn line(&self) -> usize {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(1, |&(_, line)| line)
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(Error::new(self.line(), message))
    }

    /// Reads something that may contain itself.
    pub(crate) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Parser) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.deepen()?;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads what follows each of the operators `signs`, and joins it to `left`.
    pub(crate) fn chain<T>(
        &mut self,
        signs: &[&'static str],
        mut left: T,
        mut join: impl FnMut(&mut Parser, &'static str, T) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let depth = self.depth;
        while let Some(&sign) = signs.iter().find(|&&sign| self.next_is(sign)) {
            self.deepen()?;
            self.at += 1;
            left = join(self, sign, left)?;
        }
        self.depth = depth;
        Ok(left)
    }

    fn deepen(&mut self) -> Result<(), Error> {
        if self.depth == DEEPEST {
            return self.error("this is nested too deeply");
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    pub(crate) fn next_is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    pub(crate) fn eat(&mut self, sign: &str) -> bool {
        let found = self.next_is(sign);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, sign: &str) -> Result<(), Error> {
        if self.eat(sign) {
            return Ok(());
        }
        let found = self.peek().cloned();
        self.error(format!("`{sign}` is expected, not {}", shown(found)))
    }

    pub(crate) fn peek_word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn eat_word(&mut self, wanted: &str) -> bool {
        let found = self.peek_word() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn word(&mut self) -> Result<String, Error> {
        match self.peek().cloned() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            found => self.error(format!("a name is expected, not {}", shown(found))),
        }
    }

    pub(crate) fn number(&mut self) -> Result<i64, Error> {
        let sign = if self.eat("-") { -1 } else { 1 };
        match self.peek() {
            Some(&Token::Number(number)) => {
                self.at += 1;
                Ok(sign * number)
            }
            found => {
                let found = found.cloned();
                self.error(format!("a number is expected, not {}", shown(found)))
            }
        }
    }

    pub(crate) fn test(&mut self) -> Result<Test, Error> {
        if !self.eat_word("C") {
            return self.error("a test in C begins with `C` and its name");
        }
        // Names such as 2+2W and MP+rel-acq are several words here. What stands on the lines below is
        // for other tools.
        let first = self.line();
        let mut name = String::new();
        while self.at < self.tokens.len() && !self.next_is("{") {
            let (token, line) = &self.tokens[self.at];
            if *line == first {
                name.push_str(&plain(token));
            }
            self.at += 1;
        }
        let registers = self.initial_state()?;
        while self.peek_word() == Some(&format!("P{}", self.threads.len())) {
            self.thread()?;
        }
        if self.threads.is_empty() {
            return self.error("`P0` is expected");
        }
        for (thread, register, value) in registers {
            let Some(thread) = self.threads.get_mut(thread) else {
                return self.error(format!("there is no thread {thread}"));
            };
            let register = thread.register(&register);
            thread.initial[register] = value;
        }
        let shown = self.shown()?;
        let condition = self.condition()?;
        Ok(Test {
            name,
            condition,
            threads: std::mem::take(&mut self.threads),
            variables: std::mem::take(&mut self.variables),
            shown,
        })
    }

    pub(crate) fn variable(&mut self, name: &str) -> Variable {
        let known = self.variables.iter().position(|(known, _)| known == name);
        known.unwrap_or_else(|| {
            self.variables.push((name.to_owned(), 0));
            self.variables.len() - 1
        }) as Variable
    }

    /// Values of variables, which are entered, and of registers, which are returned.
    pub(crate) fn initial_state(&mut self) -> Result<Vec<(usize, String, i64)>, Error> {
        let mut registers = Vec::new();
        self.expect("{")?;
        while !self.eat("}") {
            if self.eat(";") {
                continue;
            }
            while self.peek_word().is_some_and(|word| TYPES.contains(&word)) || self.next_is("*") {
                self.at += 1;
            }
            if let Some(Token::Number(_)) = self.peek() {
                let thread = self.number()? as usize;
                self.expect(":")?;
                let register = self.word()?;
                self.expect("=")?;
                registers.push((thread, register, self.number()?));
                continue;
            }
            let bracketed = self.eat("[");
            let name = self.word()?;
            if bracketed {
                self.expect("]")?;
            }
            let variable = self.variable(&name);
            if self.eat("=") {
                self.variables[variable as usize].1 = self.number()?;
            }
        }
        Ok(registers)
    }

    pub(crate) fn thread(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.thread = self.threads.len();
        self.threads.push(Thread::default());
        self.expect("(")?;
        while !self.eat(")") {
            match self.word() {
                Ok(word) if TYPES.contains(&word.as_str()) => {}
                Ok(name) => drop(self.variable(&name)),
                Err(error) => {
                    if !self.eat("*") && !self.eat(",") {
                        return Err(error);
                    }
                }
            }
        }
        self.expect("{")?;
        self.block()
    }
}

pub(crate) fn plain(token: &Token) -> String {
    match token {
        Token::Word(word) => word.clone(),
        Token::Number(number) => number.to_string(),
        Token::Sign(sign) => (*sign).to_owned(),
    }
}

pub(crate) fn shown(token: Option<Token>) -> String {
    match token {
        Some(token) => format!("`{}`", plain(&token)),
        None => "the end".to_owned(),
    }
}

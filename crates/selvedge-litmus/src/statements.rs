//! Parses the statements of a thread.

use selvedge_core::MemoryOrder;

use crate::code::{Expression, Instruction, Register, Update, Variable};
use crate::lex::Token;
use crate::parse::{Error, Parser, TYPES};

impl Parser {
    /// Statements up to the closing brace.
    pub(crate) fn block(&mut self) -> Result<(), Error> {
        while !self.eat("}") {
            self.nested(Parser::statement)?;
        }
        Ok(())
    }

    fn emit(&mut self, instruction: Instruction) -> usize {
        let code = &mut self.threads[self.thread].code;
        code.push(instruction);
        code.len() - 1
    }

    fn here(&self) -> usize {
        self.threads[self.thread].code.len()
    }

    fn register(&mut self, name: &str) -> Register {
        self.threads[self.thread].register(name)
    }

    /// A register that no name in a program can stand for.
    fn fresh(&mut self) -> Register {
        let name = format!("#{}", self.threads[self.thread].registers.len());
        self.register(&name)
    }

    fn statement(&mut self) -> Result<(), Error> {
        if self.eat(";") {
            return Ok(());
        }
        if self.eat("{") {
            return self.block();
        }
        if self.eat("*") {
            let name = self.word()?;
            let variable = self.variable(&name);
            self.expect("=")?;
            let value = self.expression()?;
            self.emit(Instruction::Store(variable, value, MemoryOrder::Plain));
            return self.expect(";");
        }
        let declares = self.peek_word().is_some_and(|word| TYPES.contains(&word));
        while self.peek_word().is_some_and(|word| TYPES.contains(&word)) {
            self.at += 1;
        }
        let word = self.word()?;
        match word.as_str() {
            "if" => return self.branch(),
            "while" | "for" | "do" | "goto" | "switch" => {
                return self.error(format!("`{word}` is not supported"));
            }
            "atomic_thread_fence" => {
                self.expect("(")?;
                let order = self.order()?;
                self.emit(Instruction::Fence(order));
                self.expect(")")?;
            }
            "atomic_store" | "atomic_store_explicit" => {
                self.expect("(")?;
                let variable = self.address()?;
                self.expect(",")?;
                let value = self.expression()?;
                let order = self.last_order(word.ends_with("_explicit"))?;
                self.emit(Instruction::Store(variable, value, order));
                self.expect(")")?;
            }
            _ if self.next_is("(") => {
                self.call(&word)?;
            }
            register => {
                let register = self.register(register);
                if !(declares && self.next_is(";")) {
                    self.expect("=")?;
                    let value = self.expression()?;
                    self.emit(Instruction::Set(register, value));
                }
            }
        }
        self.expect(";")
    }

    fn branch(&mut self) -> Result<(), Error> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let unless = self.emit(Instruction::Unless(condition.clone(), 0));
        self.nested(Parser::statement)?;
        let mut end = self.here();
        if self.eat_word("else") {
            let jump = self.emit(Instruction::Jump(0));
            end = self.here();
            self.nested(Parser::statement)?;
            self.threads[self.thread].code[jump] = Instruction::Jump(self.here());
        }
        self.threads[self.thread].code[unless] = Instruction::Unless(condition, end);
        Ok(())
    }

    /// The variable that an argument points to.
    pub(crate) fn address(&mut self) -> Result<Variable, Error> {
        self.eat("&");
        let name = self.word()?;
        let known = self.variables.iter().position(|(known, _)| *known == name);
        match known {
            Some(variable) => Ok(variable as Variable),
            None => self.error(format!("`{name}` is no shared variable")),
        }
    }

    fn order(&mut self) -> Result<MemoryOrder, Error> {
        let word = self.word()?;
        match word.as_str() {
            "memory_order_relaxed" => Ok(MemoryOrder::Relaxed),
            "memory_order_acquire" | "memory_order_consume" => Ok(MemoryOrder::Acquire),
            "memory_order_release" => Ok(MemoryOrder::Release),
            "memory_order_acq_rel" => Ok(MemoryOrder::AcqRel),
            "memory_order_seq_cst" => Ok(MemoryOrder::SeqCst),
            _ => self.error(format!("`{word}` is no memory order")),
        }
    }

    /// A comma and an order, if there is to be one.
    fn last_order(&mut self, explicit: bool) -> Result<MemoryOrder, Error> {
        if !explicit {
            return Ok(MemoryOrder::SeqCst);
        }
        self.expect(",")?;
        self.order()
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        self.binary(0)
    }

    fn binary(&mut self, level: usize) -> Result<Expression, Error> {
        const LEVELS: [&[&str]; 8] = [
            &["||"],
            &["&&"],
            &["|"],
            &["^"],
            &["&"],
            &["==", "!="],
            &["<=", ">=", "<", ">"],
            &["+", "-"],
        ];
        let Some(signs) = LEVELS.get(level) else {
            return self.product();
        };
        let left = self.binary(level + 1)?;
        self.chain(signs, left, |parser, sign, left| {
            let before = parser.here();
            let right = parser.binary(level + 1)?;
            if parser.here() > before && level < 2 {
                return parser.error(format!(
                    "an access to the right of `{sign}` is not supported"
                ));
            }
            Ok(Expression::Binary(sign, left.into(), right.into()))
        })
    }

    fn product(&mut self) -> Result<Expression, Error> {
        let left = self.nested(Parser::unary)?;
        self.chain(&["*"], left, |parser, sign, left| {
            let right = parser.nested(Parser::unary)?;
            Ok(Expression::Binary(sign, left.into(), right.into()))
        })
    }

    fn unary(&mut self) -> Result<Expression, Error> {
        if self.eat("!") {
            return Ok(Expression::Not(self.nested(Parser::unary)?.into()));
        }
        if self.eat("-") {
            return Ok(Expression::Negative(self.nested(Parser::unary)?.into()));
        }
        if self.eat("(") {
            let cast = self.peek_word().is_some_and(|word| TYPES.contains(&word));
            if cast {
                self.at += 1;
                self.expect(")")?;
                return self.nested(Parser::unary);
            }
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.eat("*") {
            let variable = self.address()?;
            let register = self.fresh();
            self.emit(Instruction::Load(register, variable, MemoryOrder::Plain));
            return Ok(Expression::Register(register));
        }
        if let Some(Token::Number(_)) = self.peek() {
            return Ok(Expression::Number(self.number()?));
        }
        let word = self.word()?;
        if self.next_is("(") {
            return Ok(Expression::Register(self.call(&word)?));
        }
        Ok(Expression::Register(self.register(&word)))
    }

    /// A call that reads; the register gets its result.
    fn call(&mut self, function: &str) -> Result<Register, Error> {
        let explicit = function.ends_with("_explicit");
        let update = match function.trim_end_matches("_explicit") {
            "atomic_load" => None,
            "atomic_exchange" => Some(Update::Exchange),
            "atomic_fetch_add" => Some(Update::Add),
            "atomic_fetch_sub" => Some(Update::Sub),
            "atomic_fetch_and" => Some(Update::And),
            "atomic_fetch_or" => Some(Update::Or),
            "atomic_fetch_xor" => Some(Update::Xor),
            "atomic_compare_exchange_strong" | "atomic_compare_exchange_weak" => {
                return self.compare_exchange(explicit);
            }
            _ => return self.error(format!("`{function}` is not supported")),
        };
        self.expect("(")?;
        let variable = self.address()?;
        let instruction = match update {
            None => {
                let order = self.last_order(explicit)?;
                Instruction::Load(self.fresh(), variable, order)
            }
            Some(update) => {
                self.expect(",")?;
                let operand = self.expression()?;
                let order = self.last_order(explicit)?;
                let register = self.fresh();
                let failure = order;
                Instruction::Update {
                    register,
                    variable,
                    update,
                    operand,
                    order,
                    failure,
                }
            }
        };
        self.expect(")")?;
        let (Instruction::Load(register, ..) | Instruction::Update { register, .. }) = instruction
        else {
            unreachable!("made above");
        };
        self.emit(instruction);
        Ok(register)
    }

    fn compare_exchange(&mut self, explicit: bool) -> Result<Register, Error> {
        self.expect("(")?;
        let variable = self.address()?;
        self.expect(",")?;
        self.eat("&");
        let expected = self.word()?;
        let expected = self.register(&expected);
        self.expect(",")?;
        let operand = self.expression()?;
        let order = self.last_order(explicit)?;
        let failure = self.last_order(explicit)?;
        self.expect(")")?;
        let register = self.fresh();
        self.emit(Instruction::Update {
            register,
            variable,
            update: Update::CompareExchange(expected),
            operand,
            order,
            failure,
        });
        Ok(register)
    }
}

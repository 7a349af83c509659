//! The instructions of threads: one access or jump each.

use selvedge_core::{MemoryOrder, Value};

/// A register of a thread.
pub(crate) type Register = usize;
/// A shared variable.
pub(crate) type Variable = u32;

/// An expression over registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    Number(i64),
    Register(Register),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
}

impl Expression {
    pub(crate) fn value(&self, registers: &[i64]) -> i64 {
        match self {
            Expression::Number(number) => *number,
            Expression::Register(register) => registers[*register],
            Expression::Not(inner) => i64::from(inner.value(registers) == 0),
            Expression::Negative(inner) => inner.value(registers).wrapping_neg(),
            Expression::Binary(sign, left, right) => {
                let (a, b) = (left.value(registers), right.value(registers));
                match *sign {
                    "+" => a.wrapping_add(b),
                    "-" => a.wrapping_sub(b),
                    "*" => a.wrapping_mul(b),
                    "&" => a & b,
                    "|" => a | b,
                    "^" => a ^ b,
                    "==" => i64::from(a == b),
                    "!=" => i64::from(a != b),
                    "<" => i64::from(a < b),
                    ">" => i64::from(a > b),
                    "<=" => i64::from(a <= b),
                    ">=" => i64::from(a >= b),
                    "&&" => i64::from(a != 0 && b != 0),
                    "||" => i64::from(a != 0 || b != 0),
                    sign => unreachable!("{sign} is not parsed as an operator"),
                }
            }
        }
    }
}

/// How an update computes the new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Exchange,
    Add,
    Sub,
    And,
    Or,
    Xor,
    /// Writes if the register holds what is read; the register gets what is read.
    CompareExchange(Register),
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Set(Register, Expression),
    Load(Register, Variable, MemoryOrder),
    Store(Variable, Expression, MemoryOrder),
    Update {
        register: Register,
        variable: Variable,
        update: Update,
        operand: Expression,
        order: MemoryOrder,
        failure: MemoryOrder,
    },
    Fence(MemoryOrder),
    /// Goes on at the given instruction if the expression is zero.
    Unless(Expression, usize),
    Jump(usize),
}

impl Instruction {
    /// Whether other threads can see it.
    pub(crate) fn is_visible(&self) -> bool {
        match self {
            Instruction::Load(..)
            | Instruction::Store(..)
            | Instruction::Update { .. }
            | Instruction::Fence(_) => true,
            Instruction::Set(..) | Instruction::Unless(..) | Instruction::Jump(_) => false,
        }
    }
}

/// Values are 32 bits wide, as `int` is.
pub(crate) fn to_memory(value: i64) -> Value {
    Value::from(value as i32 as u32)
}

pub(crate) fn from_memory(value: Value) -> i64 {
    i64::from(value as u32 as i32)
}

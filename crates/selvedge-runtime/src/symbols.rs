//! The external names that a program may use.
//!
//! One table ([`functions`]) says of every external name which memory the function accesses, and whether
//! the runtime or the host's C library performs it. A name that is not in it is refused. Programs and C++'s standard library, which is
//! linked in whole files, refer to many functions that they never call. So each refused function
//! has a stub that gives up by name when it is called (see [`refusing_stubs`]).

mod environment;
mod inputs;
mod prototype;
mod refused;
mod table;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::abi::EntryPoint;
use crate::support;
pub use inputs::input;

/// The runtime's treatment of an external symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// The runtime or its shim defines it.
    Provided,
    /// A function or variable of the host's C library or compiler runtime that accesses no memory
    /// of the program.
    Known,
    /// Not modelled: why, and what to do instead.
    Refused(String),
    /// Nothing is known about it.
    Unknown,
}

/// How a function is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The host, called by the program: only values go in and come out, or what belongs to the
    /// thread (its floating-point environment).
    Value,
    /// The host, called by the runtime, which announces the accesses and takes over `errno`.
    Host,
    /// The runtime or its shim.
    Model,
    /// The modelled environment, which is C.
    Environment,
    /// Not at all: it is part of how objects are linked, or a variable that does not change.
    Linked,
}

/// How the calling convention passes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An integer or a pointer.
    Word,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `long double`.
    LongDouble,
}

impl Class {
    /// How many bytes it takes in memory.
    pub fn size(self) -> usize {
        match self {
            Class::Float => 4,
            Class::Word | Class::Double => 8,
            Class::LongDouble => 16,
        }
    }
}

/// The accesses to the memory that an argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It is read.
    In,
    /// It is written.
    Out,
    /// Both.
    InOut,
    /// It is a synchronisation object.
    Object,
}

/// How much memory that is; arguments count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A fixed number of bytes.
    Fixed(usize),
    /// A pointer.
    Pointer,
    /// A `va_list`: the arguments behind it are not passed as such, but are in it.
    List,
    /// Up to a null character.
    String {
        /// The values that it may contain.
        sample: &'static str,
        /// How many bytes a call with samples needs there.
        room: usize,
    },
    /// The same, of wide characters.
    WideString {
        /// The values that it may contain.
        sample: &'static str,
    },
    /// As many bytes as the argument says.
    Bytes(usize),
    /// As many wide characters.
    Wides(usize),
    /// As many bytes, if that is even; one less otherwise.
    Pairs(usize),
    /// The product of two arguments.
    Array(usize, usize),
    /// One byte, if the argument is not zero.
    First(usize),
    /// A number in text, up to the character that the argument is made to point to.
    Number(usize),
    /// The string that the function makes, of at most as many bytes as the argument says.
    Text(usize),
}

/// The memory that an argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The accesses to it.
    pub direction: Direction,
    /// Whether the pointer may be null.
    pub null: bool,
    /// How much it is.
    pub extent: Extent,
}

/// An argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A value.
    Value {
        /// How it is passed.
        class: Class,
        /// One that a test may pass, in C.
        sample: &'static str,
    },
    /// A pointer to memory that the function accesses.
    Pointer(Memory),
}

impl Argument {
    fn class(self) -> Class {
        match self {
            Argument::Value { class, .. } => class,
            Argument::Pointer(_) => Class::Word,
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// How its result is passed.
    pub result: Class,
    /// Its arguments; none if no argument points to memory that it accesses.
    pub arguments: Vec<Argument>,
    /// How many of them are declared, if it is variadic.
    pub fixed: Option<usize>,
    /// How it is performed.
    pub how: How,
}

impl Function {
    /// The registers of its integer and pointer arguments: which argument is in which.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, Argument)> {
        let arguments = self.arguments.iter().copied().enumerate();
        arguments.filter(|(_, argument)| argument.class() == Class::Word)
    }

    /// The words that tell its arguments by value in other registers or on the stack.
    pub(crate) fn float_words(&self) -> usize {
        let words = |argument: &Argument| match argument.class() {
            Class::Word => 0,
            Class::Float | Class::Double => 1,
            Class::LongDouble => 2,
        };
        self.arguments.iter().map(words).sum()
    }
}

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let rows = table::SECTIONS.iter();
    rows.flat_map(|section| prototype::functions(section.rows, section.how))
        .collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let named = |function: &'static Function| (&*function.name, function);
    FUNCTIONS.iter().map(named).collect()
});

/// The functions of the C library and the compiler's runtime that may be used.
pub fn functions() -> &'static [Function] {
    &FUNCTIONS
}

static ENVIRONMENT: LazyLock<Vec<Function>> =
    LazyLock::new(|| prototype::functions(environment::ROWS, How::Environment));

/// The functions and variables of the modelled environment, which is linked to programs that use
/// what only it has.
pub fn environment() -> &'static [Function] {
    &ENVIRONMENT
}

static ARGUMENTS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let entries = [crate::posix::entries(), crate::cxx::entries()].concat();
    let arguments = |(name, _, count): EntryPoint| (name, usize::from(count));
    entries.into_iter().map(arguments).collect()
});

/// How many arguments the function `name` takes, if the runtime defines it.
pub fn arguments(name: &str) -> Option<usize> {
    ARGUMENTS.get(name).copied()
}

/// Whether `name` belongs to the runtime or to the instrumentation, so that no program may define
/// it. Functions of the C library may be defined by programs.
pub fn is_reserved(name: &str) -> bool {
    ["__tsan_", "__selvedge_", "selvedge_", "__sanitizer_cov_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The runtime's treatment of the symbol `name`, which a program leaves undefined.
pub fn classify(name: &str) -> Symbol {
    if let Some(wrapped) = name.strip_prefix("__real_") {
        return classify(wrapped);
    }
    let how = BY_NAME.get(name).map(|function| function.how);
    match how {
        Some(How::Host | How::Model) => Symbol::Provided,
        Some(How::Value | How::Linked | How::Environment) => Symbol::Known,
        None if table::PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix)) =>
        {
            Symbol::Known
        }
        None if is_reserved(name) && PROVIDED.contains(name) => Symbol::Provided,
        None => refused::reason(name).map_or(Symbol::Unknown, Symbol::Refused),
    }
}

/// The names that the runtime and its shim define.
static PROVIDED: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let stubs = crate::abi::exports()
        .into_iter()
        .map(|export| export.name.into_owned());
    let shim = support::SHIM_SYMBOLS.split(' ').map(str::to_owned);
    stubs.chain(shim).collect()
});

/// How to say that the program calls `name`, which is not modelled.
pub(crate) fn refusal(name: &str) -> String {
    match refused::reason(name) {
        Some(reason) => format!("{name}: {reason}"),
        None => format!(
            "{name}: it is not part of the program, and not modelled; give its source file to \
             selvedge verify, or a stub with --stub FILE"
        ),
    }
}

/// All refused names.
pub(crate) fn refused_names() -> impl Iterator<Item = &'static str> {
    refused::names()
}

/// Whether the refused `name` is a variable rather than a function.
pub fn is_variable(name: &str) -> bool {
    refused::VARIABLES.contains(&name)
}

/// Assembly for one function per name: it gives up with that name.
pub fn refusing_stubs<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut text = String::from("\t.text\n");
    let mut strings = String::from("\t.section .rodata.selvedge,\"a\",@progbits\n");
    for (index, name) in names.into_iter().enumerate() {
        let name = name.as_ref();
        let _ = write!(
            text,
            "\t.weak {name}\n\t.hidden {name}\n\t.type {name}, @function\n{name}:\n\
             \tleaq .Lrefused{index}(%rip), %rdi\n\tmovq (%rsp), %rsi\n\tjmp selvedge_refuse\n"
        );
        let _ = writeln!(strings, ".Lrefused{index}: .asciz \"{name}\"");
    }
    text + &strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_the_table_once() {
        let permitted = functions().iter().map(|function| &*function.name);
        let mut seen = HashSet::new();
        for name in permitted.chain(refused::names()) {
            assert!(seen.insert(name), "{name} is in the table twice");
        }
    }

    #[test]
    fn the_table_and_the_runtime_agree() {
        let provided = |function: &&Function| matches!(function.how, How::Host | How::Model);
        for function in functions().iter().filter(provided) {
            let name = &*function.name;
            assert!(PROVIDED.contains(name), "{name} is not defined");
        }
        for name in PROVIDED.iter().filter(|name| !is_reserved(name)) {
            let row = BY_NAME.get(&**name).filter(|row| provided(row));
            assert!(row.is_some(), "{name} is not in the table");
        }
    }

    #[test]
    fn symbols_are_told_apart() {
        assert_eq!(classify("pthread_create"), Symbol::Provided);
        assert_eq!(classify("printf"), Symbol::Provided);
        assert_eq!(classify("__tsan_write4"), Symbol::Provided);
        assert_eq!(classify("floor"), Symbol::Known);
        assert_eq!(classify("cpowl"), Symbol::Known);
        assert_eq!(classify("hypotl"), Symbol::Provided);
        assert_eq!(classify("lgammaf_r"), Symbol::Provided);
        assert!(matches!(classify("fork"), Symbol::Refused(reason) if reason.contains("thread")));
        assert_eq!(classify("frobnicate"), Symbol::Unknown);
    }
}

//! The functions that clang was asked to instrument.
//!
//! clang announces no accesses of 3, 5, 6 and 7 bytes, as to bit fields. A function that makes no
//! other accesses looks like one that the user exempts from instrumentation, whose plain accesses
//! could be meant as atomic. Only the compiler's intermediate code tells the two apart.

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;

/// The functions of a file that clang instruments, found out on demand.
#[derive(Debug)]
pub(crate) struct Attributes {
    /// Writes the intermediate code; there is none if all functions are instrumented.
    command: Option<RefCell<Command>>,
    written: PathBuf,
    instrumented: OnceCell<HashSet<String>>,
}

impl Attributes {
    /// The attributes of the functions that `command` compiles, if it is told to write intermediate
    /// code to `written`.
    pub(super) fn new(mut command: Command, written: PathBuf) -> Attributes {
        command.args(["-S", "-emit-llvm", "-w", "-o"]).arg(&written);
        Attributes {
            command: Some(RefCell::new(command)),
            written,
            instrumented: OnceCell::new(),
        }
    }

    /// Every function is instrumented.
    pub(super) fn of_all() -> Attributes {
        Attributes {
            command: None,
            written: PathBuf::new(),
            instrumented: OnceCell::new(),
        }
    }

    /// Whether the function with this symbol is instrumented, as far as is known.
    pub(crate) fn is_instrumented(&self, symbol: &str) -> bool {
        let Some(command) = &self.command else {
            return true;
        };
        let found = self.instrumented.get_or_init(|| {
            let done = command.borrow_mut().output();
            let succeeded = done.is_ok_and(|done| done.status.success());
            let text = succeeded.then(|| std::fs::read_to_string(&self.written).ok());
            text.flatten()
                .map_or_else(HashSet::new, |text| instrumented(&text))
        });
        found.contains(symbol)
    }
}

/// The functions in intermediate code that have the attribute.
fn instrumented(text: &str) -> HashSet<String> {
    let groups: HashSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("attributes ")?.split_once(" = {"))
        .filter(|(_, list)| list.split(' ').any(|word| word == "sanitize_thread"))
        .map(|(group, _)| group)
        .collect();
    let definition = |line: &str| {
        let (_, rest) = line.strip_prefix("define ")?.split_once('@')?;
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => rest.split('(').next()?,
        };
        let has = line.split(' ').any(|word| groups.contains(word));
        has.then(|| name.to_owned())
    };
    text.lines().filter_map(definition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_instrumented_if_its_group_says_so() {
        let text = "define dso_local void @f(i64 %0) #0 !dbg !7 {\n\
                    define internal i32 @\"g.1\"(ptr %p) unnamed_addr #2 {\n\
                    define void @h() #1 {\ndeclare void @d() #0\n\
                    attributes #0 = { noinline sanitize_thread uwtable \"x\"=\"y\" }\n\
                    attributes #1 = { noinline uwtable }\n\
                    attributes #2 = { sanitize_thread }\n";
        let expected = ["f", "g.1"].map(str::to_owned);
        assert_eq!(instrumented(text), HashSet::from(expected));
    }
}

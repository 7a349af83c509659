//! Notes in an executable that the enforcement library reads.

use selvedge_irs_format::View;

use crate::composed::{self, Code, Executable, Sizes, TOGETHER, UNCOUNTED, Why, only_input};

/// The symbol at the beginning of the notes.
pub const SYMBOL: &str = "selvedge_image";

/// The reaction when a program leaves the verified schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// It is stopped.
    #[default]
    Abort = 0,
    /// It says so and runs on unconstrained.
    Warn = 1,
    /// It says so and runs on with one thread at a time.
    Serial = 2,
}

/// The facts that the library needs about the executable that it is part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The reaction when the program leaves the verified schedules.
    pub policy: Policy,
    /// The program, as the verifier names it.
    pub fingerprint: [u8; 16],
    /// Its functions.
    pub functions: Vec<Function>,
    /// The places whose callbacks were taken out, by the address that the call returned to,
    /// relative to the executable's beginning.
    pub removed: Vec<u32>,
    /// The calls that are replaced by a fence.
    pub uncounted: Vec<u32>,
    /// The calls of accesses that cannot be held apart.
    pub together: Vec<u32>,
    /// The prefix that it is built for.
    pub prefix: Option<Chosen>,
}

/// A prefix that an executable is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The prefix file.
    pub bytes: Vec<u8>,
    /// The identity of that file: device, number, and when it was written, in seconds and
    /// nanoseconds. As long as the program finds the same file, it need not read it.
    pub identity: [u64; 4],
}

/// Larger files are left to the program.
const LARGEST: usize = 256 << 10;

impl Chosen {
    /// How much space the file and what is composed of it take at most.
    pub fn room(bytes: &[u8]) -> usize {
        match Chosen::sizes(bytes) {
            Some(sizes) => 4 * sizes.words() + bytes.len() + 8,
            None => 0,
        }
    }

    fn sizes(bytes: &[u8]) -> Option<Sizes> {
        let view = View::new(bytes).ok().filter(|_| bytes.len() <= LARGEST)?;
        Some(match only_input(view) {
            Some(input) => Sizes::of(view, input),
            None => Sizes::of_beginning(view),
        })
    }

    /// The plan that the program's threads follow; `None` if the program has to compose it itself.
    fn compose(&self, executable: Executable<'_>) -> Result<Option<Vec<u32>>, Why> {
        let Ok(view) = View::new(&self.bytes) else {
            return Ok(None);
        };
        // Plans for a single input are composed at run time, but must be possible to compose all
        // the same.
        for input in view.inputs() {
            let mut words = vec![0; Sizes::of(view, input).words()];
            composed::whole(view, input, executable, &mut words)?;
        }
        let Some(sizes) = Chosen::sizes(&self.bytes) else {
            return Ok(None);
        };
        let mut words = vec![0; sizes.words()];
        match only_input(view) {
            Some(input) => composed::whole(view, input, executable, &mut words)?,
            None => composed::beginning(view, executable, &mut words)?,
        }
        Ok(Some(words))
    }
}

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its number among the symbols of that name, in the order of their addresses.
    pub occurrence: u32,
    /// Its address relative to the executable's beginning.
    pub start: u32,
    /// How many bytes of code it has.
    pub size: u32,
}

/// How many bytes the notes begin with.
const HEAD: usize = 72;

impl Notes {
    /// How much space the notes take at most for a program with this many functions and calls.
    pub fn room(functions: usize, calls: usize) -> usize {
        HEAD + 16 * functions + 4 * calls
    }

    /// The notes as the library reads them; why the program cannot keep to its prefix otherwise.
    pub fn to_bytes(&self) -> Result<Vec<u8>, &'static str> {
        let mut functions: Vec<_> = self.functions.iter().map(record).collect();
        functions.sort_unstable();
        let uncounted = self.uncounted.iter().map(|site| site | UNCOUNTED);
        let together = self.together.iter().map(|site| site | TOGETHER);
        let removed = self.removed.iter().copied();
        let mut removed: Vec<u32> = removed.chain(uncounted).chain(together).collect();
        removed.sort_unstable();
        let executable = Executable {
            functions: &functions,
            removed: &removed,
        };
        let composed = match &self.prefix {
            Some(prefix) => prefix.compose(executable)?.map(|words| (prefix, words)),
            None => None,
        };
        let mut bytes = Vec::with_capacity(Notes::room(functions.len(), removed.len()));
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend((self.policy as u32).to_le_bytes());
        bytes.extend(self.fingerprint);
        let (words, file) = composed.as_ref().map_or((0, 0), |(prefix, words)| {
            (words.len() as u32, prefix.bytes.len() as u32)
        });
        for count in [functions.len() as u32, removed.len() as u32, words, file] {
            bytes.extend(count.to_le_bytes());
        }
        let identity = composed.as_ref().map(|(prefix, _)| prefix.identity);
        let identity = identity.unwrap_or_default();
        bytes.extend(identity.iter().flat_map(|word| word.to_le_bytes()));
        for code in &functions {
            bytes.extend(code.name.to_le_bytes());
            bytes.extend(code.start.to_le_bytes());
            bytes.extend(code.size.to_le_bytes());
        }
        let words = composed.iter().flat_map(|(_, words)| words);
        let words = removed.iter().chain(words);
        bytes.extend(words.flat_map(|word| word.to_le_bytes()));
        bytes.extend(composed.iter().flat_map(|(prefix, _)| &prefix.bytes));
        Ok(bytes)
    }
}

fn record(function: &Function) -> Code {
    Code {
        name: composed::hash(function.name.as_bytes(), function.occurrence),
        start: function.start,
        size: function.size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_as_large_as_they_may_be() {
        let function = |name: &str, occurrence| Function {
            name: name.to_owned(),
            occurrence,
            start: 16,
            size: 8,
        };
        let notes = Notes {
            functions: vec![
                function("main", 0),
                function("same", 0),
                function("same", 1),
            ],
            removed: vec![40, 20],
            uncounted: vec![30],
            together: vec![50],
            ..Notes::default()
        };
        let bytes = notes.to_bytes().unwrap();
        assert_eq!(bytes.len(), Notes::room(3, 4));
        let tail: Vec<u32> = bytes[bytes.len() - 16..]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(tail, [20, 40, 50 | TOGETHER, 30 | UNCOUNTED]);
    }
}

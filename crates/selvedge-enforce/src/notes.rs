//! What is noted in an executable for the library.

#[path = "rt/hash.rs"]
pub(crate) mod hash;

/// The symbol at the beginning of the notes.
pub const SYMBOL: &str = "selvedge_image";

/// What the library has to know of the executable that it is part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Whether a program that leaves what was verified runs on, with a warning.
    pub warn: bool,
    /// The program, as the verifier names it.
    pub fingerprint: [u8; 16],
    /// Its functions.
    pub functions: Vec<Function>,
    /// The places whose callbacks were taken out, by the address that the call returned to, relative to the executable's beginning.
    pub removed: Vec<u32>,
    /// Those where nothing is left but a fence.
    pub uncounted: Vec<u32>,
}

/// Tells the latter from the former.
const UNCOUNTED: u32 = 1 << 31;

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Which of the symbols of that name, in the order of their addresses.
    pub occurrence: u32,
    /// Its address relative to the executable's beginning.
    pub start: u32,
    /// How many bytes of code it has.
    pub size: u32,
}

impl Notes {
    /// How much space the notes take at most for a program with so many functions and calls.
    pub fn room(functions: usize, calls: usize) -> usize {
        32 + 16 * functions + 4 * calls
    }

    /// The notes as the library reads them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut functions: Vec<_> = self.functions.iter().map(record).collect();
        functions.sort_unstable();
        let uncounted = self.uncounted.iter().map(|site| site | UNCOUNTED);
        let mut removed: Vec<u32> = self.removed.iter().copied().chain(uncounted).collect();
        removed.sort_unstable();
        let mut bytes = Vec::with_capacity(Notes::room(functions.len(), removed.len()));
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(u32::from(self.warn).to_le_bytes());
        bytes.extend(self.fingerprint);
        bytes.extend((functions.len() as u32).to_le_bytes());
        bytes.extend((removed.len() as u32).to_le_bytes());
        for (name, start, size) in functions {
            bytes.extend(name.to_le_bytes());
            bytes.extend(start.to_le_bytes());
            bytes.extend(size.to_le_bytes());
        }
        for site in removed {
            bytes.extend(site.to_le_bytes());
        }
        bytes
    }
}

fn record(function: &Function) -> (u64, u32, u32) {
    let name = hash::hash(function.name.as_bytes(), function.occurrence);
    (name, function.start, function.size)
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
            ..Notes::default()
        };
        let bytes = notes.to_bytes();
        assert_eq!(bytes.len(), Notes::room(3, 3));
        let tail: Vec<u32> = bytes[bytes.len() - 12..]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(tail, [20, 40, 30 | UNCOUNTED]);
    }
}

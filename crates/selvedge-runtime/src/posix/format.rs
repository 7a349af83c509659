//! The `printf` and `scanf` formats: which memory of the program a call reads and writes.
//!
//! The host's C library does the formatting. This file walks along the same format and the same
//! arguments to announce the strings that are read and the variables that are written.

use std::ffi::c_int;

use selvedge_core::Site;

use super::program::peek;
use super::{host, strings};
use crate::current;

/// The argument list of a variadic function, as the x86-64 ABI lays it out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    general_offset: u32,
    vector_offset: u32,
    overflow: usize,
    saved: usize,
}

impl Arguments {
    const GENERAL_END: u32 = 48;
    const VECTOR_END: u32 = 176;

    /// The next integer or pointer.
    fn word(&mut self) -> usize {
        if self.general_offset < Self::GENERAL_END {
            let value = peek(self.saved + self.general_offset as usize);
            self.general_offset += 8;
            return value;
        }
        let value = peek(self.overflow);
        self.overflow += 8;
        value
    }

    fn skip_double(&mut self) {
        if self.vector_offset < Self::VECTOR_END {
            self.vector_offset += 16;
        } else {
            self.overflow += 8;
        }
    }

    fn skip_long_double(&mut self) {
        self.overflow = self.overflow.next_multiple_of(16) + 16;
    }
}

/// How long the type of a conversion is said to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Char,
    Short,
    Int,
    Long,
    LongDouble,
}

impl Length {
    fn bytes(self) -> usize {
        match self {
            Length::Char => 1,
            Length::Short => 2,
            Length::Int => 4,
            Length::Long => 8,
            Length::LongDouble => 16,
        }
    }
}

/// The characters of a format.
struct Cursor {
    at: usize,
}

impl Cursor {
    fn peek(&self) -> u8 {
        peek(self.at)
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += usize::from(byte != 0);
        byte
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn eat_any(&mut self, bytes: &[u8]) {
        while self.peek() != 0 && bytes.contains(&self.peek()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while self.peek().is_ascii_digit() {
            let digit = usize::from(self.next() - b'0');
            number = Some(
                number
                    .unwrap_or(0usize)
                    .saturating_mul(10)
                    .saturating_add(digit),
            );
        }
        number
    }

    /// Goes to the character behind the next `%`.
    fn find_conversion(&mut self) -> bool {
        loop {
            match self.next() {
                0 => return false,
                b'%' => return true,
                _ => {}
            }
        }
    }

    fn length(&mut self) -> Length {
        match self.peek() {
            b'h' => {
                self.at += 1;
                if self.eat(b'h') {
                    Length::Char
                } else {
                    Length::Short
                }
            }
            b'l' => {
                self.at += 1;
                self.eat(b'l');
                Length::Long
            }
            b'q' | b'j' | b'z' | b'Z' | b't' => {
                self.at += 1;
                Length::Long
            }
            b'L' => {
                self.at += 1;
                Length::LongDouble
            }
            _ => Length::Int,
        }
    }
}

/// Announces what printing with `format` and `arguments` reads, and the counts that it writes.
pub(crate) fn announce_print(format: usize, mut arguments: Arguments, site: Site) {
    strings::read_length(format, site);
    let mut cursor = Cursor { at: format };
    while cursor.find_conversion() {
        cursor.eat_any(b"-+ #0'I");
        star_or_number(&mut cursor, &mut arguments);
        let precision = if cursor.eat(b'.') {
            // No digits mean zero, a negative argument means none.
            let given = star_or_number(&mut cursor, &mut arguments);
            given.or(Some(0)).filter(|&p| p <= c_int::MAX as usize)
        } else {
            None
        };
        let length = cursor.length();
        match cursor.next() {
            b'S' => current::refuse(String::from("a wide string in a format (%S)"), site),
            b's' => announce_string(arguments.word(), precision, length, site),
            b'n' => current::touch(arguments.word(), length.bytes(), true, site),
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => match length {
                Length::LongDouble => arguments.skip_long_double(),
                _ => arguments.skip_double(),
            },
            b'%' | b'm' => {}
            // The host's library knows them, this walk does not.
            b'$' => current::refuse(String::from("numbered arguments in a format (%1$d)"), site),
            0 => return,
            _ => {
                arguments.word();
            }
        }
    }
}

fn star_or_number(cursor: &mut Cursor, arguments: &mut Arguments) -> Option<usize> {
    if cursor.eat(b'*') {
        Some(arguments.word() as c_int as usize)
    } else {
        cursor.number()
    }
}

fn announce_string(string: usize, precision: Option<usize>, length: Length, site: Site) {
    // A null pointer prints as `(null)`.
    if string == 0 {
        return;
    }
    if length == Length::Long {
        current::refuse(String::from("a wide string in a format (%ls)"), site);
    }
    let size = match precision {
        Some(limit) => limit.min(strings::bounded_length(string, limit) + 1),
        None => strings::length(string) + 1,
    };
    current::touch(string, size, false, site);
}

/// How many variables a `scanf` format can have.
const TARGETS: usize = 64;

/// A conversion of a `scanf` format that writes a variable.
#[derive(Clone, Copy, Default)]
struct Scanned {
    conversion: u8,
    /// The most bytes that it can write.
    room: usize,
}

/// Announces the variables that scanning `text` writes. A trial into memory of the runtime's own tells which these
/// are: nothing is written to an address that was not checked.
pub(crate) fn announce_scan(text: usize, format: usize, mut arguments: Arguments, site: Site) {
    let length = strings::read_length(text, site);
    strings::read_length(format, site);
    let mut conversions = [Scanned::default(); TARGETS];
    let mut count = 0;
    let mut cursor = Cursor { at: format };
    while let Some(conversion) = next_scanned(&mut cursor, length, site) {
        let Some(place) = conversions.get_mut(count) else {
            current::refuse(
                format!("a scanf format with more than {TARGETS} conversions"),
                site,
            )
        };
        *place = conversion;
        count += 1;
    }
    let sizes = scanned_sizes(text, format, &conversions[..count]);
    for size in &sizes[..count] {
        current::touch(arguments.word(), *size, true, site);
    }
}

/// How many bytes each conversion writes. Nothing here may stop the thread, because it owns memory.
fn scanned_sizes(text: usize, format: usize, conversions: &[Scanned]) -> [usize; TARGETS] {
    let rooms = conversions.iter().map(|scanned| scanned.room);
    let scan = |fill: u8| {
        let mut targets: Vec<Vec<u8>> = rooms.clone().map(|room| vec![fill; room]).collect();
        let pointers = targets.iter_mut();
        let pointers: Vec<usize> = pointers
            .map(|target| target.as_mut_ptr().expose_provenance())
            .collect();
        let arguments = Arguments {
            general_offset: Arguments::GENERAL_END,
            vector_offset: Arguments::VECTOR_END,
            overflow: pointers.as_ptr().expose_provenance(),
            saved: 0,
        };
        host::scan(text, format, arguments);
        targets
    };
    // Bytes that are the same whatever was there before have been written.
    let (zeros, ones) = (scan(0), scan(0xff));
    let mut sizes = [0; TARGETS];
    for ((size, scanned), (zeros, ones)) in sizes
        .iter_mut()
        .zip(conversions)
        .zip(zeros.iter().zip(&ones))
    {
        let same = zeros.iter().zip(ones).take_while(|(zero, one)| zero == one);
        *size = match scanned.conversion {
            b's' | b'[' if zeros[0] == ones[0] => {
                1 + same.take_while(|&(&byte, _)| byte != 0).count()
            }
            _ => same.count(),
        };
    }
    sizes
}

/// The next conversion that writes a variable, of a text of this length.
fn next_scanned(cursor: &mut Cursor, text: usize, site: Site) -> Option<Scanned> {
    while cursor.find_conversion() {
        if cursor.eat(b'%') {
            continue;
        }
        cursor.eat_any(b"'I");
        let skipped = cursor.eat(b'*');
        cursor.eat_any(b"'I");
        let width = cursor.number();
        let length = cursor.length();
        let conversion = cursor.next();
        if conversion == b'[' {
            skip_set(cursor);
        }
        if skipped {
            continue;
        }
        let wide = length == Length::Long && matches!(conversion, b's' | b'c' | b'[');
        if wide || matches!(conversion, b'm' | b'$' | b'S' | b'C') {
            let what = "a scanf format that allocates, is wide, or has numbered arguments";
            current::refuse(String::from(what), site);
        }
        let room = match conversion {
            b's' | b'[' => text + 1,
            // It writes no more than there is.
            b'c' => width.unwrap_or(1).min(text + 1),
            b'p' => 8,
            _ => length.bytes(),
        };
        return Some(Scanned { conversion, room });
    }
    None
}

fn skip_set(cursor: &mut Cursor) {
    cursor.eat(b'^');
    cursor.eat(b']');
    while !matches!(cursor.next(), b']' | 0) {}
}

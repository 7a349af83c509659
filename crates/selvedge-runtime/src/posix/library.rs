//! Functions that the host's C library performs on the program's behalf ([`How::Host`]).
//!
//! All of them enter by one routine ([`super::registers`]), which saves the registers that carry
//! arguments. The accesses that the table tells of are announced as the program's own, in a way that
//! makes the host see the values that the explorer chose: memory of a fixed extent is announced
//! before the call; small results go to memory of the runtime's own and are stored from there, as
//! the program would store them.

use std::ffi::{CString, c_int, c_void};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge_core::{Site, Width};

use super::host::with_errno;
use super::program::{check_not_null, set_errno};
use super::registers::{Call, WORDS, enter, invoke};
use super::strings;
use crate::abi::{self, EntryPoint};
use crate::arena::pointer;
use crate::current;
use crate::gate::gate;
use crate::symbols::{self, Argument, Class, Direction, Extent, Function, How, Memory};
use crate::tsan::plain::{self, By};

/// The most bytes that a function may make of a string.
const TEXT: usize = 4096;

/// A function that is called this way.
struct Row {
    function: &'static Function,
    /// Where the host has it, once that is known.
    address: AtomicUsize,
}

/// The rows by their places in the gate's table, from the first on.
static ROWS: LazyLock<(usize, Vec<Row>)> = LazyLock::new(|| {
    let first = abi::exports()
        .iter()
        .position(|export| export.function == enter as *const () as usize);
    let rows = rows().map(|function| Row {
        function,
        address: AtomicUsize::new(0),
    });
    (first.unwrap_or(0), rows.collect())
});

fn rows() -> impl Iterator<Item = &'static Function> {
    symbols::functions()
        .iter()
        .filter(|function| function.how == How::Host)
}

/// The functions, each with the words that tell its arguments.
pub(crate) fn entries() -> Vec<EntryPoint> {
    let entry = |function: &'static Function| {
        let words = function.words().count() + function.float_words();
        (&*function.name, enter as *const () as usize, words as u8)
    };
    rows().map(entry).collect()
}

/// Finds out what can only be asked while no thread of the program runs.
pub(crate) fn prepare() {
    LazyLock::force(&ROWS);
}

/// Performs the function that the program has just called.
pub(crate) extern "C" fn perform(call: *mut Call) {
    // SAFETY: the routine above passes what it has just built.
    let call = unsafe { &mut *call };
    let site = current::site();
    // SAFETY: the gate is mapped while a program is loaded.
    let slot = unsafe { (*gate()).entering };
    let (first, rows) = &*ROWS;
    let row = &rows[slot - first];
    let function = row.function;
    call.extended = usize::from(function.result == Class::LongDouble);
    call.stack_words = stack_words(function);
    note_floats(function, call);
    current::goes_deep();
    let given = call.words;
    let mut results = [[0_u64; 2]; WORDS];
    let mut text = None;
    for (register, memory) in pointers(function) {
        let address = given[register];
        let result = results[register].as_mut_ptr();
        match memory.extent {
            _ if is_small(memory) => call.words[register] = result.expose_provenance(),
            Extent::Number(_) => check_not_null(address, site),
            Extent::Text(limit) => text = Some((register, limit)),
            _ if memory.null && is_none(address) => {}
            _ => announce(address, size(function, memory, &given), memory, site),
        }
    }
    match text {
        None => invoke_host(row, call),
        Some((register, limit)) => make_text(row, call, (register, limit), site),
    }
    for (register, memory) in pointers(function) {
        let address = given[register];
        if is_small(memory) && !(memory.null && is_none(address)) {
            store(address, memory.extent, results[register], site);
        } else if memory.direction != Direction::In {
            // It may have been saved between its announcement and the call.
            current::wrote(address, size(function, memory, &given));
        }
        if let Extent::Number(end) = memory.extent {
            let end = register_of(function, end);
            announce_number(address, results[end][0] as usize, site);
        }
    }
}

/// The pointers that a function accesses memory by: the places of their registers, and what the
/// table says about them.
fn pointers(function: &'static Function) -> impl Iterator<Item = (usize, Memory)> {
    let words = function.words().enumerate();
    words.filter_map(|(register, (_, argument))| match argument {
        Argument::Pointer(memory) => Some((register, memory)),
        Argument::Value { .. } => None,
    })
}

/// The place of the register that argument `nth` comes in.
fn register_of(function: &Function, nth: usize) -> usize {
    let mut words = function.words();
    let place = words.position(|(argument, _)| argument == nth);
    place.expect("the table names arguments that are words")
}

/// How many words of its arguments come on the stack.
fn stack_words(function: &Function) -> usize {
    let long = |argument: &&Argument| {
        let class = Class::LongDouble;
        matches!(argument, Argument::Value { class: c, .. } if *c == class)
    };
    2 * function.arguments.iter().filter(long).count()
}

/// Whether a pointer stands for none: null.
fn is_none(address: usize) -> bool {
    address == 0
}

/// Whether the runtime stores the result itself.
fn is_small(memory: Memory) -> bool {
    let small = matches!(
        memory.extent,
        Extent::Pointer | Extent::Fixed(1 | 2 | 4 | 8 | 16)
    );
    small && memory.direction == Direction::Out
}

/// How many bytes the memory is that an argument points to.
fn size(function: &Function, memory: Memory, words: &[usize; WORDS]) -> usize {
    let word = |nth: usize| words[register_of(function, nth)];
    match memory.extent {
        Extent::Fixed(size) => size,
        Extent::Pointer => size_of::<usize>(),
        Extent::List => size_of::<super::format::Arguments>(),
        Extent::Bytes(nth) => word(nth),
        Extent::Wides(nth) => 4 * word(nth),
        // A negative count means none.
        Extent::Pairs(nth) => usize::try_from(word(nth).cast_signed()).unwrap_or(0) & !1,
        Extent::Array(count, size) => word(count).saturating_mul(word(size)),
        Extent::First(nth) => word(nth).min(1),
        Extent::String { .. } | Extent::WideString { .. } | Extent::Number(_) | Extent::Text(_) => {
            0
        }
    }
}

/// Announces what the host will access.
fn announce(address: usize, size: usize, memory: Memory, site: Site) {
    if matches!(memory.extent, Extent::String { .. }) {
        strings::read_length(address, site);
        return;
    }
    if size == 0 {
        return;
    }
    check_not_null(address, site);
    if memory.direction != Direction::Out {
        plain::range(address, size, false, site, By::Runtime);
    }
    if memory.direction != Direction::In {
        plain::range(address, size, true, site, By::Runtime);
    }
}

/// Stores a result as the program would.
fn store(address: usize, extent: Extent, result: [u64; 2], site: Site) {
    check_not_null(address, site);
    match extent {
        Extent::Fixed(16) => super::program::write(address, result, site),
        Extent::Fixed(width) => current::store(address, Width(width as u8), result[0], site),
        _ => current::store(address, Width(8), result[0], site),
    }
}

/// The characters up to `stop` were read, and the one that stopped it.
pub(crate) fn announce_number(string: usize, stop: usize, site: Site) {
    let read = if stop == string {
        strings::length(string).min(1)
    } else {
        stop - string
    };
    current::touch(string, read + 1, false, site);
}

/// Has the host make a string here, and copies what it made.
#[inline(never)]
fn make_text(row: &Row, call: &mut Call, (register, limit): (usize, usize), site: Site) {
    let limit = register_of(row.function, limit);
    let (to, room) = (call.words[register], call.words[limit]);
    let mut text = [0_u8; TEXT];
    call.words[register] = text.as_mut_ptr().expose_provenance();
    call.words[limit] = room.min(TEXT);
    invoke_host(row, call);
    let length = call.results[0];
    if length == 0 && text[0] != 0 {
        // It did not fit, and what is there then is not specified.
        if room > TEXT {
            let what = format!(
                "a result of more than {TEXT} bytes of {}",
                row.function.name
            );
            current::refuse(what, site);
        }
        return;
    }
    let made = room.min(length + 1);
    super::bytes::write(to, &text[..made], site);
}

/// Tells searches over states the arguments that do not come in general registers.
fn note_floats(function: &Function, call: &Call) {
    let mut at = function.words().count();
    let (mut float, mut stack) = (0, call.stack);
    let mut note = |word: u64| {
        // SAFETY: the gate is mapped while a program is loaded; no function of the table has more
        // words than it notes, which a test makes sure of.
        unsafe { (*gate()).arguments[at] = word as usize };
        at += 1;
    };
    for argument in &function.arguments {
        let Argument::Value { class, .. } = argument else {
            continue;
        };
        match class {
            Class::Word => {}
            Class::Float => {
                note(call.floats[float] & u64::from(u32::MAX));
                float += 1;
            }
            Class::Double => {
                note(call.floats[float]);
                float += 1;
            }
            Class::LongDouble => {
                // SAFETY: the caller's arguments on the stack; the value takes ten bytes.
                let [low, high] = unsafe { pointer::<[u64; 2]>(stack).read() };
                note(low);
                note(high & 0xffff);
                stack += 16;
            }
        }
    }
}

/// Calls the host's function, and takes over what it does to `errno`.
fn invoke_host(row: &Row, call: &mut Call) {
    let address = match row.address.load(Ordering::Relaxed) {
        0 => find(row),
        address => address,
    };
    // SAFETY: the host's function of this name, with the arguments that the program gave it. What
    // it may access was announced, or is the runtime's own; a wild address faults, and the fault is
    // the program's.
    let ((), number) = with_errno(|| unsafe { invoke(call, address) });
    if number != 0 {
        set_errno(number);
    }
}

/// Looks up where the host has the function of a row.
#[cold]
fn find(row: &Row) -> usize {
    let name = &row.function.name;
    // Newer headers rename functions.
    let plain = name.strip_prefix("__isoc23_").unwrap_or(name);
    let address = [&**name, plain].into_iter().map(symbol).find(|&a| a != 0);
    let Some(address) = address else {
        current::refuse(
            format!("{name}, which this system does not have"),
            current::site(),
        );
    };
    row.address.store(address, Ordering::Relaxed);
    address
}

fn symbol(name: &str) -> usize {
    let Ok(name) = CString::new(name) else {
        return 0;
    };
    let flags: c_int = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: valid strings; the library of mathematical functions has no constructors that matter.
    let found: *mut c_void = unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        match found.is_null() {
            true => libc::dlsym(libc::dlopen(c"libm.so.6".as_ptr(), flags), name.as_ptr()),
            false => found,
        }
    };
    found.expose_provenance()
}

#[cfg(test)]
mod tests {
    use super::super::registers::STACK_WORDS;
    use super::*;

    #[test]
    fn every_function_fits_the_gate() {
        for (name, _, words) in entries() {
            assert!(usize::from(words) <= WORDS, "{name}");
        }
        assert!(rows().all(|function| stack_words(function) <= STACK_WORDS));
        assert!(rows().all(|function| symbol(&function.name) != 0
            || function.name.starts_with("__isoc23_")
            || function.name.starts_with("pow10")));
    }
}

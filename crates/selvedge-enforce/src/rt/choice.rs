//! Choices and what else the verifier offers to programs: here the environment chooses.

use core::ffi::{c_char, c_int, c_uint};

use super::event;
use super::refresh;
use super::stub::stubs;
use super::sys;
use super::thread;

stubs![
    "selvedge_choose" => choose,
    "selvedge_range" => range,
    "__VERIFIER_nondet_bool" => nondet_bool,
    "selvedge_assume" => assume,
    "__VERIFIER_assume" => assume,
    "selvedge_assert" => assert,
    "selvedge_assert_fail" => assert_fail,
    "__VERIFIER_error" => error,
    "reach_error" => error,
    "selvedge_prop" => tell,
    "selvedge_progress" => tell,
];

extern "C" fn choose(alternatives: c_uint) -> c_uint {
    event::settle(thread::current());
    refresh::pick(alternatives)
}

extern "C" fn range(low: c_int, high: c_int) -> c_int {
    let alternatives = high.wrapping_sub(low).wrapping_add(1);
    low.wrapping_add_unsigned(choose(alternatives.max(1).cast_unsigned()))
}

extern "C" fn nondet_bool() -> bool {
    choose(2) == 1
}

/// Executions in which an assumption does not hold were not verified, and do not go on.
extern "C" fn assume(condition: c_int) {
    if condition == 0 {
        sys::complain(b"selvedge: an assumption of the program does not hold\n");
        // SAFETY: nothing to rely on.
        unsafe { sys::_exit(3) };
    }
}

extern "C" fn assert(condition: c_int) {
    if condition == 0 {
        fail(b"selvedge_assert failed\n");
    }
}

extern "C" fn assert_fail(_expression: *const c_char) {
    fail(b"assertion failed\n");
}

extern "C" fn error() {
    fail(b"an error was reached\n");
}

/// Propositions and progress marks are for formulas, and nobody asks about them here.
extern "C" fn tell() {}

fn fail(what: &[u8]) -> ! {
    sys::complain(what);
    // SAFETY: nothing to rely on.
    unsafe { sys::abort() }
}

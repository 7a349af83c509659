//! Choices and what else the verifier offers to programs: here the environment chooses.

use core::ffi::{CStr, c_char, c_int, c_uint};

use super::diverge;
use super::event;
use super::plan;
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
    "__wrap___assert_fail" => assertion_failed,
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

unsafe extern "C" {
    #[cfg_attr(not(test), link_name = "__real___assert_fail")]
    fn __assert_fail(
        expression: *const c_char,
        file: *const c_char,
        line: c_uint,
        function: *const c_char,
    ) -> !;
}

/// An assertion of the program fails, which it does in no proven execution.
extern "C" fn assertion_failed(
    expression: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) -> ! {
    if !plan::is_free() {
        // SAFETY: the C library's macro passes strings.
        let words = |text| unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?");
        diverge::refuse(format_args!(
            "the program left what was verified: the assertion `{}' at {}:{line} does not hold",
            words(expression),
            words(file),
        ));
    }
    // SAFETY: as the program asks.
    unsafe { __assert_fail(expression, file, line, function) }
}

fn fail(what: &[u8]) -> ! {
    if !plan::is_free() {
        diverge::refuse(format_args!(
            "the program left what was verified: an assertion does not hold"
        ));
    }
    sys::complain(what);
    // SAFETY: nothing to rely on.
    unsafe { sys::abort() }
}

//! Assertions, assumptions and choices.

use std::ffi::{c_int, c_uint};

use selvedge_core::{FailureKind, Op, Site};

use super::program::text;
use crate::current;
use crate::weak::{selvedge_fails_spuriously, selvedge_weak_exchange};

entry_points![
    __assert_fail(4),
    __assert_perror_fail(4),
    __assert(3),
    reach_error(0),
    __VERIFIER_error(0),
    __VERIFIER_assume(1),
    __VERIFIER_nondet_bool(0),
    selvedge_choose(1),
    selvedge_range(2),
    selvedge_assume(1),
    selvedge_assert(1),
    selvedge_assert_fail(1),
    selvedge_fails_spuriously(5),
    selvedge_weak_exchange(0),
];

fn fail_assertion(what: String, site: Site) -> ! {
    current::fail(FailureKind::Assertion, what, site)
}

fn choose(alternatives: u32, site: Site) -> u32 {
    if alternatives == 0 {
        current::refuse(String::from("a choice among no alternatives"), site);
    }
    current::perform(Op::Choose { alternatives }, site).read as u32
}

extern "C" fn __assert_fail(expression: usize, _file: usize, _line: c_uint, _function: usize) -> ! {
    let site = current::site();
    fail_assertion(format!("assertion failed: {}", text(expression)), site)
}

extern "C" fn __assert_perror_fail(
    number: c_int,
    _file: usize,
    _line: c_uint,
    _function: usize,
) -> ! {
    let site = current::site();
    let error = std::io::Error::from_raw_os_error(number);
    fail_assertion(format!("assertion failed: unexpected error: {error}"), site)
}

extern "C" fn __assert(expression: usize, _file: usize, _line: c_int) -> ! {
    let site = current::site();
    fail_assertion(format!("assertion failed: {}", text(expression)), site)
}

extern "C" fn reach_error() -> ! {
    fail_assertion(String::from("reach_error() was called"), current::site())
}

#[expect(non_snake_case, reason = "that is its name")]
extern "C" fn __VERIFIER_error() -> ! {
    fail_assertion(
        String::from("__VERIFIER_error() was called"),
        current::site(),
    )
}

#[expect(non_snake_case, reason = "that is its name")]
extern "C" fn __VERIFIER_assume(condition: c_int) {
    selvedge_assume(condition);
}

#[expect(non_snake_case, reason = "that is its name")]
extern "C" fn __VERIFIER_nondet_bool() -> bool {
    choose(2, current::site()) == 1
}

extern "C" fn selvedge_choose(alternatives: c_uint) -> c_uint {
    choose(alternatives, current::site())
}

extern "C" fn selvedge_range(low: c_int, high: c_int) -> c_int {
    let site = current::site();
    let alternatives = (i64::from(high) - i64::from(low) + 1).max(0);
    match u32::try_from(alternatives) {
        Ok(alternatives) => low.wrapping_add_unsigned(choose(alternatives, site)),
        Err(_) => current::refuse(String::from("a choice among all numbers"), site),
    }
}

extern "C" fn selvedge_assume(condition: c_int) {
    if condition == 0 {
        current::assume_false();
    }
}

extern "C" fn selvedge_assert(condition: c_int) {
    if condition == 0 {
        fail_assertion(String::from("selvedge_assert failed"), current::site());
    }
}

extern "C" fn selvedge_assert_fail(expression: usize) -> ! {
    let site = current::site();
    fail_assertion(format!("assertion failed: {}", text(expression)), site)
}

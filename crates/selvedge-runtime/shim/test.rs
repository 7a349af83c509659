//! Replaces Rust's test harness in programs that are checked.
//!
//! The harness starts a thread for each test and talks to it through channels, all of which a check would have to
//! explore. Here `main` calls the tests: the one that the first argument names, or all that are not ignored.

#![feature(test)]

extern crate test;

use std::panic::catch_unwind;
use test::{ShouldPanic, TestDescAndFn, TestFn, TestName};

#[unsafe(export_name = "test::test_main_static")]
pub fn run_tests(tests: &[&TestDescAndFn]) {
    let wanted = std::env::args().nth(1);
    let mut found = false;
    for test in tests {
        let chosen = match &wanted {
            Some(name) => matches!(test.desc.name, TestName::StaticTestName(known) if known == name),
            None => !test.desc.ignore,
        };
        if chosen {
            found = true;
            run(test);
        }
    }
    assert!(found || wanted.is_none(), "there is no such test");
}

fn run(test: &TestDescAndFn) {
    let TestFn::StaticTestFn(function) = test.testfn else {
        return;
    };
    let expected = match test.desc.should_panic {
        ShouldPanic::No => {
            if let Err(why) = function() {
                panic!("{why}");
            }
            return;
        }
        ShouldPanic::Yes => "",
        ShouldPanic::YesWithMessage(expected) => expected,
    };
    let Err(payload) = catch_unwind(function) else {
        panic!("test did not panic as expected");
    };
    let text = payload.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or_default();
    assert!(
        text.contains(expected),
        "panic did not contain expected string\n panic message: {text:?}\n expected substring: {expected:?}"
    );
}

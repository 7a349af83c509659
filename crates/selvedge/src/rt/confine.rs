//! Confinement of the tests that `cargo selvedge` runs.
//!
//! The thread that explores a model runs the program under test. It gives up what the program has no
//! use for before its first model, and keeps to that until it ends.

use std::cell::Cell;

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Confines this OS thread, if `cargo selvedge` asked for that.
pub(super) fn enter() {
    if std::env::var_os("SELVEDGE_CONFINE").is_none() || ENTERED.replace(true) {
        return;
    }
    if let Err(why) = confined() {
        eprintln!("selvedge unconfined: {why}");
    }
}

#[cfg(feature = "confine")]
fn confined() -> Result<(), String> {
    selvedge_confine::enter(false)
}

#[cfg(not(feature = "confine"))]
fn confined() -> Result<(), String> {
    Err("the feature `confine` of the library is off".to_owned())
}

/// The name of the system call with this number.
pub(super) fn call_name(number: i64) -> String {
    #[cfg(feature = "confine")]
    return selvedge_confine::call_name(number);
    #[cfg(not(feature = "confine"))]
    number.to_string()
}

//! Refuses functions that a program with enforced schedules must not call.
//!
//! A proof is for a program with its inputs. What a function brings in from outside is an input like a
//! choice, but nobody declares its alternatives: the verifier sees one answer, the executable gets
//! another, and then it runs executions that were never proven. Such functions are refused by name.
//! Arguments and the environment are checked when the executable runs.

use selvedge_runtime::symbols;

use crate::problem::Problem;

/// Functions that the verifier knows and the enforcement library does not, and what programs know them
/// by.
const MISSING: [(&str, &str); 4] = [
    ("syscall", "syscall"),
    ("selvedge_wait_join", "waiting for an atomic"),
    ("selvedge_wait_while", "std::counting_semaphore"),
    // Programs that wait need it as well.
    (
        "selvedge_wait_wake",
        "waking threads that wait for an atomic (std::jthread and std::stop_source do)",
    ),
];

/// The function that the scan puts in the place of `rdtsc`.
const CYCLES: &str = "selvedge_cycles";

/// Refuses a program that calls one of these functions. `needed` is what its objects do not define.
pub(super) fn check(needed: &[String]) -> Result<(), Problem> {
    let needs = |name: &str| needed.iter().any(|needed| needed == name);
    if let Some((_, what)) = MISSING.iter().find(|(name, _)| needs(name)) {
        return Err(
            Problem::request(format!("cannot enforce an order on {what}"))
                .note("the enforcement library has no such function"),
        );
    }
    let inputs = needed.iter().map(String::as_str);
    let mut inputs = inputs.filter_map(|name| match name {
        CYCLES => Some(("rdtsc", "the time")),
        _ => Some((name, symbols::input(name)?)),
    });
    match inputs.next() {
        None => Ok(()),
        Some((name, what)) => Err(Problem::request(format!(
            "cannot enforce proven schedules: the program asks for {what} ({name})"
        ))
        .note("the executable would get other answers than the proof, and leave what was proven")
        .help("make it an input: int n = selvedge_range(LOW, HIGH) in main; see docs/irs.md")),
    }
}

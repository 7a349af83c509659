//! A whole schedule in one line, in the manner of dejafu: `S0----S1--P0--`.
//!
//! `S` is a switch to a thread because the one before had ended or had to wait, `P` one that
//! preempts a thread that could have gone on, and each dash is a step.

use selvedge_core::witness::Switch;

/// Writes the schedule whose steps were taken by these threads.
pub(crate) fn line(steps: impl IntoIterator<Item = (u32, Switch)>) -> String {
    let mut line = String::new();
    for (n, (thread, switch)) in steps.into_iter().enumerate() {
        match switch {
            Switch::Preemption => line.push_str(&format!("P{thread}")),
            Switch::Free => line.push_str(&format!("S{thread}")),
            Switch::Same if n == 0 => line.push_str(&format!("S{thread}")),
            Switch::Same => {}
        }
        line.push('-');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_and_steps_make_one_line() {
        use Switch::{Free, Preemption, Same};
        let steps = [
            (0, Same),
            (0, Same),
            (1, Free),
            (1, Same),
            (0, Preemption),
            (0, Same),
        ];
        assert_eq!(line(steps), "S0--S1--P0--");
        assert_eq!(line([]), "");
    }
}

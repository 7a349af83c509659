//! `selvedge litmus`.

use crate::common::Sandbox;

const MP: &str = "\
C MP
{ x = 0; y = 0; }
P0 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(x, 1, memory_order_relaxed);
  atomic_store_explicit(y, 1, memory_order_relaxed);
}
P1 (atomic_int* x, atomic_int* y) {
  int r0 = atomic_load_explicit(y, memory_order_relaxed);
  int r1 = atomic_load_explicit(x, memory_order_relaxed);
}
exists (1:r0=1 /\\ 1:r1=0)
";

#[test]
fn final_states_are_told_as_herd_tells_them() {
    let sandbox = Sandbox::with("mp.litmus", MP);
    let told = sandbox.run(&["litmus", "mp.litmus"]);
    told.ends_with(0)
        .prints("Test MP Allowed\nStates 4\n")
        .prints("\nOk\nWitnesses\nPositive: 1 Negative: 3\n")
        .prints("Observation MP Sometimes 1 3\n");
    sandbox
        .run(&["litmus", "mp.litmus", "--model", "tso"])
        .ends_with(0)
        .prints("Observation MP Never 0 3\n");
}

#[test]
fn a_text_that_is_no_test_is_refused_with_its_line() {
    let text = MP.replace("int r1", "for r1");
    let sandbox = Sandbox::with("loop.litmus", &text);
    sandbox
        .run(&["litmus", "loop.litmus"])
        .ends_with(2)
        .says("loop.litmus:9: `for` is not supported");
    sandbox
        .run(&["litmus", "none.litmus"])
        .ends_with(2)
        .says("cannot read none.litmus");
}

//! `--unroll`: what counts as a round, and what the verdict says.

use crate::common::{Outcome, Sandbox, compilers};

const BEGINNING: &str = "
#include <assert.h>
#include <setjmp.h>
#include <stdatomic.h>
static atomic_int x;
static void inc(void) { x++; }
";

fn check(main: &str, options: &[&str], expect: impl Fn(&Outcome)) {
    let sandbox = Sandbox::with("loop.c", &format!("{BEGINNING}{main}"));
    for compiler in compilers() {
        let arguments = [&["verify", "loop.c", "--cc", compiler], options].concat();
        expect(&sandbox.run(&arguments));
    }
}

fn holds(main: &str, options: &[&str]) {
    check(main, options, |outcome| {
        outcome.ends_with(0).prints("verified: no execution fails");
    });
}

fn fails(main: &str, options: &[&str]) {
    check(main, options, |outcome| {
        outcome.ends_with(1).prints("bug: assertion failed");
    });
}

fn is_cut(main: &str, options: &[&str]) {
    check(main, options, |outcome| {
        outcome
            .ends_with(3)
            .prints("incomplete: no execution completed; no bug so far (0 executions");
    });
}

#[test]
fn calls_one_after_the_other_are_no_loop() {
    let main = "int main(void) { inc(); inc(); inc(); assert(x == 3); }";
    holds(main, &["--unroll", "2"]);
    fails(&main.replace("== 3", "!= 3"), &["--unroll", "2"]);
}

#[test]
fn a_loop_counts_what_the_functions_do_that_it_calls() {
    let main = "int main(void) { for (int i = 0; i < 3; i++) inc(); assert(0); }";
    is_cut(main, &["--unroll", "2"]);
    fails(main, &["--unroll", "3"]);
}

#[test]
fn a_loop_counts_anew_each_time_it_is_entered() {
    let nested = "int main(void) {
      for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) x++;
      assert(x == 9);
    }";
    let called = "static void f(void) { for (int j = 0; j < 3; j++) x++; }
      int main(void) { f(); f(); f(); assert(x == 9); }";
    let jumps = "int main(void) {
      int i = 0;
      one: x++; if (++i < 3) goto one;
      two: x++; if (++i < 6) goto two;
      assert(x == 6);
    }";
    for main in [nested, called, jumps] {
        holds(main, &["--unroll", "3"]);
        let wrong = main.replace("assert(x ==", "assert(x !=");
        fails(&wrong, &["--unroll", "3"]);
        is_cut(main, &["--unroll", "2"]);
    }
}

#[test]
fn rounds_without_a_visible_operation_do_not_count() {
    let main = "int main(void) {
      for (int i = 0; i < 100; i++) if (i == 99) x++;
      assert(0);
    }";
    fails(main, &["--unroll", "1"]);
}

#[test]
fn recursion_and_longjmp_make_loops() {
    let direct = "static int f(int n) { x++; return n < 2 ? n : f(n - 1) + f(n - 2); }
      int main(void) { assert(f(5) == 5); }";
    let others = "static int g(int n);
      static int f(int n) { x++; return n < 2 ? n : g(n); }
      static int g(int n) { return f(n - 1) + f(n - 2); }
      int main(void) { assert(f(5) == 5); }";
    for main in [direct, others] {
        holds(main, &["--unroll", "5"]);
        fails(&main.replace("== 5", "!= 5"), &["--unroll", "f=5"]);
        is_cut(main, &["--unroll", "4"]);
    }
    let endless = "static void f(void) { x++; f(); } int main(void) { f(); }";
    is_cut(endless, &["--unroll", "3"]);
    let main = "static jmp_buf back;
      static void leave(void) { x++; longjmp(back, 1); }
      int main(void) { volatile int n = 0; setjmp(back); if (n++ < 5) leave(); assert(0); }";
    is_cut(main, &["--unroll", "3"]);
    fails(main, &["--unroll", "6"]);
}

#[test]
fn a_function_can_have_a_bound_of_its_own() {
    let main = "static void f(void) { for (int j = 0; j < 3; j++) x++; }
      int main(void) { for (int i = 0; i < 5; i++) f(); assert(0); }";
    fails(main, &["--unroll", "f=3", "--unroll", "5"]);
    fails(main, &["--unroll", "f=3"]);
    is_cut(main, &["--unroll", "f=2"]);
    is_cut(main, &["--unroll", "f=3", "--unroll", "4"]);
    check(main, &["--unroll", "g=3"], |outcome| {
        outcome
            .ends_with(2)
            .says("--unroll g=3: the program has no function g");
    });
    let long = "static void f(void) { while (x < 4) x++; }
      int main(void) { if (x == 0) return 0; f(); }";
    check(long, &["--unroll", "f=2"], |outcome| {
        outcome.ends_with(0).prints("verified: no execution fails");
    });
}

#[test]
fn a_function_of_cxx_is_named_without_parameters() {
    let text = "#include <atomic>
      #include <cassert>
      std::atomic<int> x;
      namespace n { void f(int rounds) { for (int i = 0; i < rounds; i++) x++; } }
      int main() { n::f(4); assert(false); }";
    let sandbox = Sandbox::with("loop.cc", text);
    let run = |bound| sandbox.run(&["verify", "loop.cc", "--unroll", bound]);
    run("n::f=4").ends_with(1);
    run("n::f=3").ends_with(3);
}

#[test]
fn assumptions_that_never_hold_prove_nothing() {
    let main = "#include <selvedge.h>
      int main(void) { selvedge_assume(x == 1); assert(0); }";
    is_cut(main, &[]);
    fails(&main.replace("x == 1", "x == 0"), &[]);
}

#[test]
fn the_verdict_names_the_bounds() {
    let main = "#include <pthread.h>
      static atomic_int stop;
      static void *halt(void *unused) { stop = 1; return unused; }
      static void f(void) { while (!stop) x++; }
      int main(void) { pthread_t t; pthread_create(&t, 0, halt, 0); f(); pthread_join(t, 0); }";
    check(main, &["--unroll", "2", "--unroll", "f=3"], |outcome| {
        outcome.ends_with(0).prints(
            "verified with loops cut after 2 rounds, loops of f cut after 3 rounds (--unroll): no",
        );
    });
    let json = ["--unroll", "f=3", "--format", "json"];
    check(main, &json, |outcome| {
        let json = outcome.ends_with(0).json();
        assert_eq!(json["unroll_functions"]["f"], 3);
        assert!(json["unroll"].is_null());
    });
}

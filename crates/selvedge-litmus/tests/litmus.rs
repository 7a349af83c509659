//! Litmus tests as herd's users write them.

use selvedge_core::model::{Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::random::Random;
use selvedge_litmus::{Outcome, parse, run};
use selvedge_testkit::{damaged, damaged_inputs};

const SB: &str = r#"C SB+rlx
Com=Fr Fr
"PodWR Fre PodWR Fre"
{ [x] = 0; [y] = 0; }

P0 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(x, 1, memory_order_relaxed);
  int r0 = atomic_load_explicit(y, memory_order_relaxed);
}

P1 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(y, 1, memory_order_relaxed);
  int r0 = atomic_load_explicit(x, memory_order_relaxed);
}

exists (0:r0=0 /\ 1:r0=0)
"#;

fn all(text: &str) -> [Outcome; 4] {
    let test = parse(text).unwrap_or_else(|error| panic!("{error}"));
    [
        run::<SequentialConsistency>(&test),
        run::<TotalStoreOrder>(&test),
        run::<ReleaseAcquire>(&test),
        run::<Rc11>(&test),
    ]
}

fn positive(text: &str) -> [usize; 4] {
    all(text).map(|outcome| outcome.witnesses().0)
}

#[test]
fn what_is_observed_is_told_as_herd_tells_it() {
    let [sc, .., rc11] = all(SB);
    assert_eq!(
        rc11.to_string(),
        "Test SB+rlx Allowed\n\
         States 4\n\
         0:r0=0; 1:r0=0;\n\
         0:r0=0; 1:r0=1;\n\
         0:r0=1; 1:r0=0;\n\
         0:r0=1; 1:r0=1;\n\
         Ok\n\
         Witnesses\n\
         Positive: 1 Negative: 3\n\
         Condition exists (0:r0=0 /\\ 1:r0=0)\n\
         Observation SB+rlx Sometimes 1 3\n"
    );
    assert_eq!((sc.states.len(), sc.is_validated()), (3, false));
    assert!(sc.to_string().ends_with("Observation SB+rlx Never 0 3\n"));
}

#[test]
fn orders_and_fences_count() {
    assert_eq!(positive(SB), [0, 1, 1, 1]);
    let strong = SB.replace("memory_order_relaxed", "memory_order_seq_cst");
    assert_eq!(positive(&strong), [0, 0, 1, 0]);
    let fenced = SB.replace(
        "  int",
        "  atomic_thread_fence(memory_order_seq_cst);\n  int",
    );
    assert_eq!(positive(&fenced), [0, 0, 1, 0]);
}

#[test]
fn branches_updates_and_plain_accesses() {
    let text = r"C MP+cas (* a comment *)
{ int x = 0; y = 0; 1:r2 = 7; }
P0 (int* x, volatile int* y) { *x = 41 + 1; atomic_fetch_add_explicit(y, 1, memory_order_release); }
P1 (int* x, volatile int* y) {
  int e = 1;
  int r0 = atomic_compare_exchange_strong_explicit(y, &e, 2, memory_order_acquire, memory_order_relaxed);
  if (r0 == 1 && e == 1) { r2 = *x; } else r2 = -1;
}
locations [y; 1:r0;]
~exists (1:r2=0 \/ not (1:r2=42 \/ 1:r2=-1))
";
    for outcome in all(text) {
        assert!(outcome.is_validated(), "{outcome}");
        assert_eq!(outcome.states.len(), 2, "{outcome}");
        assert_eq!(outcome.names, ["1:r0", "1:r2", "[y]"]);
        assert!(outcome.to_string().starts_with("Test MP+cas Forbidden\n"));
    }
    let relaxed = text.replace("memory_order_release", "memory_order_relaxed");
    assert_eq!(
        all(&relaxed).map(|outcome| outcome.is_validated()),
        [true, true, true, false]
    );
}

#[test]
fn a_condition_may_be_about_all_states() {
    let text = "C 2+coherence {} P0 (int* x) { *x = 1; *x = 2; } forall ([x]=2)";
    for outcome in all(text) {
        let told = outcome.to_string();
        assert!(
            told.starts_with("Test 2+coherence Required\nStates 1\n[x]=2;\nOk\n"),
            "{told}"
        );
        assert!(
            told.ends_with("Observation 2+coherence Always 1 0\n"),
            "{told}"
        );
    }
}

#[test]
fn what_is_not_understood_is_named_with_its_line() {
    for (text, message) in [
        ("PPC SB", "line 1: a test in C begins with `C` and its name"),
        (
            "C t {}\nP0 (int* x) {\n while (1) {} }",
            "line 3: `while` is not supported",
        ),
        (
            "C t {} P0 (int* x) { spin_lock(x); }",
            "line 1: `spin_lock` is not supported",
        ),
        (
            "C t {} P0 (int* x) { int r0 = *z; }",
            "line 1: `z` is no shared variable",
        ),
        (
            "C t {} P0 (int* x) { *x = 1 }",
            "line 1: `;` is expected, not `}`",
        ),
        (
            "C t {}\nP0 (int* x) { *x = 1; }\nexists (1:r0=0)",
            "line 3: there is no thread 1",
        ),
        (
            "C t {} P0 (int* x) { *x = 1; } exists (x=1) P1",
            "line 1: the test ends before `P1`",
        ),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let (n, opened, closed) = (10_000, "(".repeat(10_000), ")".repeat(10_000));
    let body = |text: String| format!("C t {{}} P0 (int* x) {{ {text} }} exists (x=1)");
    let asked = |text: String| format!("C t {{}} P0 (int* x) {{ *x = 1; }} exists {text}");
    for text in [
        body(format!("int r = {opened}1{closed};")),
        body(format!("int r = {}1;", "!".repeat(n))),
        body(format!("int r = {}1;", "(int)".repeat(n))),
        body(format!("int r = 1{};", "+1".repeat(n))),
        body(format!("int r = 1{};", "*1".repeat(n))),
        body(format!("{}{}", "{".repeat(n), "}".repeat(n))),
        body(format!("{} *x = 1;", "if (1)".repeat(n))),
        body(format!("{} ;", "if (1) ; else ".repeat(n))),
        asked(format!("{opened}x=1{closed}")),
        asked(format!("({}x=1)", "~".repeat(n))),
        asked(format!("(x=1{})", "/\\ x=1".repeat(n))),
        asked(format!("(x=1{})", "\\/ x=1".repeat(n))),
    ] {
        let error = parse(&text).expect_err("it is too deep");
        assert_eq!(error.to_string(), "line 1: this is nested too deeply");
    }
    assert!(parse(&body(format!("int r = 1{};", "+1".repeat(100)))).is_ok());
}

#[test]
fn damaged_tests_are_refused_or_read_but_never_fatal() {
    let other = "C t {} P0 (int* x) { if (*x == 1) { *x = 2; } else { int r = -1 * (2 + 3); } }\n\
                 P1 (volatile int* x) { int r1 = atomic_fetch_add(x, 1); } forall (x=1 /\\ ~0:r=2)";
    let samples = [SB.as_bytes(), other.as_bytes()];
    let words = [
        "(", ")", "{", "}", "!", "-", "~", "if (1)", "else", "/\\", "P9", "*", "[x]",
    ];
    let mut random = Random::new(1);
    for _ in 0..damaged_inputs(5_000) {
        let bytes = damaged(&mut random, &samples, &words);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = parse(text);
        }
    }
}

/// A text of a megabyte is read in a moment, whatever is in it.
#[test]
fn long_texts_are_read_in_linear_time() {
    let beginning = "C long\n{}\nP0 (atomic_int* x) {\n";
    let end = "}\nexists (x=0)\n";
    let begin = std::time::Instant::now();
    let stores = "  atomic_store_explicit(x, 1, memory_order_relaxed);\n".repeat(20_000);
    let text = [beginning, &stores, end].concat();
    assert_eq!(selvedge_litmus::parse(&text).unwrap().operations(), 20_000);
    for filling in ["\n", " ", ";", "// x\n", "(* x *)"] {
        let text = [beginning, &filling.repeat((1 << 20) / filling.len()), "$"].concat();
        let error = selvedge_litmus::parse(&text).unwrap_err();
        let lines = text.matches('\n').count();
        assert_eq!(error.line, 1 + lines, "{filling}");
    }
    // With lines counted anew for each token it would be a quarter of an hour.
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}

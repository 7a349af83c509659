//! Plain accesses as events.

use std::collections::BTreeSet;

use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, Ending, NoObserver};
use selvedge_core::{Machine, Op, ThreadId};
use selvedge_runtime::Settings;

use crate::common::driver::{Driver, every_interleaving};
use crate::common::ends::{End, end, ends, plain_sc, refusal};
use crate::common::{Build, CLANG, GCC, Program, isolated};

/// A program whose threads do `bodies`, one each; main starts and joins them, then does `after`.
fn program(globals: &str, bodies: &[&str], after: &str) -> String {
    let mut source = format!(
        "#include <pthread.h>\n#include <stdatomic.h>\n#include <string.h>\n\
         #include <stdlib.h>\n{globals}\n"
    );
    for (i, body) in bodies.iter().enumerate() {
        source += &format!("static void *f{i}(void *p) {{ {body}; return 0; }}\n");
    }
    source += "int main(void) {\n";
    for i in 0..bodies.len() {
        source += &format!("pthread_t t{i}; pthread_create(&t{i}, 0, f{i}, 0);\n");
    }
    for i in 0..bodies.len() {
        source += &format!("pthread_join(t{i}, 0);\n");
    }
    source + after + "return 0; }"
}

fn executions(build: Build, source: &str) -> u64 {
    let program = Program::build(build, source);
    let mut machine = program.load(plain_sc());
    let report = trust::search::<SequentialConsistency, _>(
        &mut machine,
        trust::Settings::default(),
        &mut NoObserver,
    );
    assert_eq!(report.ending, Ending::Complete);
    assert!(report.bugs.is_empty(), "{:?}", report.bugs);
    report.counts.executions
}

#[test]
fn increments_have_the_known_numbers_of_executions() {
    isolated("increments_have_the_known_numbers_of_executions", || {
        let twice = "x++; x++";
        let micro = "x++; x++; int y = x";
        for build in Build::installed(&[GCC, CLANG]) {
            assert_eq!(executions(build, &program("int x;", &[twice; 2], "")), 34);
            assert_eq!(executions(build, &program("int x;", &[twice; 3], "")), 7134);
        }
        assert_eq!(executions(GCC, &program("int x;", &[micro; 3], "")), 51318);
    });
}

/// The final values of a global in all interleavings.
fn results(build: Build, source: &str) -> BTreeSet<u128> {
    let program = Program::build(build, source);
    let mut machine = program.load(plain_sc());
    let mut results = BTreeSet::new();
    every_interleaving(&mut machine, |machine, driver| {
        assert_eq!(
            end(machine),
            End::Complete,
            "{:?} {:?}",
            machine.failure(),
            machine.refusal()
        );
        let stores = driver
            .steps
            .iter()
            .filter(|(thread, ..)| *thread == ThreadId::MAIN);
        let mut last = stores.filter_map(|(_, op, _)| match op {
            Op::Store { value, .. } => Some(*value),
            _ => None,
        });
        results.insert(last.next_back().expect("main stores the result"));
    });
    results
}

#[test]
fn an_increment_is_a_read_and_a_write() {
    isolated("an_increment_is_a_read_and_a_write", || {
        for build in Build::installed(&[GCC, CLANG]) {
            let source = program("int x, r;", &["x++", "x++"], "r = x;");
            assert_eq!(results(build, &source), BTreeSet::from([1, 2]));
            let source = program(
                "short x[3]; int r;",
                &["x[1] += 5", "x[1] *= 3"],
                "r = x[1];",
            );
            assert_eq!(results(build, &source), BTreeSet::from([0, 5, 15]));
        }
    });
}

/// gcc announces the write of `x = y` before the read of `y`, and makes both after that.
#[test]
fn the_value_of_a_copied_aggregate_is_the_one_copied() {
    isolated("the_value_of_a_copied_aggregate_is_the_one_copied", || {
        let globals = "struct s { long v; } x = { 1 }, y = { 2 }; long r;";
        let expected = BTreeSet::from([2, 7]);
        for build in Build::installed(&[GCC, CLANG]) {
            let source = program(globals, &["y.v = 7", "x = y"], "r = x.v;");
            if build == GCC {
                assert_eq!(results(build, &source), expected, "{build:?}");
            }
            let local = "struct s l, *q = &l, **volatile w = &q; *q = y; x = l";
            let source = program(globals, &["y.v = 7", local], "r = x.v;");
            if build == GCC {
                assert_eq!(results(build, &source), expected, "{build:?}");
            }
        }
    });
}

#[test]
fn an_aggregate_with_visible_members_is_accessed_member_by_member() {
    isolated(
        "an_aggregate_with_visible_members_is_accessed_member_by_member",
        || {
            let globals = "struct s { int a; char b; long c[4]; } x, y; long r;";
            let fields = "x.a = 1; x.b = 2; x.c[3] = 4";
            let after = "y.a = 5; y.c[3] = 9; y = x; r = y.a + y.b + y.c[3];
                     memset(&y, 1, sizeof y); r += (y.a == 0x01010101) + y.c[2] % 2;";
            for build in Build::installed(&[GCC, CLANG]) {
                let source = program(globals, &[fields], after);
                assert_eq!(results(build, &source), BTreeSet::from([9]), "{build:?}");
            }
        },
    );
}

#[test]
fn aggregates_that_nothing_orders_are_refused() {
    isolated("aggregates_that_nothing_orders_are_refused", || {
        let globals = "struct s { long a[5]; } x, y;";
        for build in Build::installed(&[GCC, CLANG]) {
            for one in ["x = y", "memset(&x, 0, sizeof x)"] {
                let source = program(globals, &[one, "x.a[2] = 1"], "");
                let ends = ends(build, &source, plain_sc());
                assert_eq!(ends, BTreeSet::from([End::Refused]), "{build:?} {one}");
                let source = program(globals, &[one, "x = y"], "");
                let why = refusal(build, &source, plain_sc());
                assert!(why.contains("that nothing orders"), "{why}");
            }
        }
    });
}

#[test]
fn mixed_sizes_that_nothing_orders_are_refused() {
    isolated("mixed_sizes_that_nothing_orders_are_refused", || {
        let globals = "union { long l; int i[2]; } x; atomic_long *const q = (atomic_long *)&x;";
        for build in Build::installed(&[GCC, CLANG]) {
            let ordered = program(globals, &["x.l = 1; x.i[1] = 1"], "");
            let complete = BTreeSet::from([End::Complete]);
            assert_eq!(ends(build, &ordered, plain_sc()), complete);
            let racing = program(globals, &["x.l = 1", "x.i[1] = 1"], "");
            let refused = BTreeSet::from([End::Refused]);
            assert_eq!(ends(build, &racing, plain_sc()), refused);
            let atomic = program(globals, &["atomic_store(q, 1); x.i[1] = 1"], "");
            assert_eq!(ends(build, &atomic, Settings::default()), complete);
            let halves = "((atomic_int *)&x)[1] = 2";
            let racing = program(globals, &["atomic_store(q, 1)", halves], "");
            let why = refusal(build, &racing, Settings::default());
            assert!(why.starts_with("mixed-size accesses: "), "{why}");
            assert!(why.ends_with("that nothing orders"), "{why}");
        }
    });
}

/// Variables on a stack are events from the moment another thread can know where they are, whether
/// or not it has looked yet.
#[test]
fn locals_are_events_once_they_are_shared() {
    isolated("locals_are_events_once_they_are_shared", || {
        let source = |publish: &str, start: &str, argument: &str| {
            format!(
                "#include <pthread.h>
                 #include <stdatomic.h>
                 int **where; _Atomic(int *) pointer;
                 int r;
                 static void *add(void *p) {{ *(int *)p += 1; return 0; }}
                 static void *find(void *p) {{ int *x = pointer; if (x) *x += 1; return 0; }}
                 int main(void) {{
                     int x = 0, *at = &x;
                     pthread_t a;
                     *at = 5;
                     {publish};
                     pthread_create(&a, 0, {start}, {argument});
                     *at += 2;
                     pthread_join(a, 0);
                     r = x;
                     return 0;
                 }}"
            )
        };
        for build in Build::installed(&[GCC, CLANG]) {
            let passed = source("", "add", "&x");
            assert_eq!(
                results(build, &passed),
                BTreeSet::from([6, 7, 8]),
                "{build:?}"
            );
            let stored = source("pointer = &x", "find", "0");
            assert_eq!(
                results(build, &stored),
                BTreeSet::from([6, 7, 8]),
                "{build:?}"
            );
            let private = source("", "add", "&r");
            let program = Program::build(build, &private);
            let mut machine = program.load(plain_sc());
            let driver = Driver::first(&mut machine);
            let main = driver
                .steps
                .iter()
                .filter(|(thread, ..)| *thread == ThreadId::MAIN);
            assert_eq!(
                main.count(),
                3,
                "create, join, and the result: {:?}",
                driver.steps
            );
        }
    });
}

#[test]
fn volatile_accesses_are_events_in_both_modes() {
    isolated("volatile_accesses_are_events_in_both_modes", || {
        let source = program("volatile int x; int r;", &["x++", "x++"], "r = x; x = r;");
        for build in Build::installed(&[GCC, CLANG]) {
            assert_eq!(results(build, &source), BTreeSet::from([1, 2]));
            let ends = ends(build, &source, Settings::default());
            assert_eq!(ends, BTreeSet::from([End::Complete]));
        }
    });
}

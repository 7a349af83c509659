//! Data races are found in every interleaving, and nothing else is called one.

use std::collections::BTreeSet;

use selvedge_core::FailureKind::DataRace;
use selvedge_core::ThreadId;
use selvedge_runtime::Settings;

use crate::common::ends::{End, ends, failure};
use crate::common::{Build, CLANG, GCC, isolated};

/// A program with two threads, `one` and `two`, over `globals`.
fn program(globals: &str, one: &str, two: &str) -> String {
    format!(
        "#include <pthread.h>
         #include <stdatomic.h>
         #include <string.h>
         {globals}
         static void *one(void *p) {{ {one}; return 0; }}
         static void *two(void *p) {{ {two}; return 0; }}
         int main(void) {{
             pthread_t a, b;
             pthread_create(&a, 0, one, 0);
             pthread_create(&b, 0, two, 0);
             pthread_join(a, 0);
             pthread_join(b, 0);
             return 0;
         }}"
    )
}

fn race_in_every_interleaving(source: &str) {
    for build in Build::installed(&[GCC, CLANG]) {
        let ends = ends(build, source, Settings::default());
        assert_eq!(
            ends,
            BTreeSet::from([End::Failed(DataRace)]),
            "{build:?} {source}"
        );
    }
}

fn no_race(source: &str) {
    for build in Build::installed(&[GCC, CLANG]) {
        let ends = ends(build, source, Settings::default());
        assert_eq!(ends, BTreeSet::from([End::Complete]), "{build:?} {source}");
    }
}

#[test]
fn two_conflicting_plain_accesses_race() {
    isolated("two_conflicting_plain_accesses_race", || {
        race_in_every_interleaving(&program("int x;", "x = 1", "x = 2"));
        race_in_every_interleaving(&program("int x, y;", "x = 1", "y = x"));
        race_in_every_interleaving(&program("char c;", "c++", "c++"));
        race_in_every_interleaving(&program("__int128 i;", "i = 1", "i = 2"));
    });
}

#[test]
fn accesses_that_do_not_conflict_do_not_race() {
    isolated("accesses_that_do_not_conflict_do_not_race", || {
        no_race(&program("int x = 3;", "int y = x", "int y = x"));
        no_race(&program("int x[2];", "x[0] = 1", "x[1] = 1"));
        no_race(&program(
            "char x[8];",
            "x[3] = 1; x[5] = 2",
            "x[4] = 1; x[6] = x[7]",
        ));
        no_race(&program("static __thread int x;", "x = 1", "x = 2"));
    });
}

#[test]
fn accesses_of_different_extent_race_where_they_overlap() {
    isolated(
        "accesses_of_different_extent_race_where_they_overlap",
        || {
            let both = "union { int i[2]; char c[8]; long l; } x;";
            race_in_every_interleaving(&program(both, "x.l = 1", "x.c[6] = 2"));
            race_in_every_interleaving(&program(both, "x.c[6] = 2", "x.l = 1"));
            race_in_every_interleaving(&program(both, "x.i[1] = 1", "char c = x.c[7]"));
            no_race(&program(both, "x.i[0] = 1", "x.c[7] = 2"));
            let packed = "struct { char c; long l; char d; } __attribute__((packed)) x
                      __attribute__((aligned(8)));";
            race_in_every_interleaving(&program(packed, "x.l = 1", "x.l = 2"));
            no_race(&program(packed, "x.l = 1", "x.c = 2; x.d = 3"));
        },
    );
}

#[test]
fn a_plain_access_races_with_an_atomic_one_if_either_writes() {
    isolated(
        "a_plain_access_races_with_an_atomic_one_if_either_writes",
        || {
            let x = "_Atomic int x; int *const q = (int *)&x;";
            race_in_every_interleaving(&program(x, "*q = 1", "atomic_load(&x)"));
            race_in_every_interleaving(&program(x, "*q = 1", "atomic_store(&x, 2)"));
            race_in_every_interleaving(&program(x, "int y = *q", "atomic_store(&x, 2)"));
            race_in_every_interleaving(&program(x, "int y = *q", "atomic_fetch_add(&x, 2)"));
            no_race(&program(x, "int y = *q", "atomic_load(&x)"));
            no_race(&program(x, "atomic_store(&x, 1)", "atomic_store(&x, 2)"));
            no_race(&program(
                x,
                "int e = 5; atomic_compare_exchange_strong(&x, &e, 6)",
                "int y = *q",
            ));
        },
    );
}

/// Only gcc leaves this to the callback.
#[test]
fn what_a_compare_exchange_expects_can_race() {
    isolated("what_a_compare_exchange_expects_can_race", || {
        let globals = "atomic_int x; int e = 0;";
        let exchange = "atomic_compare_exchange_strong(&x, &e, 6)";
        race_in_every_interleaving(&program(globals, exchange, "e = 1"));
        race_in_every_interleaving(&program("atomic_int x; int e = 3;", exchange, "int f = e"));
        no_race(&program(globals, exchange, "int f = e"));
    });
}

#[test]
fn synchronisation_orders_accesses() {
    isolated("synchronisation_orders_accesses", || {
        let mutex = "int x; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
        let locked = "pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m)";
        no_race(&program(mutex, locked, locked));
        race_in_every_interleaving(&program(mutex, locked, "x++"));
        let flag = "int x; atomic_int f;";
        let reader = "if (atomic_load(&f)) x++";
        no_race(&program(flag, "x = 1; atomic_store(&f, 1)", reader));
    });
}

#[test]
fn an_unordered_publication_races_only_where_it_is_read() {
    isolated(
        "an_unordered_publication_races_only_where_it_is_read",
        || {
            let flag = "int x; atomic_int f;";
            let source = program(
                flag,
                "atomic_store(&f, 1); x = 1",
                "if (atomic_load(&f)) x++",
            );
            let ends = ends(GCC, &source, Settings::default());
            assert_eq!(ends, BTreeSet::from([End::Complete, End::Failed(DataRace)]));
        },
    );
}

#[test]
fn ranges_race_like_scalars() {
    isolated("ranges_race_like_scalars", || {
        let s = "struct s { long a, b, c, d, e; } x, y, z; char t[40];";
        race_in_every_interleaving(&program(s, "x = y", "x.d = 1"));
        race_in_every_interleaving(&program(s, "x = y", "y.e = 1"));
        race_in_every_interleaving(&program(s, "memset(&x, 0, sizeof x)", "x.b = 1"));
        race_in_every_interleaving(&program(s, "memcpy(t, &x, 40)", "x.e = 1"));
        race_in_every_interleaving(&program(s, "memmove(&x, t, 33)", "z = x"));
        no_race(&program(s, "x = y", "z = y"));
        no_race(&program(s, "memcpy(t, &x, 32)", "t[32] = 1; z = x"));
    });
}

#[test]
fn a_variable_on_a_stack_can_race_too() {
    isolated("a_variable_on_a_stack_can_race_too", || {
        let source = |after: &str| {
            format!(
                "#include <pthread.h>
                 static void *worker(void *p) {{ *(int *)p = 1; return 0; }}
                 int main(void) {{
                     int x = 0;
                     pthread_t a;
                     pthread_create(&a, 0, worker, &x);
                     {after}
                     return x;
                 }}"
            )
        };
        race_in_every_interleaving(&source("x = 2; pthread_join(a, 0);"));
        no_race(&source("pthread_join(a, 0); x = 2;"));
    });
}

#[test]
fn many_readers_are_remembered() {
    isolated("many_readers_are_remembered", || {
        let source = |before: &str, after: &str| {
            format!(
                "#include <pthread.h>
                 int x, y[9];
                 static void *reader(void *p) {{ y[(long)p] = x; return 0; }}
                 static void *middle(void *p) {{
                     pthread_t a[7];
                     for (long i = 0; i < 7; i++) pthread_create(a + i, 0, reader, (void *)i);
                     {before}
                     for (long i = 0; i < 7; i++) pthread_join(a[i], 0);
                     {after}
                     return 0;
                 }}
                 int main(void) {{ middle(0); return 0; }}"
            )
        };
        for build in Build::installed(&[GCC, CLANG]) {
            let failure = failure(build, &source("x = 1;", ""), Settings::default());
            assert_eq!(failure.kind, DataRace);
        }
        let program = crate::common::Program::build(GCC, &source("", "x = 1;"));
        let mut machine = program.load(Settings::default());
        crate::common::driver::Driver::first(&mut machine);
        assert_eq!(crate::common::ends::end(&machine), End::Complete);
    });
}

#[test]
fn a_race_is_reported_with_both_sides_and_the_name() {
    isolated("a_race_is_reported_with_both_sides_and_the_name", || {
        let source = program("long total[4];", "total[1] = 1", "total[1]++");
        let program = crate::common::Program::build(GCC, &source);
        let mut machine = program.load(Settings::default());
        crate::common::driver::Driver::last(&mut machine);
        let failure = selvedge_core::Machine::failure(&machine).expect("a race");
        assert_eq!(failure.thread, ThreadId(2));
        assert_eq!(
            failure.message,
            "read of 8 bytes and write of 8 bytes of `total` at offset 8 are not ordered"
        );
        let other = failure.other.expect("the other side");
        assert_eq!(other.thread, ThreadId(1));
        assert_eq!(other.what, "write of 8 bytes");
        assert!(other.site.0 > machine.load_base());
        assert_ne!(other.site, failure.site);
    });
}

#[test]
fn a_location_that_becomes_atomic_keeps_its_value() {
    isolated("a_location_that_becomes_atomic_keeps_its_value", || {
        let source = "
            #include <pthread.h>
            #include <stdatomic.h>
            #include <stdlib.h>
            _Atomic int x;
            static void *worker(void *p) { atomic_fetch_add(&x, 5); return 0; }
            int main(void) {
                int *plain = (int *)&x;
                pthread_t a, b;
                *plain = 10;
                pthread_create(&a, 0, worker, 0);
                pthread_create(&b, 0, worker, 0);
                pthread_join(a, 0);
                pthread_join(b, 0);
                if (*plain != 20) abort();
                *plain = 30;
                if (*plain != 30) abort();
                if (atomic_load(&x) != 30) abort();
                *plain += 1;
                if (atomic_exchange(&x, 3) != 31) abort();
                return 0;
            }";
        no_race(source);
    });
}

//! Accesses that compilers forget to announce, or announce in another form.

use super::{each, pair, refused_with};
use crate::common::compilers;

#[track_caller]
fn races(declarations: &str, one: &str, other: &str) {
    each(&pair(declarations, one, other), &[], |compiler, outcome| {
        assert_eq!(outcome.status, Some(1), "{compiler}: {outcome:?}");
        outcome.prints("bug: data race");
    });
}

/// A structure, functions that take and make one, and a shared one.
const BIG: &str = "struct big { long words[8]; };
    struct big shared, *pointer = &shared;
    __attribute__((noinline)) long sum(struct big b) { return b.words[0] + b.words[7]; }
    __attribute__((noinline)) struct big make(void) { struct big b = {{1, 2}}; return b; }
    struct big (*volatile maker)(void) = make;";

#[test]
fn structures_passed_by_value_are_seen() {
    races(BIG, "sum(shared)", "shared.words[3] = 1");
    races(BIG, "sum(*pointer)", "shared.words[3] = 1");
    races(
        "struct small { int a; } shared;
         __attribute__((noinline)) int get(struct small s) { return s.a; }",
        "get(shared)",
        "shared.a = 1",
    );
    races(
        "struct huge { long words[100]; } shared;
         __attribute__((noinline)) long get(struct huge h) { return h.words[99]; }",
        "get(shared)",
        "shared.words[50] = 1",
    );
    races(
        "#include <stdarg.h>
         struct big { long words[8]; } shared;
         long get(int n, ...) {
             va_list list;
             va_start(list, n);
             struct big b = va_arg(list, struct big);
             va_end(list);
             return b.words[n];
         }",
        "get(1, shared)",
        "shared.words[3] = 1",
    );
}

#[test]
fn an_earlier_access_announces_no_later_one() {
    races(
        &format!("{BIG} pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;"),
        "pthread_mutex_lock(&m); shared = (struct big){ 0 }; pthread_mutex_unlock(&m); sum(shared)",
        "pthread_mutex_lock(&m); shared.words[3] = 1; pthread_mutex_unlock(&m)",
    );
}

#[test]
fn structures_returned_into_shared_memory_are_seen() {
    races(BIG, "shared = make()", "shared.words[3] = 1");
    races(BIG, "*pointer = maker()", "shared.words[3] = 1");
    races(
        "struct pair { long a, b; } shared;
         __attribute__((noinline)) struct pair make(void) { return (struct pair){ 1, 2 }; }",
        "shared = make()",
        "shared.b = 1",
    );
}

#[test]
fn odd_types_are_seen() {
    let number = "long double shared, other = 2;";
    races(number, "shared = 1", "shared = 2");
    races(number, "other = other * shared + 1", "shared = 2");
    races("_Complex long double shared;", "shared += 1", "shared = 2");
    races("__int128 shared;", "shared += 1", "shared = 2");
    let vector = "typedef int vector __attribute__((vector_size(32))); vector shared;";
    races(vector, "shared += 1", "shared[5] = 2");
    races(
        "struct fields { unsigned a : 3, b : 7, c : 20; } shared;",
        "shared.b = 1",
        "shared.c = 2",
    );
    races(
        "struct big { long words[8]; } copy; volatile struct big shared;",
        "copy = *(struct big *)&shared",
        "*(long *)&shared.words[3] = 1",
    );
}

/// Two threads that meet on a local variable of the first: `one` makes it known and accesses it,
/// `other` accesses it through the pointer `known`.
#[track_caller]
fn races_on_a_local(declarations: &str, one: &str, other: &str) {
    races(
        &format!("{declarations} static atomic_int stage;"),
        &format!("{one}; while (stage != 2) {{}}"),
        &format!("while (stage != 1) {{}} {other}; stage = 2"),
    );
}

#[test]
fn parts_of_locals_that_escape_are_seen() {
    races_on_a_local(
        "struct pair { long a, b; } *known;",
        "struct pair mine = { 0, 0 }; known = &mine; stage = 1; mine.b = 1",
        "known->b = 2",
    );
    races_on_a_local(
        "int *known;",
        "int mine[4] = { 0 }; known = mine; stage = 1; mine[2] = 1",
        "known[2] = 2",
    );
    let big = format!("{BIG} struct big *known;");
    races_on_a_local(
        &big,
        "struct big mine = { 0 }; known = &mine; stage = 1; sum(mine)",
        "known->words[3] = 2",
    );
    races_on_a_local(
        &big,
        "struct big mine; known = &mine; stage = 1; mine = make()",
        "known->words[3] = 2",
    );
    races_on_a_local(
        &format!("{big} static __thread struct big mine;"),
        "known = &mine; stage = 1; sum(mine)",
        "known->words[3] = 2",
    );
}

#[test]
fn vectors_that_no_callback_preserves() {
    let text = "typedef int vector __attribute__((vector_size(32)));
vector shared;
__attribute__((target(\"avx\"))) static void set(void) {
    shared += 1;
}
int main(void) { set(); return shared[0] - 1; }
";
    if compilers().contains(&"clang") {
        let reason = "4: `set` has an access that the compiler does not announce";
        refused_with("clang", text, reason);
    }
}

/// The same accesses in a program that is right: announcing them changes neither results nor
/// verdicts.
#[test]
fn what_is_announced_goes_on_as_before() {
    let text = pair(
        &format!(
            "{BIG} pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
             long double number = 1; double scale = 0.5; int turns;
             __attribute__((noinline)) double mix(double a, struct big b, long double c, double d) {{
                 return a + (double)b.words[1] + (double)c * d;
             }}"
        ),
        "pthread_mutex_lock(&m);
         shared = make();
         number = number * 3 + (long double)shared.words[0] * number;
         double got = mix(scale, shared, number, scale * 3);
         assert(got == 0.5 + 2 + (turns++ ? 16 : 4) * 1.5);
         pthread_mutex_unlock(&m)",
        "pthread_mutex_lock(&m);
         *pointer = maker();
         number = number * 3 + (long double)shared.words[0] * number;
         double got = mix(scale, *pointer, number, scale * 3);
         assert(got == 0.5 + 2 + (turns++ ? 16 : 4) * 1.5);
         pthread_mutex_unlock(&m)",
    );
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        each(&text, &["--", level], |compiler, outcome| {
            assert_eq!(outcome.status, Some(0), "{compiler} {level}: {outcome:?}");
            outcome.prints("2 executions");
        });
    }
}

/// Clang leaves an atomic load in beside its callback, and optimisation moves it away from there.
#[test]
fn loads_that_nobody_reads_are_no_accesses() {
    let text = include_str!("../../../../../examples/c/dekker.c");
    for level in ["-O1", "-O2"] {
        each(text, &["--", level], |compiler, outcome| {
            assert_eq!(outcome.status, Some(0), "{compiler} {level}: {outcome:?}");
        });
    }
}

#[test]
fn constant_sizes_are_seen() {
    let declarations = "static char bytes[64], copy[64]; static int n = 24;";
    for fill in [
        "memset(bytes, 0, 24)",
        "__builtin_memset(bytes, 0, 24)",
        "memset(bytes, 0, n)",
        "memcpy(bytes, copy, 24)",
        "__builtin_memcpy(bytes, copy, 24)",
        "memmove(bytes, copy, 24)",
        "strcpy(bytes, \"some longer text\")",
        "__builtin_strcpy(bytes, \"some longer text\")",
    ] {
        races(declarations, fill, "bytes[5] = 1");
    }
}

#[test]
fn aggregates_are_seen_on_both_sides() {
    let declarations = "struct s { long a, b, c, d; }; static struct s one, other, *p = &one;";
    races(declarations, "*p = other", "one.c = 1");
    races(
        declarations,
        "struct s local = *p; (void)local",
        "one.c = 1",
    );
    races(
        declarations,
        "*p = (struct s){ 0 }",
        "(void)*(volatile long *)&one.d",
    );
    races(declarations, "other = *p", "one.b = 2");
}

#[test]
fn locals_that_escape_are_seen() {
    let text = "#include <pthread.h>
        static void *write(void *p) { *(int *)p = 1; return p; }
        int main(void) {
            int local = 0;
            pthread_t thread;
            pthread_create(&thread, 0, write, &local);
            local = 2;
            return pthread_join(thread, 0);
        }";
    each(text, &[], |_, outcome| {
        outcome
            .ends_with(1)
            .prints("bug: data race")
            .prints("of the stack of T0");
    });
}

#[test]
fn thread_locals_belong_to_their_thread() {
    let text = pair(
        "static __thread int mine = 5; static __thread char tail[3];",
        "mine++; tail[1] = 1; assert(mine == 6)",
        "mine += 2; tail[1] = 2; assert(mine == 7)",
    );
    for flags in [&[][..], &["--", "-ftls-model=initial-exec"], &["--", "-O2"]] {
        each(&text, flags, |compiler, outcome| {
            assert_eq!(outcome.status, Some(0), "{compiler} {flags:?}: {outcome:?}");
        });
    }
}

#[test]
fn increments_are_two_accesses() {
    let text =
        pair("static int x;", "x++", "x++").replace("return 0;", "assert(x == 2); return 0;");
    each(&text, &["--plain", "sc", "--keep-going"], |_, outcome| {
        outcome
            .ends_with(1)
            .prints("bug: assertion failed: x == 2")
            .prints("4 executions");
    });
}

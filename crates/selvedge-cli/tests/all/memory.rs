//! Memory as the program sees it: what a value is, natively and under Selvedge, is the same.
//!
//! Every program is checked with each compiler, with and without optimisation, with plain accesses
//! as events and without, and in both directions: what holds natively is verified, and its
//! contrary is a bug.

use crate::common::{Outcome, Sandbox, compilers};

/// All ways to check a program: compiler, level, and what plain accesses are.
fn settings() -> impl Iterator<Item = [&'static str; 3]> {
    let levels = |compiler| ["-O0", "-O2"].map(|level| (compiler, level));
    let compiled = compilers().into_iter().flat_map(levels);
    compiled.flat_map(|(compiler, level)| ["race", "sc"].map(|plain| [compiler, level, plain]))
}

/// Checks a program in one way.
fn check(sandbox: &Sandbox, [compiler, level, plain]: [&str; 3], flag: &str) -> Outcome {
    let mut arguments = vec!["verify", "p.c", "--cc", compiler, "--plain", plain];
    if plain == "sc" {
        arguments.extend(["--model", "sc"]);
    }
    arguments.extend(["--", level, "-w", flag]);
    sandbox.run(&arguments)
}

/// `condition` holds at the end of `body`, natively and in every way to check it.
#[track_caller]
fn holds(declarations: &str, body: &str, condition: &str) {
    let source = format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#define NI __attribute__((noinline)) static\n{declarations}\n\
         int main(void) {{ {body} assert(({condition}) == HOLDS); return 0; }}\n"
    );
    let sandbox = Sandbox::with("p.c", &source);
    for setting in settings() {
        for (flag, status) in [("-DHOLDS=1", 0), ("-DHOLDS=0", 1)] {
            let outcome = check(&sandbox, setting, flag);
            assert_eq!(
                outcome.status,
                Some(status),
                "{setting:?} {flag}: {outcome:?}"
            );
        }
    }
}

/// The program is a bug whose message contains `message`, in every way to check it.
#[track_caller]
fn fails(source: &str, message: &str) {
    let sandbox = Sandbox::with("p.c", source);
    for setting in settings().filter(|[_, level, plain]| *level == "-O0" && *plain == "race") {
        check(&sandbox, setting, "-DX").ends_with(1).prints(message);
    }
}

/// The same in a search over states.
#[track_caller]
fn fails_in_states(source: &str, message: &str) {
    let sandbox = Sandbox::with("p.c", source);
    for compiler in compilers() {
        let search = ["--model", "sc", "--algorithm", "csdr", "--cc", compiler];
        let arguments = [&["verify", "p.c"], &search[..]].concat();
        sandbox.run(&arguments).ends_with(1).prints(message);
    }
}

#[test]
fn a_local_with_atomic_members_begins_anew_with_every_call() {
    holds(
        "struct node { _Atomic(struct node *) next; _Atomic int locked; };
         static int f(void) { struct node n = {0}; int w = atomic_load(&n.locked);
             atomic_store(&n.locked, 1); return w; }",
        "f();",
        "f() == 0",
    );
}

#[test]
fn a_structure_that_is_returned_is_what_was_returned() {
    holds(
        "struct S { long p; };  static long k;
         NI struct S next(void) { struct S s = {k++}; return s; }
         static long get(const volatile struct S *s) { return s->p; }
         static long f(void) { struct S s = next(); return get(&s); }",
        "long a = f(), b = f();",
        "a == 0 && b == 1",
    );
}

#[test]
fn arguments_in_registers_are_those_of_this_call() {
    holds(
        "struct P { int a, b; };
         NI long h(long v) { return *(volatile long *)&v; }
         NI int g(struct P p) { return ((volatile struct P *)&p)->b; }",
        "long x = h(1), y = h(2); struct P p = {1, 2}, q = {3, 4}; int c = g(p), d = g(q);",
        "x == 1 && y == 2 && c == 2 && d == 4",
    );
}

#[test]
fn an_atomic_local_can_be_initialised_twice() {
    holds(
        "",
        "_Atomic int a; atomic_init(&a, 1); int x = atomic_load(&a);
         atomic_init(&a, 2); int y = atomic_load(&a);",
        "x == 1 && y == 2",
    );
}

#[test]
fn a_store_to_a_volatile_thread_local_is_kept() {
    holds(
        "static __thread volatile int t; static __thread volatile int u[3];",
        "t = 5; u[1] = t + 1;",
        "t == 5 && u[1] == 6",
    );
}

#[test]
fn a_store_is_kept_whatever_comes_between_its_announcement_and_itself() {
    holds(
        "struct V { volatile int a; volatile int b; int c; };
         struct V v; int g1, g2; NI int add(int a, int b) { return a + b; }",
        "v.a = add(1, 2) * (v.b = 3) + g1; g2 = v.a + v.b; v.c = g2 * 2 + (g1 = v.b);",
        "v.a == 9 && v.b == 3 && g2 == 12 && v.c == 27 && g1 == 3",
    );
}

#[test]
fn padding_does_not_depend_on_what_the_runtime_left_on_the_stack() {
    holds(
        "#include <stdio.h>
         struct padded { char small; long large; };
         static struct padded shared;
         static char text[64];
         NI void fill(void) { struct padded local; local.small = 1; local.large = 2; shared = local; }",
        "snprintf(text, sizeof text, \"%f\", 1.25);
         fill();
         unsigned char bytes[sizeof shared], all = 0;
         memcpy(bytes, &shared, sizeof shared);
         for (int n = 1; n < 8; n++) all |= bytes[n];",
        "all == 0",
    );
}

#[test]
fn bit_fields_keep_their_neighbours() {
    holds(
        "struct S { volatile unsigned f0 : 15; signed f1 : 8; signed f2 : 10; volatile unsigned f3 : 14; };
         static struct S g = {144, -3, -20, 116};
         NI void set(struct S *p, int k) { p->f0 = k; p->f1 = k; p->f2 = k; p->f3 = k; }",
        "set(&g, 3); g.f1 = 2;",
        "g.f0 == 3 && g.f1 == 2 && g.f2 == 3 && g.f3 == 3",
    );
}

#[test]
fn accesses_of_different_sizes_see_each_other() {
    holds(
        "static union { volatile unsigned long l; volatile unsigned i[2]; volatile char c[8];
             _Atomic unsigned a[2]; } u;",
        "u.l = 0x0102030405060708; unsigned i = u.i[1]; char c = u.c[0]; u.i[0] = 7;
         unsigned long l = u.l; u.c[7] = 9; atomic_fetch_add(&u.a[1], 1);",
        "i == 0x01020304 && c == 8 && l == 0x0102030400000007 && u.l == 0x0902030500000007",
    );
}

#[test]
fn what_covers_atomic_members_writes_and_reads_each_of_them() {
    holds(
        "struct S { atomic_int a; atomic_long b; char c; }; static struct S s, t;",
        "atomic_store(&s.a, 1); atomic_store(&s.b, 2); s.c = 3; t = s;
         int a = atomic_load(&t.a); memset(&s, 0, sizeof s); long b = atomic_load(&s.b);
         s = (struct S){4, 5, 6}; t = s; ((char *)&t.b)[1] = 1;",
        "a == 1 && b == 0 && atomic_load(&s.a) == 4 && atomic_load(&t.b) == 0x105 && t.c == 6",
    );
}

#[test]
fn a_program_that_two_threads_share_a_frame_with_is_seen_anew_in_the_next_frame() {
    holds(
        "static void *add(void *p) { atomic_fetch_add((atomic_int *)p, 1); return 0; }
         NI int share(int n) { atomic_int x = n; pthread_t a; pthread_create(&a, 0, add, &x);
             pthread_join(a, 0); return x; }",
        "int a = share(1), b = share(5);",
        "a == 2 && b == 6",
    );
}

#[test]
fn a_variable_of_a_function_that_has_returned_is_gone() {
    let source = "#include <pthread.h>
         #include <stdatomic.h>
         static _Atomic(int *) shared;
         __attribute__((noinline)) static void publish(void) { int x = 1; atomic_store(&shared, &x); }
         static void *look(void *p) { int *x = atomic_load(&shared); return x ? (void *)(long)*x : p; }
         int main(void) { pthread_t a; pthread_create(&a, 0, look, 0); publish();
             pthread_join(a, 0); return 0; }";
    fails(source, "in a function that has returned");
    fails_in_states(source, "in a function that has returned");
}

#[test]
fn a_variable_of_a_function_that_has_returned_is_gone_for_its_own_thread() {
    for (kind, access) in [
        ("int", "return *x;"),
        ("int", "*x = 3;"),
        ("volatile int", "return *x;"),
        ("_Atomic int", "return atomic_load(x);"),
        ("int", "memset(x, 0, sizeof *x);"),
        ("int", "int y; memcpy(&y, x, sizeof y); return y;"),
    ] {
        let source = format!(
            "#include <stdatomic.h>
                 #include <string.h>
                 static {kind} *volatile kept;
                 __attribute__((noinline)) static void keep({kind} *x) {{ kept = x; }}
                 __attribute__((noinline)) static void leave(void) {{ {kind} x = 1; keep(&x); }}
                 int main(void) {{ leave(); {kind} *x = kept; {access} return 0; }}"
        );
        fails(&source, "in a function that has returned");
        fails_in_states(&source, "in a function that has returned");
    }
}

#[test]
fn a_function_must_not_return_while_others_use_its_variables() {
    fails(
        "#include <pthread.h>
         #include <stdatomic.h>
         static _Atomic(int *) shared; static atomic_int going;
         __attribute__((noinline)) static void publish(void) { int x = 1; atomic_store(&shared, &x);
             while (!atomic_load(&going)); }
         static void *look(void *p) { int *x; while (!(x = atomic_load(&shared)));
             atomic_store(&going, 1); return (void *)(long)*x; }
         int main(void) { pthread_t a; pthread_create(&a, 0, look, 0); publish();
             pthread_join(a, 0); return 0; }",
        "are in use: nothing orders",
    );
}

#[test]
fn the_stack_of_a_thread_that_has_ended_is_gone() {
    fails(
        "#include <pthread.h>
         #include <stdatomic.h>
         static _Atomic(atomic_int *) shared;
         static void *publish(void *p) { atomic_int x = 1; atomic_store(&shared, &x); return p; }
         int main(void) { pthread_t a; pthread_create(&a, 0, publish, 0);
             atomic_int *x = atomic_load(&shared); int r = x ? atomic_load(x) : 0;
             pthread_join(a, 0); return r; }",
        "which has ended",
    );
}

#[test]
fn library_functions_do_not_read_the_checkers_own_memory() {
    fails(
        "#include <string.h>
         int main(void) { return memcmp((void *)0x10000000, \"a\", 1) > 0; }",
        "which may not be accessed",
    );
}

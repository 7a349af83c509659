//! Code that would go unseen is refused by name, function and line; code that compilers make hard to
//! see is seen. With every compiler that is installed.

mod common;

use common::{Outcome, Sandbox, compilers};

/// Checks that every compiler's build is refused for this reason.
#[track_caller]
fn refused(text: &str, reason: &str) {
    for compiler in compilers() {
        refused_with(compiler, text, reason);
    }
}

#[track_caller]
fn refused_with(compiler: &str, text: &str, reason: &str) {
    let sandbox = Sandbox::with("program.c", text);
    let outcome = sandbox.run(&["verify", "program.c", "--cc", compiler]);
    let message = format!("error: cannot check this program: program.c:{reason}");
    outcome.ends_with(2).says(&message);
}

/// Runs a program with every compiler and looks at the outcome.
#[track_caller]
fn each(text: &str, options: &[&str], look: impl Fn(&str, &Outcome)) {
    for compiler in compilers() {
        let sandbox = Sandbox::with("program.c", text);
        let arguments = [&["verify", "program.c", "--cc", compiler], options].concat();
        look(compiler, &sandbox.run(&arguments));
    }
}

/// A program whose two threads run `one` and `other` with `declarations` in front.
fn pair(declarations: &str, one: &str, other: &str) -> String {
    format!(
        "#include <assert.h>
        #include <pthread.h>
        #include <stdatomic.h>
        #include <string.h>
        {declarations}
        static void *first(void *unused) {{ {one}; return unused; }}
        static void *second(void *unused) {{ {other}; return unused; }}
        int main(void) {{
            pthread_t threads[2];
            pthread_create(&threads[0], 0, first, 0);
            pthread_create(&threads[1], 0, second, 0);
            pthread_join(threads[0], 0);
            pthread_join(threads[1], 0);
            return 0;
        }}"
    )
}

#[track_caller]
fn races(declarations: &str, one: &str, other: &str) {
    each(&pair(declarations, one, other), &[], |compiler, outcome| {
        assert_eq!(outcome.status, Some(1), "{compiler}: {outcome:?}");
        outcome.prints("bug: data race");
    });
}

#[test]
fn bare_atomic_instructions() {
    let text = "static int counter;
static void bump(void) {
    __asm__ volatile(\"lock; incl %0\" : \"+m\"(counter));
}
int main(void) { bump(); return 0; }
";
    refused(text, "3: `bump` has the bare atomic instruction `lock inc`");
    let text = "static int lock;
int main(void) {
    int taken = 1;
    __asm__ volatile(\"xchgl %0, %1\" : \"+r\"(taken), \"+m\"(lock));
    return taken;
}
";
    refused(text, "4: `main` has the bare atomic instruction `xchg`");
}

#[test]
fn maxima_that_clang_expands_in_place() {
    let text = "static int most;
int main(void) {
    return __atomic_fetch_max(&most, 3, 5);
}
";
    if compilers().contains(&"clang") {
        refused_with(
            "clang",
            text,
            "3: `main` has the bare atomic instruction `lock cmpxchg`",
        );
    }
}

#[test]
fn fences_and_clocks_in_assembly() {
    let text = "int main(void) {
    __asm__ volatile(\"mfence\" ::: \"memory\");
    return 0;
}
";
    refused(text, "2: `main` has the bare fence `mfence`");
    let text = "int main(void) {
    return __builtin_ia32_rdtsc() == 0;
}
";
    refused(
        text,
        "2: `main` has `rdtsc`, which gives another result in every run",
    );
}

#[test]
fn a_pause_and_an_empty_assembly_are_fine() {
    let text = "int main(void) {
    __asm__ volatile(\"pause\");
    __asm__ volatile(\"\" ::: \"memory\");
    return 0;
}
";
    each(text, &[], |_, outcome| {
        outcome.ends_with(0);
    });
}

#[test]
fn functions_without_instrumentation() {
    let text = "static int shared;
__attribute__((no_sanitize(\"thread\")))
static int hidden(int *p) {
    shared = 1;
    return *p;
}
int main(void) { return hidden(&shared) - 1; }
";
    let reason = "4: `hidden` touches memory without telling Selvedge";
    refused(text, reason);
}

#[test]
fn assembly_that_touches_memory() {
    let text = "static int shared;
__attribute__((noinline)) static void set(void) {
    __asm__ volatile(\"movl $1, %0\" : \"=m\"(shared));
}
int main(void) { set(); return 0; }
";
    refused(text, "3: `set` touches memory in inline assembly (`mov`)");
}

#[test]
fn assembly_among_announced_accesses() {
    let with = |assembly: &str| {
        format!(
            "static int shared, other;
static inline void set(int value) {{
    other = value;
    {assembly}
    other = shared;
}}
int main(void) {{ set(1); return 0; }}
"
        )
    };
    let touches = |name| format!("4: `set` touches memory in inline assembly (`{name}`)");
    for (assembly, name) in [
        ("__asm__ volatile(\"movl $1, %0\" : \"=m\"(shared));", "mov"),
        (
            "__asm__ volatile(\"addl %1, %0\" : \"+r\"(value) : \"m\"(shared));",
            "add",
        ),
        (
            "int mine; __asm__ volatile(\"movl $1, %0\" : \"=m\"(mine)); other = mine;",
            "mov",
        ),
        (
            "__asm__ volatile(\".byte 0xc7, 0x00, 1, 0, 0, 0\" :: \"a\"(&shared) : \"memory\");",
            "mov",
        ),
        (
            "int *to = &shared; __asm__ volatile(\"stosl\" : \"+D\"(to) : \"a\"(1) : \"memory\");",
            "stosd",
        ),
        (
            "__asm__ volatile(\"push %%rax\\n\\tpop %%rax\" ::: \"memory\");",
            "push",
        ),
        ("__asm__ volatile(\"call abort\" ::: \"memory\");", "call"),
        (
            "__asm__ goto(\"testl $1, %0\\n\\tjne %l1\" :: \"m\"(shared) :: out); out:;",
            "test",
        ),
    ] {
        refused(&with(assembly), &touches(name));
    }
    for (assembly, reason) in [
        (
            "__asm__ volatile(\"nop\\n\\t.pushsection .rodata\\n\\t.popsection\" :: \"a\"(&shared));",
            "4: `set` uses the assembler's `.",
        ),
        (
            "__asm__ volatile(\"movq %0, %%rsp\" :: \"a\"(&shared) : \"memory\");",
            "4: `set` moves the stack in inline assembly (`mov`)",
        ),
        (
            "__asm__ volatile(\"jmp *%0\" :: \"a\"(&shared) : \"memory\");",
            "4: `set` leaves for an unknown place in inline assembly (`jmp`)",
        ),
    ] {
        refused(&with(assembly), reason);
    }
}

#[test]
fn assembly_that_never_comes_back_to_c() {
    let text = "static int shared;
__attribute__((naked)) void set(void) {
    __asm__(\"movl $1, shared(%rip)\\n\\tret\");
}
int main(void) { set(); return shared; }
";
    refused(text, "3: `set` touches memory in inline assembly (`mov`)");
    let text = "int shared;
__asm__(\".globl set\\nset: movl $1, shared(%rip)\\n\\tret\");
void set(void);
int main(void) { set(); return shared; }
";
    // Gcc leaves it in the section of the variable before it.
    refused(text, " `set` ");
    let text = "__asm__(\".text\\n.globl set\\nset: movl $1, shared(%rip)\\n\\tret\");
extern int shared;
int shared;
void set(void);
int main(void) { set(); return shared; }
";
    refused(text, " `set` touches memory in inline assembly (`mov`)");
    let text = "__asm__(\".data\\nshared: .long 0\");
int main(void) { return 0; }
";
    refused(text, " uses the assembler's `.data` in inline assembly");
}

#[test]
fn assembly_on_registers_is_fine() {
    let text = "#include <assert.h>
        __asm__(\".globl main\");
        static int shared;
        int main(void) {
            int bits = 0x50, first, sum = 1;
            __asm__(\"bsfl %1, %0\" : \"=r\"(first) : \"r\"(bits));
            __asm__ volatile(\"1: addl %1, %0\\n\\tcmpl $5, %0\\n\\tjb 1b\" : \"+r\"(sum) : \"r\"(first));
            __asm__ volatile(\"rep; nop\" ::: \"memory\");
            shared = sum;
            assert(first == 4 && shared == 5);
            return 0;
        }";
    each(text, &[], |compiler, outcome| {
        assert_eq!(outcome.status, Some(0), "{compiler}: {outcome:?}");
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
    let text = include_str!("../../../examples/c/dekker.c");
    for level in ["-O1", "-O2"] {
        each(text, &["--", level], |compiler, outcome| {
            assert_eq!(outcome.status, Some(0), "{compiler} {level}: {outcome:?}");
        });
    }
}

#[test]
fn functions_chosen_while_loading() {
    let text = "static int one(void) { return 0; }
static void *choose(void) { return (void *)one; }
int chosen(void) __attribute__((ifunc(\"choose\")));
int main(void) { return chosen(); }
";
    refused(
        text,
        " `chosen` chooses its code while it is loaded (ifunc)",
    );
}

#[test]
fn thread_locals_at_fixed_places() {
    let text = "static __thread int mine __attribute__((tls_model(\"initial-exec\")));
int main(void) {
    mine = 1;
    return mine - 1;
}
";
    for compiler in compilers() {
        let sandbox = Sandbox::with("program.c", text);
        let outcome = sandbox.run(&["verify", "program.c", "--cc", compiler]);
        outcome
            .ends_with(2)
            .says("program.c:3: `main` ")
            .says("leave out");
    }
}

#[test]
fn libraries_and_compiled_code() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }");
    let outcome = sandbox.run(&["verify", "program.c", "--", "-lz"]);
    outcome
        .ends_with(2)
        .says("error: the library z cannot be checked\n");
    let outcome = sandbox.run(&["verify", "program.c", "--", "part.o"]);
    outcome
        .ends_with(2)
        .says("error: part.o is compiled code and cannot be checked\n");
    let outcome = sandbox.run(&["verify", "program.c", "--", "-Wa,part.s"]);
    outcome
        .ends_with(2)
        .says("the flag -Wa,part.s cannot be used");
    sandbox.write("part.s", "set: ret\n");
    let outcome = sandbox.run(&["verify", "program.c", "part.s"]);
    outcome.ends_with(2).says("error: part.s is assembly\n");
    let outcome = sandbox.run(&["verify", "program.c", "--", "-lpthread", "-lm", "-pthread"]);
    outcome.ends_with(0);
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

#[test]
fn fences_compile_when_warnings_are_errors() {
    let text = pair(
        "static atomic_int x;",
        // Spelled as in the standard, the warning would be one of a system header, which is not shown.
        "x = 1; __atomic_thread_fence(__ATOMIC_SEQ_CST)",
        "atomic_thread_fence(memory_order_acquire); x = 2",
    );
    each(
        &text,
        &["--", "-Wall", "-Wextra", "-Werror"],
        |compiler, outcome| {
            assert_eq!(outcome.status, Some(0), "{compiler}: {outcome:?}");
        },
    );
}

#[test]
fn names_of_the_program_win_over_those_of_the_process() {
    let text = "#include <assert.h>
        int index(int n) { return n + 1; }
        char *optarg = \"mine\";
        int main(void) { assert(index(1) == 2 && optarg[0] == 'm'); return 0; }";
    each(text, &["--", "-fno-builtin"], |compiler, outcome| {
        assert_eq!(outcome.status, Some(0), "{compiler}: {outcome:?}");
    });
}

#[test]
fn functions_of_the_library_that_nobody_has_thought_of() {
    refused(
        "#include <search.h>\nint main(void) { return hcreate(8) == 0; }",
        "2: `main` needs `hcreate`, which Selvedge does not model",
    );
}

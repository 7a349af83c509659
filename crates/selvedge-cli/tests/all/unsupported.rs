//! Code that cannot be checked matters only to executions that reach it.

use crate::common::{Sandbox, compilers};

/// A program that reaches `statement` in the function `odd` if `REACHED` is defined.
fn program(before: &str, statement: &str) -> String {
    format!(
        "#include <pthread.h>
#include <stdlib.h>
{before}
static int shared, other;
void odd(void) {{
    {statement}
}}
static void *work(void *unused) {{ other = 1; return unused; }}
int main(int count, char **arguments) {{
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    shared = other;
#ifndef REACHED
    if (getenv(\"ODD\"))
#endif
    odd();
    return 0;
}}
"
    )
}

/// Unsupported constructs: the text before the function, the statement in it, and the name in the
/// report.
const CONSTRUCTS: [(&str, &str, &str); 21] = [
    (
        "#include <stdio.h>",
        "pclose(popen(\"ls\", \"r\"));",
        "starts another process, which is not modelled; make it a thread instead",
    ),
    (
        "#include <unistd.h>",
        "execl(\"/bin/ls\", \"ls\", (char *)0);",
        "make it a thread instead",
    ),
    (
        "#include <sys/socket.h>",
        "socket(AF_INET, SOCK_STREAM, 0);",
        "uses the network or devices, which are not modelled; replace that part",
    ),
    (
        "#include <dirent.h>",
        "opendir(\".\");",
        "uses files, which are not modelled; keep the data in memory",
    ),
    (
        "#include <signal.h>",
        "sigsuspend((sigset_t *)0);",
        "handles signals, which are not modelled; make the handler a thread",
    ),
    (
        "int brk(void *);",
        "brk(0);",
        "maps memory, which is not modelled; use malloc",
    ),
    (
        "#include <dlfcn.h>",
        "dlopen(\"libm.so\", 1);",
        "loads code, which cannot be instrumented; link it in as source",
    ),
    (
        "#include <ucontext.h>",
        "getcontext((ucontext_t *)0);",
        "switches stacks, which is not modelled; use threads",
    ),
    (
        "void __pthread_register_cancel_defer(void *);",
        "__pthread_register_cancel_defer(0);",
        "changes the type of cancellation, which is not modelled; use pthread_cleanup_push",
    ),
    (
        "#include <semaphore.h>",
        "sem_open(\"/x\", 0);",
        "named objects are not modelled; use an unnamed one",
    ),
    (
        "int pthread_tryjoin_np(pthread_t, void **);",
        "pthread_tryjoin_np(pthread_self(), 0);",
        "a join that does not wait is not modelled",
    ),
    (
        "#include <time.h>",
        "timer_create(0, 0, 0);",
        "timers are not modelled; use a thread that sleeps",
    ),
    (
        "#include <wchar.h>",
        "wprintf(L\"x\");",
        "wide output is not modelled; use printf",
    ),
    ("#include <unistd.h>", "fork();", "starts another process"),
    (
        "int elsewhere(void);",
        "elsewhere();",
        "elsewhere: it is not part of the program",
    ),
    (
        "#include <search.h>",
        "hcreate(8);",
        "hcreate: it is not part of the program",
    ),
    (
        "",
        "__asm__ volatile(\"syscall\" ::: \"memory\");",
        "a raw system call (`syscall`)",
    ),
    (
        "",
        "__asm__ volatile(\"cli\");",
        "the privileged instruction `cli`",
    ),
    (
        "",
        "__asm__ volatile(\"push %%rax; pop %%rax\" ::: \"memory\");",
        "touches memory in inline assembly (`push`)",
    ),
    (
        "",
        "__asm__ volatile(\".pushsection .rodata; .popsection\");",
        "uses the assembler's `.",
    ),
    (
        "int *place; __attribute__((no_sanitize(\"thread\"))) int hidden(void) { return *place; }",
        "hidden();",
        "touches memory without telling Selvedge",
    ),
];

#[test]
fn what_no_execution_reaches_is_harmless() {
    for (compiler, level) in compilers()
        .into_iter()
        .flat_map(|it| [(it, "-O0"), (it, "-O2")])
    {
        for (before, statement, what) in CONSTRUCTS {
            let sandbox = Sandbox::with("program.c", &program(before, statement));
            let arguments = ["verify", "program.c", "--cc", compiler, "--", "-g", level];
            let outcome = sandbox.run(&arguments);
            assert_eq!(
                outcome.status,
                Some(0),
                "{compiler} {level}, {what}: {outcome:?}"
            );
            outcome.says(" not supported; an execution that reaches one");
        }
    }
}

#[test]
fn what_an_execution_reaches_ends_the_search_with_its_line_and_calls() {
    for compiler in compilers() {
        for (before, statement, what) in CONSTRUCTS {
            let sandbox = Sandbox::with("program.c", &program(before, statement));
            let arguments = ["verify", "program.c", "--cc", compiler, "--", "-DREACHED"];
            let outcome = sandbox.run(&arguments);
            assert_eq!(outcome.status, Some(3), "{compiler}, {what}: {outcome:?}");
            outcome.prints("incomplete: program.c:").prints(what);
            // gcc announces no entry into a function without accesses and calls.
            if !statement.starts_with("__asm__") {
                outcome.prints("; reached in odd (program.c:6), called by main (program.c:17)");
            }
        }
    }
}

#[test]
fn a_strict_check_refuses_all_of_it() {
    for (before, statement, _) in CONSTRUCTS {
        let sandbox = Sandbox::with("program.c", &program(before, statement));
        let outcome = sandbox.run(&["verify", "program.c", "--strict"]);
        outcome
            .ends_with(2)
            .says("error: cannot check this program");
    }
}

#[test]
fn all_places_are_listed_by_what_is_wrong_with_them() {
    let text = "#include <unistd.h>
static void one(void) { fork(); }
int main(int count, char **arguments) {
    if (count > 1) { one(); fork(); getpass(\"\"); }
    return 0;
}
";
    let sandbox = Sandbox::with("program.c", text);
    let outcome = sandbox.run(&["verify", "program.c", "--list-unsupported"]);
    outcome.ends_with(0);
    assert_eq!(
        outcome.stdout,
        "3 places are not supported

2 × calls `fork`: starts another process, which is not modelled; make it a thread instead
    program.c:2: `one`
    program.c:4: `main`

1 × calls `getpass`: reads input, which a check cannot repeat; use a constant, or selvedge_choose \
         for every case
    program.c:4: `main`
"
    );
}

#[test]
fn a_definition_in_another_file_wins() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "main.c",
        "#include <assert.h>\n#include <sys/mman.h>\n\
         int main(void) { assert(*(int *)mmap(0, 8, 0, 0, -1, 0) == 7); return 0; }",
    );
    sandbox.write(
        "stub.c",
        "static int page = 7;\nvoid *mmap(void) { return &page; }",
    );
    sandbox
        .run(&["verify", "main.c", "stub.c", "--strict"])
        .ends_with(0);
    sandbox
        .run(&["verify", "main.c", "--stub", "stub.c", "--strict"])
        .ends_with(0);
}

#[test]
fn labels_of_removed_assembly_cannot_be_jumped_to() {
    let text = "int main(void) {
    __asm__ goto(\"jmp inside\" :::: out);
out:
    if (0) __asm__ volatile(\"push %%rax; inside: pop %%rax\" ::: \"memory\");
    return 0;
}
static void unused(void) { __asm__ volatile(\"push %%rbx; inside: nop; pop %%rbx\"); }
void (*use)(void) = unused;
";
    let sandbox = Sandbox::with("program.c", text);
    let outcome = sandbox.run(&["verify", "program.c"]);
    assert_ne!(outcome.status, Some(0), "{outcome:?}");
}

#[test]
fn nested_functions_that_are_called_through_pointers_are_refused() {
    let source = "static void call(void (*f)(int)) { f(3); }
        int main(void) { int x = 1; void add(int k) { x += k; } call(add); return x; }";
    let sandbox = Sandbox::with("nested.c", source);
    let outcome = sandbox.run(&["verify", "nested.c", "--cc", "gcc"]);
    outcome
        .ends_with(2)
        .says("the program runs code on the stack");
}

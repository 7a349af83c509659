//! Code that cannot be checked matters only to executions that reach it.

use crate::common::{Sandbox, compilers};

/// A program with a function for each of `constructs`, which is reached if `REACHED` is defined.
fn program(constructs: &[Construct]) -> String {
    let mut text = String::from("#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdlib.h>\n");
    for (before, ..) in constructs {
        text += &format!("{before}\n");
    }
    text += "static int shared; int other;\nint main(int, char **);\n";
    let mut calls = String::new();
    for (n, (_, statement, _)) in constructs.iter().enumerate() {
        text += &format!("__attribute__((noinline)) void odd_{n}(void) {{\n    {statement}\n}}\n");
        calls += &format!("    odd_{n}();\n");
    }
    text += "static void *work(void *unused) { other = 1; return unused; }
int main(int count, char **arguments) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    shared = other;
#ifndef REACHED
    if (getenv(\"ODD\"))
#endif
    {
";
    text + &calls + "    }\n    return 0;\n}\n"
}

/// An unsupported construct: the text before the function, the statement in it, and the name in the
/// report.
type Construct = (&'static str, &'static str, &'static str);

/// Functions and instructions that are found before anything runs.
const CONSTRUCTS: &[Construct] = &[
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
        "#include <unistd.h>",
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
        "",
        "__pthread_register_cancel_defer(0);",
        "changes the type of cancellation, which is not modelled; use pthread_cleanup_push",
    ),
    (
        "#include <semaphore.h>",
        "sem_open(\"/x\", 0);",
        "named objects are not modelled; use an unnamed one",
    ),
    (
        "",
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
    (
        "",
        "getpass(\"\");",
        "reads input, which a check cannot repeat; use a constant, or selvedge_choose for every case",
    ),
    (
        "#include <sys/utsname.h>",
        "struct utsname name; uname(&name);",
        "depends on the machine, which is not modelled; use a constant",
    ),
    (
        "#include <fenv.h>",
        "fenv_t state; fegetenv(&state);",
        "copies the floating-point environment, which is not modelled; use fesetround",
    ),
    (
        "",
        "shared = a64l(\"x\");",
        "formats numbers or paths in a way that is not modelled; use snprintf or strtol",
    ),
    (
        "#include <iconv.h>",
        "iconv_open(\"a\", \"b\");",
        "converts or compares wide characters in a way that is not modelled; use",
    ),
    (
        "#include <libintl.h>",
        "shared = gettext(\"x\")[0];",
        "translates messages, which is not modelled; use the message itself",
    ),
    (
        "",
        "pthread_attr_t own; pthread_getattr_np(pthread_self(), &own);",
        "stacks belong to the runtime; use pthread_attr_setstacksize or nothing",
    ),
    (
        "#include <math.h>",
        "signgam = 1;",
        "is not kept; use lgamma_r",
    ),
    (
        "#include <time.h>",
        "shared = timezone;",
        "is not kept; use localtime_r and its tm_gmtoff",
    ),
    (
        "",
        "__asm__ volatile(\"rdrand %%rax\" ::: \"rax\", \"cc\");",
        "`rdrand`, which gives another result in every run; use clock_gettime or rand",
    ),
    (
        "",
        "__asm__ volatile(\"rep stosb\" :: \"D\"(&other), \"c\"(0L), \"a\"(0) : \"memory\");",
        "touches memory in inline assembly (`stosb`); write the inline assembly as C",
    ),
    (
        "",
        "__asm__ volatile(\"jmp *%0\" :: \"r\"(main));",
        "leaves for an unknown place in inline assembly (`jmp`); write the inline assembly as C",
    ),
    (
        "void called(void) {}",
        "__asm__ volatile(\"call called\" ::: \"memory\");",
        "touches memory in inline assembly (`call`); write the inline assembly as C",
    ),
    (
        "",
        "__asm__ volatile(\".byte 0x06, 0x07\");",
        "has bytes in inline assembly that are no instruction; write the inline assembly as C",
    ),
    (
        "",
        "__asm__ volatile(\"int3\");",
        "the trap instruction `int3`; call abort() instead",
    ),
    (
        "",
        "__asm__ volatile(\"lock; negl %0\" : \"+m\"(other));",
        "the bare atomic instruction `lock neg`; use the atomics of <stdatomic.h>",
    ),
    (
        "",
        "__asm__ volatile(\"movq %%fs:0, %%rax\" ::: \"rax\");",
        "`mov` on the host's thread-local data; leave out -ftls-model",
    ),
    (
        "",
        "__asm__ volatile(\"xabort $1\");",
        "the hardware transaction `xabort`; use a mutex",
    ),
    (
        "",
        "__asm__ volatile(\"wrfsbase %%rax\" ::: \"rax\");",
        "`wrfsbase`, which moves the thread's own data; replace the inline assembly by C",
    ),
    (
        "extern int other; __attribute__((naked)) void bare(void) { __asm__(\"movl $1, other(%rip); ret\"); }",
        "bare();",
        "touches memory in inline assembly (`mov`); write the inline assembly as C",
    ),
];

/// Uses of what is modelled that only an execution shows to be beyond the model.
const USES: &[Construct] = &[
    (
        "#include <sys/mman.h>",
        "mmap((void *)0x10000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);",
        "mmap at a fixed address; let the system choose it",
    ),
    (
        "#include <sys/mman.h>",
        "mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
        "mmap of memory that cannot be read, or that can be executed; ask for reading and writing",
    ),
    (
        "#include <sys/mman.h>",
        "munmap(mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);",
        "munmap of something else than one whole mapping; give back what one call of mmap returned",
    ),
    (
        "#include <sys/mman.h>",
        "mprotect(mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 8192, PROT_NONE);",
        "mprotect to anything else than reading and writing; leave the protection as it is",
    ),
    (
        "#include <sys/epoll.h>",
        "struct epoll_event edge = {.events = EPOLLIN | EPOLLET}; \
         epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, 0, &edge);",
        "EPOLLIN, EPOLLOUT and EPOLLONESHOT; use level-triggered events",
    ),
    (
        "#include <fcntl.h>",
        "open(\"/proc/self/maps\", O_RDONLY);",
        "a file of /dev, /proc or /sys; replace what is read there by a constant",
    ),
    (
        "#include <signal.h>",
        "kill(1, SIGUSR1);",
        "kill of another process",
    ),
    (
        "#include <unistd.h>",
        "syscall(999);",
        "the raw system call number 999; call a function of the C library instead",
    ),
];

#[test]
fn what_no_execution_reaches_is_harmless() {
    let sandbox = Sandbox::with("program.c", &program(&[CONSTRUCTS, USES].concat()));
    for compiler in compilers() {
        for level in ["-O0", "-O1", "-O2", "-Og"] {
            let arguments = ["verify", "program.c", "--cc", compiler, "--", "-w", level];
            let outcome = sandbox.run(&arguments);
            assert_eq!(outcome.status, Some(0), "{compiler} {level}: {outcome:?}");
            outcome.says(" not supported; an execution that reaches one");
        }
    }
}

#[test]
fn what_an_execution_reaches_ends_the_search_with_its_line_and_calls() {
    let compilers = compilers();
    for (n, construct) in CONSTRUCTS.iter().chain(USES).enumerate() {
        let (_, statement, what) = *construct;
        let sandbox = Sandbox::with("program.c", &program(&[*construct]));
        let compiler = compilers[n % compilers.len()];
        let arguments = [
            "verify",
            "program.c",
            "--cc",
            compiler,
            "--",
            "-DREACHED",
            "-w",
        ];
        let outcome = sandbox.run(&arguments);
        assert_eq!(outcome.status, Some(3), "{compiler}, {what}: {outcome:?}");
        outcome.prints("incomplete: program.c:").prints(what);
        // gcc announces no entry into a function without accesses and calls, and a function that uses a variable ends
        // the execution before it announces itself.
        let bare = statement.starts_with("__asm__") || statement.starts_with("bare");
        if !bare && !what.starts_with("is not kept") {
            outcome.prints("; reached in odd_0 (program.c:8), called by main (program.c:20)");
        }
    }
}

#[test]
fn a_strict_check_refuses_all_of_it() {
    let sandbox = Sandbox::with("program.c", &program(CONSTRUCTS));
    let outcome = sandbox.run(&["verify", "program.c", "--list-unsupported", "--", "-w"]);
    outcome.ends_with(0);
    for (_, _, what) in CONSTRUCTS {
        match what.split_once(": it is not part") {
            Some((name, _)) => outcome.prints(&format!("needs `{name}`, which Selvedge does not")),
            None => outcome.prints(what.split("; ").next().unwrap()),
        };
    }
    for construct in CONSTRUCTS {
        let sandbox = Sandbox::with("program.c", &program(&[*construct]));
        let outcome = sandbox.run(&["verify", "program.c", "--strict", "--", "-w"]);
        outcome
            .ends_with(2)
            .says("error: cannot check this program");
    }
}

#[test]
fn functions_of_cxx_are_named_as_in_the_source() {
    let text = "namespace queue { template <class T> struct Ring { void push(const T &); }; }
int main() { queue::Ring<int> ring; ring.push(1); }
";
    let sandbox = Sandbox::with("program.cc", text);
    sandbox
        .run(&["verify", "program.cc"])
        .ends_with(3)
        .prints("incomplete: program.cc:2: queue::Ring<int>::push: it is not part of the program");
    sandbox
        .run(&["verify", "program.cc", "--list-unsupported"])
        .ends_with(0)
        .prints("1 × needs `queue::Ring<int>::push(int const&)`, which Selvedge does not model");
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

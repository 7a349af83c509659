//! Code that would go unseen is refused by name, function and line; code that compilers make hard to
//! see is seen. With every compiler that is installed.

mod accesses;
mod assembly;

use crate::common::{Outcome, Sandbox, compilers};

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
    let arguments = ["verify", "program.c", "--cc", compiler];
    let outcome = sandbox.run(&[&arguments[..], &["--strict"]].concat());
    let message = format!("error: cannot check this program: program.c:{reason}");
    outcome.ends_with(2).says(&message);
    // Code that can be stopped when it is reached is stopped then.
    let outcome = sandbox.run(&arguments);
    match outcome.status {
        Some(2) => outcome.says(&message),
        _ => outcome.ends_with(3).prints("incomplete: program.c:"),
    };
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
        let outcome = sandbox.run(&["verify", "program.c", "--cc", compiler, "--strict"]);
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

//! Loops: iterations that change nothing make no executions of their own, all others do.

use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, Ending, NoObserver, Settings};

use crate::common::{Build, CLANG, CLANG_O2, GCC, GCC_O2, Program, isolated};

const ALL: [Build; 4] = [GCC, GCC_O2, CLANG, CLANG_O2];

/// A thread that runs `body`, and main, which lets `x` become 1 meanwhile.
fn spinner(body: &str) -> String {
    format!(
        "#include <pthread.h>
         #include <stdatomic.h>
         atomic_int x, y, seq;
         static int look(void) {{ return atomic_load(&x); }}
         static void *spin(void *argument) {{ {body} return argument; }}
         int main(void) {{
             pthread_t thread;
             pthread_create(&thread, 0, spin, 0);
             atomic_store(&x, 1);
             return 0;
         }}"
    )
}

fn executions(build: Build, source: &str) -> u64 {
    let program = Program::build(build, source);
    let mut machine = program.load(Default::default());
    let settings = Settings {
        keep_going: true,
        ..Settings::default()
    };
    let report = trust::search::<SequentialConsistency, _>(&mut machine, settings, &mut NoObserver);
    assert_eq!(report.ending, Ending::Complete);
    assert!(report.bugs.is_empty(), "{:?}", report.bugs);
    report.counts.executions
}

#[track_caller]
fn expect(test: &str, body: &str, expected: u64) {
    expect_of(test, &spinner(body), expected);
}

/// Runs in processes of their own, since a process can load one program.
#[track_caller]
fn expect_of(test: &str, source: &str, expected: u64) {
    isolated(test, || {
        let build = std::env::var("SELVEDGE_TEST_BUILD").ok();
        let build: usize = build.and_then(|build| build.parse().ok()).unwrap_or(0);
        assert_eq!(executions(ALL[build], source), expected, "{:?}", ALL[build]);
    });
}

/// Main waits for a thread to which it gave the address of its variable `job`, and then counts in
/// variables that lie where that was.
fn on_the_stack(wait: &str) -> String {
    let variables = (0..20).map(|n| format!("int n{n} = 0; "));
    let loops = (0..20).map(|n| format!("while (n{n} < 2 && !atomic_load(&stop)) n{n}++; "));
    let counters: String = variables.chain(loops).collect();
    format!(
        "#include <pthread.h>
         #include <stdatomic.h>
         atomic_int steps, stop;
         struct job {{ int result; atomic_int done; long unused[6]; }};
         static void *work(void *argument) {{
             struct job *job = argument;
             atomic_fetch_add(&steps, 1);
             job->result = 5;
             atomic_fetch_add(&steps, 1);
             atomic_store(&job->done, 1);
             return 0;
         }}
         static void go(pthread_t *thread) {{
             struct job job = {{0}};
             pthread_create(thread, 0, work, &job);
             {wait}
         }}
         static void count(void) {{ {counters} }}
         int main(void) {{
             pthread_t thread;
             go(&thread);
             count();
             return pthread_join(thread, 0);
         }}"
    )
}

#[test]
fn waiting_for_a_flag_is_pure() {
    expect("waiting_for_a_flag_is_pure", "while (!atomic_load(&x));", 1);
}

#[test]
fn waiting_through_a_function_is_pure() {
    expect("waiting_through_a_function_is_pure", "while (!look());", 1);
}

#[test]
fn leftovers_of_an_iteration_do_not_count() {
    let body = "int before, after; do { before = atomic_load(&seq); after = look(); } \
                while (!after || before != atomic_load(&seq));";
    expect("leftovers_of_an_iteration_do_not_count", body, 1);
}

#[test]
fn a_failed_compare_exchange_is_pure() {
    let body = "int expected = 1; \
                while (!atomic_compare_exchange_strong(&x, &expected, 2)) expected = 1;";
    expect("a_failed_compare_exchange_is_pure", body, 1);
}

/// gcc keeps the address of `e` in a register for the first loop, where it is dead in the second one. Soak
/// seeds 1621, 2619 and 2748.
#[test]
fn a_leftover_of_an_earlier_loop_does_not_count() {
    let body = "int e; atomic_store(&y, 2); \
                do { e = 3; atomic_compare_exchange_strong(&y, &e, 7); } while (e == 7); \
                do e = atomic_load(&x); while (!e);";
    expect("a_leftover_of_an_earlier_loop_does_not_count", body, 1);
}

/// The address of `e` is in a register all the time, and `e` is state.
#[test]
fn a_variable_whose_address_stays_in_a_register_is_state() {
    let body = "int e = 0, n = 0; \
                do { n = e; atomic_compare_exchange_strong(&y, &e, 7); e = n < 2 ? n + 1 : 2; } \
                while (!atomic_load(&x) && e < 2);";
    // x is 1 the first time, the second time, or never.
    expect(
        "a_variable_whose_address_stays_in_a_register_is_state",
        body,
        3,
    );
}

/// The value seen by the failed attempt is what the next one expects: 0, then 1 or 0 again.
#[test]
fn an_expectation_that_changes_is_state() {
    let body = "int expected = 7, tries = 0; \
                while (!atomic_compare_exchange_strong(&x, &expected, 9) && ++tries < 2);";
    // First read 0: the exchange then succeeds before main's store or fails after it. First read
    // 1: the second attempt succeeds.
    expect("an_expectation_that_changes_is_state", body, 3);
}

#[test]
fn counting_attempts_is_not_pure() {
    let body = "for (int i = 0; i < 3 && !atomic_load(&x); i++);";
    expect("counting_attempts_is_not_pure", body, 4);
}

#[test]
fn a_flag_for_the_first_iteration_is_not_pure() {
    let body = "int first = 1; while (!atomic_load(&x)) first = 0; atomic_store(&y, first);";
    expect("a_flag_for_the_first_iteration_is_not_pure", body, 2);
}

#[test]
fn an_array_of_variable_length_is_state() {
    let body = "int n = argument ? 3 : 2; int tries[n]; tries[0] = 0; \
                while (!atomic_load(&x) && tries[0] < 2) tries[0]++;";
    expect("an_array_of_variable_length_is_state", body, 4);
}

#[test]
fn a_variable_behind_a_pointer_is_state() {
    let body = "int tries = 0; int *volatile where = &tries; \
                while (!atomic_load(&x) && *where < 2) ++*where;";
    expect("a_variable_behind_a_pointer_is_state", body, 4);
}

/// The worker's writes next to the flag make no iteration different: as many executions as with a global variable, one
/// for each value of `steps` when the flag is seen.
#[test]
fn what_others_write_to_the_stack_is_no_state() {
    let wait = "while (!(atomic_load(&steps) & 4) && !atomic_load(&job.done));";
    let test = "what_others_write_to_the_stack_is_no_state";
    expect_of(test, &on_the_stack(wait), 3);
}

/// A flag of its own that a thread sets to what it is.
#[test]
fn an_exchange_on_the_stack_is_no_state() {
    let wait = "while (!atomic_fetch_or(&job.done, 0));";
    expect_of(
        "an_exchange_on_the_stack_is_no_state",
        &on_the_stack(wait),
        1,
    );
}

#[test]
fn other_compilers_and_levels_agree() {
    for (build, compiler) in ALL.iter().enumerate().skip(1) {
        if !compiler.available() {
            continue;
        }
        let output = std::process::Command::new(std::env::current_exe().expect("the test binary"))
            .args(["spin::", "--skip", "other_compilers", "--test-threads=2"])
            .env("SELVEDGE_TEST_BUILD", build.to_string())
            .output()
            .expect("the test binary runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{compiler:?}\n{text}");
    }
}

//! The promises of docs/irs.md, sentence by sentence, and their tests.
//!
//! Every sentence of the page is listed. One that no test can be for is marked: it says what words mean or why
//! something is done, what is not promised, or what was measured.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::Sandbox;
use crate::irs_enforce::run;

/// How each sentence begins, and what tests it.
const SENTENCES: [(&str, &[&str]); 141] = [
    // Section: Before the first section
    ("A program with many threads has more", REASON),
    ("*Iteratively relaxed scheduling*", REASON),
    ("`selvedge irs verify` proves", &[SHOWN]),
    // Section: Proving
    (
        "The verifier runs the program once",
        &["a_proof_in_pieces_comes_to_the_same_end"],
    ),
    (
        "These demands are the first file",
        &["the_order_of_threads_can_be_chosen"],
    ),
    ("Then it takes demands back", &[SAFE]),
    ("If none of them fails or gets stuck", &[SAFE]),
    ("So the file is safe at every moment", &[SAFE]),
    (
        "No schedule that it admits fails",
        &[SAFE, "eight_threads_lose_no_update"],
    ),
    (
        "A failure is whatever",
        &["failures_of_every_kind_are_kept_away"],
    ),
    (
        "It never makes the program wait for ever",
        &[SAFE, "random_programs_come_to_their_end"],
    ),
    ("The program is explored *with its waits*", &[SAFE]),
    (
        "It only ever asks for less",
        &[
            KILLED,
            "a_later_file_may_ask_for_less_but_not_for_more",
            NEWER,
        ],
    ),
    ("It is replaced in one step", &[KILLED]),
    ("The file is whole whenever", &[KILLED]),
    (
        "The same command again",
        &["a_proof_in_pieces_comes_to_the_same_end"],
    ),
    ("A kill costs a quarter", &[HALF]),
    ("The file also contains", &[HALF]),
    ("A program that is killed every second", &[HALF]),
    ("The compiler's output", &[ONCE]),
    ("It is used again as long", &[ONCE]),
    ("Proven schedules are usable early", &[SAFE]),
    ("Steps of more than 10,000 executions", &[SAFE]),
    ("Executions have to end", &[ENDLESS]),
    ("A program that never ends", &[ENDLESS]),
    (
        "If only some executions",
        &["an_execution_without_an_end_is_told_of_when_it_is_met"],
    ),
    ("`irs verify` does not support", &[ENDLESS]),
    ("`--jobs N` lets N processes", &[JOBS]),
    ("The result does not depend on N", &[JOBS]),
    ("Without it there is one", REASON),
    ("Every trace is explored once", &[SAFE, KILLED]),
    ("The guess of how many traces", &[SHOWN]),
    // Section: Programs with bugs
    (
        "A constraint that prevents a bug stays",
        &["a_bug_is_kept_away_by_a_constraint_that_is_named"],
    ),
    ("Several constraints may prevent", REASON),
    (
        "Selvedge prefers late ones",
        &["a_lost_update_is_kept_away_by_one_wait"],
    ),
    (
        "If no schedule is found",
        &["without_a_safe_schedule_nothing_is_enforced"],
    ),
    // Section: What is ordered
    (
        "By default the events are atomic",
        &["every_kind_of_object_is_enforced"],
    ),
    (
        "A race that only some schedules have",
        &[
            "failures_of_every_kind_are_kept_away",
            "without_a_safe_schedule_nothing_is_enforced",
        ],
    ),
    (
        "With `--plain sc` plain accesses",
        &["eight_threads_lose_no_update"],
    ),
    ("The proof is for sequential consistency", &[STORED]),
    ("An executable of `irs build` carries", &[STORED]),
    (
        "An access that is private in one call",
        &["an_access_that_cannot_be_counted_is_refused"],
    ),
    ("Events after a loop", &[LOOPS]),
    ("So the loop's condition stays ordered", &[LOOPS]),
    // Section: Inputs
    (
        "A choice (`selvedge_choose`",
        &["each_input_has_constraints_of_its_own"],
    ),
    (
        "Each combination of inputs",
        &["each_input_has_constraints_of_its_own"],
    ),
    ("The executable reads its inputs", &[GIVEN]),
    ("A number that is none of the alternatives", &[GIVEN]),
    (
        "So is a program that has made other choices",
        &["other_choices_than_were_proven_are_noticed"],
    ),
    (
        "Up to 4,096 combinations",
        &["a_program_with_too_many_inputs_is_refused"],
    ),
    (
        "Later choices are not inputs",
        &["choices_after_the_first_thread_are_no_inputs"],
    ),
    ("The proof does not cover other inputs", EXCLUDED),
    (
        "Schedules are proven for a run",
        &["arguments_are_noticed", "the_environment_is_noticed"],
    ),
    (
        "An executable that is started with arguments",
        &["a_program_with_other_arguments_is_stopped_before_it_begins"],
    ),
    (
        "One that reads an environment variable",
        &["another_input_than_was_verified_is_noticed"],
    ),
    (
        "A program that asks for the time",
        &[
            "what_brings_in_inputs_is_refused_before_the_proof",
            "files_the_time_and_processors_are_refused",
            "standard_input_is_refused",
        ],
    ),
    ("Make what it needs an input", &[GIVEN]),
    ("The verifier has one locale", &["locales_are_noticed"]),
    (
        "An executable that takes up the locale",
        &["locales_are_noticed"],
    ),
    ("A locale that the program names", &["locales_are_noticed"]),
    ("`argv[0]` is what", &["the_name_of_a_program_differs"]),
    ("The addresses of variables", &[ADDRESSES]),
    ("Neither is kept away", &[ADDRESSES]),
    // Section: Which schedule comes first
    ("How much waiting costs", REASON),
    (
        "The verifier tries the threads",
        &["the_first_schedule_has_the_fewest_waiting_threads"],
    ),
    (
        "`--order ascending|descending|turns`",
        &["the_order_of_threads_can_be_chosen"],
    ),
    // Section: What a file says
    ("The overhead is told", &["statistics_and_a_picture", SHOWN]),
    ("The picture has a column", &["statistics_and_a_picture"]),
    // Section: How far this follows the document
    ("The document enforces a prefix", REASON),
    ("Its Definition 3 lets", REASON),
    (
        "Its symbolic traces carry",
        &["each_input_has_constraints_of_its_own"],
    ),
    ("Indexer with 15 threads", &[SHOWN]),
    (
        "Last Zero with 16 threads",
        &["the_documents_first_constraints"],
    ),
    // Section: Building
    ("The executable needs nothing", &[FILE]),
    (
        "`/tmp/selvedge-account.irs` beside",
        &[FILE, "a_prefix_of_another_program_is_no_prefix"],
    ),
    ("The prefix that it was built with", &[FILE]),
    ("It is compiled like the program", &[LANGUAGES]),
    ("Its threads are real ones", &[LANGUAGES]),
    (
        "Before a thread does something",
        &["nobody_is_too_early", "eight_threads_lose_no_update"],
    ),
    ("Threads spin for a moment", &[NEWER]),
    (
        "Before everything that others can see",
        &["more_iterations_and_fewer_are_noticed"],
    ),
    ("The executable looks at the file", &[NEWER]),
    ("It may be replaced (by renaming)", &[NEWER]),
    ("The compiler's callbacks are taken out", &[SHOWN]),
    ("With `--plain sc` a fence", &[STORED]),
    ("Atomic operations are all carried out", &[STORED]),
    (
        "`--tune` proves as much",
        &["a_tuned_program_keeps_to_its_prefix"],
    ),
    // Section: Leaving what was verified
    ("A proof covers the paths", &[PROVEN]),
    ("The prefix file lists", &[PROVEN]),
    ("An event is an atomic", &[PROVEN]),
    (
        "Each thread of a running program",
        &["more_iterations_and_fewer_are_noticed"],
    ),
    (
        "The program has left what was verified if",
        &["more_iterations_and_fewer_are_noticed"],
    ),
    (
        "a thread makes more iterations",
        &["more_iterations_and_fewer_are_noticed"],
    ),
    (
        "a thread takes a branch",
        &[
            "another_branch_is_noticed",
            "events_in_another_order_are_noticed",
        ],
    ),
    (
        "a thread is created",
        &["more_threads_and_fewer_are_noticed"],
    ),
    (
        "an assertion fails",
        &["other_values_are_noticed_when_they_fail"],
    ),
    (
        "Spin loops may go round",
        &["spinning_is_not_taken_for_more_iterations"],
    ),
    (
        "The program is then stopped",
        &["more_iterations_and_fewer_are_noticed"],
    ),
    (
        "`irs build --on-divergence warn`",
        &["another_input_than_was_verified_is_noticed", SERIAL],
    ),
    ("The total order of a proven schedule", REASON),
    ("First, that order has no place", REASON),
    ("Second, the threads need not have", REASON),
    ("Third, a thread knows where it is", REASON),
    ("Only the order of threads is kept", &[ORDER]),
    ("The main thread comes first", &[ORDER]),
    ("Threads that no proven execution has", &[SERIAL]),
    ("A thread runs until it ends", &[SERIAL]),
    ("Nothing is proven about such a run", EXCLUDED),
    (
        "The same holds for a prefix file",
        &[FILE, "a_prefix_of_another_program_is_no_prefix"],
    ),
    ("The following is not compared", EXCLUDED),
    ("Values", EXCLUDED),
    (
        "An execution with other values",
        &["other_values_are_noticed_when_they_fail"],
    ),
    ("Therefore inputs", REASON),
    ("Threads with each other", EXCLUDED),
    ("Plain accesses without", EXCLUDED),
    ("The ends of threads", EXCLUDED),
    ("The events of a thread after", EXCLUDED),
    // Section: Running meanwhile
    (
        "starts the verifier in the background",
        &["a_program_runs_while_its_proof_goes_on"],
    ),
    ("The exit status is that", &[STATUS]),
    ("When the program ends", &[STATUS]),
    // Section: What is not enforced
    ("The exact moment of a plain store", &[EARLY]),
    ("A thread that does none of these", &[EARLY]),
    ("A program that returns from `main`", &[ENDS]),
    ("That cuts executions short", &[ENDS]),
    (
        "Futexes used directly",
        &[
            "futexes_are_refused_by_name",
            "what_the_library_does_not_have_is_refused",
        ],
    ),
    ("gcc makes the load and the store", &[COPY]),
    ("A prefix that has another thread act", &[COPY]),
    ("`irs verify` and `irs build` refuse it", &[COPY]),
    (
        "`irs verify` links the executable",
        &[COPY, "what_cannot_be_built_is_not_proven_either"],
    ),
    ("C++ programs are linked", &[LANGUAGES]),
    // Section: What it costs
    ("`cargo bench -p selvedge-cli", MEASURED),
    ("Then it runs programs that fail", MEASURED),
    ("`--full` takes the median", MEASURED),
    ("On two cores with nothing else", MEASURED),
    ("The document does not say", REASON),
    ("Its programs take 113 µs", REASON),
    ("In a program that does nothing", MEASURED),
    ("The prefix that a program is built with", MEASURED),
    ("Comparing events with what was proven", MEASURED),
    ("The column `detection%`", MEASURED),
    ("The copies stay in", MEASURED),
];

/// It says what words mean, or why something is done.
const REASON: &[&str] = &["(reason)"];
/// It says what is not promised.
const EXCLUDED: &[&str] = &["(not promised)"];
/// `benches/tables.rs` measures it.
const MEASURED: &[&str] = &["(measured)"];

const SAFE: &str = "whatever_is_published_for_random_programs_is_safe_and_ends";
const KILLED: &str = "a_verifier_that_is_killed_leaves_a_whole_file";
const NEWER: &str = "a_running_program_takes_up_a_weaker_prefix";
const HALF: &str = "a_proof_that_is_killed_every_second_goes_half_as_fast";
const ONCE: &str = "an_unchanged_program_in_cxx_is_compiled_once";
const ENDLESS: &str = "a_program_without_an_end_is_refused_at_once";
const JOBS: &str = "proofs_do_not_depend_on_the_number_of_processes";
const SHOWN: &str = "the_documentation_shows_what_the_commands_print";
const STORED: &str = "what_is_stored_is_seen_by_later_loads_of_others";
const LOOPS: &str = "a_loop_stays_ordered_as_long_as_what_comes_after_it";
const GIVEN: &str = "each_input_has_its_prefix_and_others_are_noticed";
const FILE: &str = "a_damaged_prefix_is_refused_and_a_missing_one_is_not_missed";
const LANGUAGES: &str = "programs_of_every_compiler_and_language_are_enforced";
const PROVEN: &str = "what_was_proven_is_not_taken_for_something_else";
const SERIAL: &str = "a_program_that_is_not_stopped_runs_one_thread_at_a_time";
const ORDER: &str = "a_program_that_is_not_stopped_keeps_the_order_of_the_proven_schedule";
const STATUS: &str = "the_status_of_a_program_that_is_run_is_its_own";
const EARLY: &str = "a_store_is_not_told_of_before_it_is_made";
const ENDS: &str = "the_end_of_main_ends_a_program";
const ADDRESSES: &str = "what_depends_on_addresses_is_noticed";
const COPY: &str = "a_structure_is_copied_in_its_turn";

/// The sentences of the page, but for its headings, tables and what is run.
fn sentences(page: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), String::new());
    let mut code = false;
    for line in page.lines() {
        code ^= line.starts_with("```");
        let heading = line.starts_with('#') && !code;
        if line.is_empty() || code || line.starts_with("* ") || heading {
            blocks.push(std::mem::take(&mut block));
        }
        let other = ["```", "|"].iter().any(|start| line.starts_with(start));
        if !heading && !code && !other {
            block += &format!(" {}", line.trim_start_matches("* ").trim());
        }
    }
    blocks.push(block);
    let blocks = blocks.iter().map(|block| block.replace("**", ""));
    blocks.flat_map(|block| split(block.trim())).collect()
}

/// A new sentence begins with a capital letter or with code.
fn split(block: &str) -> Vec<String> {
    let (mut sentences, mut from) = (Vec::new(), 0);
    for (at, _) in block.char_indices().filter(|&(_, c)| c == ' ') {
        let ends = block[..at].ends_with(['.', ':']);
        let begins = |c: char| c.is_uppercase() || "`*".contains(c);
        if ends && block[at + 1..].starts_with(begins) {
            sentences.push(block[from..at].to_owned());
            from = at + 1;
        }
    }
    sentences.push(block[from..].to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// The names of all functions in the tests of all crates.
fn functions(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let names = text
                .lines()
                .filter_map(|line| line.strip_prefix("fn ")?.strip_suffix("() {"));
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_sentence_has_a_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(crates.join("../docs/irs.md")).expect("the page");
    let sentences = sentences(&page);
    for (sentence, (begins, _)) in sentences.iter().zip(SENTENCES) {
        assert!(
            sentence.starts_with(begins),
            "docs/irs.md promises something new, which needs a test:\n{sentence}\ninstead of {begins}"
        );
    }
    assert_eq!(sentences.len(), SENTENCES.len(), "{sentences:#?}");
    let mut known = BTreeSet::new();
    for part in ["selvedge-cli", "selvedge-core", "selvedge-irs-format"] {
        functions(&crates.join(part).join("tests"), &mut known);
    }
    for (sentence, tests) in SENTENCES {
        assert!(!tests.is_empty(), "{sentence}");
        for name in tests.iter().filter(|name| !name.starts_with('(')) {
            assert!(known.contains(*name), "there is no test {name}");
        }
    }
}

/// Proves a program, and returns what is told.
fn verify(sandbox: &Sandbox, options: &[&str], status: i32) -> Value {
    let mut all = vec!["irs", "verify", "prog.c", "-o", "prog.irs", "--anew"];
    all.extend(["--format", "json"]);
    all.extend(options);
    sandbox.run(&all).ends_with(status).json()
}

/// Builds what was proven and runs it this often.
fn keeps_to_it(sandbox: &Sandbox, flags: &[&str], runs: u32) {
    let build = ["irs", "build", "prog.c", "-o", "prog"];
    sandbox.run(&[&build[..], flags].concat()).ends_with(0);
    for _ in 0..runs {
        let (status, words) = run(&sandbox.path("prog"), &[]);
        assert!(status.success(), "{status}: {words}");
    }
}

#[test]
fn failures_of_every_kind_are_kept_away() {
    let race = "static atomic_int ready; static int data;\n\
        static void *other(void *p) { (void)ready; data++; return p; }\n\
        static void here(void) { data = 1; ready = 1; }\n";
    let freed = "static atomic_int *_Atomic box; static atomic_int x, seen;\n\
        static void *other(void *p) { if (box) *box = 1; seen = 1; return p; }\n\
        static void here(void) { box = malloc(sizeof *box); *box = 0; x = seen; free(box); }\n";
    let deadlock = "static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;\n\
        static void both(pthread_mutex_t *one, pthread_mutex_t *two) {\n\
          pthread_mutex_lock(one); pthread_mutex_lock(two);\n\
          pthread_mutex_unlock(two); pthread_mutex_unlock(one);\n\
        }\n\
        static void *other(void *p) { both(&a, &b); return p; }\n\
        static void here(void) { both(&b, &a); }\n";
    let assertion = "static atomic_int x;\n\
        static void *other(void *p) { int v = x; x = v + 1; return p; }\n\
        static void here(void) { other(0); }\n\
        static void __attribute__((destructor)) end(void) { assert(x == 2); }\n";
    for (kind, text) in [
        ("data-race", race),
        ("use-after-free", freed),
        ("deadlock", deadlock),
        ("assertion", assertion),
    ] {
        let text = format!(
            "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n{text}\
             int main(void) {{\n\
               pthread_t t; pthread_create(&t, 0, other, 0); here(); pthread_join(t, 0);\n\
             }}\n"
        );
        let sandbox = Sandbox::with("prog.c", &text);
        let told = verify(&sandbox, &[], 1);
        assert_eq!(told["bugs"][0]["kind"], kind, "{told}");
        assert_eq!(told["constraints"].as_array().unwrap().len(), 1, "{told}");
        keeps_to_it(&sandbox, &[], 20);
    }
}

#[test]
fn without_a_safe_schedule_nothing_is_enforced() {
    let fails = "#include <assert.h>\nint main(void) { assert(0); }\n";
    let races = "#include <pthread.h>\nstatic int x;\n\
        static void *set(void *p) { x = 1; return p; }\n\
        int main(void) {\n\
          pthread_t t; pthread_create(&t, 0, set, 0); x = 2; pthread_join(t, 0);\n\
        }\n";
    for (text, bug, note) in [
        (fails, "bug: assertion failed", ""),
        (
            races,
            "bug: data race",
            "note: constraints order events only, and these plain accesses are no events",
        ),
    ] {
        let sandbox = Sandbox::with("prog.c", text);
        let outcome = sandbox.run(&["irs", "verify", "prog.c"]);
        outcome.ends_with(2).says(note).says(
            "error: there is nothing to enforce: no schedule was found under which the program does not fail\n",
        );
        let all = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(all.contains(bug), "{outcome:?}");
        assert!(!sandbox.path("prog.irs").exists());
    }
}

/// Store buffering: without fences, a processor lets both threads miss the other one's store.
#[test]
fn what_is_stored_is_seen_by_later_loads_of_others() {
    let text = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
        static _Alignas(64) TYPE x; static _Alignas(64) TYPE y;\n\
        static _Alignas(64) int a, b; static _Alignas(64) atomic_int ready;\n\
        static void *one(void *p) { ready++; while (ready < 2) ; STORE(x); a = LOAD(y); return p; }\n\
        static void *two(void *p) { ready++; while (ready < 2) ; STORE(y); b = LOAD(x); return p; }\n\
        int main(void) {\n\
          pthread_t s, t; pthread_create(&s, 0, one, 0); pthread_create(&t, 0, two, 0);\n\
          pthread_join(s, 0); pthread_join(t, 0); assert(a || b);\n\
        }\n";
    let relaxed = [
        "--",
        "-DTYPE=atomic_int",
        "-DSTORE(v)=atomic_store_explicit(&v, 1, memory_order_relaxed)",
        "-DLOAD(v)=atomic_load_explicit(&v, memory_order_relaxed)",
    ];
    let plain = ["--", "-DTYPE=int", "-DSTORE(v)=v = 1", "-DLOAD(v)=v"];
    for (options, flags) in [(&[][..], relaxed), (&["--plain", "sc"], plain)] {
        let sandbox = Sandbox::with("prog.c", text);
        let told = verify(&sandbox, &[options, &flags].concat(), 0);
        assert_eq!(told["constraints"], Value::Array(Vec::new()));
        keeps_to_it(&sandbox, &flags, 300);
    }
}

#[test]
fn a_loop_stays_ordered_as_long_as_what_comes_after_it() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n\
        static atomic_int ready, x;\n\
        static void *waits(void *p) { while (!ready) ; x++; x++; return p; }\n\
        int main(void) {\n\
          pthread_t a, b; pthread_create(&a, 0, waits, 0); pthread_create(&b, 0, waits, 0);\n\
          ready = 1; x++; pthread_join(a, 0); pthread_join(b, 0);\n\
        }\n";
    let sandbox = Sandbox::with("prog.c", text);
    let mut mentioned = 0;
    for executions in 1..=30 {
        let limit = ["--max-executions", &executions.to_string()];
        let told = verify(&sandbox, &limit, if executions < 30 { 3 } else { 0 });
        let constraints = told["constraints"].as_array().unwrap();
        for thread in [1, 2] {
            let waits = |constraint: &&Value| constraint["thread"] == thread;
            let ordered = constraints
                .iter()
                .filter(waits)
                .any(|constraint| constraint["event"] == 0);
            let after = constraints.iter().any(|constraint| {
                let own = constraint["thread"] == thread && constraint["event"] != 0;
                own || constraint["source"] == thread && constraint["count"].as_u64() > Some(1)
            });
            mentioned += u32::from(after);
            assert!(ordered || !after, "thread {thread}: {told}");
        }
    }
    assert!(mentioned > 0, "nothing was ordered after the loop");
}

/// The last digit of the program's name decides how many choices are made.
#[test]
fn other_choices_than_were_proven_are_noticed() {
    let text = "#include <pthread.h>\n#include <string.h>\nunsigned selvedge_choose(unsigned);\n\
        static void *nothing(void *p) { return p; }\n\
        int main(int argc, char **argv) {\n\
          int last = argv[0][strlen(argv[0]) - 1] - '0', choices = 2; (void)argc;\n\
          if (last >= 0 && last <= 9) choices = last;\n\
          for (int i = 0; i < choices; i++) selvedge_choose(2);\n\
          pthread_t t; pthread_create(&t, 0, nothing, 0); pthread_join(t, 0); return 0;\n\
        }\n";
    let sandbox = Sandbox::with("prog.c", text);
    assert_eq!(verify(&sandbox, &[], 0)["inputs"], 4);
    keeps_to_it(&sandbox, &[], 1);
    let file = sandbox.path("prog.irs");
    for digit in [0, 1, 2, 3] {
        let program = sandbox.path(&format!("prog{digit}"));
        fs::copy(sandbox.path("prog"), &program).expect("a copy");
        let (status, words) = run(&program, &[("SELVEDGE_IRS", file.to_str().unwrap())]);
        assert_eq!(status.success(), digit == 2, "{digit}: {words}");
        let noticed = words.contains("this input was not verified");
        assert_eq!(noticed, digit != 2, "{digit}: {words}");
    }
}

#[test]
fn choices_after_the_first_thread_are_no_inputs() {
    let text = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
        unsigned selvedge_choose(unsigned);\n\
        static atomic_int x;\n\
        static void *add(void *p) { x += selvedge_choose(3); return p; }\n\
        int main(void) {\n\
          pthread_t a; pthread_create(&a, 0, add, 0); x += selvedge_choose(2);\n\
          pthread_join(a, 0); assert(x <= 3); return 0;\n\
        }\n";
    let sandbox = Sandbox::with("prog.c", text);
    let told = verify(&sandbox, &[], 0);
    assert_eq!(told["inputs"], 1, "{told}");
    // Two orders, two and three alternatives.
    assert_eq!(told["traces"], 12, "{told}");
}

#[test]
fn standard_input_is_refused() {
    for call in ["getchar()", "read(0, &c, 1)", "scanf(\"%d\", &c)"] {
        let text = format!(
            "#include <stdio.h>\n#include <unistd.h>\nint main(void) {{ int c = 0; return {call} + c > 1; }}\n"
        );
        let sandbox = Sandbox::with("prog.c", &text);
        let name = call.split('(').next().unwrap();
        let outcome = sandbox.run(&["irs", "verify", "prog.c"]);
        outcome.ends_with(2).says(name);
        assert!(!sandbox.path("prog.irs").exists());
    }
}

#[test]
fn the_name_of_a_program_differs() {
    let text = "#include <assert.h>\n#include <string.h>\n\
        int main(int argc, char **argv) { assert(argc == 1 && !strcmp(argv[0], \"program\")); }\n";
    let sandbox = Sandbox::with("prog.c", text);
    verify(&sandbox, &[], 0);
    keeps_to_it(&sandbox, &[], 0);
    let (status, words) = run(&sandbox.path("prog"), &[]);
    assert!(!status.success());
    assert!(words.contains("left what was verified"), "{words}");
}

/// The document's Section 5 has them, too.
#[test]
fn the_documents_first_constraints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    for (example, flag, constraints) in [
        ("indexer.c", "-DTHREADS=15", 12),
        // And one thread that searches.
        ("lastzero.c", "-DWRITERS=15", 15),
    ] {
        let text = fs::read_to_string(root.join(example)).expect("the example");
        let sandbox = Sandbox::with("prog.c", &text);
        let told = verify(&sandbox, &["--max-executions", "1", "--", flag], 3);
        assert_eq!(told["initial"], constraints, "{told}");
    }
}

#[test]
fn the_first_schedule_has_the_fewest_waiting_threads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    for example in ["lastzero.c", "micro.c", "event_counter.c", "indexer.c"] {
        let text = fs::read_to_string(root.join(example)).expect("the example");
        let sandbox = Sandbox::with("prog.c", &text);
        let waiting = |options: &[&str]| {
            let limit = ["--plain", "sc", "--max-executions", "1"];
            let all = ["irs", "verify", "prog.c", "-o", "prog.irs", "--anew"];
            sandbox.run(&[&all[..], &limit, options].concat());
            let stat = sandbox.run(&["irs", "stat", "prog.irs", "--format", "json"]);
            let stat = stat.ends_with(0).json();
            stat["inputs"][0]["waiting_threads"].as_u64().unwrap()
        };
        let orders = ["ascending", "descending", "turns"];
        let least = orders.map(|order| waiting(&["--order", order]));
        assert_eq!(Some(&waiting(&[])), least.iter().min(), "{example}");
    }
}

#[test]
fn a_prefix_of_another_program_is_no_prefix() {
    let sandbox = Sandbox::with("prog.c", include_str!("../irs/philosophers.c"));
    verify(&sandbox, &[], 1);
    fs::rename(sandbox.path("prog.irs"), sandbox.path("other.irs")).expect("it is there");
    sandbox.write("prog.c", include_str!("../irs/too_early.c"));
    verify(&sandbox, &["--plain", "sc"], 1);
    for (policy, word) in [
        ("abort", "it is stopped"),
        ("warn", "runs on unconstrained"),
        ("serial", "it runs on with one thread at a time"),
    ] {
        keeps_to_it(&sandbox, &["--on-divergence", policy], 1);
        let other = sandbox.path("other.irs");
        let other = other.to_str().unwrap();
        let (_, words) = run(&sandbox.path("prog"), &[("SELVEDGE_IRS", other)]);
        let expected = "selvedge: the prefix file is for another program";
        assert!(words.starts_with(expected), "{words}");
        assert!(words.contains(word), "{policy}: {words}");
    }
}

#[test]
fn what_the_library_does_not_have_is_refused() {
    for (header, code, what) in [
        (
            "barrier",
            "std::barrier<> b(2); std::thread t([&] { b.arrive_and_wait(); }); b.arrive_and_wait(); t.join();",
            "cannot enforce an order on waiting for an atomic\n",
        ),
        (
            "semaphore",
            "std::counting_semaphore<2> s(0); std::thread t([&] { s.release(); }); s.acquire(); t.join();",
            "cannot enforce an order on std::counting_semaphore\n",
        ),
        (
            "mutex",
            "std::once_flag f; try { std::call_once(f, [] { throw 1; }); } catch (int) {}",
            "an exception leaves a routine of `call_once`, which cannot be enforced\n",
        ),
    ] {
        let text = format!("#include <{header}>\n#include <thread>\nint main() {{ {code} }}\n");
        let sandbox = Sandbox::with("prog.cpp", &text);
        sandbox
            .run(&["irs", "verify", "prog.cpp", "--", "-std=c++20"])
            .ends_with(2)
            .says(what);
    }
}

#[test]
fn the_end_of_main_ends_a_program() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n#include <unistd.h>\n\
        static atomic_int x;\n\
        static void *late(void *p) { sleep(1000); x = 1; return p; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, late, 0); return 7 + x; }\n";
    let sandbox = Sandbox::with("prog.c", text);
    // The verifier lets the thread run to its end, before or after main.
    assert_eq!(verify(&sandbox, &[], 0)["traces"], 2);
    keeps_to_it(&sandbox, &[], 0);
    let (status, words) = run(&sandbox.path("prog"), &[]);
    assert_eq!(status.code(), Some(7), "{words}");
}

//! The models of the document on context-switch-directed search, small.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Sandbox, compilers};

/// Checks one of the benchmark's programs.
fn check(program: &str, options: &str, flags: &str) -> Value {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tables/programs/csdr");
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .arg("verify")
        .arg(programs.join(program))
        .args(["--model", "sc", "--format", "json"])
        .args(options.split_whitespace())
        .arg("--")
        .args(flags.split_whitespace())
        .output()
        .expect("the command runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn what_is_right_is_verified_by_every_search() {
    let models = [
        ("barrier.c", "--spurious-wakeups", "-DN=2"),
        ("barrier_re.c", "", "-DN=2"),
        ("barrier_n.c", "", ""),
        ("fifo.c", "", "-DITEMS=4"),
    ];
    for (program, options, flags) in models {
        // Equal situations are equal states, so that the order of the search makes no difference.
        let mut states = None;
        for algorithm in [
            "csdr",
            "csdr-exact",
            "bfs",
            "dfs",
            "csdr --lossless",
            "bfs --jobs 2",
        ] {
            let options = format!("--algorithm {algorithm} {options}");
            let report = check(program, &options, flags);
            assert_eq!(report["verdict"], "verified", "{program} {options}");
            let count = report["states"].as_u64().filter(|&count| count > 20);
            assert!(count.is_some(), "{report}");
            assert_eq!(*states.get_or_insert(count), count, "{program} {options}");
        }
    }
}

#[test]
fn bugs_are_found_with_the_fewest_switches() {
    // The fewest switches, and what kind of bug it is.
    let models = [
        ("barrier.c", "--spurious-wakeups", "-DBUG", 1, "assertion"),
        ("barrier_re.c", "", "-DBUG=1", 5, "deadlock"),
        ("barrier_re.c", "", "-DBUG=2", 3, "assertion"),
        ("barrier_re.c", "", "-DBUG=3", 4, "assertion"),
        ("barrier_n.c", "", "-DBUG", 3, "deadlock"),
        ("fifo.c", "", "-DBUG", 2, "assertion"),
        ("partial_deadlock.c", "", "", 3, "deadlock"),
        ("partial_deadlock_2.c", "", "", 2, "deadlock"),
    ];
    for (program, options, flags, switches, kind) in models {
        let exact = check(program, &format!("--algorithm csdr-exact {options}"), flags);
        assert_eq!(exact["bug"]["context_switches"], switches, "{program}");
        assert_eq!(exact["bug"]["kind"], kind, "{program}");
        let few = check(program, &format!("--algorithm csdr {options}"), flags);
        assert!(few["bug"]["context_switches"].as_u64() >= Some(switches));
        let bfs = check(program, &format!("--algorithm bfs {options}"), flags);
        let length = |report: &Value| report["bug"]["trace"].as_array().map(Vec::len);
        assert!(length(&bfs) <= length(&exact), "{program}");
    }
}

#[test]
fn the_counterexample_is_the_same_with_several_processes() {
    for algorithm in ["csdr", "csdr-exact", "bfs"] {
        let run = |jobs| {
            let options = format!("--algorithm {algorithm} --jobs {jobs}");
            check("partial_deadlock_2.c", &options, "")["bug"]["trace"].clone()
        };
        let alone = run(1);
        assert!(alone.is_array());
        assert_eq!(alone, run(2), "{algorithm}");
    }
}

/// Threads that several others create have numbers which the processes have to agree upon, and
/// heaps that go along.
#[test]
fn threads_have_the_same_numbers_in_all_processes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("program.c");
    let source = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int a, b, c, d;
static void *leaf(void *counter) {
  int *five = malloc(sizeof *five);
  *five = 5;
  atomic_fetch_add((atomic_int *)counter, 1);
  atomic_fetch_add(&d, *five);
  free(five);
  return counter;
}
static void work(atomic_int *first, atomic_int *second) {
  pthread_t thread;
  for (int i = 0; i < 3; i++)
    atomic_fetch_add(first, 1);
  pthread_create(&thread, NULL, leaf, second);
  pthread_join(thread, NULL);
}
static void *one(void *unused) {
  work(&a, &c);
  return unused;
}
static void *two(void *unused) {
  work(&b, &a);
  if (atomic_load(&a) == 2)
    work(&b, &c);
  return unused;
}
static void *three(void *unused) {
  work(&c, &b);
#ifdef BUG
  assert(atomic_load(&b) != 4 || atomic_load(&a) != 4);
#endif
  return unused;
}
int main(void) {
  pthread_t x, y, z;
  pthread_create(&x, NULL, one, NULL);
  pthread_create(&y, NULL, two, NULL);
  pthread_create(&z, NULL, three, NULL);
  pthread_join(x, NULL);
  pthread_join(y, NULL);
  pthread_join(z, NULL);
}
";
    std::fs::write(&file, source).expect("the program is written");
    let file = file.to_str().expect("a plain path");
    // Variables without a value are the same however a thread came to them, so that all searches
    // see the same states.
    let of = |algorithm| check(file, &format!("--algorithm {algorithm}"), "")["states"].clone();
    assert_eq!(of("bfs"), of("dfs"));
    assert_eq!(of("bfs"), of("csdr"));
    let run = |jobs: u32, flags: &str| {
        let report = check(file, &format!("--algorithm csdr --jobs {jobs}"), flags);
        let processes = report["processor_seconds"].as_array().map(Vec::len);
        assert_eq!(processes, Some(jobs as usize), "{report}");
        report
    };
    let (all, bug) = (run(1, ""), run(1, "-DBUG"));
    assert_eq!(
        (&all["verdict"], &bug["verdict"]),
        (&"verified".into(), &"bug".into())
    );
    for jobs in [2, 3] {
        let several = run(jobs, "");
        assert_eq!(several["verdict"], "verified");
        assert_eq!(several["states"], all["states"], "{jobs}");
        assert_eq!(several["transitions"], all["transitions"], "{jobs}");
        assert_eq!(run(jobs, "-DBUG")["bug"]["trace"], bug["bug"]["trace"]);
    }
}

/// Nor does it matter what calls left in registers before an access that the compiler forgot to
/// announce.
#[test]
fn optimised_code_has_the_same_states_in_every_order() {
    let of = |algorithm| check("barrier_n.c", &format!("--algorithm {algorithm}"), "-O2");
    let all = of("bfs")["states"].clone();
    assert!(all.is_number());
    assert_eq!(of("dfs")["states"], all);
    assert_eq!(of("csdr")["states"], all);
}

#[test]
fn a_bound_is_named_unless_it_leaves_nothing_out() {
    let within = |switches: u32, algorithm: &str| {
        let options = format!("--algorithm {algorithm} --switches {switches}");
        check("barrier_re.c", &options, "-DBUG=2")
    };
    assert_eq!(within(2, "csdr-exact")["verdict"], "verified");
    assert_eq!(within(2, "csdr-exact")["bound"], 2);
    assert_eq!(within(2, "csdr")["verdict"], "incomplete");
    assert_eq!(within(3, "csdr-exact")["verdict"], "bug");
}

/// Checks a program of two threads, `one` and `two`: what is found, either the kind of a bug or the
/// verdict.
fn bug_of(threads: &str, options: &str) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = format!(
        "#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static int *plain;
static atomic_int *shared;
static pthread_mutex_t *mutex;
static atomic_int flag;
{threads}
int main(void) {{
  pthread_t a, b;
  shared = malloc(sizeof *shared);
  mutex = malloc(sizeof *mutex);
  pthread_mutex_init(mutex, NULL);
  pthread_create(&a, NULL, one, NULL);
  pthread_create(&b, NULL, two, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}}
"
    );
    let file = directory.path().join("program.c");
    std::fs::write(&file, source).expect("the program is written");
    let file = file.to_str().expect("a plain path");
    let report = check(file, options, "");
    match &report["bug"]["kind"] {
        Value::Null => report["verdict"].clone(),
        kind => kind.clone(),
    }
}

#[test]
fn locals_are_shared_once_a_plain_store_gives_their_address_away() {
    let threads = "
static void *one(void *unused) {
  int local = 0;
  plain = &local;
  atomic_store(&flag, 1);
  local = 1;
  while (atomic_load(&flag) != 2) ;
  return unused;
}
static void *two(void *unused) {
  if (atomic_load(&flag) == 1 && *plain == 1) ;
  atomic_store(&flag, 2);
  return unused;
}";
    assert_eq!(bug_of(threads, "--algorithm bfs"), "data-race");
}

#[test]
fn memory_that_is_freed_while_a_thread_is_about_to_access_it_is_found() {
    for access in [
        "atomic_store(mine, 1)",
        "*(int *)mine = 1",
        "if (*(int *)mine) abort()",
    ] {
        let threads = format!(
            "static void *one(void *unused) {{
               atomic_int *mine = shared;
               atomic_store(&flag, 1);
               {access};
               return unused;
             }}
             static void *two(void *unused) {{
               if (atomic_load(&flag)) free(shared);
               return unused;
             }}"
        );
        let options = "--algorithm bfs --plain sc";
        assert_eq!(bug_of(&threads, options), "use-after-free", "{access}");
    }
}

#[test]
fn a_destroyed_mutex_on_the_heap_stays_destroyed() {
    let threads = "
static void *one(void *unused) {
  pthread_mutex_destroy(mutex);
  atomic_store(&flag, 1);
  return unused;
}
static void *two(void *unused) {
  while (!atomic_load(&flag)) ;
  pthread_mutex_lock(mutex);
  return unused;
}";
    assert_eq!(bug_of(threads, "--algorithm bfs"), "object-misuse");
}

#[test]
fn who_waits_for_a_word_goes_on_waiting_when_it_is_written() {
    let threads = "
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *one(void *unused) {
  while (!atomic_load(&flag)) syscall(SYS_futex, &flag, FUTEX_WAIT, 0, 0);
  return unused;
}
static void *two(void *unused) {
  atomic_store(&flag, 1);
  WAKE
  return unused;
}";
    let wake = "syscall(SYS_futex, &flag, FUTEX_WAKE, 1);";
    for (wake, expected) in [(wake, "verified"), ("", "deadlock")] {
        let threads = threads.replace("WAKE", wake);
        assert_eq!(bug_of(&threads, "--algorithm bfs"), expected, "{wake}");
    }
}

#[test]
fn nobody_gets_past_the_end_of_the_process() {
    let threads = "
static void *ends(void *unused) { exit(0); }
static void *one(void *unused) { return unused; }
static void *two(void *unused) {
  pthread_t thread;
  pthread_create(&thread, NULL, ends, NULL);
  pthread_join(thread, NULL);
  abort();
}";
    for options in [
        "",
        "--equivalence reads-from",
        "--algorithm source-dpor",
        "--algorithm bfs",
    ] {
        assert_eq!(bug_of(threads, options), "verified", "{options}");
    }
}

#[test]
fn what_is_sorted_in_another_threads_memory_stays_sorted() {
    let threads = "
static int less(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static void *sort(void *all) {
  qsort(all, 3, sizeof(int), less);
  return NULL;
}
static void *one(void *unused) {
  int all[3] = {3, 2, 1}, *block = malloc(sizeof all);
  for (int i = 0; i < 3; i++) block[i] = all[i];
  for (int i = 0; i < 2; i++) {
    int *here = i ? all : block;
    pthread_t thread;
    pthread_create(&thread, NULL, sort, here);
    pthread_join(thread, NULL);
    if (here[0] != 1 || here[1] != 2 || here[2] != 3) abort();
  }
  return unused;
}
static void *two(void *unused) { return unused; }";
    assert_eq!(bug_of(threads, "--algorithm bfs"), "verified");
}

/// gcc announces both sides of a structure's copy before it makes it, so the thread is stopped in
/// between: the audit finds changes that no state would show.
#[test]
fn copies_of_structures_are_noticed_when_they_are_made() {
    let sandbox = Sandbox::with(
        "copies.c",
        "#include <pthread.h>
         #include <stdlib.h>
         struct big { long part[5]; };
         static struct big *heap[2], global;
         static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
         static void *run(void *p) {
             long n = (long)p;
             heap[n] = malloc(sizeof(struct big));
             for (int i = 0; i < 5; i++) heap[n]->part[i] = n + i;
             pthread_mutex_lock(&lock);
             if (heap[1 - n]) { *heap[1 - n] = *heap[n]; global = *heap[1 - n]; *heap[n] = global; }
             pthread_mutex_unlock(&lock);
             return 0;
         }
         int main(void) {
             pthread_t a, b;
             pthread_create(&a, 0, run, (void *)0);
             pthread_create(&b, 0, run, (void *)1);
             pthread_join(a, 0);
             pthread_join(b, 0);
         }",
    );
    let program = "verify copies.c --model sc --plain sc --algorithm csdr --cc";
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let mut arguments: Vec<&str> = program.split(' ').collect();
            arguments.extend([compiler, "--", level]);
            let mut command = sandbox.command(&arguments);
            let child = command.env("SELVEDGE_AUDIT", "1").spawn();
            sandbox
                .finish(child.expect("the command starts"))
                .ends_with(0);
        }
    }
}

/// Whatever a step changes, it says so.
#[test]
fn every_change_of_a_state_is_noticed() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    let sandbox = Sandbox::new();
    for (n, example) in [
        "bakery",
        "clh_lock",
        "ms_queue",
        "rwlock_atomic",
        "spsc_ring",
    ]
    .iter()
    .enumerate()
    {
        let path = examples.join(format!("{example}.c"));
        let compiler = compilers()[n % compilers().len()];
        let path = path.to_str().expect("a path in UTF-8");
        let arguments = [
            "verify",
            path,
            "--model",
            "sc",
            "--algorithm",
            "csdr",
            "--cc",
        ];
        let arguments = [&arguments[..], &[compiler]].concat();
        let mut command = sandbox.command(&arguments);
        let child = command.env("SELVEDGE_AUDIT", "1").spawn();
        sandbox
            .finish(child.expect("the command starts"))
            .ends_with(0);
    }
}

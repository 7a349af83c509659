//! Programs that are built to keep to verified schedules do so.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use selvedge_testkit::{c_source, enforceable_programs};

use crate::common::{Sandbox, compilers};

/// Nothing here takes long; what does hangs.
const HANGS: Duration = Duration::from_secs(20);

/// How it ends.
pub(crate) fn run(program: &Path, variables: &[(&str, &str)]) -> (ExitStatus, String) {
    let errors = tempfile::NamedTempFile::new().expect("a temporary file");
    let stderr = errors.reopen().expect("the file is there");
    let mut child = Command::new(program)
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the program starts");
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the program can be waited for") {
            let words = fs::read_to_string(errors.path()).unwrap_or_default();
            return (status, words);
        }
        if begin.elapsed() > HANGS {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{} hangs {variables:?}", program.display());
        }
        thread::sleep(Duration::from_micros(100));
    }
}

/// Verifies and builds a program in a sandbox.
fn build(sandbox: &Sandbox, file: &str, options: &[&str]) {
    let mut verify = vec!["irs", "verify", file, "-o", "prog.irs", "--timeout", "10"];
    verify.extend(options);
    let verified = sandbox.run(&verify);
    assert!(sandbox.path("prog.irs").exists(), "{}", verified.stderr);
    let built = sandbox.run(&["irs", "build", file, "-o", "prog"]);
    assert_eq!(built.status, Some(0), "{}", built.stderr);
}

fn never_fails(text: &str, options: &[&str], runs: u32) {
    let sandbox = Sandbox::with("prog.c", text);
    build(&sandbox, "prog.c", options);
    for _ in 0..runs {
        let (status, words) = run(&sandbox.path("prog"), &[]);
        assert!(status.success(), "{status}: {words}");
    }
}

#[test]
fn eight_threads_lose_no_update() {
    never_fails(
        include_str!("../irs/lost_update.c"),
        &["--plain", "sc"],
        150,
    );
}

#[test]
fn nobody_is_too_early() {
    never_fails(include_str!("../irs/too_early.c"), &["--plain", "sc"], 150);
}

/// Places where nobody ever waits, because whoever comes there holds the lock, are verified too.
#[test]
fn locks_may_be_taken_by_who_holds_them() {
    let text = "#define _GNU_SOURCE\n#include <assert.h>\n#include <errno.h>\n#include <pthread.h>\n\
        static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;\n\
        static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;\n\
        static int count;\n\
        static void *counts(void *p) {\n\
          pthread_mutex_lock(&again); pthread_mutex_lock(&again); count++;\n\
          pthread_mutex_unlock(&again); pthread_mutex_unlock(&again);\n\
          pthread_rwlock_wrlock(&lock); assert(pthread_rwlock_wrlock(&lock) == EDEADLK);\n\
          assert(pthread_rwlock_tryrdlock(&lock) == EBUSY);\n\
          pthread_rwlock_unlock(&lock); return p;\n\
        }\n\
        int main(void) {\n\
          pthread_t one; pthread_create(&one, 0, counts, 0); counts(0);\n\
          pthread_join(one, 0); assert(count == 2);\n\
        }\n";
    for executions in ["1", "1000"] {
        never_fails(text, &["--max-executions", executions], 5);
    }
}

#[test]
fn memory_that_was_used_before_becomes_a_condition_variable() {
    let text = "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n\
        struct box { pthread_mutex_t lock; pthread_cond_t full; pthread_barrier_t both; int there; };\n\
        static void *fills(void *p) {\n\
          struct box *box = p; pthread_barrier_wait(&box->both);\n\
          pthread_mutex_lock(&box->lock); box->there = 1; pthread_cond_signal(&box->full);\n\
          pthread_mutex_unlock(&box->lock); return p;\n\
        }\n\
        int main(void) {\n\
          struct box *box = malloc(sizeof *box); memset(box, 0x55, sizeof *box); box->there = 0;\n\
          pthread_mutex_init(&box->lock, 0); pthread_cond_init(&box->full, 0);\n\
          pthread_barrier_init(&box->both, 0, 2);\n\
          pthread_t filler; pthread_create(&filler, 0, fills, box);\n\
          pthread_barrier_wait(&box->both); pthread_mutex_lock(&box->lock);\n\
          while (!box->there) pthread_cond_wait(&box->full, &box->lock);\n\
          pthread_mutex_unlock(&box->lock); pthread_join(filler, 0); free(box); return 0;\n\
        }\n";
    never_fails(text, &[], 5);
}

#[test]
fn philosophers_do_not_starve() {
    never_fails(include_str!("../irs/philosophers.c"), &[], 150);
}

#[test]
fn another_input_than_was_verified_is_noticed() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
        static atomic_int x;\n\
        static void *one(void *p) { x++; if (p) x--; return 0; }\n\
        int main(void) {\n\
          pthread_t a, b; void *other = getenv(\"OTHER\");\n\
          pthread_create(&a, 0, one, other); pthread_create(&b, 0, one, 0);\n\
          pthread_join(a, 0); pthread_join(b, 0); return x != 2;\n\
        }\n";
    let sandbox = Sandbox::with("prog.c", text);
    build(&sandbox, "prog.c", &[]);
    assert!(run(&sandbox.path("prog"), &[]).0.success());
    let (status, words) = run(&sandbox.path("prog"), &[("OTHER", "1")]);
    assert!(!status.success());
    let what = "reads the environment variable OTHER, which was not set when it was verified";
    assert!(words.contains(what), "{words}");

    let warns = [
        "irs",
        "build",
        "prog.c",
        "-o",
        "prog",
        "--on-divergence",
        "warn",
    ];
    assert_eq!(sandbox.run(&warns).status, Some(0));
    let (status, words) = run(&sandbox.path("prog"), &[("OTHER", "1")]);
    assert_eq!(status.code(), Some(1), "it runs on: {words}");
    assert!(words.contains("runs on unconstrained"), "{words}");
}

/// Two updates that may get lost, unless the input says that one comes after the other.
const INPUT: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <unistd.h>\n\
    int selvedge_range(int, int);\n\
    static atomic_int x;\n\
    static void *add(void *p) { int v = x; usleep(50); x = v + 1; return p; }\n\
    int main(void) {\n\
      pthread_t a, b; int apart = selvedge_range(10, 11) - 10;\n\
      pthread_create(&a, 0, add, 0);\n\
      if (apart) pthread_join(a, 0);\n\
      pthread_create(&b, 0, add, 0);\n\
      if (!apart) pthread_join(a, 0);\n\
      pthread_join(b, 0); assert(x == 2); return 10 + apart;\n\
    }\n";

#[test]
fn each_input_has_its_prefix_and_others_are_noticed() {
    let sandbox = Sandbox::with("prog.c", INPUT);
    build(&sandbox, "prog.c", &[]);
    let given = |input: &str| run(&sandbox.path("prog"), &[("SELVEDGE_INPUT", input)]);
    for (input, code) in [("0", 10), ("1", 11), ("", 10)] {
        for _ in 0..20 {
            let (status, words) = given(input);
            assert_eq!(status.code(), Some(code), "input {input}: {words}");
        }
    }
    for input in ["2", "-1", "one", "99999999999"] {
        let (status, words) = given(input);
        assert_eq!(status.code(), None, "input {input} is not stopped");
        assert!(words.contains("this input was not verified"), "{words}");
    }
    let mut warns = vec!["irs", "build", "prog.c", "-o", "prog"];
    warns.extend(["--on-divergence", "warn"]);
    assert_eq!(sandbox.run(&warns).status, Some(0));
    let (_, words) = given("2");
    assert!(words.contains("runs on unconstrained"), "{words}");
}

/// A reader that has to wait for a writer that sleeps first; without the constraint, it need not.
const SLOW_WRITER: &str = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    static atomic_int x;\n\
    static void *reads(void *p) { (void)atomic_load(&x); puts(\"read\"); fflush(stdout); return p; }\n\
    static void *writes(void *p) { sleep(3); atomic_store(&x, 1); return p; }\n\
    int main(void) {\n\
      pthread_t a, b;\n\
      pthread_create(&a, 0, reads, 0); pthread_create(&b, 0, writes, 0);\n\
      pthread_join(a, 0); pthread_join(b, 0); return 0;\n\
    }\n";

#[test]
fn a_running_program_takes_up_a_weaker_prefix() {
    let sandbox = Sandbox::with("prog.c", SLOW_WRITER);
    build(
        &sandbox,
        "prog.c",
        &["--order", "descending", "--max-executions", "1"],
    );
    let mut command = Command::new(sandbox.path("prog"));
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    thread::sleep(Duration::from_millis(100));
    let verified = sandbox.run(&["irs", "verify", "prog.c", "-o", "prog.irs"]);
    assert_eq!(verified.status, Some(0), "{}", verified.stderr);
    let mut read = [0; 5];
    let mut output = child.stdout.take().expect("standard output is piped");
    output.read_exact(&mut read).expect("the reader says so");
    let waited = begin.elapsed();
    let _ = child.kill();
    let _ = child.wait();
    assert!(
        waited > Duration::from_millis(100),
        "it did not wait at all"
    );
    assert!(waited < Duration::from_secs(2), "{waited:?}");
}

#[test]
fn programs_of_every_compiler_and_language_are_enforced() {
    let text = "#include <cassert>\n#include <mutex>\n#include <thread>\n#include <chrono>\n\
        static std::mutex lock; static int sum;\n\
        static int get() { std::lock_guard<std::mutex> held(lock); return sum; }\n\
        static void add() { int seen = get(); std::this_thread::sleep_for(std::chrono::microseconds(50));\n\
          std::lock_guard<std::mutex> held(lock); sum = seen + 1; }\n\
        int main() { std::thread one(add), two(add); one.join(); two.join(); assert(sum == 2); }\n";
    for compiler in compilers() {
        let sandbox = Sandbox::with("prog.cc", text);
        sandbox.write("prog.c", include_str!("../irs/lost_signal.c"));
        for (file, options) in [("prog.cc", &[][..]), ("prog.c", &["--plain", "sc"])] {
            let mut verify = vec!["irs", "verify", file, "-o", "prog.irs", "--cc", compiler];
            verify.extend(["--timeout", "10", "--anew"]);
            verify.extend(options);
            let verified = sandbox.run(&verify);
            let made = ["irs", "build", file, "-o", "prog", "--cc", compiler];
            let built = sandbox.run(&made);
            assert_eq!(built.status, Some(0), "{}{}", verified.stderr, built.stderr);
            for _ in 0..20 {
                let (status, words) = run(&sandbox.path("prog"), &[]);
                assert!(status.success(), "{compiler} {file}: {status}: {words}");
            }
        }
    }
}

/// Verifies, builds and runs an example, a few times.
fn keeps_to_its_prefix(example: &str, plain: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/c")
        .join(example);
    let text = fs::read_to_string(path).expect("the example is there");
    let sandbox = Sandbox::with(example, &text);
    let mut verify = vec!["irs", "verify", example, "-o", "prog.irs", "--plain", plain];
    verify.extend(["--max-executions", "100", "--timeout", "10"]);
    let verified = sandbox.run(&verify);
    if verified.status == Some(2) {
        // A data race that no schedule keeps away, or memory that is accessed in several sizes.
        assert!(
            verified.stderr.contains("nothing to enforce"),
            "{}",
            verified.stderr
        );
        return;
    }
    let built = sandbox.run(&["irs", "build", example, "-o", "prog"]);
    assert_eq!(built.status, Some(0), "{example}: {}", built.stderr);
    for _ in 0..5 {
        let (status, words) = run(&sandbox.path("prog"), &[]);
        assert!(
            status.success(),
            "{example} --plain {plain}: {status}: {words}"
        );
    }
}

/// Where a frame is shared, what is put aside in it is announced as well, between a store and its
/// callback.
#[test]
fn a_store_is_not_told_of_before_it_is_made() {
    let text = "#include <assert.h>\n#include <pthread.h>\n#include <unistd.h>\n\
        static int x, z;\n\
        static void *twice(void *p) { x = 3; z++; z++; return p; }\n\
        int main(void) {\n\
          pthread_t h; pthread_create(&h, 0, twice, 0);\n\
          int l = x; usleep(1); z = l + 1;\n\
          pthread_join(h, 0); assert(z == 3); return 0;\n\
        }\n";
    for compiler in compilers() {
        let sandbox = Sandbox::with("prog.c", text);
        let mut verify = vec!["irs", "verify", "prog.c", "-o", "prog.irs", "--plain", "sc"];
        verify.extend(["--max-executions", "1", "--cc", compiler]);
        assert_eq!(sandbox.run(&verify).status, Some(1));
        let build = ["irs", "build", "prog.c", "-o", "prog", "--cc", compiler];
        assert_eq!(sandbox.run(&build).status, Some(0));
        for _ in 0..60 {
            let (status, words) = run(&sandbox.path("prog"), &[]);
            assert!(status.success(), "{compiler}: {status}: {words}");
        }
    }
}

/// gcc announces the store first, and only then the load.
#[test]
fn a_structure_is_copied_in_its_turn() {
    let text = "#include <pthread.h>\n\
        struct pair { int a, b, c, d; }; static struct pair one, two;\n\
        static void *there(void *p) { one = two; return p; }\n\
        static void *back(void *p) { two = one; return p; }\n\
        int main(void) {\n\
          pthread_t a, b; pthread_create(&a, 0, there, 0); pthread_create(&b, 0, back, 0);\n\
          pthread_join(a, 0); pthread_join(b, 0); return 0;\n\
        }\n";
    never_fails(text, &["--plain", "sc", "--max-executions", "1"], 5);
    // In turns, the other thread would have to act between load and store.
    let text = text.replace("one = two;", "two = two; two = two; one = two; one = two;");
    let sandbox = Sandbox::with(
        "prog.c",
        &text.replace("two = one;", "two = one; two = one;"),
    );
    let mut verify = vec!["irs", "verify", "prog.c", "-o", "prog.irs", "--plain", "sc"];
    verify.extend(["--order", "turns", "--max-executions", "1"]);
    // Programs that cannot be built are not said to be proven.
    for refused in [&verify[..], &["irs", "build", "prog.c", "-o", "prog"]] {
        let outcome = sandbox.run(refused);
        outcome.ends_with(2).says("the middle of a copy");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn every_kind_of_object_is_enforced() {
    for example in [
        "barrier_pthread.c",
        "call_once_c11.c",
        "event_counter.c",
        "producer_consumer_if.c",
        "readers_writers.c",
        "shared_ptr_race.cpp",
    ] {
        keeps_to_its_prefix(example, "sc");
    }
}

#[test]
#[ignore = "takes minutes"]
fn every_example_is_enforced() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    for entry in fs::read_dir(directory).expect("there are examples") {
        let name = entry.expect("an example").file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".c") || name.ends_with(".cpp") {
            keeps_to_its_prefix(&name, "race");
            keeps_to_its_prefix(&name, "sc");
        }
    }
}

#[test]
fn a_program_without_a_prefix_is_not_built() {
    let sandbox = Sandbox::with("prog.c", include_str!("../irs/too_early.c"));
    sandbox
        .run(&["irs", "build", "prog.c", "-o", "other"])
        .ends_with(2)
        .says("error: other.irs: ")
        .says("help: write one: selvedge irs verify FILE… -o PROGRAM.irs\n");
    assert!(!sandbox.path("other").exists());
}

/// The last of `argc` threads must be counted; only one is when the program is verified.
const ARGUMENTS: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
    #include <unistd.h>\n\
    static atomic_int x;\n\
    static void *add(void *p) { int v = x; usleep(100); x = v + 1; return p; }\n\
    int main(int argc, char **argv) {\n\
      pthread_t t[9]; int n = argc > 8 ? 8 : argc; (void)argv;\n\
      for (int i = 0; i < n; i++) pthread_create(&t[i], 0, add, 0);\n\
      for (int i = 0; i < n; i++) pthread_join(t[i], 0);\n\
      assert(x == n);\n\
    }\n";

#[test]
fn a_program_with_other_arguments_is_stopped_before_it_begins() {
    let sandbox = Sandbox::with("prog.c", ARGUMENTS);
    build(&sandbox, "prog.c", &[]);
    assert!(run(&sandbox.path("prog"), &[]).0.success());
    for _ in 0..50 {
        let output = std::process::Command::new(sandbox.path("prog"))
            .args(["two", "three"])
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(words.contains("started with arguments"), "{words}");
        assert!(!words.contains("Assertion"), "{words}");
    }
}

#[test]
fn what_brings_in_inputs_is_refused_before_the_proof() {
    for (what, call) in [
        ("the time (time)", "int n = time(0) & 1;"),
        (
            "the time (rdtsc)",
            "unsigned n, high; __asm__ volatile(\"rdtsc\" : \"=a\"(n), \"=d\"(high));",
        ),
        (
            "the number of processors (sysconf)",
            "int n = sysconf(_SC_NPROCESSORS_ONLN);",
        ),
        (
            "the number of processors (get_nprocs)",
            "int n = get_nprocs();",
        ),
        ("random numbers (rand)", "int n = rand();"),
        ("its process and user (getpid)", "int n = getpid();"),
    ] {
        let text = format!(
            "#include <stdlib.h>\n#include <sys/sysinfo.h>\n#include <time.h>\n#include <unistd.h>\n\
             int main(void) {{ {call} return n & 1; }}\n"
        );
        let sandbox = Sandbox::with("prog.c", &text);
        sandbox
            .run(&["irs", "verify", "prog.c"])
            .ends_with(2)
            .says(&format!(
                "cannot enforce proven schedules: the program asks for {what}\n"
            ));
    }
}

#[test]
fn what_cannot_be_built_is_not_proven_either() {
    let text = "#include <latch>\n#include <thread>\n\
        int main() { std::latch l(1); std::thread t([&] { l.count_down(); }); l.wait(); t.join(); }\n";
    let sandbox = Sandbox::with("prog.cpp", text);
    sandbox
        .run(&["irs", "verify", "prog.cpp", "--", "-std=c++20"])
        .ends_with(2)
        .says("cannot enforce an order on waiting for an atomic\n");
    for statement in [
        "std::jthread t([] {});",
        "std::stop_source source; source.request_stop();",
    ] {
        let text =
            format!("#include <stop_token>\n#include <thread>\nint main() {{ {statement} }}\n");
        let sandbox = Sandbox::with("prog.cpp", &text);
        sandbox
            .run(&["irs", "verify", "prog.cpp", "--", "-std=c++20"])
            .ends_with(2)
            .says("cannot enforce an order on waking threads that wait for an atomic");
        assert!(!sandbox.path("prog.irs").exists());
    }
}

/// gcc calls the library for them. The instruction behind that takes one of its operands from a register that the
/// compiler may use for another one.
#[test]
fn sixteen_bytes_at_once_are_atomic() {
    let text = "#include <assert.h>\n#include <pthread.h>\n\
        typedef unsigned __int128 wide; static wide x;\n\
        static const wide high = (wide)1 << 64;\n\
        static void *add(void *p) {\n\
          __atomic_fetch_add(&x, high + 1, __ATOMIC_SEQ_CST);\n\
          wide old = __atomic_load_n(&x, __ATOMIC_SEQ_CST);\n\
          while (!__atomic_compare_exchange_n(&x, &old, old + high + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) ;\n\
          return p;\n\
        }\n\
        int main(void) {\n\
          __atomic_store_n(&x, 3 * high + 5, __ATOMIC_SEQ_CST);\n\
          pthread_t a, b; pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
          pthread_join(a, 0); pthread_join(b, 0);\n\
          assert(__atomic_exchange_n(&x, high, __ATOMIC_SEQ_CST) == 7 * high + 9);\n\
          assert(__atomic_fetch_sub(&x, 1, __ATOMIC_SEQ_CST) == high);\n\
          assert(__atomic_fetch_or(&x, high, __ATOMIC_SEQ_CST) == high - 1);\n\
          assert(__atomic_fetch_and(&x, high + 1, __ATOMIC_SEQ_CST) == 2 * high - 1);\n\
          assert(__atomic_fetch_xor(&x, 1, __ATOMIC_SEQ_CST) == high + 1);\n\
          assert(__atomic_fetch_nand(&x, high, __ATOMIC_SEQ_CST) == high);\n\
          assert(x == ~high); return 0;\n\
        }\n";
    let sandbox = Sandbox::with("prog.c", text);
    let flags = ["--", "-mcx16"];
    let verify = ["irs", "verify", "prog.c", "-o", "prog.irs"];
    sandbox.run(&[&verify[..], &flags].concat()).ends_with(0);
    sandbox
        .run(&[&["irs", "build", "prog.c", "-o", "prog"][..], &flags].concat())
        .ends_with(0);
    for _ in 0..20 {
        let (status, words) = run(&sandbox.path("prog"), &[]);
        assert!(status.success(), "{status}: {words}");
    }
}

#[test]
fn a_program_that_does_not_end_is_not_said_to_be_proven() {
    let text = "#include <stdatomic.h>\nstatic atomic_int x;\nint main(void) { for (;;) x++; }\n";
    let sandbox = Sandbox::with("prog.c", text);
    sandbox.write("prog.irs", "");
    let outcome = sandbox.run(&["irs", "verify", "prog.c", "--timeout", "1", "--anew"]);
    outcome
        .ends_with(3)
        .says("no schedule was proven: the first execution has not ended")
        .says("only for programs that end");
    assert!(
        !outcome
            .stderr
            .contains("contains the schedules proven so far"),
        "{outcome:?}"
    );
}

/// The prefix that a program was built with is part of it; a file is read where it is another one.
#[test]
fn a_damaged_prefix_is_refused_and_a_missing_one_is_not_missed() {
    let sandbox = Sandbox::with("prog.c", include_str!("../irs/too_early.c"));
    build(&sandbox, "prog.c", &["--plain", "sc"]);
    let file = fs::read(sandbox.path("prog.irs")).expect("the prefix is there");
    fs::remove_file(sandbox.path("prog.irs")).expect("the prefix can be removed");
    for _ in 0..20 {
        let (status, words) = run(&sandbox.path("prog"), &[]);
        assert!(status.success(), "{status}: {words}");
    }
    let (status, words) = run(&sandbox.path("prog"), &[("SELVEDGE_IRS", "prog.irs")]);
    assert!(!status.success());
    assert!(words.contains("cannot read the prefix file"), "{words}");
    // A pipe that nobody writes to is not waited for.
    let pipe = sandbox.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let pipe = pipe.to_str().expect("UTF-8");
    let (status, words) = run(&sandbox.path("prog"), &[("SELVEDGE_IRS", pipe)]);
    assert!(!status.success());
    assert!(words.contains("truncated prefix file"), "{words}");
    // The same in another file, and a part of it.
    fs::write(sandbox.path("prog.irs"), &file).expect("the prefix can be written");
    assert!(run(&sandbox.path("prog"), &[]).0.success());
    fs::write(sandbox.path("prog.irs"), &file[..300]).expect("the prefix can be written");
    let (status, words) = run(&sandbox.path("prog"), &[]);
    assert!(!status.success());
    assert!(words.contains("truncated prefix file"), "{words}");
}

#[test]
fn a_prefix_of_another_program_is_refused() {
    let sandbox = Sandbox::with("prog.c", include_str!("../irs/too_early.c"));
    build(&sandbox, "prog.c", &["--plain", "sc"]);
    sandbox.write("prog.c", include_str!("../irs/philosophers.c"));
    let built = sandbox.run(&["irs", "build", "prog.c", "-o", "prog"]);
    assert_eq!(built.status, Some(2));
    assert!(
        built.stderr.contains("for another program"),
        "{}",
        built.stderr
    );
}

#[test]
fn a_program_runs_while_its_proof_goes_on() {
    let sandbox = Sandbox::with("prog.c", include_str!("../irs/lost_update.c"));
    let ran = sandbox.run(&["irs", "run", "prog.c", "--plain", "sc"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}

#[test]
fn the_status_of_a_program_that_is_run_is_its_own() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\nstatic atomic_int x;\n\
        static void *add(void *p) { x++; return p; }\n\
        int main(void) {\n\
          pthread_t a; pthread_create(&a, 0, add, 0); x++; pthread_join(a, 0); return 40 + x;\n\
        }\n";
    let sandbox = Sandbox::with("prog.c", text);
    sandbox.run(&["irs", "run", "prog.c"]).ends_with(42);
    assert!(sandbox.path("prog.irs").exists(), "the prefix file stays");
    sandbox.run(&["irs", "run", "prog.c"]).ends_with(42);
}

#[test]
fn futexes_are_refused_by_name() {
    let text = "#define _GNU_SOURCE\n#include <linux/futex.h>\n#include <sys/syscall.h>\n\
        #include <unistd.h>\nstatic int x;\n\
        int main(void) { syscall(SYS_futex, &x, FUTEX_WAKE, 1, 0, 0, 0); return 0; }\n";
    let sandbox = Sandbox::with("prog.c", text);
    sandbox
        .run(&["irs", "verify", "prog.c"])
        .ends_with(2)
        .says("cannot enforce an order on syscall\n");
}

/// `--tune` builds a program for one of several prefixes, each of which is proven.
#[test]
fn a_tuned_program_keeps_to_its_prefix() {
    let sandbox = Sandbox::with("prog.c", include_str!("../irs/philosophers.c"));
    build(&sandbox, "prog.c", &[]);
    sandbox
        .run(&["irs", "build", "prog.c", "-o", "prog", "--tune"])
        .ends_with(0);
    for _ in 0..20 {
        let (status, words) = run(&sandbox.path("prog"), &[]);
        assert!(status.success(), "{status}: {words}");
    }
}

/// Theorem 2 of the document: what is enforced never keeps a program from its end. Many random
/// programs in one, each an input of its own.
#[test]
fn random_programs_come_to_their_end() {
    let batches =
        std::env::var("SELVEDGE_BATCHES").map_or(1, |text| text.parse().expect("a number"));
    for batch in 0..batches {
        let programs = enforceable_programs(1000 * batch, 20);
        let text = c_source(&programs).expect("each of them can be written in C");
        let sandbox = Sandbox::with("prog.c", &text);
        if let Ok(directory) = std::env::var("SELVEDGE_KEEP") {
            let name = format!("batch{batch}.c");
            fs::write(Path::new(&directory).join(name), &text).expect("the program is kept");
        }
        for executions in ["100", "2000"] {
            build(
                &sandbox,
                "prog.c",
                &["--anew", "--max-executions", executions],
            );
            for input in 0..programs.len() {
                let input = input.to_string();
                for _ in 0..3 {
                    let (status, words) = run(&sandbox.path("prog"), &[("SELVEDGE_INPUT", &input)]);
                    let how = format!("program {input} of batch {batch}: {status}: {words}");
                    assert!(status.success(), "{how}\n{text}");
                }
            }
        }
    }
}

//! Constructors and destructors of C++ that run outside of the functions that a program has written.

use crate::common::{Sandbox, compilers};

const ENGINES: [&[&str]; 4] = [
    &[],
    &["--model", "sc", "--algorithm", "source-dpor"],
    &["--model", "ra", "--equivalence", "reads-from"],
    &["--model", "sc", "--algorithm", "csdr"],
];

/// The exit status of a check of `source`, and what it says.
fn run(source: &str, compiler: &str, options: &[&str], flags: &[&str]) -> (Option<i32>, String) {
    let sandbox = Sandbox::with("program.cc", source);
    let verify = ["verify", "program.cc", "--no-advice", "--cc", compiler];
    let outcome = sandbox.run(&[&verify, options, &["--"], flags].concat());
    (outcome.status, outcome.stdout)
}

#[test]
fn static_destructors_run_beside_threads_that_were_not_joined() {
    let source = "#include <atomic>
#include <thread>
static SHARED shared;
struct Last { ~Last() { shared++; } } last;
int main() { std::thread([] { shared++; }).detach(); return 0; }
";
    for compiler in compilers() {
        for engine in ENGINES {
            let (status, text) = run(source, compiler, engine, &["-DSHARED=int", "-O2"]);
            assert!(
                status == Some(1) && text.contains("data race"),
                "{engine:?}: {text}"
            );
            let (status, text) = run(source, compiler, engine, &["-DSHARED=std::atomic<int>"]);
            assert_eq!(status, Some(0), "{engine:?}: {text}");
        }
    }
}

/// Optimised, the constructor is inlined into a function that the compiler makes.
#[test]
fn constructors_of_thread_locals_are_followed() {
    let source = "#include <cassert>
#include <thread>
struct Local { int a; volatile int b; Local() : a(3), b(4) {} ~Local() {} };
static thread_local Local local;
static int next() { local.b = local.b + local.a; return local.b; }
int main() {
    next();
    std::thread([] { assert(next() == 7); }).join();
    assert(next() == EXPECT);
}
";
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            for engine in [ENGINES[0], ENGINES[3], &["--model", "sc", "--plain", "sc"]] {
                let (status, text) = run(source, compiler, engine, &["-DEXPECT=10", level]);
                assert_eq!(status, Some(0), "{compiler} {level} {engine:?}: {text}");
                let (status, text) = run(source, compiler, engine, &["-DEXPECT=7", level]);
                assert_eq!(status, Some(1), "{compiler} {level} {engine:?}: {text}");
            }
        }
    }
}

//! Without one of the parts that keep accesses from going unseen, the verdict is `incomplete`, whatever a
//! program asserts: the comparison of memory with its known contents notices what that part would have told.

use selvedge_runtime::Protection;

use crate::common::{Sandbox, compilers};

const PROLOGUE: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
struct big { int v[8]; };
static union { struct big big; atomic_long whole; atomic_int part; } u;
static volatile int plain;
__attribute__((noinline)) static struct big make(void) { struct big b = {{7}}; return b; }
static void *run(void *unused) { WRITE; return unused; }
int main(void) {
    pthread_t thread;
    atomic_store(&u.part, 1);
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    assert(HOLDS);
}
";

/// A write, and what holds after it.
struct Example {
    without: Protection,
    compilers: &'static [&'static str],
    write: &'static str,
    holds: &'static str,
    fails: &'static str,
}

const EXAMPLES: [Example; 4] = [
    Example {
        without: Protection::Announcements,
        // clang announces it.
        compilers: &["gcc"],
        write: "u.big=make()",
        holds: "u.part==7",
        fails: "u.part==1",
    },
    Example {
        without: Protection::Checks,
        compilers: &["gcc", "clang"],
        write: "plain=7",
        holds: "plain==7",
        fails: "plain==0",
    },
    Example {
        without: Protection::Library,
        compilers: &["gcc", "clang"],
        write: "memset(&u,7,4)",
        holds: "u.part==0x07070707",
        fails: "u.part==1",
    },
    Example {
        without: Protection::Sizes,
        compilers: &["gcc", "clang"],
        write: "atomic_store(&u.whole,7)",
        holds: "u.part==7",
        fails: "u.part==1",
    },
];

/// The verdict on a program, and the reason if it is incomplete.
fn verdict(
    example: &Example,
    compiler: &str,
    holds: &str,
    without: Option<Protection>,
) -> [String; 2] {
    let sandbox = Sandbox::with("program.c", PROLOGUE);
    let (write, holds) = (
        format!("-DWRITE={}", example.write),
        format!("-DHOLDS={holds}"),
    );
    let arguments = [
        "verify",
        "program.c",
        "--format",
        "json",
        "--cc",
        compiler,
        "--",
        &write,
        &holds,
    ];
    let mut command = sandbox.command(&arguments);
    if let Some(protection) = without {
        // Output compiled without the protection must not be used by other tests.
        command.env("XDG_CACHE_HOME", sandbox.path("cache"));
        command.env(Protection::VARIABLE, format!("{protection:?}"));
    }
    let child = command.spawn().expect("the command starts");
    let report = sandbox.finish(child).json();
    ["verdict", "reason"].map(|key| report[key].as_str().unwrap_or_default().to_owned())
}

#[test]
fn without_a_protection_the_verdict_is_incomplete() {
    for example in &EXAMPLES {
        let installed = compilers();
        let compilers = installed
            .iter()
            .filter(|name| example.compilers.contains(name));
        for compiler in compilers {
            let of = |holds, without| verdict(example, compiler, holds, without);
            assert_eq!(of(example.holds, None)[0], "verified", "{}", example.write);
            assert_eq!(of(example.fails, None)[0], "bug", "{}", example.write);
            for holds in [example.holds, example.fails] {
                let [verdict, reason] = of(holds, Some(example.without));
                assert_eq!(verdict, "incomplete", "{:?}, {holds}", example.without);
                let noticed = reason.contains("changed by something that Selvedge does not see")
                    || reason.contains("instruction cannot be found");
                assert!(noticed, "{:?}, {holds}: {reason}", example.without);
            }
        }
    }
}

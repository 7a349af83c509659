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
    /// Whether searches over states need it. Threads write to memory themselves there, so they do not have to be
    /// told of each write behind its instruction, nor that locations share bytes.
    for_states: bool,
}

const EXAMPLES: [Example; 4] = [
    Example {
        without: Protection::Announcements,
        // clang announces it.
        compilers: &["gcc"],
        write: "u.big=make()",
        holds: "u.part==7",
        fails: "u.part==1",
        for_states: true,
    },
    Example {
        without: Protection::Checks,
        compilers: &["gcc", "clang"],
        write: "plain=7",
        holds: "plain==7",
        fails: "plain==0",
        for_states: false,
    },
    Example {
        without: Protection::Library,
        compilers: &["gcc", "clang"],
        write: "memset(&u,7,4)",
        holds: "u.part==0x07070707",
        fails: "u.part==1",
        for_states: true,
    },
    Example {
        without: Protection::Sizes,
        compilers: &["gcc", "clang"],
        write: "atomic_store(&u.whole,7)",
        holds: "u.part==7",
        fails: "u.part==1",
        for_states: false,
    },
];

/// The engines, some of which have ways of their own of knowing what memory holds.
const ENGINES: [&[&str]; 6] = [
    &[],
    &["--model", "sc", "--algorithm", "source-dpor"],
    &["--model", "ra", "--equivalence", "reads-from"],
    &["--model", "sc", "--algorithm", "csdr"],
    &["--model", "sc", "--algorithm", "bfs"],
    &["--model", "sc", "--algorithm", "dfs"],
];

/// The verdict on the program of a sandbox, and the reason if it is incomplete.
fn verdict(
    sandbox: &Sandbox,
    options: &[&str],
    flags: &[&str],
    without: Option<Protection>,
) -> [String; 2] {
    let verify = ["verify", "program.c", "--format", "json"];
    let arguments = [&verify, options, &["--"], flags].concat();
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

fn is_noticed([verdict, reason]: &[String; 2]) -> bool {
    let unseen = reason.contains("changed by something that Selvedge does not see");
    verdict == "incomplete" && (unseen || reason.contains("instruction cannot be found"))
}

#[test]
fn without_a_protection_the_verdict_is_incomplete() {
    for example in &EXAMPLES {
        let installed = compilers();
        let compilers = installed
            .iter()
            .filter(|name| example.compilers.contains(name));
        for compiler in compilers {
            let sandbox = Sandbox::with("program.c", PROLOGUE);
            let write = format!("-DWRITE={}", example.write);
            let of = |engine: &[&str], holds: &str, without| {
                let options = [&["--cc", compiler], engine].concat();
                let holds = format!("-DHOLDS={holds}");
                verdict(&sandbox, &options, &[&write, &holds], without)
            };
            assert_eq!(of(&[], example.holds, None)[0], "verified", "{write}");
            assert_eq!(of(&[], example.fails, None)[0], "bug", "{write}");
            for engine in ENGINES {
                let found = [example.holds, example.fails]
                    .map(|holds| of(engine, holds, Some(example.without)));
                let keeps_states = engine.len() == 4 && !engine[3].contains('-');
                if keeps_states && !example.for_states {
                    let [holds, fails] = found.map(|[verdict, _]| verdict);
                    assert_eq!([holds, fails], ["verified", "bug"], "{write}, {engine:?}");
                } else {
                    assert!(found.iter().all(is_noticed), "{engine:?}: {found:?}");
                }
            }
        }
    }
}

/// Nobody accesses the memory any more, and the thread never ends: main's end has ended the process.
#[test]
fn a_thread_that_waits_for_ever_has_written_nothing_unseen() {
    let program = "
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
static atomic_int u;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *unused) { memset(&u, 7, 4); for (;;) pthread_mutex_lock(&m); }
int main(void) {
    pthread_t thread;
    atomic_store(&u, 1);
    pthread_create(&thread, 0, run, 0);
    return 0;
}
";
    let sandbox = Sandbox::with("program.c", program);
    for engine in ENGINES {
        let [all, _] = verdict(&sandbox, engine, &[], None);
        assert_eq!(all, "verified", "{engine:?}");
        let found = verdict(&sandbox, engine, &[], Some(Protection::Library));
        assert!(is_noticed(&found), "{engine:?}: {found:?}");
    }
}

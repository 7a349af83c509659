//! Reports about code in installed headers: whose line is shown, how names are written.

use std::process::Command;

use crate::common::{Outcome, Sandbox, compilers};

/// A program with a box of a library: the compiler is told that its lines come from an installed header.
const BOX: &str = r#"#include <atomic>
#include <thread>
#line 10 "/usr/include/box/box.hpp"
namespace box {
template <class T, class Tag, int N> struct Box {
    T value;
    std::atomic<bool> full{false};
    void put(T v) {
        value = v;
        full.store(true, std::memory_order_relaxed);
    }
    bool get(T &to) {
        if (!full.load(std::memory_order_relaxed)) return false;
        to = value;
        return true;
    }
};
}
#line 20 "box.cc"
struct Tag {};
static box::Box<int, Tag, 3> shared;
int main() {
    std::thread other([] { shared.put(7); });
    int seen;
    shared.get(seen);
    other.join();
}
"#;

/// The result for the program with each compiler for C++.
fn with_each_compiler(options: &[&str]) -> Vec<Outcome> {
    let names = compilers().into_iter().map(|cc| match cc {
        "clang" => "clang++",
        _ => "g++",
    });
    let installed = names.filter(|cc| Command::new(cc).arg("--version").output().is_ok());
    let sandbox = Sandbox::with("box.cc", BOX);
    installed
        .map(|cc| sandbox.run(&[&["verify", "box.cc", "--cc", cc], options].concat()))
        .collect()
}

#[test]
fn the_line_of_the_program_comes_first_and_that_of_the_library_below() {
    for outcome in with_each_compiler(&[]) {
        outcome
            .ends_with(1)
            .prints("of `shared` are not ordered\n  --> box.cc:25:5\n")
            .prints("note: inside box::Box<int, …>::get (/usr/include/box/box.hpp:20)")
            .prints("note: it conflicts with the write of 4 bytes in T1\n  --> box.cc:23:5\n")
            .prints("note: inside box::Box<int, …>::put (/usr/include/box/box.hpp:15)")
            .prints("T0 does at box.cc:25 happen before or after what T1 did at box.cc:23.")
            .prints(
                "    box::Box<int, …>::get (/usr/include/box/box.hpp:20)\n    main (box.cc:25)\n",
            )
            .prints(
                "  P     2  T1      box.cc:23  store shared.full = true\n\
                 \x20                    in box::Box<int, …>::put (/usr/include/box/box.hpp:16)\n\
                 \x20 S     3  T0      box.cc:25  load shared.full = true   step 2 (T1)\n\
                 \x20                    in box::Box<int, …>::get (/usr/include/box/box.hpp:19)\n\
                 \x20          T0      box.cc:25  data race\n\
                 \x20                    in box::Box<int, …>::get (/usr/include/box/box.hpp:20)\n",
            )
            .prints(
                "advice: box.cc:23: in box::Box<int, …>::put (/usr/include/box/box.hpp:16)\n\
                 \x20         make the store to shared.full memory_order_release (it is relaxed)\n\
                 \x20       box.cc:25: in box::Box<int, …>::get (/usr/include/box/box.hpp:19)\n\
                 \x20         make the load of shared.full memory_order_acquire (it is relaxed)\n\
                 \x20       these changes would remove the bug (checked: all 2 executions)\n",
            );
    }
}

#[test]
fn lines_of_installed_headers_can_be_hidden() {
    for outcome in with_each_compiler(&["--system-headers", "hide"]) {
        let text = &outcome.ends_with(1).stdout;
        assert!(!text.contains("inside"), "{text}");
        outcome
            .prints(
                "  P     2  T1      box.cc:23  store shared.full = true\n\
                 \x20 S     3  T0      box.cc:25  load shared.full = true   step 2 (T1)\n\
                 \x20          T0      box.cc:25  data race\n",
            )
            .prints(
                "    box::Box<int, …>::get (/usr/include/box/box.hpp:20)\n    main (box.cc:25)\n",
            )
            .prints("advice: no order or fence was found that would forbid this under rc11\n");
    }
}

#[test]
fn names_are_written_in_full_on_request() {
    for outcome in with_each_compiler(&["--full-names"]) {
        outcome
            .ends_with(1)
            .prints("note: inside box::Box<int, Tag, 3>::get(int&) (/usr/include/box/box.hpp:20)");
    }
}

#[test]
fn a_replay_shows_the_same_lines() {
    let sandbox = Sandbox::with("box.cc", BOX);
    let verify = ["verify", "box.cc", "--trace-out", "trace.json"];
    sandbox.run(&verify).ends_with(1);
    let below = "in box::Box<int, …>::put (/usr/include/box/box.hpp:16)\n";
    sandbox
        .run(&["replay", "trace.json"])
        .ends_with(1)
        .prints(below);
    let hidden = sandbox.run(&["replay", "trace.json", "--system-headers", "hide"]);
    assert!(!hidden.ends_with(1).stdout.contains(below), "{hidden:?}");
}

const THREAD_LOCALS: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static _Thread_local atomic_int mine = 1;
static _Thread_local struct { int first; int rest[3]; } local;
static atomic_int *_Atomic other_counter;
static int *_Atomic other_local;
static void *other(void *unused) {
  *other_counter = 2;
  *other_local = 3;
  return unused;
}
int main(void) {
  pthread_t thread;
  other_counter = &mine;
  other_local = &local.rest[1];
  pthread_create(&thread, 0, other, 0);
  local.rest[1]++;
  pthread_join(thread, 0);
  return 0;
}
";

#[test]
fn thread_local_variables_have_names() {
    let sandbox = Sandbox::with("local.c", THREAD_LOCALS);
    for cc in compilers() {
        sandbox
            .run(&["verify", "local.c", "--cc", cc])
            .ends_with(1)
            .prints("of `local.rest[1]` of T0 are not ordered")
            .prints("store other_counter = &mine of T0\n")
            .prints("store other_local = &local.rest[1] of T0\n")
            .prints("store mine of T0 = 2\n");
    }
}

const UNION_AND_BITS: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static union { struct { _Atomic short owner, next; } half; atomic_int both; char bytes[8]; } lock;
static struct { atomic_int count; unsigned char flag : 1, other : 1; } state;
static void *work(void *unused) {
  lock.both = 1;
  lock.half.next = 2;
  state.count = 3;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
  assert(state.count == 0);
}
";

#[test]
fn members_of_unions_are_those_of_the_size_of_the_access() {
    let sandbox = Sandbox::with("members.c", UNION_AND_BITS);
    for cc in compilers() {
        sandbox
            .run(&["verify", "members.c", "--cc", cc])
            .ends_with(1)
            .prints("store lock.both = 1\n")
            .prints("store lock.half.next = 2\n")
            .prints("store state.count = 3\n");
    }
}

const LONG_LOOP: &str = "\
#include <atomic>
static std::atomic<long> total;
int main() {
    for (int i = 0; i < 17000; i++)
        total.fetch_add(1);
}
";

#[test]
fn a_warning_about_a_loop_names_the_line_of_the_program() {
    let sandbox = Sandbox::with("long.cc", LONG_LOOP);
    let outcome = sandbox.run(&["verify", "long.cc"]);
    outcome
        .ends_with(0)
        .says("the loop at long.cc:5 went round");
}

/// The same loop in a library.
#[test]
fn a_warning_about_a_loop_of_a_library_names_both_lines() {
    let text = LONG_LOOP.replace(
        "int main() {\n",
        "#line 10 \"/usr/include/sum/sum.hpp\"\nvoid sum() {\n",
    ) + "#line 20 \"long.cc\"\nint main() {\n    sum();\n}\n";
    let sandbox = Sandbox::with("long.cc", &text);
    sandbox
        .run(&["verify", "long.cc"])
        .ends_with(0)
        .says("the loop at long.cc:21, in sum (/usr/include/sum/sum.hpp:12), went round");
}

#[test]
fn sarif_has_the_lines_of_libraries_as_related_locations() {
    let sandbox = Sandbox::with("box.cc", BOX);
    let outcome = sandbox.run(&["verify", "box.cc", "--format", "sarif"]);
    let log = outcome.ends_with(1).json();
    let related = log["runs"][0]["results"][0]["relatedLocations"].clone();
    let place = |location: &serde_json::Value| {
        let physical = &location["physicalLocation"];
        let uri = physical["artifactLocation"]["uri"]
            .as_str()
            .expect("a file");
        format!("{uri}:{}", physical["region"]["startLine"])
    };
    let places: Vec<String> = related
        .as_array()
        .expect("places")
        .iter()
        .map(place)
        .collect();
    let header = "file:///usr/include/box/box.hpp";
    let expected = [
        format!("{header}:20"),
        "box.cc:23".to_owned(),
        format!("{header}:15"),
    ];
    assert_eq!(places, expected);
}

/// The bug is about the block that the schedule names second.
const TWO_BLOCKS: &str = "\
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct cell { atomic_int ready; int value; };
static struct cell *first, *second;
static void *fill(void *unused) {
  atomic_store(&first->ready, 1);
  second->value = 1;
  atomic_store_explicit(&second->ready, 1, memory_order_relaxed);
  return unused;
}
int main(void) {
  pthread_t thread;
  first = calloc(1, sizeof *first);
  second = calloc(1, sizeof *second);
  pthread_create(&thread, 0, fill, 0);
  int ready = atomic_load_explicit(&second->ready, memory_order_acquire);
  int value = ready ? second->value : 0;
  pthread_join(thread, 0);
  return value > 1;
}
";

#[test]
fn blocks_have_the_same_numbers_in_the_schedule_and_the_advice() {
    let sandbox = Sandbox::with("blocks.c", TWO_BLOCKS);
    sandbox
        .run(&["verify", "blocks.c"])
        .ends_with(1)
        .prints("store block #1 = 1\n")
        .prints("store block #2 = 1\n")
        .prints("block #1: 8 bytes, allocated by T0 at blocks.c:14\n")
        .prints("block #2: 8 bytes, allocated by T0 at blocks.c:15\n")
        .prints(
            "advice: blocks.c:9: make the store to block #2 memory_order_release (it is relaxed)\n",
        );
}

const MADE_BY_A_LIBRARY: &str = "\
#include <atomic>
#include <cassert>
#include <memory>
#include <thread>
static std::shared_ptr<std::atomic<int>> made;
int main() {
    made = std::make_shared<std::atomic<int>>(0);
    std::thread other([] { made->store(1); });
    assert(made->load() == 0);
    other.join();
}
";

#[test]
fn memory_from_inside_the_standard_library_names_the_line_of_the_program() {
    let sandbox = Sandbox::with("made.cc", MADE_BY_A_LIBRARY);
    sandbox
        .run(&["verify", "made.cc"])
        .ends_with(1)
        .prints("block #1: 24 bytes, allocated by T0 at made.cc:7\n");
}

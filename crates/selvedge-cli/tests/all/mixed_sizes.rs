//! Threads that access the same bytes with different widths: checked under sequential consistency,
//! refused under other models.

use crate::common::{Sandbox, compilers};

const SEARCHES: [&str; 5] = [
    "--algorithm=trust",
    "--algorithm=source-dpor",
    "--algorithm=optimal-dpor",
    "--equivalence=reads-from",
    "--algorithm=csdr",
];

/// A lock whose halves are accessed alone and together.
const TICKET_LOCK: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
static union { _Atomic uint32_t both; struct { _Atomic uint16_t owner, next; }; } lock;
static int count;
static void acquire(void) {
  uint16_t mine = atomic_fetch_add(&lock.next, 1);
  while (lock.owner != mine) {}
}
static _Bool try_acquire(void) {
  uint32_t seen = lock.both;
  return seen >> 16 == (seen & 0xffff) && atomic_compare_exchange_strong(&lock.both, &seen, CLAIMED);
}
static void release(void) { lock.owner++; }
static void *work(void *unused) {
  acquire(); count++; release();
  if (try_acquire()) { count++; release(); }
  return unused;
}
int main(void) {
  pthread_t t; pthread_create(&t, 0, work, 0); work(0); pthread_join(t, 0);
  assert(count >= 2 && count <= 4 && lock.owner == count);
}";

#[test]
fn a_ticket_lock_is_checked_by_all_searches_under_sc() {
    let sandbox = Sandbox::with("lock.c", TICKET_LOCK);
    for compiler in compilers() {
        for search in SEARCHES {
            let check = |claimed: &str| {
                let flag = format!("-DCLAIMED={claimed}");
                let options = ["--model", "sc", search, "--cc", compiler, "--"];
                sandbox.run(&[&["verify", "lock.c"], &options[..], &[&flag]].concat())
            };
            check("seen + 0x10000").ends_with(0).prints("verified");
            // The lock is taken without a ticket.
            check("seen").ends_with(1).prints("bug: ");
        }
    }
}

#[test]
fn concurrent_accesses_of_different_widths_are_refused_under_other_models() {
    let sandbox = Sandbox::with("lock.c", TICKET_LOCK);
    for model in ["tso", "ra", "rc11"] {
        let options = ["--model", model, "--", "-DCLAIMED=seen + 0x10000"];
        sandbox
            .run(&[&["verify", "lock.c"], &options[..]].concat())
            .ends_with(3)
            .prints("incomplete: lock.c:")
            .prints("mixed-size accesses: atomic ");
    }
}

/// One thread writes a byte, the other one the word around it.
const BYTE_AND_WORD: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static union { atomic_uint word; atomic_uchar byte[4]; } u;
static void *work(void *unused) { u.byte[1] = 7; return unused; }
int main(void) {
  pthread_t t; pthread_create(&t, 0, work, 0); u.word = 0x01020304; pthread_join(t, 0);
  assert(u.word == 0x01020304 OR u.word == 0x01020704);
}";

#[test]
fn a_store_to_a_part_keeps_the_rest() {
    for compiler in compilers() {
        for search in SEARCHES {
            let check = |or: &str| {
                let text = BYTE_AND_WORD.replace("OR", or);
                let sandbox = Sandbox::with("part.c", &text);
                let options = ["--model", "sc", search, "--cc", compiler];
                sandbox.run(&[&["verify", "part.c"], &options[..]].concat())
            };
            check("||").ends_with(0).prints("verified");
            check("&& 0 ||")
                .ends_with(1)
                .prints("bug: assertion failed");
            check("|| 0 &&")
                .ends_with(1)
                .prints("bug: assertion failed");
        }
    }
}

#[test]
fn a_trace_names_the_part_and_can_be_replayed() {
    let text = BYTE_AND_WORD.replace("OR", "|| 0 &&");
    let sandbox = Sandbox::with("part.c", &text);
    sandbox
        .run(&[
            "verify",
            "part.c",
            "--model",
            "sc",
            "--trace-out",
            "trace.json",
        ])
        .ends_with(1)
        .prints("store u.byte[1] = 7");
    sandbox
        .run(&["replay", "trace.json"])
        .ends_with(1)
        .prints("assertion failed");
}

/// Bytes of a merged location that one thread accesses plainly, while the others access other bytes.
const OWN_BYTES: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
static union { atomic_uint word; atomic_ushort half[2]; unsigned char plain[4]; } u;
static void *work(void *unused) { atomic_fetch_add(&u.half[0], 1); return unused; }
int main(void) {
  pthread_t t; pthread_create(&t, 0, work, 0);
  u.plain[3] = 5;
  memset(&u.plain[2], 6, 1);
  unsigned seen = u.word;
  pthread_join(t, 0);
  assert(seen >> 16 == HIGH && (seen & 0xffff) <= 1 && u.plain[0] == 1);
}";

#[test]
fn plain_accesses_to_other_bytes_of_a_word_are_no_race() {
    let sandbox = Sandbox::with("own.c", OWN_BYTES);
    for compiler in compilers() {
        for plain in ["race", "sc"] {
            let check = |high: &str| {
                let flag = format!("-DHIGH={high}");
                let options = ["--model", "sc", "--plain", plain, "--cc", compiler, "--"];
                sandbox.run(&[&["verify", "own.c"], &options[..], &[&flag]].concat())
            };
            check("0x506").ends_with(0).prints("verified");
            check("0x500").ends_with(1).prints("bug: assertion failed");
        }
    }
}

#[test]
fn a_divided_search_starts_over_with_the_merged_location() {
    let sandbox = Sandbox::with("lock.c", TICKET_LOCK);
    let executions = |jobs: &str, slice: &str| {
        let options = ["--model", "sc", "--format", "json", "--jobs", jobs];
        let flags = ["--", "-DCLAIMED=seen + 0x10000"];
        let mut command = sandbox.command(&[&["verify", "lock.c"], &options[..], &flags].concat());
        command.env("SELVEDGE_SLICE", slice);
        let outcome = sandbox.finish(command.spawn().unwrap());
        outcome.ends_with(0).json()["executions"].clone()
    };
    assert_eq!(executions("2", "3"), executions("1", ""));
}

/// Each of the bytes is a location of its own by the time that both are written at once.
const BOTH_BYTES: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static union { atomic_ushort both; atomic_uchar byte[2]; } u;
static void *work(void *unused) {
  u.byte[1] = 1;
  unsigned char expected = 9;
  atomic_compare_exchange_strong(&u.byte[0], &expected, 7);
  atomic_exchange(&u.both, 255);
  return unused;
}
int main(void) {
  pthread_t t; pthread_create(&t, 0, work, 0);
  unsigned char low = u.byte[0], high = u.byte[1];
  pthread_join(t, 0);
  assert((low == 0 || low == 255) && high <= 1 && u.byte[0] == LOW && u.byte[1] == 0);
}";

#[test]
fn a_store_to_the_bytes_of_two_locations_is_a_store_to_each() {
    let sandbox = Sandbox::with("both.c", BOTH_BYTES);
    for compiler in compilers() {
        let check = |low: &str| {
            let flag = format!("-DLOW={low}");
            sandbox.run(&[
                "verify", "both.c", "--model", "sc", "--cc", compiler, "--", &flag,
            ])
        };
        check("255").ends_with(0).prints("verified");
        check("7").ends_with(1).prints("bug: assertion failed");
    }
}

//! Bad accesses to memory are failures of the thread that makes them.

use std::collections::BTreeSet;

use selvedge_core::FailureKind::{
    BadFree, DoubleFree, HeapOverflow, NullDereference, UseAfterFree, WildAccess,
};
use selvedge_core::{FailureKind, Machine, Op};
use selvedge_runtime::Settings;

use crate::common::driver::{Driver, every_interleaving};
use crate::common::ends::{End, end, ends, failure, plain_sc, refusal};
use crate::common::{Build, CLANG, GCC, Program, isolated};

/// A program whose main does `body`.
fn program(body: &str) -> String {
    format!(
        "#include <stdlib.h>
         #include <string.h>
         #include <stdatomic.h>
         struct s {{ long a, b, c; }};
         char *volatile sink;
         int main(void) {{ {body}; return 0; }}"
    )
}

/// Each body fails in this way, with its message.
#[track_caller]
fn fail(kind: FailureKind, rows: &[(&str, &str)]) {
    for (body, message) in rows {
        for build in Build::installed(&[GCC, CLANG]) {
            for settings in [Settings::default(), plain_sc()] {
                let failure = failure(build, &program(body), settings);
                let found = (failure.kind, &*failure.message);
                assert_eq!(found, (kind, *message), "{build:?} {body}");
            }
        }
    }
}

#[rustfmt::skip]
#[test]
fn null_pointers_are_found() {
    isolated("null_pointers_are_found", || {
        fail(NullDereference, &[
            ("int *p = 0; return *p", "read of 4 bytes through a null pointer (address 0x0)"),
            ("struct s *p = 0; p->c = 1", "write of 8 bytes through a null pointer (address 0x10)"),
            ("atomic_int *p = 0; atomic_load(p)", "atomic read of 4 bytes through a null pointer (address 0x0)"),
            ("memset((void *)0, 1, 24)", "write of 24 bytes through a null pointer (address 0x0)"),
        ]);
    });
}

#[rustfmt::skip]
#[test]
fn freed_memory_stays_recognisable() {
    isolated("freed_memory_stays_recognisable", || {
        fail(UseAfterFree, &[
            ("char *p = malloc(8); free(p); malloc(8); return p[3]",
                "read of 1 byte in a heap block of 8 bytes, at offset 3, which has been freed"),
            ("long *p = malloc(16); free(p); *p = 1",
                "write of 8 bytes in a heap block of 16 bytes, which has been freed"),
            ("atomic_int *p = malloc(4); free(p); atomic_store(p, 1)",
                "atomic write of 4 bytes in a heap block of 4 bytes, which has been freed"),
        ]);
        fail(DoubleFree, &[
            ("char *p = malloc(5); free(p); free(p)", "a heap block of 5 bytes is freed twice"),
        ]);
    });
}

#[rustfmt::skip]
#[test]
fn only_blocks_can_be_freed() {
    isolated("only_blocks_can_be_freed", || {
        fail(BadFree, &[
            ("char *p = malloc(9); free(p + 1)",
                "free of a heap block of 9 bytes, at offset 1, which is not the start of a heap block"),
            ("free((void *)&sink)", "free of `sink`, which was not allocated"),
            ("int x; void *p = &x; free(p)", "free of the stack of T0, which was not allocated"),
            ("free(main)", "free of `main`, which was not allocated"),
        ]);
    });
}

#[rustfmt::skip]
#[test]
fn the_ends_of_blocks_are_exact() {
    isolated("the_ends_of_blocks_are_exact", || {
        fail(HeapOverflow, &[
            ("char *p = malloc(5); p[4] = 1; p[5] = 1", "write of 1 byte just past the end of a block of 5 bytes"),
            ("char *p = malloc(6); return *(int *)(p + 4)", "read of 4 bytes across the end of a block of 6 bytes"),
            ("int *p = malloc(4); malloc(4); p[4] = 1", "write of 4 bytes 12 bytes past the end of a block of 4 bytes"),
            ("malloc(16); char *p = malloc(16); return p[-1]", "read of 1 byte 15 bytes past the end of a block of 16 bytes"),
            ("char *p = malloc(16); memset(p, 0, 16); memset(p, 0, 17)", "write of 17 bytes across the end of a block of 16 bytes"),
            ("char *p = malloc(0); *p = 1", "write of 1 byte just past the end of a block of 0 bytes"),
        ]);
    });
}

#[rustfmt::skip]
#[test]
fn memory_that_does_not_exist_is_found() {
    isolated("memory_that_does_not_exist_is_found", || {
        let read = |bytes: u32, address: &str| {
            format!("read of {bytes} bytes at address {address}, which may not be accessed")
        };
        let (four, eight) = (read(4, "0x123450000"), read(8, "0x123450000"));
        let atomic = format!("atomic {four}");
        fail(WildAccess, &[
            ("return *(int *)0x123450000", &four),
            ("return *(volatile int *)0x123450000", &atomic),
            ("atomic_load((atomic_int *)0x123450000)", &atomic),
            ("memcpy(&sink, (void *)0x123450000, 8)", &eight),
            ("return *(int *)0xdead000000000000", &read(4, "0xdead000000000000")),
        ]);
        for own in ["0x10000000", "0x1a0000001000", "0x200000000000"] {
            let write = format!("write of 4 bytes at address {own}, which may not be accessed");
            fail(WildAccess, &[
                (&format!("*(int *){own} = 1"), &write),
                (&format!("atomic_store((atomic_int *){own}, 1)"), &format!("atomic {write}")),
            ]);
        }
    });
}

#[test]
fn constants_cannot_be_written() {
    isolated("constants_cannot_be_written", || {
        for build in Build::installed(&[GCC, CLANG]) {
            for body in [
                "char *p = \"abc\"; *p = 1",
                "static const atomic_int x = 1; atomic_store((atomic_int *)&x, 2)",
                "static const atomic_int x = 1; atomic_fetch_add((atomic_int *)&x, 2)",
            ] {
                let failure = failure(build, &program(body), Settings::default());
                assert_eq!(failure.kind, WildAccess, "{body}");
                assert!(
                    failure.message.starts_with("write to address"),
                    "{}",
                    failure.message
                );
            }
        }
    });
}

/// The access and the `free` are not ordered: whichever comes first in a schedule, it is found.
#[test]
fn a_free_that_nothing_orders_after_an_access_is_found() {
    isolated(
        "a_free_that_nothing_orders_after_an_access_is_found",
        || {
            for access in [
                "*(int *)p = 1",
                "atomic_load((atomic_int *)p)",
                "memset(p, 0, 3)",
            ] {
                let source = format!(
                    "#include <pthread.h>
                 #include <stdatomic.h>
                 #include <stdlib.h>
                 #include <string.h>
                 atomic_int x;
                 static void *worker(void *p) {{ {access}; atomic_store(&x, 1); return 0; }}
                 int main(void) {{
                     void *p = malloc(8);
                     pthread_t a;
                     pthread_create(&a, 0, worker, p);
                     atomic_store(&x, 2);
                     free(p);
                     pthread_join(a, 0);
                     return 0;
                 }}"
                );
                for build in Build::installed(&[GCC, CLANG]) {
                    for settings in [Settings::default(), plain_sc()] {
                        let ends = ends(build, &source, settings);
                        let found = BTreeSet::from([End::Failed(UseAfterFree)]);
                        assert_eq!(ends, found, "{build:?} {access}");
                    }
                }
            }
        },
    );
}

/// Two threads allocate, in any order; each always gets the same addresses, full of zeros.
#[test]
fn addresses_do_not_depend_on_the_interleaving() {
    isolated("addresses_do_not_depend_on_the_interleaving", || {
        let source = "
            #include <pthread.h>
            #include <stdatomic.h>
            #include <stdlib.h>
            #include <string.h>
            _Atomic(char *) x, y;
            static char *block(size_t size) {
                char *p = malloc(size);
                for (size_t i = 0; i < size; i++)
                    if (p[i]) abort();
                memset(p, 0xaa, size);
                return p;
            }
            static void *worker(void *p) {
                _Atomic(char *) *at = p;
                free(block(24));
                atomic_store(at, block(8));
                atomic_store(at, block(40));
                return 0;
            }
            int main(void) {
                pthread_t a, b;
                pthread_create(&a, 0, worker, &x);
                pthread_create(&b, 0, worker, &y);
                pthread_join(a, 0);
                pthread_join(b, 0);
                return 0;
            }";
        let program = Program::build(GCC, source);
        let mut machine = program.load(Settings::default());
        let mut seen = BTreeSet::new();
        let count = every_interleaving(&mut machine, |machine, driver| {
            assert_eq!(end(machine), End::Complete);
            let mut stored: Vec<_> = driver
                .steps
                .iter()
                .filter_map(|(thread, op, _)| match op {
                    Op::Store { value, .. } => Some((*thread, *value)),
                    _ => None,
                })
                .collect();
            stored.sort_by_key(|(thread, _)| *thread);
            seen.insert(stored);
        });
        assert!(count >= 6);
        assert_eq!(seen.len(), 1, "{seen:?}");
        let stored: BTreeSet<_> = seen.into_iter().flatten().map(|(_, value)| value).collect();
        assert_eq!(stored.len(), 4, "different blocks have different addresses");
    });
}

#[test]
fn the_heap_has_a_limit() {
    isolated("the_heap_has_a_limit", || {
        let settings = Settings {
            heap_limit: 1 << 20,
            ..Settings::default()
        };
        let body = "char *p = malloc(1 << 19); if (!p) abort(); p = malloc(3 << 18)";
        let refusal = refusal(GCC, &program(body), settings);
        assert!(refusal.contains("--heap-limit"), "{refusal}");
    });
}

#[test]
fn a_block_is_found_by_address() {
    isolated("a_block_is_found_by_address", || {
        let program = Program::build(GCC, &program("sink = malloc(20); free(sink)"));
        let mut machine = program.load(Settings::default());
        let mut driver = Driver::default();
        machine.reset();
        let selvedge_core::Pending::Op(Op::Store { value, .. }) =
            machine.pending(selvedge_core::ThreadId::MAIN)
        else {
            panic!("a volatile store");
        };
        let block = machine.heap_block(value as u64 + 7).expect("a block");
        assert_eq!(
            (block.start, block.size, block.freed),
            (value as u64, 20, None)
        );
        while driver.enabled(&machine, selvedge_core::ThreadId::MAIN) {
            driver.step(&mut machine, selvedge_core::ThreadId::MAIN);
        }
        let block = machine.heap_block(value as u64).expect("a block");
        assert!(block.freed.is_some());
    });
}

#[test]
fn lost_blocks_are_found_on_request() {
    isolated("lost_blocks_are_found_on_request", || {
        let leak_of = |text: &str| {
            let program = Program::build(GCC, text);
            let mut machine = program.load(Settings {
                check_leaks: true,
                ..Settings::default()
            });
            Driver::first(&mut machine);
            assert_eq!(end(&machine), End::Complete);
            machine
                .leftover()
                .map(|failure| (failure.kind, failure.message))
        };
        let leak = |body: &str| leak_of(&program(body));
        let lost = |message: &str| Some((FailureKind::Leak, message.to_owned()));
        assert_eq!(leak("malloc(24)"), lost("a heap block of 24 bytes is lost"));
        let both = "void **p = malloc(8); *p = malloc(16)";
        assert_eq!(
            leak(both),
            lost("a heap block of 8 bytes is lost, and 1 more")
        );
        assert_eq!(
            leak("static void **p; p = malloc(8); *p = malloc(16)"),
            None
        );
        assert_eq!(leak("static char *p; p = malloc(8); p += 5"), None);
        assert_eq!(leak("free(malloc(8))"), None);
        assert_eq!(
            leak("sink = malloc(8); sink = 0"),
            None,
            "a visible operation wrote it"
        );
        assert_eq!(
            leak("void *p = malloc(8); exit(p == 0)"),
            None,
            "main still has it"
        );
        let constructor = "__attribute__((constructor)) static void early(void) { malloc(8); }";
        assert_eq!(
            leak_of(&format!("{}\n{constructor}", program(""))),
            None,
            "executions only begin after that"
        );
    });
}

#[test]
fn variables_of_threads_that_were_waited_for_are_gone() {
    isolated("variables_of_threads_that_were_waited_for_are_gone", || {
        for (access, what) in [
            ("(*(int *)p)++", "read of 4 bytes"),
            (
                "atomic_store((atomic_int *)p, 1)",
                "atomic write of 4 bytes",
            ),
            ("memset(p, 0, 4)", "write of 4 bytes"),
        ] {
            let source = format!(
                "#include <pthread.h>
                 #include <stdatomic.h>
                 #include <string.h>
                 static void *leak(void *unused) {{ int local = 1; int *volatile p = &local; return p; }}
                 int main(void) {{
                     pthread_t thread;
                     void *p;
                     pthread_create(&thread, 0, leak, 0);
                     pthread_join(thread, &p);
                     {access};
                     return 0;
                 }}"
            );
            let failure = failure(GCC, &source, Settings::default());
            let message = format!("{what} in the stack of T1, which has ended");
            assert_eq!((failure.kind, &*failure.message), (WildAccess, &*message));
        }
    });
}

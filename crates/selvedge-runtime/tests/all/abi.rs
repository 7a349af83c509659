//! The whole ThreadSanitizer ABI: every entry does what the compilers expect of it.

use selvedge_core::{Machine, MemoryOrder, Op};
use selvedge_runtime::Settings;

use crate::common::driver::Driver;
use crate::common::ends::{End, end, plain_sc};
use crate::common::{Build, CLANG, CLANG_O2, GCC, GCC_O2, Program, isolated};

/// Runs the program, which aborts if something is wrong, in both modes.
fn runs(build: Build, source: &str) {
    for settings in [Settings::default(), plain_sc()] {
        let plain = settings.plain;
        let program = Program::build(build, source);
        let mut machine = program.load(settings);
        for _ in 0..2 {
            Driver::first(&mut machine);
            let why = (machine.failure(), machine.refusal());
            assert_eq!(end(&machine), End::Complete, "{build:?} {plain:?} {why:?}");
        }
    }
}

const BUILDS: [Build; 4] = [GCC, CLANG, GCC_O2, CLANG_O2];

#[test]
fn atomics_of_every_width_compute_what_the_language_says() {
    isolated(
        "atomics_of_every_width_compute_what_the_language_says",
        || {
            let source = "
            #include <stdint.h>
            #include <stdlib.h>
            #define CHECK(e) do { if (!(e)) abort(); } while (0)
            #define TEST(T, name)                                                        \\
                _Alignas(16) T name##_x;                                                 \\
                static void name(void) {                                                 \\
                    T *x = &name##_x, e, big = (T)~(T)0;                                 \\
                    __atomic_store_n(x, (T)5, __ATOMIC_SEQ_CST);                         \\
                    CHECK(__atomic_load_n(x, __ATOMIC_SEQ_CST) == 5);                    \\
                    CHECK(__atomic_exchange_n(x, (T)12, __ATOMIC_SEQ_CST) == 5);         \\
                    CHECK(__atomic_fetch_add(x, (T)3, __ATOMIC_SEQ_CST) == 12);          \\
                    CHECK(__atomic_fetch_sub(x, (T)1, __ATOMIC_SEQ_CST) == 15);          \\
                    CHECK(__atomic_fetch_and(x, (T)6, __ATOMIC_SEQ_CST) == 14);          \\
                    CHECK(__atomic_fetch_or(x, (T)9, __ATOMIC_SEQ_CST) == 6);            \\
                    CHECK(__atomic_fetch_xor(x, (T)3, __ATOMIC_SEQ_CST) == 15);          \\
                    CHECK(__atomic_fetch_nand(x, (T)8, __ATOMIC_SEQ_CST) == 12);         \\
                    CHECK(__atomic_load_n(x, __ATOMIC_SEQ_CST) == (T)~(T)8);             \\
                    CHECK(__atomic_add_fetch(x, (T)9, __ATOMIC_SEQ_CST) == 0);           \\
                    CHECK(__atomic_sub_fetch(x, (T)1, __ATOMIC_SEQ_CST) == big);         \\
                    e = 4;                                                               \\
                    CHECK(!__atomic_compare_exchange_n(x, &e, (T)1, 0, 5, 5));           \\
                    CHECK(e == big);                                                     \\
                    CHECK(__atomic_compare_exchange_n(x, &e, (T)77, 0, 5, 5));           \\
                    CHECK(__sync_val_compare_and_swap(x, (T)77, (T)78) == 77);           \\
                    CHECK(__sync_bool_compare_and_swap(x, (T)78, (T)79));                \\
                    e = 79;                                                              \\
                    CHECK(__atomic_compare_exchange_n(x, &e, (T)80, 1, 0, 0));           \\
                    CHECK(__sync_lock_test_and_set(x, (T)1) == 80);                      \\
                    __sync_lock_release(x);                                              \\
                    CHECK(__atomic_load_n(x, __ATOMIC_RELAXED) == 0);                    \\
                }
            TEST(uint8_t, one) TEST(uint16_t, two) TEST(uint32_t, four) TEST(uint64_t, eight)
            int main(void) { one(); two(); four(); eight(); return 0; }";
            for build in Build::installed(&BUILDS) {
                runs(build, source);
            }
        },
    );
}

#[test]
fn atomics_of_sixteen_bytes_work() {
    isolated("atomics_of_sixteen_bytes_work", || {
        let source = "
            #include <stdlib.h>
            typedef unsigned __int128 T;
            T __tsan_atomic128_load(const volatile T *, int);
            void __tsan_atomic128_store(volatile T *, T, int);
            T __tsan_atomic128_exchange(volatile T *, T, int);
            T __tsan_atomic128_fetch_add(volatile T *, T, int);
            T __tsan_atomic128_fetch_nand(volatile T *, T, int);
            int __tsan_atomic128_compare_exchange_strong(volatile T *, T *, T, int, int);
            T __tsan_atomic128_compare_exchange_val(volatile T *, T, T, int, int);
            T x;
            int main(void) {
                T big = ((T)0x0123456789abcdef << 64) | 0xfedcba9876543210, e = big + 1;
                __tsan_atomic128_store(&x, big, 5);
                if (__tsan_atomic128_load(&x, 5) != big) abort();
                if (__tsan_atomic128_exchange(&x, big + 1, 5) != big) abort();
                if (!__tsan_atomic128_compare_exchange_strong(&x, &e, big + 2, 5, 5)) abort();
                if (__tsan_atomic128_compare_exchange_strong(&x, &e, 0, 5, 5)) abort();
                if (e != big + 2) abort();
                if (__tsan_atomic128_compare_exchange_val(&x, big + 2, 7, 5, 5) != e) abort();
                if (__tsan_atomic128_fetch_add(&x, big, 5) != 7) abort();
                if (__tsan_atomic128_fetch_nand(&x, 0, 5) != big + 7) abort();
                if (__tsan_atomic128_load(&x, 5) != ~(T)0) abort();
                return 0;
            }";
        for build in Build::installed(&BUILDS) {
            runs(build, source);
        }
    });
}

#[test]
fn plain_scalars_of_every_width_keep_their_values() {
    isolated("plain_scalars_of_every_width_keep_their_values", || {
        let source = "
            #include <stdint.h>
            #include <stdlib.h>
            #define CHECK(e) do { if (!(e)) abort(); } while (0)
            struct packed { char c; short s; int i; long l; double d; } __attribute__((packed));
            struct packed p[3]; static char q[16];
            int8_t a; int16_t b; int32_t c; int64_t d; __int128 e; float f; double g; _Bool h;
            volatile int8_t va; volatile int16_t vb; volatile int32_t vc; volatile int64_t vd;
            struct { volatile int i; } __attribute__((packed)) *vp;
            int array[10];
            int main(void) {
                a = -1; b = -2; c = -3; d = -4; e = -5; f = 1.5f; g = 2.5; h = 1;
                CHECK(a == -1 && b == -2 && c == -3 && d == -4 && e == -5);
                CHECK(f == 1.5f && g == 2.5 && h);
                va = 1; vb = 2; vc = 3; vd = 4;
                va++; vb += 2; vc *= 3; vd <<= 4;
                CHECK(va == 2 && vb == 4 && vc == 9 && vd == 64);
                vp = (void *)(q + 1);
                vp->i = 77;
                CHECK(vp->i == 77);
                for (int i = 0; i < 3; i++) {
                    p[i].c = i; p[i].s = i + 1; p[i].i = i + 2; p[i].l = i + 3; p[i].d = i + 4;
                }
                for (int i = 0; i < 3; i++)
                    CHECK(p[i].c == i && p[i].s == i + 1 && p[i].i == i + 2 && p[i].l == i + 3
                          && p[i].d == i + 4);
                for (int i = 0; i < 10; i++) array[i] = i;
                for (int i = 1; i < 10; i++) array[i] += array[i - 1];
                CHECK(array[9] == 45);
                return 0;
            }";
        for build in Build::installed(&BUILDS) {
            runs(build, source);
        }
    });
}

#[test]
fn aggregates_are_copied() {
    isolated("aggregates_are_copied", || {
        let source = "
            #include <stdlib.h>
            #include <string.h>
            struct small { int a, b; };
            struct large { long a[20]; char c[13]; };
            struct large x, y, *p;
            struct small s, t;
            struct { unsigned a : 3, b : 7, c : 20; } bits;
            static struct large make(int n) {
                struct large l;
                memset(&l, 0, sizeof l);
                for (int i = 0; i < 20; i++) l.a[i] = i + n;
                strcpy(l.c, \"hello\");
                return l;
            }
            int main(void) {
                p = malloc(sizeof *p);
                x = make(3);
                y = x;
                *p = y;
                if (memcmp(p, &x, sizeof x) || p->a[19] != 22 || strcmp(p->c, \"hello\")) abort();
                memset(p, 0xee, sizeof *p);
                memmove((char *)p + 8, p, sizeof *p - 8);
                if (p->a[3] != 0xeeeeeeeeeeeeeeee) abort();
                s = (struct small) { 1, 2 };
                t = s;
                if (t.a != 1 || t.b != 2) abort();
                bits.a = 5; bits.b = 100; bits.c = 99999;
                if (bits.a != 5 || bits.b != 100 || bits.c != 99999) abort();
                return 0;
            }";
        for build in Build::installed(&BUILDS) {
            let program = Program::build(build, source);
            let mut machine = program.load(Settings::default());
            Driver::first(&mut machine);
            let why = (machine.failure(), machine.refusal());
            assert_eq!(end(&machine), End::Complete, "{build:?} {why:?}");
        }
    });
}

/// Older and newer compilers have entries that the installed ones do not use.
#[test]
fn every_entry_can_be_called() {
    isolated("every_entry_can_be_called", || {
        let mut calls = String::new();
        let mut declarations = String::new();
        let mut call = |name: String| {
            declarations += &format!("void {name}(void *);\n");
            calls += &format!("{name}(at);\n");
        };
        for width in [1, 2, 4, 8, 16] {
            for what in [
                "read",
                "write",
                "read_write",
                "volatile_read",
                "volatile_write",
            ] {
                call(format!("__tsan_{what}{width}"));
                if width > 1 {
                    call(format!("__tsan_unaligned_{what}{width}"));
                }
            }
        }
        call("__tsan_vptr_read".to_owned());
        call("__tsan_func_entry".to_owned());
        call("__tsan_func_exit".to_owned());
        call("__tsan_ignore_thread_begin".to_owned());
        call("__tsan_ignore_thread_end".to_owned());
        call("__tsan_init".to_owned());
        let source = format!(
            "{declarations}
             void __tsan_vptr_update(void *, void *);
             void __tsan_read_range(void *, long);
             void __tsan_write_range(void *, long);
             void *__tsan_memcpy(void *, void *, long);
             void *__tsan_memmove(void *, void *, long);
             void *__tsan_memset(void *, int, long);
             void __tsan_atomic_thread_fence(int);
             void __tsan_atomic_signal_fence(int);
             _Alignas(16) static long memory[32], other[32];
             int main(void) {{
                 void *at = memory + 4;
                 {calls}
                 __tsan_vptr_update(memory + 8, memory + 9);
                 __tsan_read_range(memory + 12, 3);
                 __tsan_write_range(memory + 12, 3);
                 __tsan_memset(other, 3, 100);
                 __tsan_memcpy(other + 16, other, 64);
                 __tsan_memmove(other + 17, other + 16, 64);
                 __tsan_atomic_signal_fence(5);
                 __tsan_atomic_thread_fence(5);
                 return other[20] != 0x0303030303030303;
             }}"
        );
        let program = Program::build(GCC, &source);
        let mut machine = program.load(Settings::default());
        Driver::first(&mut machine);
        // Stores that are announced and not made change nothing.
        assert_eq!(end(&machine), End::Complete, "{:?}", machine.refusal());
    });
}

#[test]
fn orders_arrive_as_written() {
    isolated("orders_arrive_as_written", || {
        let source = "
            #include <stdatomic.h>
            atomic_int x;
            volatile int v;
            int main(void) {
                int e = 0;
                atomic_store_explicit(&x, 1, memory_order_relaxed);
                atomic_store_explicit(&x, 1, memory_order_release);
                atomic_load_explicit(&x, memory_order_acquire);
                atomic_load_explicit(&x, memory_order_consume);
                atomic_exchange_explicit(&x, 1, memory_order_acq_rel);
                atomic_compare_exchange_strong_explicit(
                    &x, &e, 1, memory_order_seq_cst, memory_order_relaxed);
                atomic_thread_fence(memory_order_release);
                v = 1;
                return v;
            }";
        use MemoryOrder::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        for build in Build::installed(&BUILDS) {
            let program = Program::build(build, source);
            let mut machine = program.load(Settings::default());
            let orders: Vec<_> = Driver::first(&mut machine)
                .steps
                .iter()
                .filter_map(|(_, op, _)| match *op {
                    Op::Load { order, .. } => Some((order, order)),
                    Op::Store { order, .. } => Some((order, order)),
                    Op::Update { order, failure, .. } => Some((order, failure)),
                    Op::Fence { order } => Some((order, order)),
                    _ => None,
                })
                .collect();
            let expected = [
                (Relaxed, Relaxed),
                (Release, Release),
                (Acquire, Acquire),
                (Acquire, Acquire),
                (AcqRel, AcqRel),
                (SeqCst, Relaxed),
                (Release, Release),
                (Relaxed, Relaxed),
                (Relaxed, Relaxed),
            ];
            assert_eq!(orders, expected, "{build:?}");
        }
    });
}

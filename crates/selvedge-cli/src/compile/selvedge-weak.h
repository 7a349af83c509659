/* Included before every file that clang compiles for Selvedge.
 *
 * clang's instrumentation calls the same function for weak and for strong compare-exchanges, which
 * cannot fail although it reads the expected value. So weak ones ask beforehand whether they fail. */
#ifndef SELVEDGE_WEAK_H
#define SELVEDGE_WEAK_H

#ifdef __cplusplus
extern "C" void selvedge_weak_exchange(void) noexcept;
extern "C" int selvedge_fails_spuriously(const volatile void *, const void *, const void *,
                                         __SIZE_TYPE__, int) noexcept;
#define selvedge_auto auto
#else
void selvedge_weak_exchange(void);
int selvedge_fails_spuriously(const volatile void *, const void *, const void *, __SIZE_TYPE__, int);
#define selvedge_auto __auto_type
#endif

/* `pointer` tells whether `desired` is the address of the new value. */
#ifdef SELVEDGE_SPURIOUS_FAILURES
#define selvedge_weakly(weak, pointer, exchange, at, expected, desired, failure, ...)               \
    __extension__({                                                                                \
        selvedge_auto selvedge_at = (at);                                                          \
        selvedge_auto selvedge_expected = (expected);                                              \
        selvedge_new_##pointer(desired);                                                           \
        (weak) && selvedge_fails_spuriously(selvedge_at, selvedge_expected,                        \
                                            selvedge_address_##pointer,                            \
                                            sizeof(*selvedge_expected), failure)                   \
            ? 0                                                                                    \
            : exchange(selvedge_at, selvedge_expected, selvedge_desired, __VA_ARGS__);             \
    })
#define selvedge_new_0(desired) __typeof__(*selvedge_expected) selvedge_desired = (desired)
#define selvedge_new_1(desired) selvedge_auto selvedge_desired = (desired)
#define selvedge_address_0 &selvedge_desired
#define selvedge_address_1 selvedge_desired
#else
#define selvedge_weakly(weak, pointer, exchange, at, expected, desired, failure, ...)               \
    ((weak) ? selvedge_weak_exchange() : (void)0, exchange(at, expected, desired, __VA_ARGS__))
#endif

#define __c11_atomic_compare_exchange_weak(at, expected, desired, success, failure)                \
    selvedge_weakly(1, 0, __c11_atomic_compare_exchange_weak, at, expected, desired, failure,       \
                    success, failure)
#define __atomic_compare_exchange_n(at, expected, desired, weak, success, failure)                 \
    selvedge_weakly(weak, 0, __atomic_compare_exchange_n, at, expected, desired, failure, weak,     \
                    success, failure)
#define __atomic_compare_exchange(at, expected, desired, weak, success, failure)                   \
    selvedge_weakly(weak, 1, __atomic_compare_exchange, at, expected, desired, failure, weak,       \
                    success, failure)

#endif

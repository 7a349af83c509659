/* Waiting for atomics, as the C++20 standard words it, for the headers of libstdc++ 11 to 14.
 *
 * libstdc++'s own file of this name polls sixteen times before it waits, counts waiters in tables that unrelated
 * objects share, and skips a notification when it sees no waiter. Each poll and each look at a table is a
 * choice that multiplies executions and says nothing about the program; and with a store that is not
 * sequentially consistent a notification can get lost, which is the library's fault. Here a thread
 * joins the queue of the very object, looks once more, and sleeps until a notification of that object. */
#include <bits/c++config.h>
#if _GLIBCXX_RELEASE < 11 || _GLIBCXX_RELEASE > 14
#include_next <bits/atomic_wait.h>
#elif !defined _GLIBCXX_ATOMIC_WAIT_H
#define _GLIBCXX_ATOMIC_WAIT_H 1
#pragma GCC system_header

#include <bits/functional_hash.h>
#include <bits/gthr.h>
#include <bits/std_mutex.h>
#include <cerrno>
#include <climits>
#include <ext/numeric_traits.h>
#if _GLIBCXX_RELEASE >= 14
#include <bits/version.h>
#else
#define __cpp_lib_atomic_wait 201907L
#endif

extern "C" {
unsigned selvedge_wait_join(const volatile void *);
void selvedge_wait_leave(const volatile void *, unsigned);
void selvedge_wait_sleep(const volatile void *, unsigned);
void selvedge_wait_while(const volatile void *, int);
void selvedge_wait_wake(const volatile void *, int);
}

namespace std _GLIBCXX_VISIBILITY(default) {
_GLIBCXX_BEGIN_NAMESPACE_VERSION

namespace __detail {

using __platform_wait_t = int;
inline constexpr size_t __platform_wait_alignment = 4;

/* What the library's own locks call between attempts, such as that of std::atomic<std::shared_ptr>. */
inline void __thread_relax() noexcept {}
inline void __thread_yield() noexcept {}

/* A semaphore that is polled: the standard lets it fail although others let go in between. */
template <typename _Pred> bool __atomic_spin(_Pred &__pred) noexcept { return __pred(); }

template <typename _Tp> bool __atomic_compare(const _Tp &__a, const _Tp &__b) {
    return __builtin_memcmp(&__a, &__b, sizeof(_Tp)) == 0;
}

/* Whoever changes the object and notifies after the thread has joined wakes it; whoever did so before is
 * seen by the second look. */
template <typename _Pred> void __selvedge_wait(const volatile void *__addr, _Pred &__pred) {
    while (!__pred()) {
        unsigned __slot = selvedge_wait_join(__addr);
        if (__pred()) {
            selvedge_wait_leave(__addr, __slot);
            return;
        }
        selvedge_wait_sleep(__addr, __slot);
    }
}

} // namespace __detail

template <typename _Tp, typename _ValFn>
void __atomic_wait_address_v(const _Tp *__addr, _Tp __old, _ValFn __vfn) noexcept {
    auto __pred = [&] { return !__detail::__atomic_compare(__old, __vfn()); };
    __detail::__selvedge_wait(__addr, __pred);
}

template <typename _Tp, typename _Pred>
void __atomic_wait_address(const _Tp *__addr, _Pred __pred) noexcept {
    __detail::__selvedge_wait(__addr, __pred);
}

/* Only semaphores wait this way. Their condition takes one off the counter, and fails where the counter is
 * zero or where another thread was faster. A release notifies only if the counter was zero: so the thread
 * sleeps only while it is, and tries again otherwise. */
template <typename _Pred>
void __atomic_wait_address_bare(const __detail::__platform_wait_t *__addr, _Pred __pred) noexcept {
    while (!__pred())
        selvedge_wait_while(__addr, 0);
}

template <typename _Tp> void __atomic_notify_address(const _Tp *__addr, bool __all) noexcept {
    selvedge_wait_wake(__addr, __all);
}

inline void __atomic_notify_address_bare(const __detail::__platform_wait_t *__addr, bool __all) noexcept {
    selvedge_wait_wake(__addr, __all);
}

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace std
#endif

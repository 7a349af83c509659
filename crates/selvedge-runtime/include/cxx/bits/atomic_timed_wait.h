/* Waiting for atomics with a deadline; see atomic_wait.h. A thread that may give up looks once more, and
 * then either goes on or lets the time pass: every moment at which a notification can come is a schedule. */
#include <bits/c++config.h>
#if _GLIBCXX_RELEASE < 11 || _GLIBCXX_RELEASE > 14
#include_next <bits/atomic_timed_wait.h>
#elif !defined _GLIBCXX_ATOMIC_TIMED_WAIT_H
#define _GLIBCXX_ATOMIC_TIMED_WAIT_H 1
#pragma GCC system_header

#include <bits/atomic_wait.h>
#include <bits/this_thread_sleep.h>

namespace std _GLIBCXX_VISIBILITY(default) {
_GLIBCXX_BEGIN_NAMESPACE_VERSION

template <typename _Tp, typename _Pred, typename _Clock, typename _Dur>
bool __atomic_wait_address_until(const _Tp *, _Pred __pred,
                                 const chrono::time_point<_Clock, _Dur> &__time) noexcept {
    if (__pred())
        return true;
    this_thread::sleep_until(__time);
    return __pred();
}

template <typename _Tp, typename _Pred, typename _Rep, typename _Period>
bool __atomic_wait_address_for(const _Tp *, _Pred __pred,
                               const chrono::duration<_Rep, _Period> &__time) noexcept {
    if (__pred())
        return true;
    this_thread::sleep_for(__time);
    return __pred();
}

template <typename _Pred, typename _Clock, typename _Dur>
bool __atomic_wait_address_until_bare(const __detail::__platform_wait_t *__addr, _Pred __pred,
                                      const chrono::time_point<_Clock, _Dur> &__time) noexcept {
    return std::__atomic_wait_address_until(__addr, __pred, __time);
}

template <typename _Pred, typename _Rep, typename _Period>
bool __atomic_wait_address_for_bare(const __detail::__platform_wait_t *__addr, _Pred __pred,
                                    const chrono::duration<_Rep, _Period> &__time) noexcept {
    return std::__atomic_wait_address_for(__addr, __pred, __time);
}

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace std
#endif

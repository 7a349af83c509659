/*
 * What C++ programs need beyond shim.c. The definitions here stand in for those of libstdc++ that
 * would otherwise bring its own thread synchronisation, or none that the runtime can see.
 */
#include <cstdint>
#include <cxxabi.h>
#include <exception>
#include <typeinfo>

#define HIDDEN __attribute__((visibility("hidden")))
#define SITE reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {
[[noreturn]] void selvedge_uncaught(const char *type, const char *what);
[[noreturn]] void selvedge_terminate();
unsigned __tsan_atomic32_load(const volatile unsigned *address, int order);
}

/* ---- the end of the program ------------------------------------------------------------------ */

[[noreturn]] static void uncaught(const std::type_info &type) {
    const char *name = abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr);
    if (!name)
        name = type.name();
    try {
        throw;
    } catch (const std::exception &exception) {
        selvedge_uncaught(name, exception.what());
    } catch (...) {
        selvedge_uncaught(name, nullptr);
    }
}

/* libstdc++'s default handler would print and abort. */
extern "C" HIDDEN void
selvedge_terminate_handler() __asm__("_ZN9__gnu_cxx27__verbose_terminate_handlerEv");

extern "C" void selvedge_terminate_handler() {
    if (const std::type_info *type = abi::__cxa_current_exception_type())
        uncaught(*type);
    selvedge_terminate();
}

/* ---- exceptions that threads share ------------------------------------------------------------ */

/*
 * A thrown object that several threads refer to is destroyed by the last of them, which libstdc++
 * finds out with a counter that the runtime does not see. So giving up a reference is made visible
 * here, wherever the object may be shared: it was taken with std::current_exception, or it came
 * through std::rethrow_exception. (The linker leads calls of X to __wrap_X, and those of __real_X
 * to X.)
 */
namespace {

/* The header in front of a thrown object, as the C++ ABI lays it out for this machine. */
struct Header {
    void *primary; /* of a rethrown exception; of an original one, its type */
    char others[72];
    std::uint64_t kind;
    char rest[24];
};
static_assert(sizeof(Header) == 112, "the thrown object follows its header");

const std::uint64_t ORIGINAL = 0x474e5543432b2b00, RETHROWN = ORIGINAL + 1;

Header *caught() { return *reinterpret_cast<Header **>(abi::__cxa_get_globals()); }

} // namespace

extern "C" {
void selvedge_share_exception(void *thrown);
void selvedge_release_exception(void *thrown, bool rethrown, std::uintptr_t site);

void __real___cxa_end_catch();
HIDDEN void __wrap___cxa_end_catch() {
    Header *header = caught();
    if (header && header->kind == ORIGINAL)
        selvedge_release_exception(header + 1, false, SITE);
    if (header && header->kind == RETHROWN)
        selvedge_release_exception(header->primary, true, SITE);
    __real___cxa_end_catch();
}

void **__real__ZSt17current_exceptionv(void **result);
HIDDEN void **__wrap__ZSt17current_exceptionv(void **result) {
    __real__ZSt17current_exceptionv(result);
    if (*result)
        selvedge_share_exception(*result);
    return result;
}

void __real__ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void **pointer);
HIDDEN void __wrap__ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void **pointer) {
    if (*pointer)
        selvedge_release_exception(*pointer, true, SITE);
    __real__ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(pointer);
}
}

/* ---- futures --------------------------------------------------------------------------------- */

/*
 * std::future waits for a word to change, and whoever changes it always notifies: so waiting for
 * the change alone is the same.
 */
static bool wait_for_change(const unsigned *address, unsigned value, bool timed) {
    const int acquire = 2;
    do {
        if (__tsan_atomic32_load(address, acquire) != value)
            return true;
    } while (!timed);
    return false;
}

extern "C" {
HIDDEN bool selvedge_futex_wait(void *, unsigned *address, unsigned value, bool timed, long, long)
    __asm__("_ZNSt28__atomic_futex_unsigned_base19_M_futex_wait_untilEPjjbNSt6chrono8durationIlSt5"
            "ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE");
HIDDEN bool selvedge_futex_wait_steady(void *, unsigned *address, unsigned value, bool timed, long,
                                       long)
    __asm__("_ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyEPjjbNSt6chrono8"
            "durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE");
HIDDEN void selvedge_futex_notify(unsigned *)
    __asm__("_ZNSt28__atomic_futex_unsigned_base19_M_futex_notify_allEPj");

bool selvedge_futex_wait(void *, unsigned *address, unsigned value, bool timed, long, long) {
    return wait_for_change(address, value, timed);
}

bool selvedge_futex_wait_steady(void *, unsigned *address, unsigned value, bool timed, long, long) {
    return wait_for_change(address, value, timed);
}

void selvedge_futex_notify(unsigned *) {}
}

/* ---- random devices -------------------------------------------------------------------------- */

extern "C" {
unsigned arc4random();
HIDDEN void selvedge_random_open(void *, const void *)
    __asm__("_ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
HIDDEN void selvedge_random_open_named(void *, const char *, unsigned long)
    __asm__("_ZNSt13random_device7_M_initEPKcm");
HIDDEN void selvedge_random_close(void *) __asm__("_ZNSt13random_device7_M_finiEv");
HIDDEN unsigned selvedge_random_get(void *) __asm__("_ZNSt13random_device9_M_getvalEv");
HIDDEN double selvedge_random_entropy(const void *)
    __asm__("_ZNKSt13random_device13_M_getentropyEv");

/* libstdc++ would ask the processor, which answers differently in every run. */
void selvedge_random_open(void *, const void *) {}
void selvedge_random_open_named(void *, const char *, unsigned long) {}
void selvedge_random_close(void *) {}
unsigned selvedge_random_get(void *) { return arc4random(); }
double selvedge_random_entropy(const void *) { return 0; }
}

/* ---- what the library initialises once ------------------------------------------------------- */

/*
 * Streams initialise the classic locale under a once control. Where the program has streams, that
 * is done before main, so that it is no visible operation in its threads.
 */
extern "C" __attribute__((weak)) void selvedge_classic_locale() __asm__("_ZNSt6locale7classicEv");

__attribute__((constructor(101))) static void initialise_library() {
    if (selvedge_classic_locale)
        selvedge_classic_locale();
}

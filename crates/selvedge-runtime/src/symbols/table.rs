//! The one table of external names: what a program may use of the C library and the compiler's
//! runtime, and what each function does to memory.
//!
//! A name that is not in the table is refused. A row is `NAMES = RESULT(ARGUMENTS)`, or only names
//! where no argument points to memory that the function accesses; lines with `#` are comments.
//! [`super::prototype`] reads the rows:
//!
//! | argument | meaning |
//! |---|---|
//! | `real` | the row stands for three functions: `float` (suffix `f`), `double`, `long double` (`l`) |
//! | `float`, `double`, `long double` | by value |
//! | `int`, `int=7` | any integer, or a pointer that is only passed on, with a value that tests use |
//! | `in T`, `out T`, `inout T` | points to memory that is read, written, both |
//! | `in? T` | the same, or null |
//! | `object N` | a synchronisation object of N bytes |
//! | `list` | a `va_list`; what follows is in it |
//! | `...` | what follows is passed to a variadic function |
//!
//! | `T` | extent |
//! |---|---|
//! | `8`, `int`, `long`, `pointer`, `real` | so many bytes |
//! | `string`, `string="text"`, `wstring` | up to the null character |
//! | `string/5` | the same; a call in a test needs so many bytes |
//! | `bytes(3)`, `wides(3)`, `pairs(3)` | as argument 3 says: bytes, wide characters, whole pairs of bytes |
//! | `array(2,3)` | argument 2 times argument 3 bytes |
//! | `first(3)` | one byte, if argument 3 is not zero |
//! | `number(2)` | a number in text, up to the character that argument 2 is made to point to |
//! | `text(2)` | the string that the function makes, of at most so many bytes as argument 2 says |

use super::How;

/// A part of the table.
pub(super) struct Section {
    pub(super) how: How,
    /// Rows, one on each line.
    pub(super) rows: &'static str,
}

const fn section(how: How, rows: &'static str) -> Section {
    Section { how, rows }
}

/// Functions that compute with their arguments' values. They run in the host as they are.
const VALUES: Section = section(
    How::Value,
    "
    # <math.h>, <complex.h>: each for float, double and long double
    asinh atan cbrt ceil copysign erf fabs floor fmax fmin nearbyint rint round roundeven trunc \
        significand __fpclassify __signbit __isinf __isnan __finite __issignaling __iseqsig isinf \
        isnan finite = real(real)
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow \
        cproj creal csin csinh csqrt ctan ctanh = real(real)

    # <stdlib.h>, <inttypes.h>, <string.h>
    abs labs llabs imaxabs div ldiv lldiv imaxdiv ffs ffsl ffsll strerrorname_np strerrordesc_np
    # <ctype.h>, <wctype.h>, <wchar.h>
    isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace
    isupper isxdigit toascii tolower toupper _tolower _toupper __ctype_b_loc __ctype_tolower_loc
    __ctype_toupper_loc __ctype_get_mb_cur_max iswalnum iswalpha iswblank iswcntrl iswdigit
    iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit iswctype towlower towupper
    __iswctype_l __towlower_l __towupper_l btowc wctob
    # <locale.h>, <langinfo.h>: there is one locale, whose strings are constant
    nl_langinfo nl_langinfo_l __nl_langinfo_l localeconv
    # <time.h>, <fenv.h>: the floating-point environment is the thread's own
    difftime tzset fegetround fegetexcept fesetround feclearexcept feraiseexcept fetestexcept
    feenableexcept fedisableexcept
    # <arpa/inet.h>, <sched.h>
    htonl htons ntohl ntohs sched_get_priority_max sched_get_priority_min

    # the compiler's arithmetic
    __divti3 __modti3 __udivti3 __umodti3 __udivmodti4 __divmodti4 __multi3 __muloti4 __mulodi4
    __mulosi4 __popcountdi2 __popcountsi2 __popcountti2 __clzti2 __ctzti2 __clzdi2 __ctzdi2
    __ffsti2 __ffsdi2 __paritydi2 __parityti2 __ashlti3 __ashrti3 __lshrti3 __bswapdi2
    __bswapsi2 __powisf2 __powidf2 __powixf2 __powitf2 __mulsc3 __muldc3 __mulxc3 __divsc3
    __divdc3 __divxc3 __fixunssfti __fixunsdfti __fixunsxfti __fixsfti __fixdfti __fixxfti
    __floattisf __floattidf __floattixf __floatuntisf __floatuntidf __floatuntixf __addtf3
    __subtf3 __multf3 __divtf3 __extenddftf2 __trunctfdf2 __extendsftf2 __trunctfsf2 __eqtf2
    __netf2 __lttf2 __gttf2 __letf2 __getf2 __unordtf2 __fixtfsi __fixtfdi __floatsitf
    __floatditf __extendxftf2 __trunctfxf2 __truncdfhf2 __truncsfhf2 __extendhfsf2
    ",
);

/// Functions that the host's C library performs after the runtime has announced what they access,
/// and whose `errno` becomes the thread's.
const HOST: Section = section(
    How::Host,
    "
    acos acosh asin atanh cos cosh erfc exp exp10 exp2 expm1 j0 j1 lgamma log log10 log1p log2 logb \
        pow10 sin sinh sqrt tan tanh tgamma y0 y1 = real(real)
    atan2 drem fdim fmod hypot nextafter pow remainder scalb = real(real, real)
    ilogb llrint llround lrint lround = int(real)
    jn yn = real(int=1, real)
    ldexp scalbln scalbn = real(real, int=1)
    fma = real(real, real, real)
    nexttoward = real(real, long double)
    frexp = real(real, out int)
    lgamma_r = real(real, out int)
    modf = real(real, out real)
    remquo = real(real, real, out int)
    sincos = int(real, out real, out real)
    nan = real(in string)

    strtol strtoll strtoimax __isoc23_strtol __isoc23_strtoll __isoc23_strtoimax \
        = int(in number(2), out? pointer, int=10)
    strtoul strtoull strtoumax __isoc23_strtoul __isoc23_strtoull __isoc23_strtoumax \
        = int(in number(2), out? pointer, int=10)
    strtod = double(in number(2), out? pointer)
    strtof = float(in number(2), out? pointer)
    strtold __isoc23_strtold = long double(in number(2), out? pointer)
    strtod_l __strtod_l = double(in number(2), out? pointer, int=locale())
    strtof_l __strtof_l = float(in number(2), out? pointer, int=locale())
    strtold_l __strtold_l = long double(in number(2), out? pointer, int=locale())
    swab = int(in pairs(3), out pairs(3), int=4)
    basename = int(in string)
    wctype = int(in string)
    __wctype_l = int(in string, int=locale())
    mbsinit = int(in? 8)
    __sched_cpucount = int(int=8, in bytes(1))

    gmtime_r localtime_r = int(in long, out 56)
    mktime timegm = int(inout 56)
    strftime = int(out text(2), int=64, in string=\"%Y\", in 56)
    strftime_l __strftime_l = int(out text(2), int=64, in string=\"%Y\", in 56, int=locale())
    ",
);

/// Functions that the runtime or its shim performs by itself.
const MODEL: Section = section(
    How::Model,
    "
    strlen = int(in string)
    strnlen = int(in string, int=8)
    strcmp strcasecmp strcoll = int(in string, in string)
    __strcoll_l = int(in string, in string, int=locale())
    strncmp strncasecmp = int(in string, in string, int=8)
    strcpy stpcpy = int(out string, in string)
    strncpy stpncpy = int(out bytes(3), in string, int=8)
    strcat = int(inout string/5, in string)
    strncat = int(inout string/5, in string, int=8)
    strlcpy = int(out string, in string, int=8)
    strlcat = int(inout string/5, in string, int=8)
    strxfrm = int(out string, in string, int=8)
    __strxfrm_l = int(out string, in string, int=8, int=locale())
    strchr strchrnul index strrchr rindex = int(in string, int='x')
    strstr strcasestr = int(in string, in string)
    strspn = int(in string, in string=\"12\")
    strcspn strpbrk = int(in string, in string=\"xy\")
    strtok_r __strtok_r = int(inout string, in string=\"xy\", out pointer)
    strtok = int(inout string, in string=\"xy\")
    strsep = int(inout pointer, in string=\"xy\")
    strdup = int(in string)
    strndup = int(in string, int=8)
    __strcpy_chk __stpcpy_chk = int(out string, in string, int=64)
    __strncpy_chk = int(out bytes(3), in string, int=8, int=64)
    __strcat_chk = int(inout string/5, in string, int=64)
    __strncat_chk = int(inout string/5, in string, int=8, int=64)
    memcpy memmove mempcpy = int(out bytes(3), in bytes(3), int=8)
    __memcpy_chk __memmove_chk __mempcpy_chk = int(out bytes(3), in bytes(3), int=8, int=64)
    memset = int(out bytes(3), int=1, int=8)
    __memset_chk = int(out bytes(3), int=1, int=8, int=64)
    memcmp bcmp = int(in bytes(3), in bytes(3), int=8)
    bcopy = int(in bytes(3), out bytes(3), int=8)
    bzero explicit_bzero = int(out bytes(2), int=8)
    __explicit_bzero_chk = int(out bytes(2), int=8, int=64)
    memchr memrchr = int(in bytes(3), int='x', int=8)
    rawmemchr = int(in string, int=0)
    memmem = int(in bytes(2), int=8, in bytes(4), int=2)
    memccpy = int(out bytes(4), in bytes(4), int='x', int=8)
    wcslen = int(in wstring)
    wcscmp = int(in wstring, in wstring)
    wcscpy = int(out wstring, in wstring)
    wmemcpy wmemmove = int(out wides(3), in wides(3), int=4)
    wmemset = int(out wides(3), int=1, int=4)
    wmemcmp = int(in wides(3), in wides(3), int=4)
    wmemchr = int(in wides(3), int=7, int=4)
    mblen = int(in? first(2), int=4)
    mbtowc = int(out? int, in? first(3), int=4)
    mbrlen = int(in? first(2), int=4, in? 8)
    mbrtowc = int(out? int, in? first(3), int=4, in? 8)
    wctomb = int(out? 1, int='x')
    wcrtomb = int(out? 1, int='x', in? 8)
    mbstowcs = int(out? wstring, in string, int=8)
    wcstombs = int(out? string, in wstring, int=8)
    atoi atol atoll = int(in string)
    atof = double(in string)
    __xpg_strerror_r = int(int=2, out string/26, int=64)
    strerror strsignal strerror_r
    newlocale __newlocale = int(int=0x1fbf, in string=\"C\", int=0)
    freelocale __freelocale duplocale __duplocale uselocale __uselocale
    setlocale = int(int=0, in? string=\"C\")
    qsort = int(inout array(2,3), int=2, int=4, int=compare)
    qsort_r = int(inout array(2,3), int=2, int=4, int=compare, int=0)
    bsearch = int(in int, in array(3,4), int=2, int=4, int=compare)

    getopt = int(int=2, in 16, in string)
    getopt_long getopt_long_only = int(int=2, in 16, in 1, in? 32, int=0)
    optarg optind opterr optopt
    in6addr_any in6addr_loopback

    clock_gettime = int(int=0, out 16)
    clock_getres = int(int=0, out? 16)
    gettimeofday = int(out? 16, out? 8)
    time = int(out? long)
    timespec_get = int(out 16, int=1)
    times = int(out? 32)
    getrusage = int(int=0, out 144)
    nanosleep = int(in 16, int=0)
    clock_nanosleep = int(int=0, int=0, in 16, int=0)
    clock usleep sleep
    gmtime localtime ctime = int(in long)
    asctime = int(in 56)
    asctime_r = int(in 56, out 26)
    ctime_r = int(in long, out 26)

    rand srand random srandom drand48 lrand48 mrand48 srand48 arc4random arc4random_uniform
    rand_r = int(inout int)
    arc4random_buf getentropy = int(out bytes(2), int=8)
    getrandom = int(out bytes(2), int=8, int=0)

    printf = int(in string, ...)
    fprintf = int(int=stdout, in string, ...)
    dprintf = int(int=1, in string, ...)
    sprintf = int(out string, in string, ...)
    snprintf = int(out string, int=8, in string, ...)
    asprintf = int(out pointer, in string, ...)
    __printf_chk = int(int=0, in string, ...)
    __fprintf_chk = int(int=stdout, int=0, in string, ...)
    __dprintf_chk = int(int=1, int=0, in string, ...)
    __sprintf_chk = int(out string, int=0, int=64, in string, ...)
    __snprintf_chk = int(out string, int=8, int=0, int=64, in string, ...)
    __asprintf_chk = int(out pointer, int=0, in string, ...)
    sscanf __isoc99_sscanf __isoc23_sscanf = int(in string, in string=\"%d\", ..., out int)
    warn warnx = int(in string, ...)
    err errx = int(int=0, in string, ...)
    vprintf = int(in string=\"%s\", list, in string)
    vfprintf = int(int=stdout, in string=\"%s\", list, in string)
    vdprintf = int(int=1, in string=\"%s\", list, in string)
    vsprintf = int(out string, in string=\"%s\", list, in string)
    vsnprintf = int(out string, int=8, in string=\"%s\", list, in string)
    vasprintf = int(out pointer, in string=\"%s\", list, in string)
    __vprintf_chk = int(int=0, in string=\"%s\", list, in string)
    __vfprintf_chk = int(int=stdout, int=0, in string=\"%s\", list, in string)
    __vdprintf_chk = int(int=1, int=0, in string=\"%s\", list, in string)
    __vsprintf_chk = int(out string, int=0, int=64, in string=\"%s\", list, in string)
    __vsnprintf_chk = int(out string, int=8, int=0, int=64, in string=\"%s\", list, in string)
    __vasprintf_chk = int(out pointer, int=0, in string=\"%s\", list, in string)
    vsscanf = int(in string, in string=\"%d\", list, out int)
    puts = int(in string)
    perror = int(in? string)
    fputs fputs_unlocked = int(in string, int=stdout)
    fwrite fwrite_unlocked = int(in array(2,3), int=4, int=2, int=stdout)
    write = int(int=1, in bytes(3), int=8)
    writev = int(int=1, in 16, int=1)
    putchar putchar_unlocked putc putc_unlocked _IO_putc fputc fputc_unlocked fflush
    fflush_unlocked setvbuf setbuf setbuffer setlinebuf fileno fileno_unlocked isatty ferror
    ferror_unlocked feof feof_unlocked clearerr flockfile funlockfile ftrylockfile

    getenv secure_getenv = int(in string)
    dlsym = int(int=0, in string=\"malloc\")
    sched_setscheduler = int(int=0, int=0, in int)
    sched_setparam = int(int=0, in int)
    sched_getparam = int(int=0, out int)
    sched_rr_get_interval = int(int=0, out 16)
    getauxval sched_getscheduler __pthread_get_minstack
    __errno_location getpid getppid gettid getuid geteuid getgid getegid sysconf get_nprocs
    get_nprocs_conf getpagesize abort raise kill pthread_kill __stack_chk_fail __fortify_fail
    __chk_fail _exit _Exit exit quick_exit atexit __cxa_atexit __cxa_finalize at_quick_exit
    __cxa_at_quick_exit
    # a futex that does not have the value
    syscall = int(int=202, ..., object 4, int=0, int=1, int=0, int=0, int=0)
    setjmp _setjmp __sigsetjmp = int(out 64)
    longjmp _longjmp siglongjmp __longjmp_chk = int(in 64, int=1)

    malloc calloc realloc reallocarray free cfree aligned_alloc memalign valloc pvalloc
    malloc_usable_size malloc_trim __sched_cpualloc __sched_cpufree
    posix_memalign = int(out pointer, int=16, int=8)

    pthread_create = int(out long, in? 56, int=nothing, int=0)
    pthread_join = int(int=thread(), out? pointer)
    pthread_getname_np = int(int=pthread_self(), out 1, int=16)
    pthread_setname_np = int(int=pthread_self(), in string)
    pthread_getaffinity_np = int(int=pthread_self(), int=8, out bytes(2))
    pthread_setaffinity_np = int(int=pthread_self(), int=8, in bytes(2))
    sched_getaffinity = int(int=0, int=8, out bytes(2))
    sched_setaffinity = int(int=0, int=8, in bytes(2))
    pthread_getschedparam = int(int=pthread_self(), out int, out int)
    pthread_setschedparam = int(int=pthread_self(), int=0, in int)
    pthread_setcancelstate pthread_setcanceltype = int(int=0, out? int)
    pthread_detach pthread_self pthread_equal pthread_setschedprio pthread_setconcurrency
    pthread_getconcurrency pthread_yield sched_yield sched_getcpu pthread_testcancel pthread_exit
    __pthread_register_cancel __pthread_unregister_cancel __pthread_unwind_next
    pthread_attr_init = int(out 56)
    pthread_attr_getdetachstate = int(in int, out int)
    pthread_attr_setdetachstate = int(out int, int=0)
    pthread_attr_getstacksize = int(in 16, out long)
    pthread_attr_setstacksize = int(out 16, int=65536)
    pthread_attr_getguardsize = int(in 24, out long)
    pthread_attr_setguardsize = int(out 24, int=65536)
    pthread_attr_setschedpolicy = int(out 28, int=0)
    pthread_attr_setschedparam = int(inout 32, in int)
    pthread_attr_setinheritsched = int(out 36, int=0)
    pthread_attr_setscope = int(out 40, int=0)
    pthread_attr_setaffinity_np = int(out 48, int=8, in? bytes(2))
    pthread_attr_destroy = int(out 56)
    pthread_mutexattr_init pthread_condattr_init pthread_barrierattr_init = int(out int)
    pthread_rwlockattr_init = int(out long)
    pthread_mutexattr_settype pthread_mutexattr_setpshared pthread_mutexattr_setprotocol \
        pthread_mutexattr_setprioceiling pthread_mutexattr_setrobust pthread_condattr_setclock \
        pthread_condattr_setpshared pthread_barrierattr_setpshared = int(inout int, int=0)
    pthread_rwlockattr_setpshared = int(inout long, int=0)
    pthread_rwlockattr_setkind_np = int(out int, int=0)
    pthread_mutexattr_gettype pthread_mutexattr_getpshared = int(in int, out int)
    pthread_condattr_getclock = int(in int, out int)
    pthread_condattr_getpshared = int(in int, out int)
    pthread_mutexattr_destroy pthread_condattr_destroy pthread_barrierattr_destroy = int(out int)
    pthread_rwlockattr_destroy = int(out long)
    pthread_key_create __pthread_key_create = int(out int, int=0)
    pthread_key_delete pthread_getspecific pthread_setspecific

    pthread_mutex_init = int(object 40, in? int)
    pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock = int(object 40)
    pthread_mutex_timedlock = int(object 40, in 16)
    pthread_mutex_clocklock = int(object 40, int=0, in 16)
    pthread_cond_init = int(object 48, in? int)
    pthread_cond_destroy pthread_cond_signal pthread_cond_broadcast = int(object 48)
    pthread_cond_wait = int(object 48, object 40)
    pthread_cond_timedwait = int(object 48, object 40, in 16)
    pthread_cond_clockwait = int(object 48, object 40, int=0, in 16)
    pthread_rwlock_init = int(object 56, in? long)
    pthread_rwlock_destroy pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_wrlock \
        pthread_rwlock_trywrlock pthread_rwlock_unlock = int(object 56)
    pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock = int(object 56, in 16)
    pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock = int(object 56, int=0, in 16)
    pthread_barrier_init = int(object 32, in? int, int=1)
    pthread_barrier_destroy pthread_barrier_wait = int(object 32)
    pthread_spin_init = int(object 4, int=0)
    pthread_spin_destroy pthread_spin_lock pthread_spin_trylock pthread_spin_unlock = int(object 4)
    sem_init = int(object 32, int=0, int=1)
    sem_destroy sem_wait sem_trywait sem_post = int(object 32)
    sem_timedwait = int(object 32, in 16)
    sem_clockwait = int(object 32, int=0, in 16)
    sem_getvalue = int(object 32, out int)
    pthread_once call_once = int(object 4, int=nothing)
    thrd_create = int(out long, int=nothing, int=0)
    thrd_join = int(int=thread(), out? int)
    thrd_sleep = int(in 16, int=0)
    thrd_detach thrd_current thrd_equal thrd_yield thrd_exit
    mtx_init = int(object 40, int=0)
    mtx_destroy mtx_lock mtx_trylock mtx_unlock = int(object 40)
    mtx_timedlock = int(object 40, in 16)
    cnd_init cnd_destroy cnd_signal cnd_broadcast = int(object 48)
    cnd_wait = int(object 48, object 40)
    cnd_timedwait = int(object 48, object 40, in 16)
    tss_create = int(out int, int=0)
    tss_delete tss_get tss_set

    __assert_fail __assert_perror_fail __assert reach_error __VERIFIER_error __VERIFIER_assume
    __VERIFIER_nondet_bool
    __cxa_guard_acquire __cxa_guard_release __cxa_guard_abort = int(object 8)
    __cxa_thread_atexit __cxa_thread_atexit_impl __cxa_pure_virtual __cxa_deleted_virtual
    __libc_single_threaded __tls_get_addr __atomic_feraiseexcept
    ",
);

/// Names that linked code refers to: parts of the object format, constant variables, the unwinder.
const LINKED: Section = section(
    How::Linked,
    "
    stdin stdout stderr program_invocation_name program_invocation_short_name
    _GLOBAL_OFFSET_TABLE_ _DYNAMIC __dso_handle __gmon_start__ _ITM_registerTMCloneTable
    _ITM_deregisterTMCloneTable _ITM_RU1 _ITM_RU8 _ITM_addUserCommitAction _ITM_memcpyRnWt
    _ITM_memcpyRtWn _ZGTtdlPv _ZGTtnam dl_iterate_phdr _dl_find_object __stack_chk_guard
    __cpu_model __cpu_indicator_init __gcc_personality_v0
    ",
);

/// The names that may be used; [`super::refused`] has the names that are refused with a reason.
pub(super) const SECTIONS: [Section; 4] = [VALUES, HOST, MODEL, LINKED];

/// Families by prefix: the unwinder.
pub(super) const PREFIXES: [&str; 1] = ["_Unwind_"];

//! What programs may use of the host's C library and compiler runtime as it is.

/// Functions of `<math.h>` and `<complex.h>` that come for all three floating types.
const MATH: &str = "\
            acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt \
            ccos ccosh ceil cexp cimag clog clog10 conj copysign cos cosh cpow cproj creal csin csinh \
            csqrt ctan ctanh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp \
            hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf \
            nearbyint nextafter nexttoward pow pow10 remainder remquo rint round roundeven scalb scalbln \
            scalbn significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn __fpclassify \
            __signbit __isinf __isnan __finite __issignaling __iseqsig isinf isnan finite drem nan";

/// glibc's `-ffast-math` entry points carry these affixes around a name of [`MATH`].
const FINITE: (&str, &str) = ("__", "_finite");

/// Everything else, in lists separated by spaces.
const OTHERS: &[&str] = &[
    // <stdlib.h>, <inttypes.h>, <string.h>
    "\
     abs labs llabs imaxabs div ldiv lldiv imaxdiv ffs ffsl ffsll strerror strerror_r \
     __xpg_strerror_r strerrorname_np strerrordesc_np strsignal strtold strtold_l \
     __isoc23_strtold swab a64l l64a basename dirname __xpg_basename",
    // <ctype.h>, <wctype.h>
    "\
     isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace \
     isupper isxdigit toascii tolower toupper _tolower _toupper __ctype_b_loc __ctype_tolower_loc \
     __ctype_toupper_loc __ctype_get_mb_cur_max iswalnum iswalpha iswblank iswcntrl iswdigit \
     iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit iswctype towlower towupper \
     wctype __iswctype_l __towlower_l __towupper_l __wctype_l",
    // characters and locales, which the standard streams of C++ set up
    "\
     btowc wctob mblen mbrlen mbrtowc mbtowc mbstowcs mbsnrtowcs mbsrtowcs mbsinit wcrtomb wctomb \
     wcstombs wcsnrtombs wcsrtombs __newlocale __freelocale __duplocale __uselocale \
     __nl_langinfo_l __strcoll_l __strxfrm_l __strftime_l __wcscoll_l __wcsxfrm_l __wcsftime_l \
     newlocale freelocale duplocale uselocale nl_langinfo nl_langinfo_l localeconv \
     strxfrm iconv iconv_open iconv_close gettext dgettext dcgettext ngettext textdomain \
     bindtextdomain bind_textdomain_codeset",
    // <time.h> beyond the clocks
    "\
     difftime gmtime gmtime_r localtime localtime_r mktime timegm asctime asctime_r ctime ctime_r \
     strftime tzset",
    // <fenv.h>
    "fegetenv fegetround fegetexcept",
    // <arpa/inet.h>, <sched.h>
    "\
     htonl htons ntohl ntohs sched_get_priority_max sched_get_priority_min __sched_cpucount \
     __sched_cpualloc __sched_cpufree",
    // variables
    "\
     stdin stdout stderr environ __environ _environ program_invocation_name \
     program_invocation_short_name signgam optarg optind opterr optopt getopt getopt_long \
     timezone daylight tzname",
    // how shared objects are put together
    "\
     _GLOBAL_OFFSET_TABLE_ _DYNAMIC __dso_handle __gmon_start__ _ITM_registerTMCloneTable \
     _ITM_deregisterTMCloneTable _ITM_RU1 _ITM_RU8 _ITM_addUserCommitAction _ITM_memcpyRnWt \
     _ITM_memcpyRtWn _ZGTtdlPv _ZGTtnam dl_iterate_phdr _dl_find_object __stack_chk_guard \
     __tls_get_addr __cpu_model __cpu_indicator_init __gcc_personality_v0",
];

/// Families by prefix: the unwinder and the compiler's arithmetic.
const PREFIXES: &[&str] = &["_Unwind_"];

/// libgcc's integer and floating arithmetic: operation and type suffix.
const ARITHMETIC: &str = "\
            __divti3 __modti3 __udivti3 __umodti3 __udivmodti4 __divmodti4 __multi3 __muloti4 __mulodi4 \
            __mulosi4 __popcountdi2 __popcountsi2 __popcountti2 __clzti2 __ctzti2 __clzdi2 __ctzdi2 \
            __ffsti2 __ffsdi2 __paritydi2 __parityti2 __ashlti3 __ashrti3 __lshrti3 __bswapdi2 \
            __bswapsi2 __powisf2 __powidf2 __powixf2 __powitf2 __mulsc3 __muldc3 __mulxc3 __divsc3 \
            __divdc3 __divxc3 __fixunssfti __fixunsdfti __fixunsxfti __fixsfti __fixdfti __fixxfti \
            __floattisf __floattidf __floattixf __floatuntisf __floatuntidf __floatuntixf __addtf3 \
            __subtf3 __multf3 __divtf3 __extenddftf2 __trunctfdf2 __extendsftf2 __trunctfsf2 __eqtf2 \
            __netf2 __lttf2 __gttf2 __letf2 __getf2 __unordtf2 __fixtfsi __fixtfdi __floatsitf \
            __floatditf __extendxftf2 __trunctfxf2 __truncdfhf2 __truncsfhf2 __extendhfsf2";

/// Whether `name` may be used as the host has it.
pub(super) fn contains(name: &str) -> bool {
    OTHERS.iter().any(|list| on(list, name))
        || on(ARITHMETIC, name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_math(name)
        || name
            .strip_prefix(FINITE.0)
            .and_then(|rest| rest.strip_suffix(FINITE.1))
            .is_some_and(is_math)
}

fn is_math(name: &str) -> bool {
    let stem = |suffix| name.strip_suffix(suffix);
    on(MATH, name)
        || [stem("f"), stem("l"), stem("_r"), stem("f_r"), stem("l_r")]
            .into_iter()
            .flatten()
            .any(|stem| on(MATH, stem))
}

fn on(list: &str, name: &str) -> bool {
    list.split(' ').any(|other| other == name)
}

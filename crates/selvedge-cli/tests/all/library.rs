//! The state that the C library's functions keep, their results, and the page that lists them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use selvedge_runtime::symbols::{self, How};

use crate::common::{Sandbox, compilers};

/// The names of the functions that are performed in one way, wrapped like the rest of the text.
fn names(how: How) -> String {
    let functions = symbols::functions().iter();
    let functions = functions.filter(|function| function.how == how);
    in_lines(functions.map(|function| &*function.name).collect())
}

fn in_lines(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    let mut text = String::new();
    let mut width = 0;
    for name in names {
        let separator = match width {
            0 => "",
            width if width + name.len() + 3 > 100 => "\n",
            _ => " ",
        };
        width = name.len() + 2 + if separator == " " { width + 1 } else { 0 };
        let _ = write!(text, "{separator}`{name}`");
    }
    text
}

/// Set `SELVEDGE_BLESS` to have the lists written.
#[test]
fn the_documentation_lists_every_function() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/libc.md");
    let text = fs::read_to_string(&path).expect("the page exists");
    let mut wanted = text.clone();
    for (marker, how) in [
        ("Value", How::Value),
        ("Host", How::Host),
        ("Model", How::Model),
    ] {
        let begin = format!("<!-- {marker} -->\n");
        let (before, rest) = wanted.split_once(&begin).expect("a list begins");
        let (_, after) = rest.split_once("<!-- end -->").expect("a list ends");
        wanted = format!("{before}{begin}{}\n<!-- end -->{after}", names(how));
    }
    let begin = "<!-- Environment -->\n";
    let (before, rest) = wanted.split_once(begin).expect("a list begins");
    let (_, after) = rest.split_once("<!-- end -->").expect("a list ends");
    let functions = selvedge_runtime::support::environment_functions();
    let list = in_lines(functions.collect());
    wanted = format!("{before}{begin}{list}\n<!-- end -->{after}");
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        fs::write(&path, &wanted).expect("the page can be written");
    } else {
        assert_eq!(text, wanted, "docs/libc.md is not what the table says");
    }
}

/// The kind of the first bug of a program, or the verdict if there is none.
pub(crate) fn verdict(text: &str, options: &[&str]) -> String {
    let sandbox = Sandbox::with("program.c", text);
    let arguments = [&["verify", "program.c", "--format", "json"], options].concat();
    let report = sandbox.run(&arguments).json();
    match report["bug"]["kind"].as_str() {
        Some(kind) => kind.to_owned(),
        None => report["verdict"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A counter that a library function advances is no reason to stop looking.
#[test]
fn a_loop_that_a_library_function_writes_in_does_not_only_wait() {
    let text = "
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int flag; static int turns;
static void *set(void *unused) { flag = 1; return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, set, 0);
    while (!flag) { frexp(ldexp(1, turns), &turns); assert(turns < 5); }
    pthread_join(thread, 0);
}
";
    for compiler in compilers() {
        assert_eq!(verdict(text, &["--cc", compiler]), "assertion");
    }
}

#[test]
fn errno_is_the_threads_own_and_a_change_of_it_is_an_effect() {
    let text = "
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
static volatile double minus = -1; static atomic_int flag;
static void *fail(void *unused) { errno = 0; log(minus); flag = 1; assert(errno == EDOM); return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, fail, 0);
    errno = 0;
    while (!flag) { if (errno) break; log(minus); }
    pthread_join(thread, 0);
    assert(HOLDS);
}
";
    let holds = |condition: &str| verdict(text, &["--", &format!("-DHOLDS={condition}")]);
    assert_eq!(holds("!errno||errno==EDOM"), "verified");
    assert_eq!(holds("!errno"), "assertion");
}

#[test]
fn hidden_state_is_shared_by_threads() {
    let program = |call: &str| {
        format!(
            "
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void *run(void *unused) {{
    char text[] = \"a b\", *words[] = {{\"p\", \"-a\", 0}}; time_t now = 5; struct tm tm = {{0}};
    (void)text, (void)words, (void)now, (void)tm;
    {call};
    return unused;
}}
int main(void) {{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    RUN
    pthread_join(thread, 0);
}}
"
        )
    };
    for call in [
        "strtok(text, \" \")",
        "getopt(2, words, \"a\")",
        "gmtime(&now)",
        "localtime(&now)",
        "ctime(&now)",
        "asctime(&tm)",
    ] {
        let text = program(call);
        assert_eq!(
            verdict(&text, &["--", "-DRUN=run(0);"]),
            "data-race",
            "{call}"
        );
        assert_eq!(verdict(&text, &["--", "-DRUN="]), "verified", "{call}");
    }
}

/// Values and results of functions that pass through the runtime, in each class of registers.
#[test]
fn functions_of_the_host_compute_what_they_should() {
    let text = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
int main(void) {
    int n; double d, e; long double l; float f; char *end, text[64];
    assert(frexp(8, &n) == 0.5 && n == 4);
    assert(frexpl(8, &n) == 0.5L && n == 4);
    assert(modff(2.25f, &f) == 0.25f && f == 2);
    assert(modfl(2.25L, &l) == 0.25L && l == 2);
    assert(remquol(7, 2, &n) == -1 && (n & 7) == 4);
    assert(fmal(2, 3, 4) == 10 && powl(2, 10) == 1024 && ldexpl(1, 3) == 8);
    assert(jn(0, 0) == 1 && lrintl(2.5L) == 2 && ilogb(8) == 3 && nexttoward(1, 2.0L) > 1);
    sincos(0, &d, &e);
    assert(d == 0 && e == 1);
    assert(strtold("1.5x", &end) == 1.5L && *end == 'x');
    assert(strtol("-12 ", &end, 10) == -12 && *end == ' ' && strtoull("077", 0, 0) == 63);
    errno = 0;
    assert(strtol("9999999999999999999", 0, 10) > 0 && errno == ERANGE);
    time_t zero = 0; struct tm tm;
    assert(gmtime_r(&zero, &tm) == &tm && tm.tm_year == 70 && timegm(&tm) == 0);
    assert(strftime(text, 64, "%Y-%m-%d", &tm) == 10 && !strcmp(text, "1970-01-01"));
    assert(strftime(text, 3, "%Y", &tm) == 0);
    assert(!strcmp(asctime(&tm), "Thu Jan  1 00:00:00 1970\n") && gmtime(&zero)->tm_mday == 1);
    wchar_t wide[8];
    assert(mbstowcs(wide, "abc", 8) == 3 && wide[1] == 'b' && wide[3] == 0);
    assert(wcstombs(text, wide, 2) == 2 && text[0] == 'a');
    swab("abcd", text, 4);
    assert(!memcmp(text, "badc", 4) && !strcmp(strerror(ENOENT), "No such file or directory"));
    char *words[] = {"p", "-ab7", "-c", "x", "--long=5", "--oth", "arg", "--", "rest", 0};
    struct option known[] = {{"long", 1, 0, 'L'}, {"other", 1, 0, 'O'}, {0, 0, 0, 0}};
    assert(getopt_long(9, words, "ab:c:", known, &n) == 'a');
    assert(getopt_long(9, words, "ab:c:", known, &n) == 'b' && !strcmp(optarg, "7"));
    assert(getopt_long(9, words, "ab:c:", known, &n) == 'c' && !strcmp(optarg, "x"));
    assert(getopt_long(9, words, "ab:c:", known, &n) == 'L' && !strcmp(optarg, "5") && n == 0);
    assert(getopt_long(9, words, "ab:c:", known, &n) == 'O' && !strcmp(optarg, "arg") && n == 1);
    assert(getopt_long(9, words, "ab:c:", known, &n) == -1 && optind == 8);
}
"#;
    for compiler in compilers() {
        for optimisation in ["-O0", "-O2"] {
            let options = ["--cc", compiler, "--", optimisation];
            assert_eq!(verdict(text, &options), "verified", "{options:?}");
        }
        let options = ["--cc", compiler, "--algorithm", "dfs"];
        assert_eq!(verdict(text, &options), "verified", "{options:?}");
    }
}

/// Rounding and flags belong to a thread; a new one inherits them.
#[test]
fn the_floating_point_environment_is_the_threads_own() {
    let text = "
#include <assert.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <xmmintrin.h>
static atomic_int x; static volatile double one = 1, three = 3; static volatile long double big = 1;
static void *up(void *unused) {
    assert(fegetround() == FE_TONEAREST);
    fesetround(FE_UPWARD);
    x++;
    assert(fegetround() == FE_UPWARD);
    double third = one / three;
    big = big / three;
    x++;
    assert(fetestexcept(FE_INEXACT) && third > 0.3333333333333333 && FLUSHES);
    return unused;
}
static void *flush(void *unused) {
    _mm_setcsr(_mm_getcsr() | 0x8000);
    x++;
    assert(!fetestexcept(FE_INEXACT) && fegetround() == FE_TONEAREST && _mm_getcsr() & 0x8000);
    return unused;
}
int main(void) {
    pthread_t threads[2]; void *mode;
    pthread_create(&threads[0], 0, up, 0);
    pthread_create(&threads[1], 0, flush, 0);
    x++;
    assert(fegetround() == FE_TONEAREST);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    fesetround(FE_TOWARDZERO);
    pthread_create(&threads[0], 0, (void *(*)(void *))fegetround, 0);
    pthread_join(threads[0], &mode);
    assert((int)(long)mode == FE_TOWARDZERO);
}
";
    for compiler in compilers() {
        for algorithm in ["trust", "source-dpor", "dfs"] {
            let options = |flushes| ["--cc", compiler, "--algorithm", algorithm, "--", flushes];
            let flushes = verdict(text, &options("-DFLUSHES=(_mm_getcsr()&0x8000)"));
            assert_eq!(flushes, "assertion", "{compiler}, {algorithm}");
            let does_not = verdict(text, &options("-DFLUSHES=!(_mm_getcsr()&0x8000)"));
            assert_eq!(does_not, "verified", "{compiler}, {algorithm}");
        }
    }
}

/// The x87 control word too, where inline assembly sets it.
#[test]
fn the_control_word_of_inline_assembly_is_the_threads_own() {
    let text = r#"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x; static volatile long double two = 2, three = 3; static long double third;
static void set(unsigned short word) { __asm__ volatile("fldcw %0" : : "m"(word)); }
static unsigned get(void) { unsigned short word; __asm__ volatile("fnstcw %0" : "=m"(word)); return word; }
static void *down(void *unused) {
    set(0x077f);
    x++;
    assert(two / three != third);
    x++;
    assert(get() == 0x077f);
    return unused;
}
static void *as_before(void *unused) {
    x++;
    assert(two / three == third);
    x++;
    assert(get() == MODE);
    return unused;
}
int main(void) {
    pthread_t a, b;
    third = two / three;
    pthread_create(&a, 0, down, 0);
    pthread_create(&b, 0, as_before, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
"#;
    for compiler in compilers() {
        for algorithm in ["trust", "source-dpor", "dfs"] {
            let options = |mode| ["--cc", compiler, "--algorithm", algorithm, "--", mode];
            let right = verdict(text, &options("-DMODE=0x37f"));
            assert_eq!(right, "verified", "{compiler}, {algorithm}");
            let wrong = verdict(text, &options("-DMODE=0x77f"));
            assert_eq!(wrong, "assertion", "{compiler}, {algorithm}");
        }
    }
}

/// A loop that changes the rounding mode goes on differently.
#[test]
fn a_loop_that_changes_the_rounding_mode_does_not_only_wait() {
    let text = "
#include <assert.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int flag;
static void *set(void *unused) { flag = 1; return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, set, 0);
    while (!flag) { assert(fegetround() != FE_UPWARD); fesetround(FE_UPWARD); }
    pthread_join(thread, 0);
}
";
    assert_eq!(verdict(text, &[]), "assertion");
}

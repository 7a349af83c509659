//! The `malloc` family, and functions on bytes and strings.

use selvedge_core::FailureKind::{
    BadFree, DataRace, DoubleFree, HeapOverflow, NullDereference, UseAfterFree, WildAccess,
};
use selvedge_runtime::Settings;

use crate::common::isolated;
use crate::common::programs::{alone, program, two_threads};
use crate::common::search::{check, check_all, check_with};

#[test]
fn the_malloc_family_allocates() {
    isolated("the_malloc_family_allocates", || {
        check_all(
            &program(
                "#include <malloc.h>",
                r#"char *p = malloc(10); strcpy(p, "hello"); p = realloc(p, 1000);
                 assert(!strcmp(p, "hello") && malloc_usable_size(p) >= 1000);
                 int *z = calloc(5, sizeof *z); for (int i = 0; i < 5; i++) assert(z[i] == 0);
                 z = reallocarray(z, 50, sizeof *z); assert(z[4] == 0); free(z); free(p); free(0);
                 void *q; assert(!posix_memalign(&q, 256, 3) && (size_t)q % 256 == 0); free(q);
                 assert(posix_memalign(&q, 3, 3) == EINVAL);
                 q = aligned_alloc(64, 64); assert((size_t)q % 64 == 0); free(q);
                 q = memalign(4096, 1); assert((size_t)q % 4096 == 0); free(q);
                 char *d = strdup("abc"), *e = strndup("abcdef", 2), *f;
                 assert(!strcmp(d, "abc") && !strcmp(e, "ab") && asprintf(&f, "%s-%d", d, 7) == 5);
                 assert(!strcmp(f, "abc-7")); free(d); free(e); free(f);
                 assert(realloc(malloc(4), 0) == 0); assert((p = realloc(0, 4))); free(p);
                 errno = 0; assert(malloc((size_t)-1) == 0 && errno == ENOMEM);
                 assert(calloc((size_t)1 << 40, 1 << 30) == 0);"#,
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn addresses_do_not_depend_on_the_interleaving() {
    isolated("addresses_do_not_depend_on_the_interleaving", || {
        // Every execution would print the same two addresses; the search compares them by value.
        check_all(
            &two_threads(
                "atomic_long first[3]; atomic_int order;",
                "void *p = malloc(8 * me); order++; first[me] = (long)p; order++; free(p);",
                "",
                "assert(first[1] && first[2] && first[1] != first[2]);",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn misuse_of_the_heap_is_a_bug() {
    isolated("misuse_of_the_heap_is_a_bug", || {
        check(&alone("char *p = malloc(4); free(p); free(p);")).has_bug(DoubleFree, "");
        check(&alone("char *p = malloc(4); free(p + 1);")).has_bug(BadFree, "");
        check(&alone("int x; int *p = &x; free(p);")).has_bug(BadFree, "");
        check(&alone("char *p = malloc(4); free(p); p = realloc(p, 8);")).has_bug(DoubleFree, "");
        check(&alone("char *p = malloc(4); free(p); strcpy(p, \"a\");")).has_bug(UseAfterFree, "");
        check(&alone("char *p = malloc(4); strcpy(p, \"abcd\");")).has_bug(HeapOverflow, "");
        check(&alone("char *p = malloc(4); memset(p, 1, 5);")).has_bug(HeapOverflow, "");
        check(&alone("char *p = 0; memset(p, 1, 5);")).has_bug(NullDereference, "");
        check(&alone("char *p = 0; printf(\"%zu\", strlen(p));")).has_bug(NullDereference, "");
        check(&alone(
            "pthread_mutex_t *m = malloc(sizeof *m); pthread_mutex_init(m, 0);
                      free(m); pthread_mutex_lock(m);",
        ))
        .has_bug(UseAfterFree, "");
    });
}

#[test]
fn too_large_an_allocation_names_the_limit() {
    isolated("too_large_an_allocation_names_the_limit", || {
        check(&alone("char *p = malloc(1 << 30); assert(!p);")).is_refused("1073741824 bytes");
        let small = Settings {
            heap_limit: 1 << 20,
            ..Settings::default()
        };
        check_with(small, &alone("for (int i = 0; i < 3; i++) malloc(600000);"))
            .is_refused("--heap-limit");
    });
}

#[test]
fn functions_on_bytes_and_strings_do_what_they_should() {
    isolated("functions_on_bytes_and_strings_do_what_they_should", || {
        check_all(
            &program(
                "#include <strings.h>\n#include <wchar.h>\n
                 static int ascending(const void *a, const void *b) {
                     return *(const int *)a - *(const int *)b; }",
                r#"char a[20] = "abcdef", b[20];
                 assert(memcpy(b, a, 7) == b && !strcmp(a, b) && memcmp(a, b, 7) == 0);
                 assert(mempcpy(b, a, 3) == b + 3 && memmove(a + 1, a, 6) == a + 1);
                 assert(!strcmp(a, "aabcdef") && memcmp("a", "b", 1) < 0);
                 assert(memchr(a, 'c', 7) == a + 3 && memchr(a, 'z', 7) == 0);
                 assert(memrchr(a, 'a', 7) == a + 1 && memmem(a, 7, "cd", 2) == a + 3);
                 assert(memset(b, 'x', 3) == b && b[2] == 'x'); bzero(b, 3); assert(!b[0]);
                 assert(strlen("abc") == 3 && strnlen("abc", 2) == 2 && strnlen("abc", 9) == 3);
                 assert(strcmp("a", "b") < 0 && strcmp("b", "a") > 0 && !strncmp("abX", "abY", 2));
                 assert(strcmp("\x80", "\x7f") > 0 && strcmp("", "a") < 0);
                 assert(!strcasecmp("aBc", "AbC") && !strncasecmp("aBcd", "AbCx", 3));
                 assert(strcpy(b, "hello") == b && stpcpy(b, "hey") == b + 3);
                 memset(b, 'x', 20); assert(strncpy(b, "ab", 5) == b && b[4] == 0 && b[5] == 'x');
                 strcpy(b, "ab"); assert(!strcmp(strcat(b, "cd"), "abcd"));
                 assert(!strcmp(strncat(b, "efgh", 2), "abcdef"));
                 assert(strchr(b, 'c') == b + 2 && !strchr(b, 'q') && strchr(b, 0) == b + 6);
                 assert(strrchr("abab", 'a')[1] == 'b' && !strrchr(b, 'z') && *strchrnul(b, 'z') == 0);
                 assert(strstr(b, "cde") == b + 2 && strstr(b, "") == b && !strstr(b, "dc"));
                 assert(strcasestr(b, "CDE") == b + 2);
                 assert(strspn("aab", "a") == 2 && strcspn("aab", "b") == 2 && !strpbrk("abc", "xy"));
                 char t[] = ",x,,yy", *rest; assert(!strcmp(strtok_r(t, ",", &rest), "x"));
                 assert(!strcmp(strtok_r(0, ",", &rest), "yy") && !strtok_r(0, ",", &rest));
                 char u[] = "p q"; assert(!strcmp(strtok(u, " "), "p") && !strcmp(strtok(0, " "), "q"));
                 char *end; errno = 0;
                 assert(strtol("-12x", &end, 10) == -12 && *end == 'x' && strtoul("ff", 0, 16) == 255);
                 assert(strtoll("077", 0, 0) == 63 && strtod("2.5e1", &end) == 25.0 && *end == 0);
                 assert(errno == 0 && strtol("99999999999999999999", 0, 10) > 0 && errno == ERANGE);
                 assert(atoi("42") == 42 && atol("-7") == -7 && atof("0.5") == 0.5 && atoi("x") == 0);
                 int v[100]; for (int i = 0; i < 100; i++) v[i] = i * 37 % 100;
                 qsort(v, 100, sizeof *v, ascending);
                 for (int i = 0; i < 100; i++) assert(v[i] == i);
                 int w[] = {3, 1, 2}, key = 2; qsort(w, 3, sizeof *w, ascending);
                 assert(w[0] == 1 && w[1] == 2 && w[2] == 3);
                 for (key = 0; key < 100; key++)
                     assert(bsearch(&key, v, 100, sizeof *v, ascending) == v + key);
                 assert(!bsearch(&key, v, 100, sizeof *v, ascending));
                 assert(snprintf(b, 4, "%d-%s", 12, "abc") == 6 && !strcmp(b, "12-"));
                 assert(sprintf(b, "%5.2f|%c|%%", 3.14159, 'z') == 9 && !strcmp(b, " 3.14|z|%"));
                 int x; char s[8]; double f;
                 assert(sscanf("7 word 2.5", "%d %7s %lf", &x, s, &f) == 3);
                 assert(x == 7 && !strcmp(s, "word") && f == 2.5);
                 int n = -1; char c[3] = "zzz"; short h; long long l;
                 assert(sscanf("12 ab", "%*d%n", &n) == 0 && n == 2);
                 assert(sscanf("xy", "%5c%n", c, &n) == 1 && n == 2 && c[1] == 'y' && c[2] == 'z');
                 assert(sscanf("8 9 10%", "%hd%lld%n %*d%%%n", &h, &l, &x, &n) == 2);
                 assert(h == 8 && l == 9 && x == 3 && n == 7);
                 assert(sscanf("ab-", "%[a-c]%n%d%n", s, &x, &n, &n) == 1 && x == 2 && n == 7);
                 assert(!strcmp(s, "ab") && sscanf("", "%d%n", &x, &n) == -1 && x == 2 && n == 7);
                 assert(wcslen(L"abc") == 3);"#,
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn what_libc_reads_and_writes_can_race() {
    isolated("what_libc_reads_and_writes_can_race", || {
        let racing = |one: &str, other: &str| {
            check(&two_threads(
                "char text[16] = \"abc\"; char copy[16]; int numbers[4];
                 static int compare(const void *a, const void *b) {
                     return *(const int *)a - *(const int *)b; }",
                &format!(
                    "char mine[32]; (void)mine; if (me == 1) {{ {one}; }} else {{ {other}; }}"
                ),
                "",
                "",
            ))
        };
        let change = "text[1] = 'x'";
        for read in [
            "memcpy(mine, text, 4)",
            "mine[0] = memcmp(mine, text, 4)",
            "mine[0] = strlen(text)",
            "mine[0] = strcmp(text, \"abc\")",
            "mine[0] = !strchr(text, 'z')",
            "mine[0] = !strstr(text, \"bc\")",
            "mine[0] = atoi(text)",
            "snprintf(mine, 9, \"%s\", text)",
            "printf(\"%.3s\", text)",
            "puts(text)",
            "write(1, text, 3)",
            "free(strdup(text))",
        ] {
            racing(read, change).has_bug(DataRace, "text");
        }
        for write in [
            "memset(text, 0, 3)",
            "strcpy(text, \"ab\")",
            "strcat(text, \"ab\")",
            "sprintf(text, \"%d\", 12345)",
            "sscanf(\"zzz\", \"%15s\", text)",
            "sscanf(\"zzz\", \"%3c\", text)",
            "sscanf(\"1 2\", \"%*d%n%d\", (int *)text, numbers)",
            "sscanf(\"1\", \"%d%n\", numbers, (int *)text)",
        ] {
            racing(write, change).has_bug(DataRace, "text");
        }
        racing("qsort(numbers, 4, 4, compare)", "numbers[2] = 1").has_bug(DataRace, "numbers");
        racing("mine[0] = strcmp(text, \"xbc\")", "text[1] = 'x'").is_fine();
        racing("mine[0] = memchr(text, 'a', 4) == text", "text[1] = 'x'").is_fine();
        racing("snprintf(text, 2, \"%s\", \"xyz\")", "text[2] = 'x'").is_fine();
    });
}

#[test]
fn fortified_functions_check_the_room() {
    isolated("fortified_functions_check_the_room", || {
        use crate::common::search::Checked;
        use crate::common::{GCC_O2, Program};
        let flags = ["-D_FORTIFY_SOURCE=2", "-fbuiltin"];
        let with = |body: &str| {
            let source = program(
                "char small[4], text[] = \"0123456789\"; volatile int n = 8;",
                body,
            );
            let build = Program::build_from(GCC_O2, "program.c", &source, &flags);
            Checked::search(&mut build.load(Settings::default()))
        };
        with("memcpy(small, text, n);").has_bug(WildAccess, "8 bytes into an object of 4");
        with("memset(small, 0, n);").has_bug(WildAccess, "8 bytes");
        with("strcpy(small, text);").has_bug(WildAccess, "11 bytes");
        with("sprintf(small, \"%s\", text);").has_bug(WildAccess, "11 bytes");
        with("snprintf(small, n, \"%s\", text);").has_bug(WildAccess, "8 bytes");
        with("n = 3; memcpy(small, text, n); snprintf(small, 4, \"%s\", text); printf(\"%s\", small);")
            .is_fine();
    });
}

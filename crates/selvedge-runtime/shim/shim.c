/*
 * The part of the runtime that must be C: functions with a variable number of arguments, and those
 * that call back into the program. It is linked into every program under test, without
 * instrumentation. Everything is hidden, so that the host's own libc stays what it is, and weak, so
 * that a program that defines one of these functions itself gets its own.
 */
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

#define API __attribute__((weak, visibility("hidden")))
#define SITE ((uintptr_t)__builtin_return_address(0))

typedef struct stream stream;

/* C++'s standard library takes shortcuts while there is one thread; here there never is only one. */
API char __libc_single_threaded = 0;

/* What the program says about itself, see posix/temporal.rs: a progress mark and up to 64 propositions. */
API char selvedge_told[65];

/* ---- output ---------------------------------------------------------------------------------- */

int selvedge_vprintf(const char *format, va_list arguments, uintptr_t site);
int selvedge_vfprintf(stream *to, const char *format, va_list arguments, uintptr_t site);
int selvedge_vdprintf(int to, const char *format, va_list arguments, uintptr_t site);
int selvedge_vsnprintf(char *to, size_t size, const char *format, va_list arguments, uintptr_t site);
int selvedge_vsnprintf_chk(char *to, size_t size, size_t room, const char *format,
                           va_list arguments, uintptr_t site);
int selvedge_vasprintf(char **to, const char *format, va_list arguments, uintptr_t site);
int selvedge_vsscanf(const char *from, const char *format, va_list arguments, uintptr_t site);
void selvedge_warn(const char *format, va_list arguments, int with_error, uintptr_t site);
_Noreturn void exit(int status);

#define UNBOUNDED 0x7fffffff
#define FORWARD(call)                                                                              \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    int result = call;                                                                             \
    va_end(arguments);                                                                             \
    return result

API int printf(const char *format, ...) { FORWARD(selvedge_vprintf(format, arguments, SITE)); }

API int fprintf(stream *to, const char *format, ...) {
    FORWARD(selvedge_vfprintf(to, format, arguments, SITE));
}

API int dprintf(int to, const char *format, ...) {
    FORWARD(selvedge_vdprintf(to, format, arguments, SITE));
}

API int sprintf(char *to, const char *format, ...) {
    FORWARD(selvedge_vsnprintf(to, UNBOUNDED, format, arguments, SITE));
}

API int snprintf(char *to, size_t size, const char *format, ...) {
    FORWARD(selvedge_vsnprintf(to, size, format, arguments, SITE));
}

API int asprintf(char **to, const char *format, ...) {
    FORWARD(selvedge_vasprintf(to, format, arguments, SITE));
}

API int __printf_chk(int flag, const char *format, ...) {
    FORWARD(selvedge_vprintf(format, arguments, SITE));
}

API int __fprintf_chk(stream *to, int flag, const char *format, ...) {
    FORWARD(selvedge_vfprintf(to, format, arguments, SITE));
}

API int __dprintf_chk(int to, int flag, const char *format, ...) {
    FORWARD(selvedge_vdprintf(to, format, arguments, SITE));
}

API int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...) {
    FORWARD(selvedge_vsnprintf_chk(to, UNBOUNDED, room, format, arguments, SITE));
}

API int __snprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, ...) {
    FORWARD(selvedge_vsnprintf_chk(to, size, room, format, arguments, SITE));
}

API int __asprintf_chk(char **to, int flag, const char *format, ...) {
    FORWARD(selvedge_vasprintf(to, format, arguments, SITE));
}

API int sscanf(const char *from, const char *format, ...) {
    FORWARD(selvedge_vsscanf(from, format, arguments, SITE));
}

API int __isoc99_sscanf(const char *from, const char *format, ...) {
    FORWARD(selvedge_vsscanf(from, format, arguments, SITE));
}

API int __isoc23_sscanf(const char *from, const char *format, ...) {
    FORWARD(selvedge_vsscanf(from, format, arguments, SITE));
}

#define COMPLAIN(with_error)                                                                       \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    selvedge_warn(format, arguments, with_error, SITE);                                            \
    va_end(arguments)

API void warn(const char *format, ...) { COMPLAIN(1); }

API void warnx(const char *format, ...) { COMPLAIN(0); }

API _Noreturn void err(int status, const char *format, ...) {
    COMPLAIN(1);
    exit(status);
}

API _Noreturn void errx(int status, const char *format, ...) {
    COMPLAIN(0);
    exit(status);
}

/* ---- once ------------------------------------------------------------------------------------ */

int selvedge_once_begin(int *control, uintptr_t site);
void selvedge_once_end(int *control, uintptr_t site);
void selvedge_once_abandon(int *control, uintptr_t site);

/* What an exception that leaves the routine (or pthread_exit in it) must undo. */
struct once {
    int *control;
    uintptr_t site;
    int done;
};

static void leave_once(struct once *once) {
    if (!once->done)
        selvedge_once_abandon(once->control, once->site);
}

static void run_once(int *control, void (*routine)(void), uintptr_t site) {
    if (!selvedge_once_begin(control, site))
        return;
    __attribute__((cleanup(leave_once))) struct once once = {control, site, 0};
    routine();
    once.done = 1;
    selvedge_once_end(control, site);
}

API int pthread_once(int *control, void (*routine)(void)) {
    run_once(control, routine, SITE);
    return 0;
}

API void call_once(int *control, void (*routine)(void)) { run_once(control, routine, SITE); }

/* ---- jumps ----------------------------------------------------------------------------------- */

void selvedge_touch(const void *address, size_t size, int write, uintptr_t site);
void selvedge_check_jump(uintptr_t target, uintptr_t site);
_Noreturn void selvedge_jump(void *buffer, int value);

/*
 * Saves rbx, rbp, r12 to r15, the stack pointer and the return address: eight words, as many as
 * the smallest buffer of glibc's headers has.
 */
__asm__(".text\n"
        ".weak setjmp\n.hidden setjmp\n.weak _setjmp\n.hidden _setjmp\n"
        ".weak __sigsetjmp\n.hidden __sigsetjmp\n"
        ".type setjmp, @function\n.type _setjmp, @function\n.type __sigsetjmp, @function\n"
        "setjmp:\n_setjmp:\n__sigsetjmp:\n"
        "\tpushq %rdi\n\tmovl $64, %esi\n\tmovl $1, %edx\n\tmovq 8(%rsp), %rcx\n"
        "\tcall selvedge_touch\n\tpopq %rdi\n"
        "\tmovq %rbx, (%rdi)\n\tmovq %rbp, 8(%rdi)\n"
        "\tmovq %r12, 16(%rdi)\n\tmovq %r13, 24(%rdi)\n"
        "\tmovq %r14, 32(%rdi)\n\tmovq %r15, 40(%rdi)\n"
        "\tleaq 8(%rsp), %rdx\n\tmovq %rdx, 48(%rdi)\n"
        "\tmovq (%rsp), %rdx\n\tmovq %rdx, 56(%rdi)\n"
        "\txorl %eax, %eax\n\tret\n"
        ".globl selvedge_jump\n.hidden selvedge_jump\n.type selvedge_jump, @function\n"
        "selvedge_jump:\n"
        "\tmovl %esi, %eax\n"
        "\tmovq (%rdi), %rbx\n\tmovq 8(%rdi), %rbp\n"
        "\tmovq 16(%rdi), %r12\n\tmovq 24(%rdi), %r13\n"
        "\tmovq 32(%rdi), %r14\n\tmovq 40(%rdi), %r15\n"
        "\tmovq 48(%rdi), %rsp\n\tjmp *56(%rdi)\n");

static _Noreturn void jump(uintptr_t *buffer, int value, uintptr_t site) {
    selvedge_touch(buffer, 64, 0, site);
    selvedge_check_jump(buffer[6], site);
    selvedge_jump(buffer, value ? value : 1);
}

API _Noreturn void longjmp(void *buffer, int value) { jump(buffer, value, SITE); }
API _Noreturn void _longjmp(void *buffer, int value) { jump(buffer, value, SITE); }
API _Noreturn void siglongjmp(void *buffer, int value) { jump(buffer, value, SITE); }
API _Noreturn void __longjmp_chk(void *buffer, int value) { jump(buffer, value, SITE); }

/* ---- the end of a thread --------------------------------------------------------------------- */

/* Notes the result and lends memory for an exception that outlives the stack it passes through. */
struct _Unwind_Exception *selvedge_begin_exit(void *result);
struct _Unwind_Exception *selvedge_continue_exit(void);
_Noreturn void selvedge_thread_exit(void);
void selvedge_push_cleanup(void *buffer);
void *selvedge_pop_cleanup(void);

static _Unwind_Reason_Code stop_unwinding(int version, _Unwind_Action actions,
                                          _Unwind_Exception_Class class,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *context, void *argument) {
    if (actions & _UA_END_OF_STACK)
        selvedge_thread_exit();
    return _URC_NO_REASON;
}

/* Runs what pthread_cleanup_push has left, then the destructors of everything on the stack. */
static _Noreturn void unwind(struct _Unwind_Exception *exception) {
    void *buffer = selvedge_pop_cleanup();
    if (buffer)
        selvedge_jump(buffer, 1);
    _Unwind_ForcedUnwind(exception, stop_unwinding, NULL);
    selvedge_thread_exit();
}

API _Noreturn void pthread_exit(void *result) { unwind(selvedge_begin_exit(result)); }

API _Noreturn void thrd_exit(int result) { unwind(selvedge_begin_exit((void *)(intptr_t)result)); }

API void __pthread_register_cancel(void *buffer) { selvedge_push_cleanup(buffer); }

API void __pthread_unregister_cancel(void *buffer) { selvedge_pop_cleanup(); }

API _Noreturn void __pthread_unwind_next(void *buffer) { unwind(selvedge_continue_exit()); }

/* ---- sorting and searching ------------------------------------------------------------------- */

void selvedge_wrote(const void *address, size_t size);

typedef int (*comparison)(const void *, const void *, void *);

struct array {
    char *base;
    size_t size;
    comparison compare;
    void *argument;
};

static void swap(struct array *array, size_t i, size_t j) {
    char *a = array->base + i * array->size, *b = array->base + j * array->size;
    for (size_t k = 0; k < array->size; k++) {
        char byte = a[k];
        a[k] = b[k];
        b[k] = byte;
    }
    selvedge_wrote(a, array->size);
    selvedge_wrote(b, array->size);
}

static int less(struct array *array, size_t i, size_t j) {
    char *base = array->base;
    return array->compare(base + i * array->size, base + j * array->size, array->argument) < 0;
}

/* Short arrays: stable, as programs have come to expect. */
static void insertion_sort(struct array *array, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && less(array, j, j - 1); j--)
            swap(array, j, j - 1);
}

static void sift_down(struct array *array, size_t root, size_t count) {
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && less(array, child, child + 1))
            child++;
        if (!less(array, root, child))
            return;
        swap(array, root, child);
    }
}

static void heap_sort(struct array *array, size_t count) {
    for (size_t root = count / 2; root-- > 0;)
        sift_down(array, root, count);
    for (size_t last = count; last-- > 1;) {
        swap(array, 0, last);
        sift_down(array, 0, last);
    }
}

static void sort(struct array *array, size_t count, uintptr_t site) {
    if (count < 2)
        return;
    selvedge_touch(array->base, count * array->size, 1, site);
    if (count <= 64)
        insertion_sort(array, count);
    else
        heap_sort(array, count);
}

static int without_argument(const void *a, const void *b, void *compare) {
    return ((int (*)(const void *, const void *))compare)(a, b);
}

API void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    struct array array = {base, size, without_argument, (void *)compare};
    sort(&array, count, SITE);
}

API void qsort_r(void *base, size_t count, size_t size, comparison compare, void *argument) {
    struct array array = {base, size, compare, argument};
    sort(&array, count, SITE);
}

API void *bsearch(const void *key, const void *base, size_t count, size_t size,
                  int (*compare)(const void *, const void *)) {
    const char *low = base;
    for (; count > 0; count /= 2) {
        const char *middle = low + count / 2 * size;
        int order = compare(key, middle);
        if (order == 0)
            return (void *)middle;
        if (order > 0) {
            low = middle + size;
            count--;
        }
    }
    return NULL;
}

/* ---- destructors ------------------------------------------------------------------------------ */

void selvedge_take_destructors(uintptr_t *functions, size_t count, int read_only, void *exit_lock);

/* Whoever takes it first runs what has to run at the end. */
static long exit_lock;

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

static int becomes_read_only(uintptr_t address) {
    const char *base = (const char *)&__ehdr_start;
    const Elf64_Phdr *header = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++)
        if (header[i].p_type == PT_GNU_RELRO &&
            address - (uintptr_t)base - header[i].p_vaddr < header[i].p_memsz)
            return 1;
    return 0;
}

/*
 * The functions that the dynamic linker would call when the host's process ends belong to the end
 * of the program instead.
 */
__attribute__((constructor(101))) static void hand_over_destructors(void) {
    uintptr_t array = 0;
    size_t size = 0;
    for (const Elf64_Dyn *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_FINI_ARRAY)
            array = (uintptr_t)&__ehdr_start + entry->d_un.d_ptr;
        if (entry->d_tag == DT_FINI_ARRAYSZ)
            size = entry->d_un.d_val;
    }
    selvedge_take_destructors((uintptr_t *)array, size / sizeof(uintptr_t), becomes_read_only(array),
                              &exit_lock);
}

/* ---- others ---------------------------------------------------------------------------------- */

char *selvedge_strtok(char *string, const char *set, char **rest, uintptr_t site);

/* Its state is the program's: it is reset with it, and two threads that share it race. */
static char *strtok_rest;

API char *strtok(char *string, const char *set) {
    return selvedge_strtok(string, set, &strtok_rest, SITE);
}

/* ---- calendar -------------------------------------------------------------------------------- */

void *selvedge_calendar(const long *time, void *parts, int local, uintptr_t site);
char *selvedge_asctime(const void *parts, char *text, uintptr_t site);

/* As POSIX allows, one structure for both, and one string. */
static long calendar_parts[7];
static char calendar_text[26];

API void *gmtime(const long *time) { return selvedge_calendar(time, calendar_parts, 0, SITE); }

API void *localtime(const long *time) { return selvedge_calendar(time, calendar_parts, 1, SITE); }

API char *asctime(const void *parts) { return selvedge_asctime(parts, calendar_text, SITE); }

API char *ctime(const long *time) {
    void *parts = selvedge_calendar(time, calendar_parts, 1, SITE);
    return parts ? selvedge_asctime(parts, calendar_text, SITE) : NULL;
}

/* ---- constants -------------------------------------------------------------------------------- */

API const unsigned char in6addr_any[16] = {0}, in6addr_loopback[16] = {[15] = 1};

/* ---- options --------------------------------------------------------------------------------- */

struct option {
    const char *name;
    int argument; /* 0: none, 1: required, 2: optional */
    int *flag;
    int value;
};

size_t strlen(const char *string);
int strncmp(const char *one, const char *other, size_t size);
_Noreturn void selvedge_refuse(const char *name, uintptr_t site);

API char *optarg;
API int optind = 1, opterr = 1, optopt = '?';
/* Where in a group of short options the next one is. */
static const char *option_rest;

#define GET(place) (selvedge_touch(&(place), sizeof(place), 0, site), (place))
#define SET(place, value) (selvedge_touch(&(place), sizeof(place), 1, site), (place) = (value))

static int complain(const char *options, const char *format, int character, uintptr_t site) {
    int quiet = GET(options[0]) == ':';
    SET(optopt, character);
    if (!quiet && GET(opterr))
        warnx(format, character);
    return '?';
}

static int missing(const char *options, int character, uintptr_t site) {
    int result = complain(options, "option requires an argument -- '%c'", character, site);
    return options[0] == ':' ? ':' : result;
}

static int long_option(int count, char *const *words, const char *options,
                       const struct option *known, int *found, uintptr_t site) {
    const char *name = option_rest;
    size_t length = 0;
    while (GET(name[length]) && name[length] != '=')
        length++;
    const struct option *match = NULL;
    int place = 0, several = 0;
    for (int i = 0; GET(known[i]).name; i++) {
        if (strncmp(known[i].name, name, length) != 0)
            continue;
        int exact = strlen(known[i].name) == length;
        several = match && !exact;
        if (!match || exact)
            match = &known[i], place = i;
        if (exact)
            break;
    }
    SET(option_rest, NULL);
    if (!match || several)
        return complain(options, "unrecognized option", 0, site);
    if (name[length] == '=' && match->argument == 0)
        return complain(options, "option does not take an argument", match->value, site);
    SET(optarg, name[length] == '=' ? (char *)name + length + 1 : NULL);
    if (name[length] != '=' && match->argument == 1) {
        if (GET(optind) >= count)
            return missing(options, match->value, site);
        SET(optarg, GET(words[optind]));
        SET(optind, optind + 1);
    }
    if (found)
        SET(*found, place);
    if (!match->flag)
        return match->value;
    SET(*match->flag, match->value);
    return 0;
}

/* Options end at the first word that is none. glibc would look for more behind it and reorder the words. */
static int next_option(int count, char *const *words, const char *options,
                       const struct option *known, int *found, int one_dash, uintptr_t site) {
    if (GET(optind) == 0) {
        SET(optind, 1);
        SET(option_rest, NULL);
    }
    SET(optarg, NULL);
    int reorder = GET(options[0]) != '+';
    if (options[0] == '-')
        selvedge_refuse("getopt with an option string that begins with -", site);
    options += !reorder;
    if (!GET(option_rest) || !GET(option_rest[0])) {
        const char *word = optind < count ? GET(words[optind]) : NULL;
        if (!word || GET(word[0]) != '-' || !GET(word[1])) {
            for (int i = optind; word && reorder && i < count; i++)
                if (GET(GET(words[i])[0]) == '-' && GET(words[i][1]))
                    selvedge_refuse("getopt that reorders its arguments", site);
            return -1;
        }
        SET(optind, optind + 1);
        int dashes = 1 + (GET(word[1]) == '-');
        if (dashes == 2 && !GET(word[2]))
            return -1;
        SET(option_rest, word + (known ? dashes : 1));
        if (known && (dashes == 2 || one_dash))
            return long_option(count, words, options, known, found, site);
    }
    char character = GET(option_rest[0]);
    SET(option_rest, option_rest + 1);
    const char *place = options;
    while (GET(place[0]) && (place[0] != character || character == ':'))
        place++;
    if (!place[0])
        return complain(options, "invalid option -- '%c'", character, site);
    if (GET(place[1]) != ':')
        return character;
    const char *rest = option_rest;
    SET(option_rest, NULL);
    if (GET(rest[0]))
        SET(optarg, (char *)rest);
    else if (GET(place[2]) != ':') {
        if (optind >= count)
            return missing(options, character, site);
        SET(optarg, GET(words[optind]));
        SET(optind, optind + 1);
    }
    return character;
}

API int getopt(int count, char *const *words, const char *options) {
    return next_option(count, words, options, NULL, NULL, 0, SITE);
}

API int getopt_long(int count, char *const *words, const char *options, const struct option *known,
                    int *found) {
    return next_option(count, words, options, known, found, 0, SITE);
}

API int getopt_long_only(int count, char *const *words, const char *options,
                         const struct option *known, int *found) {
    return next_option(count, words, options, known, found, 1, SITE);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* gcc calls it for `x += y` of atomic floating-point numbers; elsewhere libatomic has it. */
API void __atomic_feraiseexcept(int exceptions) {
    unsigned control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    control |= exceptions & 0x3f;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
}

long selvedge_syscall(long number, const uintptr_t *arguments, uintptr_t site);

API long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    uintptr_t arguments[6];
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, uintptr_t);
    va_end(list);
    return selvedge_syscall(number, arguments, SITE);
}

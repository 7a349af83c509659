/*
 * The modelled environment: descriptors, files, streams, mapped memory, signals. It is compiled and
 * instrumented like the program that uses it, so that its state is the program's: it is reset with an
 * execution, saved with a state, and checked for races. Definitions are weak; a program's own win.
 *
 * Whatever threads share is guarded by a lock whose value also has the bits that threads wait for
 * (ObjectFunction::LockWhen): a read of an empty pipe is one blocking step.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((weak, visibility("hidden")))
#define SITE ((uintptr_t)__builtin_return_address(0))
#define REFUSE(what) selvedge_give_up(what, SITE)

typedef uint64_t lock;

/* Waits until the lock is free and has one of the bits, or so much room; without bits, only until it
 * is free. Returns the state. */
uint64_t selvedge_lock_when(lock *object, uint32_t bits, uint32_t room);
void selvedge_unlock_with(lock *object, uint64_t state);
/* The state without taking the lock. */
uint64_t selvedge_look(lock *object);
_Noreturn void selvedge_give_up(const char *what, uintptr_t site);
void selvedge_output(int descriptor, const void *bytes, size_t size);
/* The size of a file as the search found it, or an error number below zero. */
int64_t selvedge_file_size(const char *path);
void selvedge_file_read(const char *path, char *into, size_t size);
/* Whether the current directory fits into so many bytes. */
int selvedge_directory(char *into, size_t size);
int selvedge_raise(int number);

/* Bits of a lock's state; the room is above them. */
enum { DATA = 1, NO_WRITERS = 2, NO_READERS = 4, CLOSED = 8 };
#define ROOM(count) ((uint64_t)(count) << 32)

static uint64_t enter(lock *object) { return selvedge_lock_when(object, 0, 0); }

static void leave(lock *object, uint64_t state) { selvedge_unlock_with(object, state); }

/* ---- descriptors ------------------------------------------------------------------------------ */

enum { DESCRIPTORS = 128, FILES = 256, CHANNELS = 64, CAPACITY = 65536, WATCHES = 16 };
enum kind { NOTHING, INPUT, OUTPUT, REGULAR, STREAM, COUNTER, TIMER, EPOLL };

/* Bytes on their way from writers to readers. */
struct channel {
    lock guard;
    char *data;
    size_t start, count, room;
    int readers, writers;
};

/* The contents of a file. */
struct inode {
    lock guard;
    /* Where it was read, and what it is called by now, under the table's lock. */
    char *path, *name;
    char *data;
    size_t size, room;
    int exists, loaded;
};

struct watch {
    int descriptor;
    struct file *file;
    struct epoll_event event;
};

/* What a descriptor stands for. A description is used for one file in an execution: a thread that
 * has looked a descriptor up may go on using it after another thread has closed it. */
struct file {
    enum kind kind;
    int references;
    /* Read and changed atomically. */
    int flags;
    /* Guards what follows. */
    lock guard;
    struct channel *in, *out;
    struct inode *inode;
    size_t offset;
    uint64_t count;
    int64_t expiry, interval;
    int clock, watched;
    struct watch watches[WATCHES];
};

/* Guards which descriptors, descriptions and channels are in use. */
static lock table;
static char taken[DESCRIPTORS] = {1, 1, 1};
static int files_used = 3, channels_used;
static struct file files[FILES] = {{.kind = INPUT, .references = 1},
                                   {.kind = OUTPUT, .references = 1, .flags = O_WRONLY},
                                   {.kind = OUTPUT, .references = 1, .flags = O_WRONLY}};
static struct channel channels[CHANNELS];
static struct file *descriptors[DESCRIPTORS] = {&files[0], &files[1], &files[2]};
static char close_on_exec[DESCRIPTORS];

static int fail(int number) {
    errno = number;
    return -1;
}

static struct file *file_of(int descriptor) {
    struct file *file = 0;
    if (descriptor >= 0 && descriptor < DESCRIPTORS)
        file = __atomic_load_n(&descriptors[descriptor], __ATOMIC_ACQUIRE);
    if (!file)
        errno = EBADF;
    return file;
}

/* The lowest free descriptor from `first` on, for `file`; -1 if there is none. */
static int install(struct file *file, int first, int closed_on_exec) {
    enter(&table);
    int descriptor = first;
    while (descriptor < DESCRIPTORS && taken[descriptor])
        descriptor++;
    if (descriptor < DESCRIPTORS) {
        taken[descriptor] = 1;
        close_on_exec[descriptor] = closed_on_exec != 0;
        file->references++;
    }
    leave(&table, 0);
    if (descriptor >= DESCRIPTORS)
        return fail(EMFILE);
    __atomic_store_n(&descriptors[descriptor], file, __ATOMIC_RELEASE);
    return descriptor;
}

static struct file *new_file(enum kind kind, int flags) {
    enter(&table);
    if (files_used == FILES)
        selvedge_give_up("more than 256 files opened in one execution", 0);
    struct file *file = &files[files_used++];
    leave(&table, 0);
    file->kind = kind;
    file->flags = flags;
    return file;
}

static struct channel *new_channel(void) {
    enter(&table);
    if (channels_used == CHANNELS)
        selvedge_give_up("more than 64 pipes opened in one execution", 0);
    struct channel *channel = &channels[channels_used++];
    leave(&table, 0);
    channel->readers = channel->writers = 1;
    return channel;
}

/* What threads may wait for at a channel. */
static uint64_t channel_state(struct channel *channel) {
    uint64_t state = ROOM(CAPACITY - channel->count);
    state |= channel->count ? DATA : 0;
    state |= channel->writers ? 0 : NO_WRITERS;
    return state | (channel->readers ? 0 : NO_READERS);
}

static void leave_channel(struct channel *channel) { leave(&channel->guard, channel_state(channel)); }

static void drop_channel(struct channel *channel, int *users) {
    enter(&channel->guard);
    --*users;
    if (!channel->readers && !channel->writers) {
        free(channel->data);
        channel->data = 0;
        channel->room = channel->count = 0;
    }
    leave_channel(channel);
}

API int close(int descriptor) {
    struct file *file = 0;
    if (descriptor >= 0 && descriptor < DESCRIPTORS)
        file = __atomic_exchange_n(&descriptors[descriptor], (struct file *)0, __ATOMIC_ACQ_REL);
    if (!file)
        return fail(EBADF);
    enter(&table);
    taken[descriptor] = close_on_exec[descriptor] = 0;
    int last = --file->references == 0;
    leave(&table, 0);
    if (!last)
        return 0;
    uint64_t state = enter(&file->guard);
    leave(&file->guard, state | CLOSED);
    if (file->in)
        drop_channel(file->in, &file->in->readers);
    if (file->out)
        drop_channel(file->out, &file->out->writers);
    return 0;
}

API int dup(int descriptor) {
    struct file *file = file_of(descriptor);
    return file ? install(file, 0, 0) : -1;
}

static int duplicate(int from, int to) {
    struct file *file = file_of(from);
    if (!file)
        return -1;
    if (to < 0 || to >= DESCRIPTORS)
        return fail(EBADF);
    if (from == to)
        return to;
    if (to < 3)
        REFUSE("dup2 to a standard stream");
    close(to);
    enter(&table);
    taken[to] = 1;
    file->references++;
    leave(&table, 0);
    __atomic_store_n(&descriptors[to], file, __ATOMIC_RELEASE);
    return to;
}

API int dup2(int from, int to) { return duplicate(from, to); }

API int dup3(int from, int to, int flags) { return from == to ? fail(EINVAL) : duplicate(from, to); }

static int control(int descriptor, int command, long argument) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    int flags = 0, changeable = O_NONBLOCK | O_APPEND;
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return install(file, (int)argument, command == F_DUPFD_CLOEXEC);
    case F_GETFD:
    case F_SETFD:
        enter(&table);
        if (command == F_SETFD)
            close_on_exec[descriptor] = argument & FD_CLOEXEC;
        else
            flags = close_on_exec[descriptor];
        leave(&table, 0);
        return flags;
    case F_GETFL:
        return __atomic_load_n(&file->flags, __ATOMIC_RELAXED);
    case F_SETFL:
        flags = __atomic_load_n(&file->flags, __ATOMIC_RELAXED) & ~changeable;
        __atomic_store_n(&file->flags, flags | ((int)argument & changeable), __ATOMIC_RELAXED);
        return 0;
    }
    REFUSE("fcntl with another command than F_DUPFD, F_GETFD, F_SETFD, F_GETFL and F_SETFL");
}

API int fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    return control(descriptor, command, argument);
}

API int fcntl64(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    return control(descriptor, command, argument);
}

static int waits(struct file *file) {
    return !(__atomic_load_n(&file->flags, __ATOMIC_RELAXED) & O_NONBLOCK);
}

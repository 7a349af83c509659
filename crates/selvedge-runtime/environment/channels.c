/* ---- pipes, socket pairs, counters and timers ------------------------------------------------- */

API int pipe2(int ends[2], int flags) {
    if (flags & ~(O_NONBLOCK | O_CLOEXEC))
        return fail(EINVAL);
    struct channel *channel = new_channel();
    struct file *reader = new_file(STREAM, O_RDONLY | (flags & O_NONBLOCK));
    struct file *writer = new_file(STREAM, O_WRONLY | (flags & O_NONBLOCK));
    reader->in = channel;
    writer->out = channel;
    enter(&channel->guard);
    leave_channel(channel);
    int in = install(reader, 0, flags & O_CLOEXEC), out = install(writer, 0, flags & O_CLOEXEC);
    if (in < 0 || out < 0)
        return fail(EMFILE);
    ends[0] = in;
    ends[1] = out;
    return 0;
}

API int pipe(int ends[2]) { return pipe2(ends, 0); }

API int socketpair(int domain, int type, int protocol, int ends[2]) {
    if (domain != AF_UNIX)
        return fail(EOPNOTSUPP);
    if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM)
        REFUSE("socketpair with another type than SOCK_STREAM");
    int flags = O_RDWR | (type & SOCK_NONBLOCK ? O_NONBLOCK : 0);
    struct channel *there = new_channel(), *back = new_channel();
    struct file *one = new_file(STREAM, flags), *other = new_file(STREAM, flags);
    one->out = other->in = there;
    one->in = other->out = back;
    enter(&there->guard);
    leave_channel(there);
    enter(&back->guard);
    leave_channel(back);
    int first = install(one, 0, type & SOCK_CLOEXEC);
    int second = install(other, 0, type & SOCK_CLOEXEC);
    if (first < 0 || second < 0)
        return fail(EMFILE);
    ends[0] = first;
    ends[1] = second;
    return 0;
}

static ssize_t read_channel(struct channel *channel, char *into, size_t size, int wait, int peek) {
    if (size == 0)
        return 0;
    uint64_t state = selvedge_lock_when(&channel->guard, wait ? DATA | NO_WRITERS : 0, 0);
    size_t count = size < channel->count ? size : channel->count;
    for (size_t i = 0; i < count; i++)
        into[i] = channel->data[(channel->start + i) % channel->room];
    if (!peek) {
        channel->start = channel->room ? (channel->start + count) % channel->room : 0;
        channel->count -= count;
    }
    leave_channel(channel);
    return count || state & NO_WRITERS ? (ssize_t)count : fail(EAGAIN);
}

/* Room for `size` more bytes. */
static void grow(struct channel *channel, size_t size) {
    if (channel->count + size <= channel->room)
        return;
    size_t room = channel->room ? channel->room : 64;
    while (room < channel->count + size)
        room *= 2;
    char *data = (char *)malloc(room);
    for (size_t i = 0; i < channel->count; i++)
        data[i] = channel->data[(channel->start + i) % channel->room];
    free(channel->data);
    channel->data = data;
    channel->start = 0;
    channel->room = room;
}

static ssize_t write_channel(struct channel *channel, const char *from, size_t size, int wait,
                             int quiet) {
    size_t written = 0;
    do {
        /* Up to PIPE_BUF bytes are written in one piece. */
        size_t left = size - written, needed = left <= PIPE_BUF ? left : 1;
        uint64_t state =
            selvedge_lock_when(&channel->guard, wait ? NO_READERS : 0, needed);
        size_t room = CAPACITY - channel->count, count = left < room ? left : room;
        int broken = (state & NO_READERS) != 0;
        if (broken || room < needed)
            count = 0;
        grow(channel, count);
        for (size_t i = 0; i < count; i++)
            channel->data[(channel->start + channel->count + i) % channel->room] = from[written + i];
        channel->count += count;
        leave_channel(channel);
        written += count;
        if (broken) {
            if (!quiet)
                raise(SIGPIPE);
            return written ? (ssize_t)written : fail(EPIPE);
        }
        if (count < left && !wait)
            return written ? (ssize_t)written : fail(EAGAIN);
    } while (written < size);
    return (ssize_t)size;
}

API int shutdown(int descriptor, int how) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (file->kind != STREAM || !file->in || !file->out)
        return fail(ENOTSOCK);
    if (how != SHUT_RD) {
        enter(&file->out->guard);
        file->out->writers = 0;
        leave_channel(file->out);
    }
    if (how != SHUT_WR) {
        enter(&file->in->guard);
        file->in->readers = 0;
        leave_channel(file->in);
    }
    return 0;
}

API int eventfd(unsigned initial, int flags) {
    struct file *file = new_file(COUNTER, O_RDWR | (flags & EFD_NONBLOCK));
    enter(&file->guard);
    file->count = initial;
    file->clock = flags & EFD_SEMAPHORE;
    leave(&file->guard, initial ? DATA : 0);
    return install(file, 0, flags & EFD_CLOEXEC);
}

static ssize_t read_counter(struct file *file, void *into, size_t size) {
    if (size < 8)
        return fail(EINVAL);
    uint64_t state = selvedge_lock_when(&file->guard, waits(file) ? DATA : 0, 0);
    uint64_t count = file->clock && file->count ? 1 : file->count;
    file->count -= count;
    leave(&file->guard, (state & ~(uint64_t)DATA) | (file->count ? DATA : 0));
    if (!count)
        return fail(EAGAIN);
    memcpy(into, &count, 8);
    return 8;
}

static ssize_t write_counter(struct file *file, const void *from, size_t size) {
    uint64_t count;
    if (size < 8)
        return fail(EINVAL);
    memcpy(&count, from, 8);
    if (count == UINT64_MAX)
        return fail(EINVAL);
    uint64_t state = enter(&file->guard);
    if (count > UINT64_MAX - 1 - file->count)
        REFUSE("an eventfd whose counter overflows");
    file->count += count;
    leave(&file->guard, state | (file->count ? DATA : 0));
    return 8;
}

API int eventfd_read(int descriptor, eventfd_t *value) {
    return read(descriptor, value, 8) == 8 ? 0 : -1;
}

API int eventfd_write(int descriptor, eventfd_t value) {
    return write(descriptor, &value, 8) == 8 ? 0 : -1;
}

/* Timers go by the clock of the thread that asks. */

static int64_t now(int clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t in_nanoseconds(struct timespec time) {
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct timespec as_timespec(int64_t time) {
    struct timespec split = {time / 1000000000, time % 1000000000};
    return split;
}

static void sleep_until(int clock, int64_t moment) {
    struct timespec time = as_timespec(moment);
    clock_nanosleep(clock, TIMER_ABSTIME, &time, 0);
}

API int timerfd_create(int clock, int flags) {
    struct file *file = new_file(TIMER, O_RDONLY | (flags & TFD_NONBLOCK));
    file->clock = clock;
    enter(&file->guard);
    leave(&file->guard, 0);
    return install(file, 0, flags & TFD_CLOEXEC);
}

static void timer_value(struct file *file, struct itimerspec *value) {
    int64_t left = file->expiry ? file->expiry - now(file->clock) : 0;
    value->it_value = as_timespec(left < 0 ? 0 : left);
    value->it_interval = as_timespec(file->interval);
}

API int timerfd_gettime(int descriptor, struct itimerspec *value) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (file->kind != TIMER)
        return fail(EINVAL);
    uint64_t state = enter(&file->guard);
    timer_value(file, value);
    leave(&file->guard, state);
    return 0;
}

/* A timer that is set has data: it is a matter of time. */
API int timerfd_settime(int descriptor, int flags, const struct itimerspec *value,
                        struct itimerspec *old) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (file->kind != TIMER)
        return fail(EINVAL);
    int64_t first = in_nanoseconds(value->it_value);
    uint64_t state = enter(&file->guard);
    if (old)
        timer_value(file, old);
    file->interval = in_nanoseconds(value->it_interval);
    file->expiry = first && !(flags & TFD_TIMER_ABSTIME) ? now(file->clock) + first : first;
    leave(&file->guard, (state & ~(uint64_t)DATA) | (first ? DATA : 0));
    return 0;
}

/* When a timer expires by its clock; 0 if it is not set. */
static int64_t expiry_of(struct file *file) {
    uint64_t state = enter(&file->guard);
    int64_t expiry = file->expiry;
    leave(&file->guard, state);
    return expiry;
}

static ssize_t read_timer(struct file *file, void *into, size_t size) {
    if (size < 8)
        return fail(EINVAL);
    int wait = waits(file);
    uint64_t state = selvedge_lock_when(&file->guard, wait ? DATA : 0, 0), count = 0;
    if (file->expiry && wait && now(file->clock) < file->expiry)
        sleep_until(file->clock, file->expiry);
    int64_t time = file->expiry ? now(file->clock) : 0;
    if (file->expiry && time >= file->expiry) {
        count = 1;
        if (file->interval)
            count += (uint64_t)((time - file->expiry) / file->interval);
        file->expiry = file->interval ? file->expiry + (int64_t)count * file->interval : 0;
    }
    leave(&file->guard, (state & ~(uint64_t)DATA) | (file->expiry ? DATA : 0));
    if (!count)
        return fail(EAGAIN);
    memcpy(into, &count, 8);
    return 8;
}

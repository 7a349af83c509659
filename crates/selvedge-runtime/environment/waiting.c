/* ---- poll and epoll --------------------------------------------------------------------------- */

/* What is ready of `events`. Only looks, so that a thread that polls in vain only waits. A timer that
 * is set is ready at `*expiry`, if that is not 0 and before what is there already. */
static int ready(struct file *file, int events, int64_t *expiry) {
    int found = 0;
    switch (file->kind) {
    case STREAM:
        if (file->in) {
            uint64_t state = selvedge_look(&file->in->guard);
            found |= state & (DATA | NO_WRITERS) && (state & DATA || file->out) ? POLLIN : 0;
            found |= state & NO_WRITERS && !file->out ? POLLHUP : 0;
        }
        if (file->out) {
            uint64_t state = selvedge_look(&file->out->guard);
            found |= state >= ROOM(PIPE_BUF) ? POLLOUT : 0;
            found |= state & NO_READERS ? (file->in ? POLLHUP : POLLERR) : 0;
        }
        break;
    case COUNTER:
        found = POLLOUT | (selvedge_look(&file->guard) & DATA ? POLLIN : 0);
        break;
    case TIMER:
        if (selvedge_look(&file->guard) & DATA && events & POLLIN) {
            int64_t moment = expiry_of(file), time = now(file->clock);
            if (moment && moment <= time)
                found = POLLIN;
            else if (moment) {
                int64_t monotonic = now(CLOCK_MONOTONIC) + (moment - time);
                if (!*expiry || monotonic < *expiry)
                    *expiry = monotonic;
            }
        }
        break;
    case INPUT:
    case REGULAR:
        found = POLLIN | POLLOUT;
        break;
    case OUTPUT:
        found = POLLOUT;
        break;
    default:
        break;
    }
    return found & (events | POLLERR | POLLHUP);
}

static int ready_descriptor(int descriptor, int events, int64_t *expiry) {
    if (descriptor < 0)
        return 0;
    int before = errno;
    struct file *file = file_of(descriptor);
    if (!file) {
        errno = before;
        return POLLNVAL;
    }
    if (file->kind == EPOLL)
        selvedge_give_up("poll of an epoll descriptor", 0);
    return ready(file, events, expiry);
}

static int any_ready(struct pollfd *set, nfds_t count, int64_t *expiry) {
    int found = 0;
    for (nfds_t i = 0; i < count && !found; i++)
        found = ready_descriptor(set[i].fd, set[i].events, expiry);
    return found;
}

/* A deadline in place of a number of milliseconds; -1 for none. */
static int64_t deadline_of(int timeout) {
    return timeout < 0 ? -1 : now(CLOCK_MONOTONIC) + timeout * 1000000LL;
}

/* Nothing was ready: lets time pass up to the first timer or the deadline. Whether there is one. */
static int time_passes(int64_t expiry, int64_t deadline) {
    if (!expiry && deadline < 0)
        return 0;
    int timer = expiry && (deadline < 0 || expiry <= deadline);
    sleep_until(CLOCK_MONOTONIC, timer ? expiry : deadline);
    return 1;
}

static int poll_until(struct pollfd *set, nfds_t count, int64_t deadline) {
    for (;;) {
        int64_t expiry = 0;
        int found = any_ready(set, count, &expiry);
        int passed = !found && time_passes(expiry, deadline);
        int late = passed && (!expiry || (deadline >= 0 && deadline < expiry));
        if (!found && !passed)
            while (!any_ready(set, count, &expiry) && !expiry)
                ;
        int result = 0;
        for (nfds_t i = 0; i < count; i++) {
            set[i].revents = (short)ready_descriptor(set[i].fd, set[i].events, &expiry);
            result += set[i].revents != 0;
        }
        if (result || late)
            return result;
    }
}

API int poll(struct pollfd *set, nfds_t count, int timeout) {
    return poll_until(set, count, deadline_of(timeout));
}

API int ppoll(struct pollfd *set, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    if (mask)
        REFUSE("ppoll with a mask of signals");
    return poll_until(set, count, timeout ? now(CLOCK_MONOTONIC) + in_nanoseconds(*timeout) : -1);
}

API int select(int count, fd_set *in, fd_set *out, fd_set *errors, struct timeval *timeout) {
    struct pollfd set[DESCRIPTORS];
    int used = 0, found = 0;
    for (int i = 0; i < count && i < DESCRIPTORS; i++) {
        int events = (in && FD_ISSET(i, in) ? POLLIN : 0) | (out && FD_ISSET(i, out) ? POLLOUT : 0);
        if (!events && !(errors && FD_ISSET(i, errors)))
            continue;
        if (!file_of(i))
            return -1;
        set[used].fd = i;
        set[used++].events = (short)events;
    }
    int64_t after = timeout ? timeout->tv_sec * 1000000000LL + timeout->tv_usec * 1000LL : 0;
    poll_until(set, (nfds_t)used, timeout ? now(CLOCK_MONOTONIC) + after : -1);
    if (in)
        FD_ZERO(in);
    if (out)
        FD_ZERO(out);
    if (errors)
        FD_ZERO(errors);
    for (int i = 0; i < used; i++) {
        int events = set[i].events, ready = set[i].revents;
        if (events & POLLIN && ready & (POLLIN | POLLHUP | POLLERR))
            FD_SET(set[i].fd, in), found++;
        if (events & POLLOUT && ready & (POLLOUT | POLLERR))
            FD_SET(set[i].fd, out), found++;
    }
    return found;
}

API int epoll_create1(int flags) {
    struct file *file = new_file(EPOLL, O_RDWR);
    enter(&file->guard);
    leave(&file->guard, 0);
    return install(file, 0, flags & EPOLL_CLOEXEC);
}

API int epoll_create(int size) { return size > 0 ? epoll_create1(0) : fail(EINVAL); }

static struct file *epoll_of(int descriptor) {
    struct file *file = file_of(descriptor);
    if (file && file->kind != EPOLL) {
        errno = EINVAL;
        return 0;
    }
    return file;
}

static struct watch *watch_of(struct file *set, int descriptor, struct file *file) {
    for (int i = 0; i < set->watched; i++)
        if (set->watches[i].descriptor == descriptor && set->watches[i].file == file)
            return &set->watches[i];
    return 0;
}

/* The room of an epoll's lock counts its changes, for threads that wait meanwhile. */
API int epoll_ctl(int descriptor, int command, int other, struct epoll_event *event) {
    struct file *set = epoll_of(descriptor), *file = set ? file_of(other) : 0;
    if (!set || !file)
        return -1;
    if (file->kind == EPOLL)
        REFUSE("an epoll descriptor within another");
    if (file->kind == REGULAR)
        return fail(EPERM);
    if (command != EPOLL_CTL_DEL && event->events & ~(uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP |
                                                               EPOLLERR | EPOLLHUP | EPOLLONESHOT))
        REFUSE("epoll_ctl with EPOLLET or other events than EPOLLIN, EPOLLOUT and EPOLLONESHOT; "
               "use level-triggered events");
    uint64_t state = enter(&set->guard);
    struct watch *watch = watch_of(set, other, file);
    int number = 0;
    if (command == EPOLL_CTL_ADD && watch)
        number = EEXIST;
    else if (command != EPOLL_CTL_ADD && !watch)
        number = ENOENT;
    else if (command == EPOLL_CTL_DEL)
        *watch = set->watches[--set->watched];
    else {
        if (!watch && set->watched == WATCHES)
            selvedge_give_up("an epoll with more than 16 descriptors", 0);
        if (!watch)
            watch = &set->watches[set->watched++];
        watch->descriptor = other;
        watch->file = file;
        watch->event = *event;
    }
    leave(&set->guard, number ? state : state + ROOM(1));
    return number ? fail(number) : 0;
}

/* What is ready of the watched descriptors; closed ones are not watched any more. */
static int watched_ready(struct watch *watch, int64_t *expiry) {
    if (!watch->event.events || selvedge_look(&watch->file->guard) & CLOSED)
        return 0;
    return ready(watch->file, (int)watch->event.events, expiry);
}

static int take_ready(struct file *set, struct epoll_event *events, int most) {
    int count = 0;
    int64_t expiry = 0;
    uint64_t state = enter(&set->guard);
    for (int i = 0; i < set->watched && count < most; i++) {
        int found = watched_ready(&set->watches[i], &expiry);
        if (!found)
            continue;
        events[count] = set->watches[i].event;
        events[count++].events = (uint32_t)found;
        if (set->watches[i].event.events & EPOLLONESHOT)
            set->watches[i].event.events = 0;
    }
    leave(&set->guard, state);
    return count;
}

/* Waits until something is ready, the set changes, or a timer is set. */
static void await_ready(struct file *set) {
    struct watch watches[WATCHES];
    int64_t expiry = 0;
    uint64_t state = enter(&set->guard);
    int count = set->watched;
    memcpy(watches, set->watches, sizeof watches);
    leave(&set->guard, state);
    for (int found = 0; !found;) {
        for (int i = 0; i < count && !found; i++)
            found = watched_ready(&watches[i], &expiry) || expiry;
        found = found || selvedge_look(&set->guard) >> 32 != state >> 32;
    }
}

static int64_t first_expiry(struct file *set) {
    int64_t expiry = 0;
    uint64_t state = enter(&set->guard);
    for (int i = 0; i < set->watched; i++)
        watched_ready(&set->watches[i], &expiry);
    leave(&set->guard, state);
    return expiry;
}

API int epoll_wait(int descriptor, struct epoll_event *events, int most, int timeout) {
    struct file *set = epoll_of(descriptor);
    if (!set)
        return -1;
    if (most <= 0)
        return fail(EINVAL);
    int64_t deadline = deadline_of(timeout);
    for (;;) {
        int count = take_ready(set, events, most);
        if (count)
            return count;
        int64_t expiry = first_expiry(set);
        if (!time_passes(expiry, deadline))
            await_ready(set);
        else if (!expiry || (deadline >= 0 && deadline < expiry))
            return take_ready(set, events, most);
    }
}

API int epoll_pwait(int descriptor, struct epoll_event *events, int most, int timeout,
                    const sigset_t *mask) {
    if (mask)
        REFUSE("epoll_pwait with a mask of signals");
    return epoll_wait(descriptor, events, most, timeout);
}

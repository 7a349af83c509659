/* Operations on a pipe, a socket pair or an eventfd, for the random programs that use descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is read from and written to; the same if it is an eventfd. */
static int from, to;
static int numbers;
struct start { int to; unsigned result; };

/* Writes `count` bytes or, to an eventfd, that number. */
FUNCTION unsigned put(int descriptor, int count) {
    static const char letters[] = "abcdefgh";
    uint64_t number = count;
    long written = numbers ? write(descriptor, &number, 8) : write(descriptor, letters + count, count);
    return written < 0 ? 100 + errno : written;
}

/* Reads up to two bytes, or a number. */
FUNCTION unsigned get(long *count) {
    unsigned seen = 0;
    uint64_t number = 0;
    char bytes[2] = {0};
    *count = numbers ? read(from, &number, 8) : read(from, bytes, 2);
    SEE(*count < 0 ? 100 + errno : *count);
    SEE(number);
    SEE(bytes[0] + 3 * bytes[1]);
    return seen;
}

FUNCTION unsigned look(int descriptor, int events, int timeout) {
    unsigned seen = 0;
    struct pollfd set = {descriptor, events, 0};
    SEE(poll(&set, 1, timeout));
    SEE(set.revents);
    return seen;
}

FUNCTION unsigned look_by_epoll(int descriptor, int events, int timeout) {
    unsigned seen = 0;
    struct epoll_event event = {events};
    int set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
    event.events = 0;
    SEE(epoll_wait(set, &event, 1, timeout));
    SEE(event.events);
    close(set);
    return seen;
}

#include <assert.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
int e, t;
void *writer(void *p) { uint64_t one = 3; assert(write(e, &one, 8) == 8); return 0; }
int main(void) {
    pthread_t th; uint64_t n; struct epoll_event ev = {EPOLLIN, {.u32 = 7}}, got[2];
    int set = epoll_create1(0); e = eventfd(0, 0); t = timerfd_create(CLOCK_MONOTONIC, 0);
    assert(!epoll_ctl(set, EPOLL_CTL_ADD, e, &ev));
    pthread_create(&th, 0, writer, 0);
    assert(epoll_wait(set, got, 2, -1) == 1 && got[0].data.u32 == 7);
    assert(read(e, &n, 8) == 8 && n == 3);
    pthread_join(th, 0);
    assert(epoll_wait(set, got, 2, 5) == 0);
    struct itimerspec in = {{0, 0}, {2, 0}}; struct timespec before, after;
    ev.data.u32 = 8; assert(!epoll_ctl(set, EPOLL_CTL_ADD, t, &ev));
    clock_gettime(CLOCK_MONOTONIC, &before); timerfd_settime(t, 0, &in, 0);
    assert(epoll_wait(set, got, 2, -1) == 1 && got[0].data.u32 == 8);
    clock_gettime(CLOCK_MONOTONIC, &after); assert(after.tv_sec - before.tv_sec == 2);
    assert(read(t, &n, 8) == 8 && n == 1);
    return 0;
}

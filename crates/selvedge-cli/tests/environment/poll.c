#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
int a[2], b[2];
void *writer(void *p) { assert(write(a[1], "x", 1) == 1); return 0; }
int main(void) {
    pthread_t t; char c;
    assert(!pipe(a) && !pipe(b));
    pthread_create(&t, 0, writer, 0);
    struct pollfd set[2] = {{a[0], POLLIN, 0}, {b[0], POLLIN, 0}};
    assert(poll(set, 2, -1) == 1 && set[0].revents == POLLIN && !set[1].revents);
    assert(read(a[0], &c, 1) == 1 && c == 'x');
    pthread_join(t, 0);
    assert(poll(set, 2, 10) == 0);
    return 0;
}
